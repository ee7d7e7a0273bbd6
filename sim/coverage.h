/*
 * The table of the transitions that the product's state machines make, and the counts of them (cover.h). It holds no
 * state. Tests: test/sim/test_cover.c.
 */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include <stdint.h>

#include "sim/fault.h"

/* State machines. X(name, which it is). */
#define COVER_MACHINES(X)                                                                                    \
    X(member, "a node's membership; seeking: it has no connection to the scheduler")                         \
    X(member_slot, "a node's member slot")                                                                   \
    X(observer, "the observer of a reader's node")                                                           \
    X(node, "a node in the scheduler's roster")                                                              \
    X(job, "the scheduler's job")                                                                            \
    X(migration, "a migration, by the scheduler")                                                            \
    X(migration_source, "a migration, at its source")                                                        \
    X(migration_target, "a migration, at its target")                                                        \
    X(records, "records of senders that pass to or from a shard, in turns")                                  \
    X(stream, "a chain's connection to the next member, or to a migration's target")                         \
    X(source, "a chain's connection from the member before")                                                 \
    X(link, "a worker's connection to a shard")                                                              \
    X(task, "a user task at a node; held: it waits for others, running: it has begun")                       \
    X(saving, "a shard's part of a checkpoint that is saved")                                                \
    X(loading, "a shard's part of a checkpoint that is loaded, or restored")                                 \
    X(store, "the scheduler's store in a folder")                                                            \
    X(lead, "the scheduler's store in etcd; unsure: its lease may have ended")

/* A state in which an instance may end, and in which its process may be killed. */
#define COVER_ENDS(X, machine, state) X(machine, state, gone) X(machine, state, killed)

