/*
 * The roster: which nodes are in the job, their ranks and ids, which wait for a place, which are dead.
 * Must never know: which node gets a place (sched_admission.h), and when a node is dead (sched_departure.h).
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_ROSTER_H
#define CLUSTER_SCHEDULER_SCHED_ROSTER_H

#include <assert.h>

#include "base/cursor.h"
#include "base/map.h"
#include "cluster/scheduler/sched_node.h"

struct scheduler;
struct sched_peer;

enum { SCHED_REPLACED = 1024 /* arbitrary: far more than connect again within a minute or so */ };
struct slot_list {
    uint32_t role, count;
    uint32_t founders;        /* the job is complete with these; later workers have the ranks from here on */
    struct sched_node **node; /* by rank; NULL while gathering */
    uint32_t gone;            /* DEAD or LEFT */
    uint32_t founders_gone;   /* of these */
};
enum { SLOTS_SCHEDULER, SLOTS_SERVERS, SLOTS_WORKERS, SLOTS };

struct sched_roster {
    struct slot_list slots[SLOTS];
    struct view_node self; /* in the view while no member of the scheduler's own process has joined */
    struct sched_node *waiting_first, *waiting_last;
    uint32_t arrivals;
    uint32_t came[SLOTS];              /* while gathering: the most that were there at a time */
    struct map incarnations;           /* -> sched_node */
    uint64_t replaced[SCHED_REPLACED]; /* the latest incarnations that are dead and whose place is taken */
    uint32_t replaced_count;           /* of all time */
};

/* The founders have the first ranks. */
static inline void slots_check(const struct slot_list *slots)
{
    assert(slots->founders <= slots->count && slots->founders_gone <= slots->founders);
    assert(slots->gone <= slots->count && slots->founders_gone <= slots->gone);
}

/* Makes the slots that the configuration asks for. */
MUST_USE paramo_err sched_roster_init(struct scheduler *s);
/* This process stood still for grace: it moves the time at which each node was last heard. */
void sched_roster_forgive(struct scheduler *s, uint64_t grace);
/* By id; NULL. */
struct sched_node *sched_roster_find(const struct scheduler *s, uint32_t id);
/* Writes the labels of dead (and, if asked, left) nodes of a group, cut to fit; returns their number. */
size_t sched_roster_gone(const struct scheduler *s, uint32_t group, bool left, char *text, size_t capacity);
/* Was the node, or the one whose place it took, there when the job was complete? Only for nodes in place. */
bool sched_roster_founder(const struct sched_node *node);
struct sched_node *sched_roster_find_incarnation(const struct scheduler *s, uint64_t incarnation);
/* The nodes of a role, by rank: SLOTS_SERVERS, ... */
const struct slot_list *sched_roster_slots(const struct scheduler *s, size_t role);
/* The scheduler in the view: its own member, or this process without one. */
const struct view_node *sched_roster_scheduler(const struct scheduler *s);
void sched_roster_set_self(struct scheduler *s, const char *address);
/* JOINED or ABSENT. */
bool sched_roster_is_here(const struct sched_node *node);
/* The next node in place, from cursor 0 on: scheduler, servers, workers; NULL at the end. */
struct sched_node *sched_roster_next(const struct scheduler *s, size_t *cursor);
/* A server or worker is JOINED or ABSENT. */
bool sched_roster_any_left(const struct scheduler *s);
/* view_node_label, or "a worker (host-3)" for one that has no place yet. */
const char *sched_roster_label(const struct sched_node *node, char label[SCHED_LABEL]);

/* "server", ... */
const char *sched_roster_role_name(uint32_t role);
/* For admissions and departures: the nodes of PARAMO_ROLE_SERVER, ...; a node's moves. */
struct slot_list *sched_roster_slots_of(struct scheduler *s, uint32_t role);
void sched_roster_move(struct sched_node *node, enum sched_node_state to);

#endif
