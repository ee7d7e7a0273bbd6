/*
 * Clocks of workers: how many iterations each has ended, and the minimum of all that count. A worker counts from
 * its join until it leaves, joins again, or its node is gone. It begins with the minimum, so the minimum never
 * falls; nor does it when no worker counts. docs/CONSISTENCY.md.
 * Must never know: tables, pushes, what an iteration is.
 * Tests: test/cluster/test_sched_clock.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CLOCK_H
#define CLUSTER_SCHEDULER_SCHED_CLOCK_H

#include "base/map.h"
#include "cluster/scheduler/sched_calls.h"
#include "wire/status.h"

enum {
    SCHED_CLOCKS_MAX = 65536,      /* workers that count at a time */
    SCHED_NODE_CLOCKS_MAX = 1024,  /* ... of one node: when it dies, they all stop counting in one step */
    SCHED_CLOCKS_NAMED_MAX = 1024, /* workers that an error looks at */
    /* Waits that a turn looks at, and what it costs to answer one instead. Less than 1 ms. */
    SCHED_CLOCKS_TURN = 4096,
    SCHED_CLOCKS_ANSWER = 16
};

struct clock;
struct sched_save_cursor;

struct sched_clocks {
    struct map by_session; /* -> clock */
    /* the same as a binary heap, the lowest first: no child of [i], which are [2 i + 1] and [2 i + 2], is lower */
    struct clock **heap;
    size_t heap_room;
    uint64_t minimum;                      /* that of the lowest, or of the last that counted */
    uint32_t raised_node, raised_customer; /* the worker that the minimum waited for last; node 0: none yet */
    struct sched_call_queue deferred;      /* CLOCK_WAIT */
    struct {                               /* waits end in turns */
        struct scheduler *sched;
        struct lane_timer timer;
        struct sched_call *next; /* the next one to look at; NULL: all were looked at */
        bool again;              /* the minimum has risen since: from the first one */
    } wake;
};

void sched_clock_join(struct sched_call *call, struct reader *body);
void sched_clock_tell(struct sched_call *call, struct reader *body);
void sched_clock_wait(struct sched_call *call, struct reader *body);
void sched_clock_leave(struct sched_call *call, struct reader *body);
void sched_clock_node_gone(struct sched_node *node);
/* Adds the clocks and the waits of each node to the status, whose nodes have their places (sched_node_status). */
void sched_clock_status(const struct scheduler *s, struct status *m);
/* For the simulator, between events: a state that must not exist, in words, such as a dead node's clock that counts,
 * or a wait without a worker that is behind; NULL: there is none. */
const char *sched_clock_fault(const struct scheduler *s);
void sched_clock_fini(struct scheduler *s);

/* Durable records: writes one (key 0: the minimum; otherwise a session), writes the next of all
 * (sched_save_ops.write_next), reads one back. sched_clock_restored comes last. */
void sched_clock_record(const struct scheduler *s, uint64_t key, struct writer *w);
bool sched_clock_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w);
MUST_USE paramo_err sched_clock_restore(struct scheduler *s, uint64_t key, struct reader *record);
void sched_clock_restored(struct scheduler *s);

#endif
