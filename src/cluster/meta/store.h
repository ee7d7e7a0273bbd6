/*
 * The scheduler's durable memory: the term of this start, and durable records, each a small part of the
 * scheduler's state with an id, replaced as a whole. A start takes a higher term than any before it, durably,
 * before the scheduler sends anything. Records that are saved together are there together after a crash, or
 * not at all. They are kept in a folder (store_dir.h), for one scheduler at a time, or in etcd
 * (store_etcd.h), for one leader and its standby schedulers.
 *
 *   OPEN --store_start--> STARTING --ok--> READY --store_save--> READY ...
 *                                  `--error--> OPEN
 *
 * Nothing here blocks: work on files or with etcd is a blocking job, whose end comes to the lane. After a failed save
 * the store may or may not have its records, so the next save must be a whole one.
 *
 * It never knows what is in a durable record. All functions on the lane. Tests: test/cluster/test_store.c,
 * test_store_etcd.c.
 */
#ifndef CLUSTER_META_STORE_H
#define CLUSTER_META_STORE_H

#include "base/cursor.h"

enum {
    STORE_BYTES_MAX = 256 << 20, /* of one save */
    STORE_TERM_MAX = 1 << 30     /* the upper half of a view's number holds it, with room above */
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
    /* `records` has not failed and is not too large. */
    paramo_err (*save)(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                       void *arg);
    bool (*sure)(const struct store *store);
    void (*close)(struct store *store);
};

/* What both implementations embed. */
struct store {
    const struct store_ops *ops;
};

/* Reads the records and raises the term. If another scheduler leads, waits until this one does. done comes
 * once, unless the store is closed before; state is NULL on an error, else valid until done returns. IO,
 * REFUSED (another scheduler holds the store), CORRUPT, FORMAT, CLOSED (the job it waited for is over);
 * err_text() says more. After an error it may be tried again. If a function of the store returns an error, nothing
 * was begun and done does not come. */
MUST_USE static inline paramo_err store_start(struct store *store, store_started_fn *done, void *arg)
{
    return store->ops->start(store, done, arg);
}

/* Makes records durable, beside those that are there or, if whole, instead of them. No records and whole: the
 * job is over, and standby schedulers end. No records and not whole: only proves that this scheduler still
 * leads. Takes what `records` owns in any case. Several saves may be in progress; they take effect in order. done comes
 * as for store_start. FENCED: another scheduler has taken over, for good. */
MUST_USE paramo_err store_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                               void *arg);

/* True: no other scheduler can have taken over yet. If false, only a save that succeeds proves that. */
static inline bool store_sure(const struct store *store)
{
    return store->ops->sure(store);
}

/* No `done` comes after this. Work in progress finishes; then the store is free for another scheduler. NULL is
 * allowed. */
static inline void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

/* Durable records as bytes, one after the other: u64 id, u32 length, contents. Of several with one id the
 * last counts. */
void store_record_begin(struct writer *w, uint64_t id, size_t *mark);
void store_record_end(struct writer *w, size_t mark);
/* The next durable record in place; false at the end (if reader_done) or on damaged bytes. */
bool store_record_next(struct reader *records, uint64_t *id, struct reader *record);

#endif
