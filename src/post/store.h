/*
 * The scheduler's durable memory: the job, the term of this start and the last view announced. A start takes
 * a higher term than any before it, durably, before anything is said to anybody; a view is durable before it
 * is announced. Kept in a folder (store_dir.c), for one scheduler at a time: a second one is refused.
 *
 *   OPEN --store_start--> STARTING --ok--> READY --store_save--> READY ...
 *                                  `--error--> OPEN
 *
 * Nothing here blocks: work on files is a chore, and its end comes to the lane. After an error of a save the
 * folder holds the view before or the new one, and nobody can know which: save the next, or this one again.
 * A file that is torn, damaged or not ours is refused with a message and left as it is.
 *
 * It never knows what is in a view. All functions on the lane. Tests: test/post/test_store.c.
 */
#ifndef POST_STORE_H
#define POST_STORE_H

#include "env/chore.h"
#include "env/fs.h"

struct store;

enum { STORE_BYTES_MAX = 64 << 20 };

struct store_config {
    struct lane *lane;
    struct chores *chores; /* outlives the store until the lane has run what they posted */
    struct fs *fs;
    const char *dir; /* copied; made if it is not there, in a folder that is */
};

struct store_state {
    uint32_t term;   /* of this start */
    uint64_t job;    /* of the store, which may be older than this start */
    uint64_t number; /* of the last view that was saved; 0: there is none */
    const uint8_t *view;
    size_t view_bytes;
};

/* On an error nothing was begun. */
MUST_USE paramo_err store_dir_open(const struct store_config *config, struct store **store);
/* Locks, reads, raises the term. A new store takes this job. done comes once, unless the store is closed
 * before; state is NULL on an error, else valid until done returns. IO, REFUSED (another scheduler has it),
 * CORRUPT, FORMAT; err_text() says what. After an error it may be tried again. */
MUST_USE paramo_err store_start(struct store *store, uint64_t job,
                                void (*done)(void *arg, paramo_err status, const struct store_state *state),
                                void *arg);
/* Makes the view durable in place of the last one; it is copied. In the order given, any number at a time.
 * number is greater than that of all before it. done as above. */
MUST_USE paramo_err store_save(struct store *store, uint64_t number, const void *view, size_t bytes,
                               void (*done)(void *arg, paramo_err status), void *arg);
/* No done comes any more; what was begun is still done, then the folder is free for another. NULL is allowed.
 */
void store_close(struct store *store);

#endif
