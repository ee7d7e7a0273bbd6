/*
 * The options by which verbs are told where a live job is, and the admin handle that follows from them.
 * Tests: test/e2e/ring.sh, status.sh, migrations.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_TARGET_H
#define CMD_ADMIN_TARGET_H

#include "cmd/args.h"
#include "paramo/admin.h"

/* Each NULL if the option was not given. */
struct admin_target {
    const char *scheduler, *token, *token_file;
};

/* The options (struct arg) that set it. */
#define ADMIN_ARGS(where, scheduler_help)                                                                    \
    {.name = "scheduler",                                                                                    \
     .kind = ARG_STRING,                                                                                     \
     .out = &(where).scheduler,                                                                              \
     .meta = "HOST:PORT",                                                                                    \
     .help = (scheduler_help)},                                                                              \
        {.name = "token",                                                                                    \
         .kind = ARG_STRING,                                                                                 \
         .out = &(where).token,                                                                              \
         .meta = "TOKEN",                                                                                    \
         .help = "the job's secret; better in PARAMO_TOKEN or a file"},                                      \
    {                                                                                                        \
        .name = "token-file", .kind = ARG_STRING, .out = &(where).token_file, .meta = "FILE",                \
        .help = "read the secret from the first line of FILE"                                                \
    }

/* The secret comes from --token-file, --token or PARAMO_TOKEN. -1, or the exit code after one line that says
 * what is wrong. */
int admin_target_open(const char *verb, const struct admin_target *where, uint64_t wait_s,
                      paramo_admin **admin);

#endif
