/*
 * The table of the program's options, in the order in which --help lists them. Parsing, limits, defaults,
 * environment variables, --help and the man page come from it (options.h); the code of the verb uses the values.
 *
 *   X(ID, verbs, name, letter, type with limits, meta, default, variable, help)
 *   N(ID, verbs, name)       a setting of a node, which the library's table (src/node/settings.c) describes
 *   S(ID, verbs, heading)    begins a group of options in --help
 *
 * `paramo train`, `tune` and `import` also have the options of the models (model_options.h). options.c defines the
 * names of types and of groups of verbs. The meta of a WORD lists its words. Help is one sentence without a full stop;
 * --help adds the default.
 */
#ifndef CMD_OPTION_TABLE_H
#define CMD_OPTION_TABLE_H

#include "learn/darlin/darlin_options.h"
#include "learn/data/convert.h"
#include "learn/data/holdout.h"
#include "learn/data/parse.h"
#include "learn/export/forms.h"
#include "learn/model/scale.h"
#include "learn/objective/calibration.h"
#include "learn/objective/objective.h"
#include "learn/train/expiry.h"
#include "learn/train/sightings.h"
#include "learn/tune/search.h"

/* clang-format off */
#define OPTIONS(X, N, S)                                                                                              \
    /* ---- data and models ---- */                                                                                   \
    X(MODEL_IN, SCORES | EXPORT | SERVE, "model-in", 0, TEXT, "DIR", NULL, NULL, "a model that 'paramo train' saved") \
    S(S_DATA, LEARNS, "What to learn from")                                                                           \
    X(DATA, LEARNS | SCORES | IMPORT | DATA, "data", 0, LIST, "FILE...", NULL, NULL,                                  \
      "files, globs in quotes, or - for standard input; .gz and .zst are decompressed")                               \
    X(FORMAT, LEARNS | SCORES, "format", 0, WORD, PARSE_FORMAT_WORDS, "auto", NULL,                                   \
      "libsvm 'label id:value', libffm 'label field:id:value', Criteo TSV, Vowpal Wabbit's, and tables: csv and tsv " \
      "with a header, jsonl; auto looks at the first lines")                                                          \
    X(COLUMNS, LEARNS | DATA, "columns", 0, TEXT, "ROLE=NAME;...,...", NULL, NULL,                                    \
      "roles of a table's columns (csv, tsv, jsonl): label=, weight=, cat= (text), num= (numbers), "                  \
      "ignore=, each with names of columns; * means all others")                                                      \
    X(CACHE, LEARNS | SCORES, "cache", 0, TEXT, "DIR", NULL, NULL,                                                    \
      "keep the parsed rows in this folder, and read them from there while the files are unchanged")                  \
    X(SKIP_BAD, LEARNS | SCORES | DATA, "skip-bad", 0, NUMBER(0, UINT64_MAX), "N", "0", NULL,                         \
      "skip and count up to N lines that cannot be read")                                                             \
    X(HOLD_OUT, LEARNS, "hold-out", 0, NUMBER(0, HOLDOUT_PERCENT_MAX), "PERCENT", "10", NULL,                         \
      "keep this share of the rows from training, and measure the model on them after each epoch; 0: none")           \
    X(VALID, LEARNS, "valid", 0, LIST, "FILE...", NULL, NULL,                                                         \
      "measure the model on these files instead; no row is held out")                                                 \
    X(HASH_BITS, LEARNS | IMPORT, "hash-bits", 0, NUMBER(0, 63), "N", "0", NULL,                                      \
      "hash feature ids to N bits; 0 keeps them")                                                                     \
    X(INTERACTIONS, LEARNS, "interactions", 0, LIST, "A:B...", NULL, NULL,                                            \
      "add a feature for each pair of features of the fields A and B, which are numbers or names of columns")         \
    X(EPOCHS, LEARNS, "epochs", 0, NUMBER(1, TRAIN_EPOCHS_MAX), "N", NULL, NULL,                                      \
      "passes over the data (at most 20, ended by --patience; 1 if the model is not measured)")                       \
    X(PATIENCE, LEARNS, "patience", 0, NUMBER(0, TRAIN_EPOCHS_MAX), "N", NULL, NULL,                                  \
      "stop after N epochs without a better measured log-loss; 0: never (2, or 0 if --epochs is given)")              \
    X(SHUFFLE, LEARNS, "shuffle", 0, NUMBER(0, UINT32_MAX), "ROWS", "100000", NULL,                                   \
      "from the second epoch on, shuffle the rows of a part within windows of this many; 0: the files' order")        \
    X(NEGATIVES, LEARNS, "negatives", 0, POSITIVE, "SHARE", NULL, NULL,                                               \
      "learn this share of the rows with label 0, drawn again for each epoch; predictions remain right "              \
      "for all rows (1)")                                                                                             \
    X(CLASS_WEIGHT, LEARNS, "class-weight", 0, LIST, "LABEL=W...|balanced", NULL, NULL,                               \
      "rows of this label count W times, learned and measured; balanced: each label has the same weight in sum (1)")  \
    X(CALIBRATE, TRAIN, "calibrate", 0, WORD, CALIBRATION_WORDS, "none", NULL,                                        \
      "correct the probabilities on the rows that measure: platt fits a line to the margins, isotonic fits steps")    \
    X(ANY_QUALITY, TRAIN, "any-quality", 0, FLAG, NULL, NULL, NULL,                                                   \
      "exit with 0, not 5, if the model is no better than guessing the mean rate")                                    \
    S(S_MODEL, LEARNS, "Where the model is")                                                                          \
    X(MODEL_OUT, LEARNS | IMPORT, "model-out", 0, TEXT, "DIR", NULL, NULL,                                            \
      "save the model in this folder, which is created")                                                              \
    X(MODEL_FROM, TRAIN, "model-in", 0, TEXT, "DIR", NULL, NULL,                                                      \
      "continue from this model, with its settings unless given")                                                     \
    X(KEEP_NAMES, TRAIN, "keep-names", 0, FLAG, NULL, NULL, NULL,                                                     \
      "read the data once more at the end, and write the names of features of tables and vw to names.tsv")            \
    X(NO_STATE, TRAIN, "no-state", 0, FLAG, NULL, NULL, NULL,                                                         \
      "save without the optimizers' state: smaller, but training cannot continue from it")                            \
    X(SNAPSHOT, TRAIN, "snapshot", 0, FLAG, NULL, NULL, NULL,                                                         \
      "in a cluster: after each epoch, take a snapshot of the model for readers, such as paramo serve "               \
      "(docs/SHARING.md)")                                                                                            \
    X(TRAIN_SEED, LEARNS, "seed", 0, NUMBER(0, UINT64_MAX), "N", "1", NULL,                                           \
      "seed of random initial values, and of --shuffle")                                                              \
    S(S_LEARN, LEARNS, "How to learn")                                                                                \
    X(OBJECTIVE, LEARNS | IMPORT, "objective", 0, WORD, OBJECTIVE_WORDS, "logistic", NULL,                            \
      "what the model predicts, in this order: the probability of label 1, a margin for labels 0 and 1, "             \
      "the mean of any labels, the mean of counts, a quantile, the probability of each class")                        \
    X(CLASSES, LEARNS | IMPORT, "classes", 0, NUMBER(2, OBJECTIVE_CLASSES_MAX), "C", NULL, NULL,                      \
      "softmax: labels are 0 to C-1")                                                                                 \
    X(QUANTILE, LEARNS | IMPORT, "quantile", 0, POSITIVE, "Q", NULL, NULL,                                            \
      "quantile: which one, between 0 and 1 (0.5)")                                                                   \
    X(BATCH, LEARNS, "batch", 0, NUMBER(1, 1 << 20), "N", NULL, NULL,                                                 \
      "rows of a batch (512 / workers / (ahead + 1), and an eighth of that at first; both at least 16)")              \
    X(SCHEDULE, LEARNS, "schedule", 0, TEXT, "KIND", "constant", NULL,                                                \
      "how the learning rate changes: constant, invsqrt[:T0], power:P[:T0], linear[:E], cosine[:E] or step:F[:N], "   \
      "in epochs; it multiplies gradients")                                                                           \
    X(WARMUP, LEARNS, "warmup", 0, POSITIVE, "EPOCHS", NULL, NULL,                                                    \
      "raise the learning rate from 0 over the first epochs, such as 0.1")                                            \
    X(SCALE, LEARNS, "scale", 0, WORD, SCALE_WORDS, "auto", NULL,                                                     \
      "divide each feature's values by their running magnitude: the greatest, or (std) the root of the mean square; " \
      "auto is std from the first value on that is not 0 or 1")                                                       \
    X(FACTOR_AFTER, LEARNS, "factor-after", 0, NUMBER(0, SIGHTINGS_MAX), "N", NULL, NULL,                             \
      "a feature gets factors after N rows that have it, and has only a weight before; 0: at once")                   \
    X(ADMIT, LEARNS, "admit", 0, TEXT, "count:N|prob:P", NULL, NULL,                                                  \
      "add a new feature to the model after a worker has seen it N times, or each time with probability P")           \
    X(ADMIT_MEMORY, LEARNS, "admit-memory", 0, NUMBER(1, 65536), "MB", "16", NULL,                                    \
      "admit count: memory of a worker's counters")                                                                   \
    X(MAX_FEATURES, LEARNS, "max-features", 0, NUMBER(1, UINT64_MAX), "N", NULL, NULL,                                \
      "admit: the greatest number of features in the model")                                                          \
    X(EXPIRE, LEARNS, "expire", 0, NUMBER(1, EXPIRY_MAX), "N", NULL, NULL,                                            \
      "remove features that were in no row for N parts of the data, 1 MiB each")                                      \
    X(SOLVER, TRAIN, "solver", 0, WORD, "ftrl|darlin", "ftrl", NULL,                                                  \
      "darlin minimizes the loss of lr with --l1 over all rows, one block of features at a time (docs/DARLIN.md)")    \
    X(BIAS, TRAIN, "bias", 0, WORD, DARLIN_BIAS_WORDS, "l1", NULL,                                                    \
      "darlin: l1 penalizes the bias like a weight, free does not, none has no bias")                                 \
    X(TAU, TRAIN, "tau", 0, NUMBER(0, DARLIN_DELAY_MAX), "T", "0", NULL,                                              \
      "darlin: a block's gradient may lack the steps of T blocks before it")                                          \
    X(BLOCKS, TRAIN, "blocks", 0, NUMBER(1, DARLIN_BLOCKS_MAX), "N", NULL, NULL,                                      \
      "darlin: blocks of features (4 times as many as a row has features)")                                           \
    X(BLOCK_ORDER, TRAIN, "block-order", 0, WORD, "random|fixed", "random", NULL,                                     \
      "darlin: order of the blocks in a pass")                                                                        \
    X(NO_KKT, TRAIN, "no-kkt", 0, FLAG, NULL, NULL, NULL,                                                             \
      "darlin: visit all features in each pass, also those whose weight stays 0")                                     \
    X(TOLERANCE, TRAIN, "tolerance", 0, POSITIVE, "E", DARLIN_EPSILON, NULL,                                          \
      "darlin: the relative decrease of the objective at which it ends")                                              \
    S(S_SEARCH, TUNE, "How to search")                                                                                \
    X(TRIALS, TUNE, "trials", 0, NUMBER(1, TUNE_TRIALS_MAX), "N", NULL, NULL,                                         \
      "how many settings to try (36; with --time: until the time is over)")                                           \
    X(TUNE_TIME, TUNE, "time", 0, NUMBER(1, 31536000), "SECONDS", NULL, NULL,                                         \
      "end the search after this time; then the best settings are trained")                                           \
    X(RANGE, TUNE, "range", 0, LIST, "NAME=LOW:HIGH...", NULL, NULL,                                                  \
      "search an option within LOW and HIGH, such as alpha=0.01:0.5; an option that is given is not tuned")           \
    X(TUNE_LOG, TUNE, "log", 0, TEXT, "FILE", NULL, NULL,                                                             \
      "keep the result of each trial; the same command then continues the search")                                    \
    S(S_WHERE, LEARNS, "Where")                                                                                       \
    X(TRAIN_SERVERS, LEARNS, "servers", 0, NUMBER(1, 256), "S", "1", NULL,                                            \
      "in one process: server shards, a thread each")                                                                 \
    X(TRAIN_WORKERS, LEARNS, "workers", 0, NUMBER(1, 256), "W", "1", NULL,                                            \
      "in one process: learners, a thread each; a cluster has its own numbers of servers and workers")                \
    X(AHEAD, LEARNS, "ahead", 0, NUMBER(0, 64), "N", "1", NULL, "pull parameters N batches ahead")                    \
    X(CONSISTENCY, LEARNS, "consistency", 0, TEXT, "asp|bsp|ssp:S", "asp", NULL,                                      \
      "how far apart workers may be: any distance, none, or S batches (docs/CONSISTENCY.md)")                         \
    X(AGGREGATE, LEARNS, "aggregate", 0, WORD, "none|sum|mean", "none", NULL,                                         \
      "with --consistency bsp: update once, with the sum or the mean of all workers' pushes for a batch")             \
    X(DETERMINISTIC, LEARNS, "deterministic", 0, FLAG, NULL, NULL, NULL,                                              \
      "with --aggregate: each worker reads all rows and learns its share of each batch; runs are equal bit for bit")  \
    X(FILTER, TRAIN, "filter", 0, LIST, "push=CHAIN|pull=CHAIN...", NULL, NULL,                                       \
      "filters between workers and servers, such as push=fixed:2,keycache,lz4 pull=keycache,lz4 (docs/FILTERS.md)")   \
    X(EXPORT_TO, EXPORT, "to", 0, WORD, EXPORT_FORM_WORDS, NULL, NULL, "the form to write")                           \
    X(EXPORT_SETTINGS, EXPORT, "settings", 0, FLAG, NULL, NULL, NULL,                                                 \
      "text: with everything that 'paramo import' needs")                                                             \
    X(EXPORT_NAMES, EXPORT, "names", 0, FLAG, NULL, NULL, NULL,                                                       \
      "add the name of each feature at the end of its line (train --keep-names)")                                     \
    X(TEXT_FORM, EXPORT, "text", 0, FLAG, NULL, NULL, NULL, "the same as --to text")                                  \
    X(PREDICT_OUT, PREDICT, "out", 0, TEXT, "FILE", NULL, NULL,                                                       \
      "output file; - is standard output, .gz and .zst are compressed")                                               \
    X(EXPORT_OUT, EXPORT, "out", 0, TEXT, "FILE", "-", NULL,                                                          \
      "output file; - is standard output, .gz and .zst are compressed")                                               \
    /* ---- understanding models ---- */                                                                              \
    X(ROW, EXPLAIN, "row", 0, NUMBER(1, UINT64_MAX), "N", "1", NULL, "which row of the data")                         \
    X(CLASS, EXPLAIN, "class", 0, NUMBER(0, OBJECTIVE_CLASSES_MAX - 1), "C", NULL, NULL,                              \
      "softmax: which class's margin (that of the highest probability)")                                              \
    X(PLOT, LEARNS | EVAL | BENCH, "plot", 0, TEXT, "FILE.svg", NULL, NULL,                                           \
      "write a chart, too: train, the loss of each epoch; tune, that of each trial; eval, how good predictions are; " \
      "bench straggler, its table")                                                                                   \
    X(TOP, INSPECT | EXPLAIN, "top", 0, NUMBER(0, 1000000), "N", "20", NULL,                                          \
      "how many features to show, the largest first")                                                                 \
    /* ---- serving ---- */                                                                                           \
    X(SERVE_MODEL, SERVE, "model", 0, TEXT, "DIR", NULL, NULL, "the same as --model-in")                              \
    X(REFRESH, SERVE, "refresh", 0, NUMBER(0, 86400), "SECONDS", NULL, NULL,                                          \
      "with --scheduler: how often the job's model is read; 0: only at SIGHUP (5)")                                   \
    X(SERVE_LISTEN, SERVE, "listen", 0, TEXT, "HOST:PORT", "127.0.0.1:8080", NULL,                                    \
      "address to listen on; port 0: a free one, which is printed")                                                   \
    X(SERVE_THREADS, SERVE, "threads", 0, NUMBER(0, 256), "N", "0", NULL, "threads that answer; 0: one for each CPU") \
    X(MAX_BODY, SERVE, "max-body", 0, NUMBER(1, 1 << 26), "BYTES", "1048576", NULL,                                   \
      "a larger request is answered with 413")                                                                        \
    X(MAX_CONNECTIONS, SERVE, "max-connections", 0, NUMBER(1, 100000), "N", "1024", NULL,                             \
      "a connection beyond these gets status 503")                                                                    \
    X(MAX_UNSENT, SERVE, "max-unsent", 0, NUMBER(1, UINT64_C(1) << 40), "BYTES", "268435456", NULL,                   \
      "a request gets status 503 if more bytes of answers than these wait for their clients to read them")            \
    X(SERVE_TIMEOUT, SERVE, "timeout", 0, NUMBER(1, 86400), "SECONDS", "10", NULL,                                    \
      "close the connection of a request that takes longer, from its first line to the end of the answer")            \
    X(IDLE_TIMEOUT, SERVE, "idle-timeout", 0, NUMBER(1, 86400), "SECONDS", "60", NULL,                                \
      "close a connection that is silent for this long")                                                              \
    /* ---- jobs and their nodes ---- */                                                                              \
    X(RUN_SERVERS, RUN, "servers", 's', NUMBER(1, RUN_NODES_MAX), "N", NULL, NULL, "number of servers")               \
    X(RUN_WORKERS, RUN, "workers", 'w', NUMBER(1, RUN_NODES_MAX), "N", NULL, NULL, "number of workers")               \
    X(WORKERS_ONLY, RUN, "workers-only", 0, FLAG, NULL, NULL, NULL,                                                   \
      "run COMMAND for the workers, 'paramo scheduler' and 'paramo server' for the rest")                             \
    X(GRACE, RUN, "grace", 0, NUMBER(0, 86400), "SECONDS", "15", NULL,                                                \
      "when a server or the scheduler has failed, or all workers have ended: how long the other processes have to "   \
      "end before they are stopped; with --state and all workers ended: 40")                                          \
    X(MIN_WORKERS, RUN, "min-workers", 0, NUMBER(1, RUN_NODES_MAX), "N", NULL, NULL,                                  \
      "the job succeeds when N workers exit with 0, even if others fail (all)")                                       \
    N(SCHEDULER, SERVER | WORKER, "scheduler")                                                                        \
    N(PORT, SCHEDULER | SERVER, "port")                                                                               \
    N(SERVERS, SCHEDULER, "servers")                                                                                  \
    N(WORKERS, SCHEDULER, "workers")                                                                                  \
    N(REPLICAS, RUN | SCHEDULER, "replicas")                                                                          \
    N(LISTEN, SCHEDULER | SERVER, "listen")                                                                           \
    N(ADVERTISE, SERVER, "advertise")                                                                                 \
    N(SHARDS, SERVER, "shards")                                                                                       \
    N(WEIGHT, SERVER, "weight")                                                                                       \
    N(DOMAIN, SERVER, "domain")                                                                                       \
    N(RANK, SERVER | WORKER, "rank")                                                                                  \
    N(NAME, SERVER | WORKER, "name")                                                                                  \
    N(SCHEDULER_WAIT, RUN | SERVER | WORKER, "scheduler-wait")                                                        \
    N(STATE, RUN | SCHEDULER, "state")                                                                                \
    N(META, SCHEDULER, "meta")                                                                                        \
    N(CHECKPOINT_DIR, TRAIN | RUN | SCHEDULER, "checkpoint-dir")                                                      \
    N(CHECKPOINT_EVERY, TRAIN | RUN | SCHEDULER, "checkpoint-every")                                                  \
    N(CHECKPOINT_FULL_EVERY, TRAIN | RUN | SCHEDULER, "checkpoint-full-every")                                        \
    N(CHECKPOINT_KEEP, TRAIN | RUN | SCHEDULER, "checkpoint-keep")                                                    \
    N(CHECKPOINT_ALLOW, SCHEDULER, "checkpoint-allow")                                                                \
    N(RESTORE, TRAIN | RUN | SCHEDULER, "restore")                                                                    \
    N(ON_LOSS, RUN | SCHEDULER, "on-loss")                                                                            \
    N(TOKEN, NODES, "token")                                                                                          \
    N(WAIT, NODES, "wait")                                                                                            \
    N(VAN, RUN | NODES, "van")                                                                                        \
    N(TRUSTED_FABRIC, NODES, "trusted-fabric")                                                                        \
    N(PLUGIN, TRAIN | RUN | NODES, "plugin")                                                                          \
    /* ---- live clusters ---- */                                                                                     \
    X(PLAN_SERVERS, RING, "servers", 0, NUMBER(1, 4096), "N", NULL, NULL, "number of servers of a planned cluster")   \
    X(PLAN_SHARDS, RING, "shards", 0, NUMBER(1, 256), "N", "1", NULL,                                                 \
      "shards of each server; with --scheduler, of those added")                                                      \
    X(PLAN_REPLICAS, RING, "replicas", 0, NUMBER(0, PARAMO_REPLICAS_MAX), "K", "0", NULL,                             \
      "copies beside the owner, 0 to 3")                                                                              \
    X(ADMIN_SCHEDULER, ADMINS | SERVE, "scheduler", 0, TEXT, "HOST:PORT", NULL, NULL,                                 \
      "address of the job's scheduler; list several with commas")                                                     \
    X(ADMIN_TOKEN, ADMINS | SERVE, "token", 0, TEXT, "TOKEN", NULL, "PARAMO_TOKEN",                                   \
      "the job's secret; better in PARAMO_TOKEN or a file")                                                           \
    X(TOKEN_FILE, NODES | ADMINS | SERVE, "token-file", 0, TEXT, "FILE", NULL, NULL,                                  \
      "read the secret from the first line of FILE")                                                                  \
    X(ADMIN_WAIT, RING | STATUS, "wait", 0, NUMBER(1, 86400), "SECONDS", "10", NULL,                                  \
      "how long to wait for the scheduler")                                                                           \
    X(DRAIN_WAIT, DRAIN, "wait", 0, NUMBER(1, 604800), "SECONDS", "600", NULL,                                        \
      "how long to wait until the server has left")                                                                   \
    X(CHECKPOINT_WAIT, CHECKPOINT, "wait", 0, NUMBER(1, 86400), "SECONDS", "600", NULL,                               \
      "save, load: fail if it takes longer")                                                                          \
    X(DIR, CHECKPOINT, "dir", 0, TEXT, "DIR", NULL, NULL, "save, load: folder of the checkpoints")                    \
    X(INCREMENTAL, CHECKPOINT, "incremental", 0, FLAG, NULL, NULL, NULL,                                              \
      "save: only what changed since the last incremental one, or the last one by --checkpoint-every; the first is "  \
      "a full one")                                                                                                   \
    X(CHECKPOINT_NUMBER, CHECKPOINT, "number", 0, NUMBER(1, INT64_MAX), "N", NULL, NULL,                              \
      "load, verify: which checkpoint (the last that has a manifest)")                                                \
    S(S_CHANGE, RING, "The change")                                                                                   \
    X(ADD, RING, "add", 0, NUMBER(0, 4096), "N", "0", NULL, "N servers join, with the next ranks")                    \
    X(REMOVE, RING, "remove", 0, LIST, "R...", NULL, NULL, "these servers (ranks) leave or die")                      \
    X(WEIGHTS, RING, "weight", 0, LIST, "R=W...", NULL, NULL,                                                         \
      "weight of a server's shards (1); in a live cluster a change of it")                                            \
    X(DOMAINS, RING, "domain", 0, LIST, "R=NAME...", NULL, NULL, "failure domain of a server (its host)")             \
    /* ---- generated data ---- */                                                                                    \
    X(ROWS, DATA, "rows", 0, NUMBER(1, UINT64_MAX), "N", NULL, NULL, "rows to write (head: 10)")                      \
    X(DATA_OUT, DATA, "out", 0, TEXT, "FILE", NULL, NULL,                                                             \
      "output file; .gz and .zst are compressed; - is standard output")                                               \
    X(DATA_FORMAT, DATA, "format", 0, WORD, PARSE_FORMAT_WORDS, NULL, NULL,                                           \
      "format of the files, as for train (auto); synth writes libffm 'label field:id:1', libsvm 'label id:1', or "    \
      "criteo (libffm)")                                                                                              \
    X(NO_LABELS, DATA, "no-labels", 0, FLAG, NULL, NULL, NULL, "stat, convert: the rows have no labels")              \
    X(SHARE, DATA, "share", 0, POSITIVE, "P", NULL, NULL, "split: share of the rows for --out, below 1")              \
    X(REST, DATA, "rest", 0, TEXT, "FILE", NULL, NULL, "split: where the other rows go (nowhere)")                    \
    X(TO, DATA, "to", 0, WORD, CONVERT_WORDS, NULL, NULL, "convert: the format to write")                             \
    X(MEMORY, DATA, "memory", 0, NUMBER(1, 1 << 20), "MB", "512", NULL,                                               \
      "shuffle: rows beyond this go through temporary files")                                                         \
    X(FIELDS, DATA, "fields", 0, NUMBER(1, UINT32_MAX), "N", NULL, NULL, "synth: values in a row (10; criteo: 39)")   \
    X(FEATURES, DATA, "features", 0, NUMBER(1, UINT32_MAX), "N", "1000", NULL,                                        \
      "synth: different values of each field")                                                                        \
    X(ZIPF, DATA, "zipf", 0, NATURAL, "X", "1.1", NULL,                                                               \
      "synth: exponent of the Zipf law of their frequencies; 0: uniform")                                             \
    X(CLICK_RATE, DATA, "click-rate", 0, POSITIVE, "P", NULL, NULL,                                                   \
      "synth: click rate of a row whose weights sum to 0 (0.27)")                                                     \
    X(SPREAD, DATA, "spread", 0, NATURAL, "X", "1.2", NULL, "synth: standard deviation of that sum")                  \
    X(FACTORS, DATA, "factors", 0, NUMBER(0, UINT32_MAX), "K", "0", NULL,                                             \
      "synth: dimension of pairwise interactions; 0: none")                                                           \
    X(FACTOR_SPREAD, DATA, "factor-spread", 0, NATURAL, "X", "1", NULL, "synth: standard deviation of their sum")     \
    X(DATA_SEED, DATA, "seed", 0, NUMBER(0, UINT64_MAX), "N", "1", NULL, "seed of the rows, or of their order")       \
    X(MODEL_SEED, DATA, "model-seed", 0, NUMBER(0, UINT64_MAX), "N", "1", NULL, "synth: seed of the model")           \
    /* ---- simulator ---- */                                                                                         \
    X(SEEDS, SIM, "seeds", 0, NUMBER(1, UINT32_MAX), "N", "1000", NULL, "schedules to play")                          \
    X(SIM_SEED, SIM, "seed", 0, NUMBER(0, UINT64_MAX), "S", "1", NULL, "the first seed")                              \
    X(JOBS, SIM, "jobs", 0, NUMBER(1, 64), "N", "1", NULL, "processes")                                               \
    X(REPLAY, SIM, "replay", 0, TEXT, "FILE", NULL, NULL, "play the schedule in FILE instead")                        \
    X(SEEDS_FROM, SIM, "seeds-from", 0, TEXT, "FILE", NULL, NULL,                                                     \
      "play the seeds in FILE instead: each line has a seed and what it shows")                                       \
    X(GO_ON, SIM, "go-on", 0, FLAG, NULL, NULL, NULL, "continue after a failure, and list all seeds that failed")     \
    X(SHRINK, SIM, "shrink", 0, FLAG, NULL, NULL, NULL, "reduce a failing schedule to the faults that it needs")      \
    X(BARS, SIM, "bars", 0, FLAG, NULL, NULL, NULL, "also fail if too little happens in the schedules")               \
    X(COVERAGE, SIM, "coverage", 0, FLAG, NULL, NULL, NULL,                                                           \
      "print each transition of each state machine, and the faults before it")                                        \
    X(COVERAGE_BAR, SIM, "coverage-bar", 0, TEXT, "FILE", NULL, NULL,                                                 \
      "fail if a transition that FILE requires never happens (test/sim/coverage.txt)")                                \
    /* ---- benchmarks ---- */                                                                                        \
    X(QUICK, BENCH, "quick", 0, FLAG, NULL, NULL, NULL, "small samples, three pairs: rough figures in seconds")       \
    X(PAIRS, BENCH, "pairs", 0, NUMBER(1, BENCH_PAIRS_MAX), "N", NULL, NULL,                                          \
      "samples of each figure, in turn with its raw limit (11; quick: 3)")                                            \
    X(KEYS, BENCH, "keys", 0, NUMBER(10000, 1000000000), "N", NULL, NULL,                                             \
      "table, sparse, memory: keys in the table (10000000; quick: 200000); migrate, checkpoint: at most a million "   \
      "of them")                                                                                                      \
    X(BIG, BENCH, "big", 0, FLAG, NULL, NULL, NULL, "table: 100 M keys as well (7 GB of memory)")                     \
    X(COUNT, BENCH, "count", 0, NUMBER(1, UINT64_MAX), "N", NULL, NULL,                                               \
      "memory: small pushes (2000000; quick: 20000)")                                                                 \
    X(CONNECTIONS, BENCH, "connections", 0, NUMBER(1, 1000000), "N", NULL, NULL,                                      \
      "memory: workers opened and closed (500; quick: 20)")                                                           \
    X(BENCH_DATA, BENCH, "data", 0, LIST, "FILE...", NULL, NULL,                                                      \
      "filters: train on these rows; otherwise rows are drawn")                                                       \
    X(BUSY, BENCH, "busy", 0, NUMBER(0, 64), "N", "0", NULL, "latency: processes that keep the cores busy")           \
    X(BENCH_VAN, BENCH, "van", 0, WORD, "tcp|ucx", "tcp", NULL,                                                       \
      "transport between processes: sockets, or UCX with shared memory")                                              \
    X(COMPARE, BENCH, "compare", 0, TEXT, "FILE", NULL, NULL,                                                         \
      "also show ratios to an earlier run's document (bench/history/)")                                               \
    /* ---- output ---- */                                                                                            \
    S(S_OUTPUT, LEARNS, "Output")                                                                                     \
    X(JSON, LEARNS | EVAL | INSPECT | EXPLAIN | DATA | RING | STATUS | CHECKPOINT | SIM | BENCH, "json", 0, FLAG,     \
      NULL, NULL, NULL,                                                                                               \
      "print one JSON document instead of text")                                                                      \
    X(QUIET, LEARNS, "quiet", 'q', FLAG, NULL, NULL, NULL, "print no progress, only warnings and the summary")        \
    X(LOG_DIR, RUN, "log-dir", 0, TEXT, "DIR", NULL, NULL,                                                            \
      "each node adds its log to DIR/scheduler.log, DIR/server-0.log, DIR/worker-0.log and so on, with times")        \
    X(LOG_FORMAT, RUN, "log-format", 0, WORD, "text|json", "text", NULL,                                              \
      "lines of these files: text, or a JSON object each with time, level, pid and message")                          \
    X(RUN_VERBOSE, RUN, "verbose", 'v', FLAG, NULL, NULL, NULL, "print each node's process id and how it ended")      \
    X(VERBOSE, NODES, "verbose", 0, FLAG, NULL, NULL, NULL, "print the progress of the cluster")                      \
    X(SIM_VERBOSE, SIM, "verbose", 0, FLAG, NULL, NULL, NULL, "print the nodes' logs, with --replay")
/* clang-format on */

#endif
