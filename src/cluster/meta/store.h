/*
 * The scheduler's durable memory: the term of this start, and durable records: small pieces of what the
 * scheduler knows, each with an id, replaced as a whole. A start takes a higher term than any before it,
 * durably, before anything is said to anybody; what is saved together is there together after a crash, or not
 * at all. Kept in a folder (store_dir.h), for one scheduler at a time, or in etcd (store_etcd.h), for one
 * that leads and others that wait to.
 *
 *   OPEN --store_start--> STARTING --ok--> READY --store_save--> READY ...
 *                                  `--error--> OPEN
 *
 * Nothing here blocks: work on files or with etcd is a blocking job, and its end comes to the lane. After an
 * error of a save nobody can know whether what it brought is there: the next one must save everything.
 *
 * It never knows what is in a durable record. All functions on the lane. Tests: test/cluster/test_store.c,
 * test_store_etcd.c.
 */
#ifndef CLUSTER_META_STORE_H
#define CLUSTER_META_STORE_H

#include "base/cursor.h"

enum {
    STORE_BYTES_MAX = 256 << 20, /* of one save */
    STORE_TERM_MAX = 1 << 30     /* views' numbers have it in their upper half, with room above */
};

struct store_state {
    uint32_t term; /* of this start; from 1 to STORE_TERM_MAX */
    const uint8_t *records;
    size_t bytes;
};

struct store;

typedef void store_started_fn(void *arg, paramo_err status, const struct store_state *state);
typedef void store_saved_fn(void *arg, paramo_err status);

struct store_ops {
    paramo_err (*start)(struct store *store, store_started_fn *done, void *arg);
    /* `durable records` has not failed and is not too large. */
    paramo_err (*save)(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                       void *arg);
    bool (*sure)(const struct store *store);
    void (*close)(struct store *store);
};

/* What both kinds embed. */
struct store {
    const struct store_ops *ops;
};

/* Finds what is there and raises the term; with a store that others may lead by, waits until this one does.
 * done comes once, unless the store is closed before; state is NULL on an error, else valid until done
 * returns. IO, REFUSED (another scheduler has it), CORRUPT, FORMAT, CLOSED (it waited for a job that is
 * over now); err_text() says what. After an error it may be tried again. On an error here nothing was begun
 * and no done comes; so with all functions. */
MUST_USE static inline paramo_err store_start(struct store *store, store_started_fn *done, void *arg)
{
    return store->ops->start(store, done, arg);
}

/* Makes the durable records durable, beside those that are there or, if whole, instead of all of them; no
 * durable records and not whole: nothing but the proof that nobody else leads. Takes what `durable records`
 * owns, in any case. In the order given, any number at a time. FENCED: another scheduler has taken over, for
 * good. done as above. */
MUST_USE paramo_err store_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                               void *arg);

/* Nobody else can have taken over yet. If not, only a save that comes back well shows that nobody had when it
 * was made. */
static inline bool store_sure(const struct store *store)
{
    return store->ops->sure(store);
}

/* No done comes any more; what was begun is still done, then the store is free for another. NULL is allowed.
 */
static inline void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

/* Durable records as bytes, one after the other: u64 id, u32 length, what it holds. Of several with one id
 * the last counts. */
void store_record_begin(struct writer *w, uint64_t id, size_t *mark);
void store_record_end(struct writer *w, size_t mark);
/* The next durable record in place; false at the end (reader_done: it was the end). */
bool store_record_next(struct reader *records, uint64_t *id, struct reader *record);

#endif
