/*
 * The view: builds it from the parts, saves it, sends it to members; and the tables that it names. Several
 * changes of one moment are one view.
 * Must never know: why something has changed.
 * Tests: test/cluster/test_scheduler.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_VIEW_H
#define CLUSTER_SCHEDULER_SCHED_VIEW_H

#include "cluster/scheduler/sched_calls.h"
#include "cluster/view/view.h"

struct control_message_body;
struct sched_peer;

/* The store may be an older copy: this many schedulers may have led since it was made. Arbitrary. */
enum { SCHED_TERMS_AHEAD = 1024 };

struct sched_view {
    struct scheduler *sched;           /* whose part it is */
    uint64_t number;                   /* of the newest change */
    uint64_t announced;                /* of body */
    struct control_message_body *body; /* encoded; NULL before the job is complete */
    struct lane_timer timer;
    bool changed;
    struct view_table *tables;
    uint32_t tables_count;
    struct sched_call_queue tables_deferred; /* TABLE_OPEN of new tables while rows are lost */
};

void sched_view_init(struct scheduler *s);
/* Of the newest change, announced or not. */
uint64_t sched_view_number(const struct scheduler *s);
/* Of the last view that was announced. */
uint64_t sched_view_announced(const struct scheduler *s);
/* A change is in no view yet. */
bool sched_view_is_due(const struct scheduler *s);
/* The announced view, encoded; NULL before the job is complete. */
const struct control_message_body *sched_view_body(const struct scheduler *s);
/* They lie in one array. */
const struct view_table *sched_view_table(const struct scheduler *s, uint32_t index);
uint32_t sched_view_tables_count(const struct scheduler *s);

/* The number goes up now; the view is built in a moment. */
void sched_view_change(struct scheduler *s);
/* Builds the view now if a change is due. False: there is no memory; it is built later. */
bool sched_view_flush(struct scheduler *s);
/* Of the scheduler's clock: builds a view that is due if no timer does. */
void sched_view_retry(struct scheduler *s);
/* The number of the next view, which says what changes now. */
uint64_t sched_view_next(const struct scheduler *s);
/* Sends the announced view to a node that may have it. */
void sched_view_send(struct sched_node *node);
/* Takes `view`, of this number, and sends it to all. */
void sched_view_announce(struct scheduler *s, struct control_message_body *view, uint64_t number);
/* A node has seen a view of this number: the next is above it. REFUSED: that is no view of this job; a node's
 * claim never brings numbers near their end. */
MUST_USE paramo_err sched_view_above(struct scheduler *s, uint64_t number);
/* An admin client asks: the view as last announced, or AGAIN while there is none. */
MUST_USE paramo_err sched_view_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                           const struct reader *body);
MUST_USE paramo_err sched_view_restore(struct scheduler *s, struct reader *record);
void sched_view_fini(struct scheduler *s);

void sched_view_table_open(struct sched_call *call, struct reader *body);
/* No rows are lost any more: handles the deferred calls. */
void sched_view_tables_resume(struct scheduler *s);
/* A table of a checkpoint: makes it if there is none of its name. TABLE_EXISTS: it has other options. */
MUST_USE paramo_err sched_view_table_make(struct scheduler *s, const struct view_table *table);

#endif
