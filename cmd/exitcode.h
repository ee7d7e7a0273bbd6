/*
 * The program's exit codes, which are the same for every verb, and the line on standard error that comes with a
 * failure. Tests: test/e2e/cli.sh.
 */
#ifndef CMD_EXITCODE_H
#define CMD_EXITCODE_H

#include "paramo/errors.h"

enum {
    CODE_DONE = 0,
    CODE_FAILED = 1,       /* every failure that has no code below */
    CODE_USAGE = 2,        /* a wrong option or argument */
    CODE_DATA = 3,         /* a file is missing, unreadable, malformed or damaged, or cannot be written */
    CODE_CLUSTER = 4,      /* a node died, an address cannot be used, or another process ended the job */
    CODE_QUALITY = 5,      /* train, tune: the model is complete, but no better than guessing the mean rate */
    CODE_INTERRUPTED = 130 /* Ctrl-C or SIGTERM; train has saved the model, if there was one */
};

/* For --help. */
#define CODE_HELP                                                                                            \
    "Exit code: 0 done, 1 failed, 2 wrong usage, 3 a file is missing, malformed or\n"                        \
    "damaged, or cannot be written, 4 a node of the cluster died or cannot be\n"                             \
    "reached, or a port cannot be opened, 5 train: the model is no better than\n"                            \
    "guessing the mean rate, 130 interrupted.\n"

/* Prints "paramo VERB: message" and returns the code for err. */
int code_fail(const char *verb, paramo_err err, const char *message);

#endif
