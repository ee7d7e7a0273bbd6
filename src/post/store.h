/*
 * The scheduler's durable memory: the term of this start, and cells: small pieces of what the scheduler
 * knows, each with an id, replaced as a whole. A start takes a higher term than any before it, durably,
 * before anything is said to anybody; what is saved together is there together after a crash, or not at all.
 * Kept in a folder (store_dir.c), for one scheduler at a time: a second one is refused.
 *
 *   OPEN --store_start--> STARTING --ok--> READY --store_save--> READY ...
 *                                  `--error--> OPEN
 *
 * Nothing here blocks: work on files is a chore, and its end comes to the lane. After an error of a save
 * nobody can know whether what it brought is there: the next one must save everything.
 * A file that is damaged or not ours is refused with a message and left as it is.
 *
 * It never knows what is in a cell. All functions on the lane. Tests: test/post/test_store.c.
 */
#ifndef POST_STORE_H
#define POST_STORE_H

#include "base/cursor.h"
#include "env/chore.h"
#include "env/fs.h"

struct store;

enum { STORE_BYTES_MAX = 256 << 20 /* of one save */ };

struct store_config {
    struct lane *lane;
    struct chores *chores; /* outlives the store until the lane has run what they posted */
    struct fs *fs;
    const char *dir; /* copied; made if it is not there, in a folder that is */
};

/* Cells as bytes, one after the other: u64 id, u32 length, what it holds. Of several with one id the last
 * counts. */
void store_cell_begin(struct writer *w, uint64_t id, size_t *mark);
void store_cell_end(struct writer *w, size_t mark);
/* The next cell in place; false at the end (reader_done: it was the end). */
bool store_cell_next(struct reader *cells, uint64_t *id, struct reader *cell);

struct store_state {
    uint32_t term; /* of this start */
    const uint8_t *cells;
    size_t bytes;
};

/* On an error nothing was begun. */
MUST_USE paramo_err store_dir_open(const struct store_config *config, struct store **store);
/* Locks, reads, raises the term. done comes once, unless the store is closed before; state is NULL on an
 * error, else valid until done returns. IO, REFUSED (another scheduler has it), CORRUPT, FORMAT; err_text()
 * says what. After an error it may be tried again. */
MUST_USE paramo_err store_start(struct store *store,
                                void (*done)(void *arg, paramo_err status, const struct store_state *state),
                                void *arg);
/* Makes the cells durable, beside those that are there or, if whole, instead of all of them. Takes what
 * `cells` owns, in any case. In the order given, any number at a time. done as above. */
MUST_USE paramo_err store_save(struct store *store, struct writer *cells, bool whole,
                               void (*done)(void *arg, paramo_err status), void *arg);
/* No done comes any more; what was begun is still done, then the folder is free for another. NULL is allowed.
 */
void store_close(struct store *store);

#endif
