/*
 * The view: its number, the list of its tables, and when it is built, saved and announced. Changes that come at the
 * same moment are one view.
 * Must never know: the rest of a view, and which members get it (sched_announce.h).
 * Tests: test/cluster/test_scheduler.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_VIEW_H
#define CLUSTER_SCHEDULER_SCHED_VIEW_H

#include "base/err.h"
#include "cluster/view/view.h"
#include "env/lane.h"

struct control_message_body;
struct scheduler;

/* The store may be an older copy: this many schedulers may have led since it was made. Arbitrary. */
enum { SCHED_TERMS_AHEAD = 1024 };

/* The functions of the parts that the view calls (sched_announce.c). */
struct sched_view_ops {
    struct control_message_body *(*build)(struct scheduler *s); /* encoded; NULL: there is no memory */
    void (*announced)(struct scheduler *s);                     /* it is durable: members may have it */
};

struct sched_view {
    struct scheduler *sched; /* whose part it is */
    const struct sched_view_ops *ops;
    uint64_t number;                   /* of the newest change */
    uint64_t announced;                /* of body */
    struct control_message_body *body; /* encoded; NULL before the job is complete */
    struct lane_timer timer;
    bool changed;
    struct view_table *tables;
    uint32_t tables_count;
};

void sched_view_init(struct scheduler *s, const struct sched_view_ops *ops);
/* The number of the newest change, announced or not. */
uint64_t sched_view_number(const struct scheduler *s);
/* The number of the last view that was announced. */
uint64_t sched_view_announced(const struct scheduler *s);
/* A change is in no view yet. */
bool sched_view_is_due(const struct scheduler *s);
/* The announced view, encoded; NULL before the job is complete. */
struct control_message_body *sched_view_body(const struct scheduler *s);

/* The number goes up now; the view is built in a moment. */
void sched_view_change(struct scheduler *s);
/* Builds the view now if a change is due. False: there is no memory; it is built later. */
bool sched_view_flush(struct scheduler *s);
/* Called by the scheduler's clock: builds a view that is due if no timer does. */
void sched_view_retry(struct scheduler *s);
/* The number of the next view, which says what changes now. */
uint64_t sched_view_next(const struct scheduler *s);
/* Takes `view`, of this number, and announces it. */
void sched_view_announce(struct scheduler *s, struct control_message_body *view, uint64_t number);
/* The number is this higher one, which a member has seen. Then sched_view_renumber makes the next view above it. */
void sched_view_raise(struct scheduler *s, uint64_t number);
void sched_view_renumber(struct scheduler *s);
/* Takes the tables of a saved view, and a number above its term. CORRUPT: for the second time. */
MUST_USE paramo_err sched_view_take(struct scheduler *s, const struct view *view);
void sched_view_fini(struct scheduler *s);

/* Tables lie in one array, so that of index 0 begins it. NULL: there is none. */
const struct view_table *sched_view_table(const struct scheduler *s, uint32_t index);
uint32_t sched_view_tables_count(const struct scheduler *s);
/* By name (VIEW_NAME_MAX bytes); NULL. */
const struct view_table *sched_view_table_find(const struct scheduler *s, const char *name);
/* A table that is not there yet, with the next number. The view changes (sched_view_change) in the same step. */
MUST_USE paramo_err sched_view_table_add(struct scheduler *s, const char *name,
                                         const paramo_table_options *options, const struct view_table **out);

#endif
