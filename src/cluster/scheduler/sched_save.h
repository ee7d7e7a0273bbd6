/*
 * Saves: brings what has changed to the store in batches, one at a time, and reads it back. Does nothing
 * without a store.
 * Must never know: what is in a record; each part writes and reads its own.
 * Tests: test/cluster/test_restart.c, test_lead.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_SAVE_H
#define CLUSTER_SCHEDULER_SCHED_SAVE_H

#include "base/cursor.h"
#include "base/map.h"
#include "cluster/meta/store.h"
#include "env/lane.h"

struct control_message_body;
struct scheduler;

/* Kinds of durable records; the key tells those of a kind apart. */
enum record_kind {
    RECORD_VIEW = 1,  /* the last announced, or about to be */
    RECORD_END,       /* the job is over: status and text */
    RECORD_CALL,      /* an answer that may be asked for again; node id << 12 | number % CALL_PLACES */
    RECORD_BARRIER,   /* customer << 3 | group */
    RECORD_VALUES,    /* of one hash */
    RECORD_POOL,      /* its place among the pools */
    RECORD_OWNERS,    /* the place of their pool */
    RECORD_UNITS,     /* pool << 20 | work unit / 64 */
    RECORD_RESTORING, /* the checkpoint that the job begins with is not loaded yet */
    RECORD_UNASKED,   /* in a checkpoint only: it was taken by the clock (sched_ckpt.c) */
    RECORD_CLOCK      /* a worker's session; 0: the minimum of the clocks */
};

enum {
    /* Durable records that a turn writes, and the bytes that cost as much as one more. A turn takes 1 to 2 ms. */
    SCHED_SAVE_TURN = 1024,
    SCHED_SAVE_BYTES = 512,
    /* If more than these change at a time, all is saved: a longer list would take too long to grow. */
    SCHED_SAVE_DIRTY = 32768
};

/* The parts that write durable records when all are saved, in this order. */
enum sched_save_part { SAVE_CALLS, SAVE_BARRIERS, SAVE_VALUES, SAVE_POOLS, SAVE_CLOCKS, SAVE_PARTS };

/* The position within a part. Zeroed at first. Records may change between two steps: a record that changes is written
 * again. */
struct sched_save_cursor {
    struct map_scan map;
    size_t at, inner;
    size_t cost;        /* added by a part: what a call took, in records */
    const void *object; /* a pool, which stays until sched_save_all */
};

/* What the records that every save may have depend on. */
struct sched_save_batch {
    bool whole;                              /* everything; else what changed */
    const struct control_message_body *view; /* NULL: it is not new */
    bool end;                                /* it is new */
};

/* The functions of the parts that saves call (sched_records.c). */
struct sched_save_ops {
    bool (*due)(const struct scheduler *s); /* a change is about to come */
    bool (*flush)(
        struct scheduler *s); /* ... it comes now; false: it cannot yet, and sched_save_retry comes */
    /* Writes the next records of this part, few or none. False: these were the last. */
    bool (*write_next)(const struct scheduler *s, enum sched_save_part part, struct sched_save_cursor *cursor,
                       struct writer *w);
    void (*write_record)(const struct scheduler *s, uint64_t id, struct writer *w);
    /* View, end and the like: last, in the step in which the save is complete. */
    void (*write_last)(const struct scheduler *s, const struct sched_save_batch *batch, struct writer *w);
    /* The view, or the end, is durable. */
    void (*view_saved)(struct scheduler *s, struct control_message_body *view, uint64_t number);
    void (*end_saved)(struct scheduler *s);
    void (*saved)(struct scheduler *s, uint64_t save); /* everything up to this save */
    void (*fenced)(struct scheduler *s); /* another scheduler leads: with this thread's message */
};

/* Records that are written in turns: all of some parts, then those that have changed since. */
struct sched_save_run {
    struct writer w;
    enum sched_save_part part, end; /* the next to write; after the last */
    struct sched_save_cursor cursor;
    struct map dirty; /* what had changed, to be written from `at` on */
    size_t at;
};

/* The copy of values and pools that a checkpoint has. */
struct sched_save_copy {
    struct sched_save_run run;
    struct map dirty; /* ids of records that have changed since */
    bool again;       /* there was no room for all of these: it is made from the start */
};

