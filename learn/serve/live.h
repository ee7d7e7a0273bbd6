/*
 * The model of a job that trains, for a server of scores: a reader of the job (docs/SHARING.md) that copies the
 * model's tables into a folder of its own at intervals. The job does not count it and does not wait for it. A copy is
 * read while the workers continue: its rows are of slightly different moments. It never knows of requests for scores.
 * One thread at a time. Tests: test/e2e/serve_live.sh.
 */
#ifndef LEARN_SERVE_LIVE_H
#define LEARN_SERVE_LIVE_H

#include "paramo/paramo.h"

struct live_options {
    const char *scheduler, *token; /* the caller's, and stay valid */
    unsigned refresh_s;            /* between two copies, at least; 0: only when one is forced */
};

struct live;

/* The job need not be there yet. INVALID: an address or the secret is malformed; TOKEN: the secret is not the job's;
 * IO: the folder cannot be made below TMPDIR. */
PARAMO_MUST_USE paramo_err live_new(const struct live_options *options, struct live **live);
/* Leaves the job and removes the folder. NULL is allowed. */
void live_free(struct live *live);
const char *live_dir(const struct live *live);

/* LIVE_EARLY: no copy is due, and nothing was done. LIVE_FAILED: paramo_last_error() has the cause; after two seconds
 * the next call tries again, and finds the job again when it was away, or another job at the same address.
 * LIVE_COPIED: the folder has the model as it is now. */
enum live_result { LIVE_EARLY, LIVE_FAILED, LIVE_COPIED };
PARAMO_MUST_USE enum live_result live_copy(struct live *live, int force);
/* Any thread: live_copy fails now and from now on, within a second. */
void live_interrupt(struct live *live);
/* The files of the last copy are read. */
void live_discard(struct live *live);

#endif
