/*
 * Asking a live job's scheduler one thing and waiting for the answer (cluster/member/admin_query.h), and the
 * options by which such verbs are told where it is. It looks inside src/ (scripts/layers): the public API has
 * no admin clients. Tests: test/e2e/ring.sh, status.sh, moves.sh, checkpoint.sh.
 */
#ifndef CMD_ADMIN_REQUEST_H
#define CMD_ADMIN_REQUEST_H

#include "cluster/member/admin_query.h"
#include "cmd/args.h"
#include "cmd/token.h"

/* Where a job is, as options say it; each NULL if it was not given. */
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
         .help = "its secret; better in PARAMO_TOKEN or a file"},                                            \
    {                                                                                                        \
        .name = "token-file", .kind = ARG_STRING, .out = &(where).token_file, .meta = "FILE",                \
        .help = "the secret is the first line of FILE"                                                       \
    }

struct admin_request {
    const char *scheduler, *token; /* admin_request_target sets them */
    uint64_t wait_s;
    const struct ckpt_order *ckpt; /* NULL: the view is asked for */
    bool load;
    uint32_t drain;   /* this server is to be drained; 0: none is */
    bool want_status; /* how the job is, and the view */
    /* the answer */
    struct view *view;     /* NULL, or the caller's reference */
    struct status *status; /* NULL, or the caller's: status_fini() and free() */
    uint64_t number;
};

/* Where to look, by the options and PARAMO_TOKEN; secret is used as long as o is. -1, or the exit code after
 * one line that says what is wrong with the token file. */
int admin_request_target(const char *verb, const struct admin_target *where, char secret[TOKEN_BYTES],
                         struct admin_request *o);
MUST_USE paramo_err admin_request_run(struct admin_request *o);

#endif