/*
 * Changes are saved in batches: the next save has what changed during the one before. A save is written in turns, as it
 * may have the records of thousands of nodes, and then goes to the store:
 *
 *   idle --save_begin--> writing --complete--> in progress (ended < begun) --save_ended--> idle
 *
 * A record that changes while a save is written is written again, and the last counts. The save is complete in a step
 * in which no such record is left. So it has the state of one moment.
 */
struct sched_saves {
    struct scheduler *sched; /* whose part it is */
    size_t most;             /* records of a turn: SCHED_SAVE_TURN, fewer in tests */
    uint64_t pause;          /* nanoseconds between two turns: 0, more in tests */
    struct {
        bool on;
        bool whole;
        struct sched_save_run run;
        struct lane_timer timer; /* the next turn */
    } writing;
    struct sched_save_copy *copy; /* that is being made; NULL: none */
    uint64_t begun, ended;        /* numbers of saves; at most one is in progress */
    struct map dirty;             /* ids of durable records that have changed since, and are not written */
    bool all;                     /* everything is due */
    bool proof;   /* a save is due, if only an empty one: it proves that no other scheduler leads */
    bool timed;   /* the timer is armed: a save begins in a moment, or is tried again */
    bool failing; /* the last one failed, which was logged */
    size_t whole_bytes, more_bytes;
    struct lane_timer timer;
    struct control_message_body *view; /* to save and then announce; NULL: there is none */
    uint64_t view_number;
    struct control_message_body *view_flying;
    uint64_t view_flying_number;
    bool end, end_flying;                                    /* to save and then tell to all */
    bool end_saved;                                          /* the end is durable, or the store is empty */
    void (*emptied)(struct scheduler *s, paramo_err status); /* the store is being emptied; else NULL */
    uint32_t empty_tries;                                    /* that failed, out of memory */
    const struct sched_save_ops *ops;
};

void sched_save_init(struct scheduler *s, const struct sched_save_ops *ops);
/* This durable record differs from its saved state. */
void sched_save_record_changed(struct scheduler *s, enum record_kind kind, uint64_t key);
/* The number of the save that brings all changes so far; 0: they are durable already. */
uint64_t sched_save_due(struct scheduler *s);
/* Makes sure that no other scheduler leads the job, if that is not sure. */
void sched_save_proof(struct scheduler *s);
/* Begins the save that is due and that could not begin: its view had no memory (the scheduler's clock tries again), or
 * a barrier was being released. */
void sched_save_retry(struct scheduler *s);
/* Saves the view, then announces it. Takes view. */
void sched_save_view(struct scheduler *s, struct control_message_body *view, uint64_t number);
void sched_save_end(struct scheduler *s);
/* The job is over: empties its store for the next one. done when that is durable, or cannot be; with this thread's
 * message. FENCED: another scheduler leads the job. */
void sched_save_nothing(struct scheduler *s, void (*done)(struct scheduler *s, paramo_err status));
/* The store does not answer: done is not called, and a late answer is ignored. */
void sched_save_abandon(struct scheduler *s);
/* Is the store being emptied? done has not been called yet. */
bool sched_save_is_emptying(const struct scheduler *s);
/* The next save is a whole one. */
void sched_save_all(struct scheduler *s);
/* Too many records differ from what was saved: the next save is a whole one, and a copy is made from the start. */
void sched_save_all_changed(struct scheduler *s);
/* The store has the end of the job. */
void sched_save_end_found(struct scheduler *s);
void sched_save_fini(struct scheduler *s);
/* Begins a copy of values and pools; one at a time. The caller keeps it until sched_save_copy_end. */
void sched_save_copy_begin(struct scheduler *s, struct sched_save_copy *copy);
/* Writes the next records to copy->run.w: as many as a turn allows, or all. True: it is complete, and has the state
 * of this moment. */
bool sched_save_copy_turn(struct scheduler *s, bool all);
/* Frees it, but not what its writer has. */
void sched_save_copy_end(struct scheduler *s);
/* For writing durable records: begins one of this id. */
static inline void sched_save_record_begin(struct writer *w, enum record_kind kind, uint64_t key,
                                           size_t *mark)
{
    store_record_begin(w, (uint64_t)kind << 56 | key, mark);
}

#endif
