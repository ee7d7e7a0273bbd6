/*
 * The program's verbs: one line each, from which the program's help, the call in cmd/main.c, and the man page are made.
 * The function of a verb gets the verb's name as argv[0] and returns the exit code of the program (exitcode.h).
 */
#ifndef CMD_VERBS_H
#define CMD_VERBS_H

/* The words that a verb takes besides options: up to this many right after the verb, or a command with its own options
 * at the end. */
enum { WORDS_NONE = 0, WORDS_ONE = 1, WORDS_TWO = 2, WORDS_MANY = 1000, WORDS_COMMAND = -1 };

/* clang-format off */
#define VERBS(X)                                                                                              \
    X(TRAIN,      train,      WORDS_NONE,    "train a model, in one process or as one node of a cluster")     \
    X(TUNE,       tune,       WORDS_NONE,    "find good options for 'paramo train'")                          \
    X(PREDICT,    predict,    WORDS_NONE,    "write a model's probability for each row")                      \
    X(EVAL,       eval,       WORDS_NONE,    "measure a model: log-loss, AUC, accuracy, calibration")         \
    X(INSPECT,    inspect,    WORDS_ONE,     "show what is in a model: sizes, norms, largest weights")        \
    X(EXPLAIN,    explain,    WORDS_NONE,    "show each feature's share in a model's score of a row")         \
    X(SERVE,      serve,      WORDS_NONE,    "score rows over HTTP with a model")                             \
    X(EXPORT,     export,     WORDS_NONE,    "write a model as text, for libffm or VW, or as a C file")       \
    X(IMPORT,     import,     WORDS_NONE,    "make a model from text")                                        \
    X(RUN,        run,        WORDS_COMMAND, "run a job on this machine: scheduler, servers, workers")        \
    X(SCHEDULER,  scheduler,  WORDS_NONE,    "run one scheduler of a cluster")                                \
    X(SERVER,     server,     WORDS_NONE,    "run one server of a cluster")                                   \
    X(WORKER,     worker,     WORDS_COMMAND, "run a command as one worker of a cluster")                      \
    X(DATA,       data,       WORDS_ONE,     "count, split, shuffle, convert and generate rows")              \
    X(RING,       ring,       WORDS_ONE,     "show which servers own and replicate each part of the keys")    \
    X(STATUS,     status,     WORDS_NONE,    "show the state of a live cluster")                              \
    X(DRAIN,      drain,      WORDS_ONE,     "migrate a server's partitions to the others and let it leave")  \
    X(CHECKPOINT, checkpoint, WORDS_TWO,     "save, load, list and verify checkpoints")                       \
    X(SIM,        sim,        WORDS_NONE,    "test whole clusters on a simulated network with faults")        \
    X(BENCH,      bench,      WORDS_MANY,    "measure what Paramo does beside the machine's limits")
/* clang-format on */

enum verb {
#define VERB_ENUM(id, name, words, summary) VERB_##id,
    VERBS(VERB_ENUM)
#undef VERB_ENUM
        VERB_COUNT
};

#define VERB_DECLARE(id, name, words, summary) int cmd_##name(int argc, char **argv);
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

#endif
