/*
 * The model of a job that trains, for a server of scores: a reader of the job (docs/SHARING.md) that copies the
 * model's tables into a folder of its own at intervals. The job does not count it and does not wait for it. Without
 * snapshots (shared_model.h), a copy is read while the workers continue, and its rows are of slightly different
 * moments. It never knows of requests for scores. One thread at a time. Tests: test/e2e/serve_live.sh.
 */
#ifndef LEARN_SERVE_LIVE_H
#define LEARN_SERVE_LIVE_H

#include "paramo/paramo.h"

struct live_options {
    const char *scheduler, *token; /* owned by the caller; valid until live_free */
    unsigned refresh_s;            /* between two copies, at least; 0: only when one is forced */
};

struct live;

/* The job need not have started. INVALID: an address or the secret is malformed; TOKEN: the secret is not the job's;
 * IO: the folder cannot be created below TMPDIR. */
PARAMO_MUST_USE paramo_err live_new(const struct live_options *options, struct live **live);
/* Leaves the job and removes the folder. NULL is allowed. */
void live_free(struct live *live);
const char *live_dir(const struct live *live);

/* LIVE_EARLY: no copy is due. LIVE_FAILED: paramo_last_error() has the cause; after two seconds the next call tries
 * again, and joins the job again, or another job at the same address. LIVE_COPIED: the folder has the current model. */
enum live_result { LIVE_EARLY, LIVE_FAILED, LIVE_COPIED };
PARAMO_MUST_USE enum live_result live_copy(struct live *live, int force);
/* From any thread: a running live_copy fails within a second, and so do later ones. */
void live_interrupt(struct live *live);
/* The files of the last copy have been read: removes them. */
void live_discard(struct live *live);

#endif