/* All transitions. X(machine, from, to); none: there was no instance. */
#define COVER_TRANSITIONS(X)                                                                                 \
    X(member, none, joining)                                                                                 \
    X(member, joining, joined)                                                                               \
    X(member, joining, seeking)                                                                              \
    X(member, joining, ended)                                                                                \
    X(member, joined, seeking)                                                                               \
    X(member, seeking, joined)                                                                               \
    X(member, joined, leaving)                                                                               \
    X(member, seeking, leaving)                                                                              \
    X(member, joined, ended)                                                                                 \
    X(member, seeking, ended)                                                                                \
    X(member, leaving, ended)                                                                                \
    X(member, joining, killed)                                                                               \
    X(member, joined, killed)                                                                                \
    X(member, seeking, killed)                                                                               \
    X(member, leaving, killed)                                                                               \
    X(member_slot, none, joining)                                                                            \
    X(member_slot, joining, joined)                                                                          \
    X(member_slot, joining, failed)                                                                          \
    X(member_slot, joining, ended)                                                                           \
    X(member_slot, joined, ended)                                                                            \
    X(member_slot, joining, killed)                                                                          \
    X(member_slot, joined, killed)                                                                           \
    X(observer, none, seeking)                                                                               \
    X(observer, none, ended)                                                                                 \
    X(observer, seeking, joined)                                                                             \
    X(observer, seeking, ended)                                                                              \
    X(observer, joined, ended)                                                                               \
    X(observer, ended, seeking)                                                                              \
    X(observer, ended, gone)                                                                                 \
    X(observer, seeking, killed)                                                                             \
    X(observer, joined, killed)                                                                              \
    X(observer, ended, killed)                                                                               \
    X(node, none, waiting)                                                                                   \
    X(node, none, joined)                                                                                    \
    X(node, none, absent)                                                                                    \
    X(node, none, dead)                                                                                      \
    X(node, none, left)                                                                                      \
    X(node, waiting, joined)                                                                                 \
    X(node, waiting, absent)                                                                                 \
    X(node, joined, absent)                                                                                  \
    X(node, absent, joined)                                                                                  \
    X(node, joined, dead)                                                                                    \
    X(node, absent, dead)                                                                                    \
    X(node, joined, left)                                                                                    \
    X(node, absent, left)                                                                                    \
    COVER_ENDS(X, node, waiting)                                                                             \
    COVER_ENDS(X, node, joined)                                                                              \
    COVER_ENDS(X, node, absent)                                                                              \
    COVER_ENDS(X, node, dead)                                                                                \
    COVER_ENDS(X, node, left)                                                                                \
    X(job, none, gathering)                                                                                  \
    X(job, none, running)                                                                                    \
    X(job, none, ending)                                                                                     \
    X(job, none, over) /* over a store that says so */                                                       \
    X(job, gathering, running)                                                                               \
    X(job, gathering, ending)                                                                                \
    X(job, gathering, over)                                                                                  \
    X(job, running, ending)                                                                                  \
    X(job, running, over)                                                                                    \
    X(job, ending, over)                                                                                     \
    X(job, over, killed)                                                                                     \
    X(job, gathering, killed)                                                                                \
    X(job, running, killed)                                                                                  \
    X(job, ending, killed)                                                                                   \
    X(migration, none, planned)                                                                              \
    X(migration, none, full)                                                                                 \
    X(migration, planned, copying)                                                                           \
    X(migration, planned, full)                                                                              \
    X(migration, copying, full)                                                                              \
    COVER_ENDS(X, migration, planned)                                                                        \
    COVER_ENDS(X, migration, copying)                                                                        \
    COVER_ENDS(X, migration, full)                                                                           \
    X(migration_source, none, copying)                                                                       \
    X(migration_source, none, full)                                                                          \
    X(migration_source, none, pausing)                                                                       \
    X(migration_source, none, paused)                                                                        \
    X(migration_source, copying, full)                                                                       \
    X(migration_source, full, pausing)                                                                       \
    X(migration_source, full, paused)                                                                        \
    X(migration_source, pausing, paused)                                                                     \
    COVER_ENDS(X, migration_source, copying)                                                                 \
    COVER_ENDS(X, migration_source, full)                                                                    \
    COVER_ENDS(X, migration_source, pausing)                                                                 \
    COVER_ENDS(X, migration_source, paused)                                                                  \
    X(migration_target, none, filling)                                                                       \
    X(migration_target, none, full)                                                                          \
    X(migration_target, filling, full)                                                                       \
    X(migration_target, full, last)                                                                          \
    COVER_ENDS(X, migration_target, filling)                                                                 \
    COVER_ENDS(X, migration_target, full)                                                                    \
    COVER_ENDS(X, migration_target, last)                                                                    \
    X(records, none, passing)                                                                                \
    COVER_ENDS(X, records, passing)                                                                          \
    X(stream, none, idle)                                                                                    \
    X(stream, none, connecting)                                                                              \
    X(stream, idle, connecting)                                                                              \
    X(stream, connecting, idle)                                                                              \
    X(stream, connecting, up)                                                                                \
    X(stream, up, idle)                                                                                      \
    X(stream, up, connecting)                                                                                \
    COVER_ENDS(X, stream, idle)                                                                              \
    COVER_ENDS(X, stream, connecting)                                                                        \
    COVER_ENDS(X, stream, up)                                                                                \
    X(source, none, up)                                                                                      \
    X(source, none, lost)                                                                                    \
    X(source, up, lost)                                                                                      \
    X(source, lost, up)                                                                                      \
    COVER_ENDS(X, source, up)                                                                                \
    COVER_ENDS(X, source, lost)                                                                              \
    X(link, none, idle)                                                                                      \
    X(link, none, connecting)                                                                                \
    X(link, none, pause)                                                                                     \
    X(link, idle, pause)                                                                                     \
    X(link, idle, connecting)                                                                                \
    X(link, connecting, up)                                                                                  \
    X(link, connecting, pause)                                                                               \
    X(link, up, pause)                                                                                       \
    X(link, pause, idle)                                                                                     \
    X(link, pause, connecting)                                                                               \
    COVER_ENDS(X, link, idle)                                                                                \
    COVER_ENDS(X, link, connecting)                                                                          \
    COVER_ENDS(X, link, pause)                                                                               \
    COVER_ENDS(X, link, up)                                                                                  \
    X(task, none, held)                                                                                      \
    X(task, none, running)                                                                                   \
    COVER_ENDS(X, task, held)                                                                                \
    COVER_ENDS(X, task, running)                                                                             \
    X(saving, none, running)                                                                                 \
    X(saving, none, waiting)                                                                                 \
    X(saving, waiting, running)                                                                              \
    X(saving, running, waiting)                                                                              \
    COVER_ENDS(X, saving, waiting)                                                                           \
    COVER_ENDS(X, saving, running)                                                                           \
    X(loading, none, holding)                                                                                \
    X(loading, none, held)                                                                                   \
    X(loading, none, loading)                                                                                \
    X(loading, none, restoring)                                                                              \
    X(loading, holding, held)                                                                                \
    X(loading, held, loading)                                                                                \
    X(loading, loading, loaded)                                                                              \
    COVER_ENDS(X, loading, holding)                                                                          \
    COVER_ENDS(X, loading, held)                                                                             \
    COVER_ENDS(X, loading, loading)                                                                          \
    COVER_ENDS(X, loading, loaded)                                                                           \
    COVER_ENDS(X, loading, restoring)                                                                        \
    X(store, none, starting)                                                                                 \
    X(store, starting, ready)                                                                                \
    X(store, starting, open)                                                                                 \
    X(store, open, killed)                                                                                   \
    X(store, starting, killed)                                                                               \
    X(store, ready, killed)                                                                                  \
    X(lead, none, watch)                                                                                     \
    X(lead, watch, grant)                                                                                    \
    X(lead, watch, open)                                                                                     \
    X(lead, grant, watch)                                                                                    \
    X(lead, grant, campaign)                                                                                 \
    X(lead, campaign, watch)                                                                                 \
    X(lead, campaign, open)                                                                                  \
    X(lead, campaign, read)                                                                                  \
    X(lead, campaign, leads)                                                                                 \
    X(lead, read, watch)                                                                                     \
    X(lead, read, open)                                                                                      \
    X(lead, read, leads)                                                                                     \
    X(lead, leads, unsure)                                                                                   \
    X(lead, unsure, leads)                                                                                   \
    X(lead, leads, fenced)                                                                                   \
    X(lead, unsure, fenced)                                                                                  \
    X(lead, open, killed)                                                                                    \
    X(lead, watch, killed)                                                                                   \
    X(lead, grant, killed)                                                                                   \
    X(lead, campaign, killed)                                                                                \
    X(lead, read, killed)                                                                                    \
    X(lead, leads, killed)                                                                                   \
    X(lead, unsure, killed)                                                                                  \
    X(lead, fenced, killed)

enum cover_transition {
#define COVER_ENUM(machine, from, to) COVER_##machine##_##from##_##to,
    COVER_TRANSITIONS(COVER_ENUM)
#undef COVER_ENUM
        COVER_TRANSITIONS_COUNT
};

struct coverage {
    uint32_t transitions[COVER_TRANSITIONS_COUNT];
    uint32_t pairs[COVER_TRANSITIONS_COUNT][FAULT_KINDS_COUNT];
};

/* As "migration_source full paused". */
const char *coverage_transition_name(enum cover_transition transition);
/* As "migration_source: a migration, at its source", if it is the first of its state machine's; otherwise NULL. */
const char *coverage_machine_text(enum cover_transition transition);

#endif
