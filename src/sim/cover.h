/*
 * The coverage of the space: how often each state machine of the product made each of its transitions, and
 * how often a fault came before one. States are read after each event, so a transition may have others inside
 * it that one step made (a paused process finds much waiting). A table has all transitions that may be seen;
 * another one is a violation.
 *
 * A pair is a kind of fault and the first transition of a state machine after it: of one whose process or
 * peer the fault struck. Tests: test/sim/test_cover.c.
 */
#ifndef SIM_COVER_H
#define SIM_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/fault.h"

/* State machines. X(name, which it is). */
#define COVER_MACHINES(X)                                                                                    \
    X(member, "a node's membership; seeking: it has no connection to the scheduler")                         \
    X(seat, "a node's seat")                                                                                 \
    X(node, "a node in the scheduler's roster")                                                              \
    X(job, "the scheduler's job")                                                                            \
    X(move, "a migration, by the scheduler")                                                                 \
    X(give, "a migration, at its source")                                                                    \
    X(take, "a migration, at its target")                                                                    \
    X(stream, "a chain's connection to the next member, or to a migration's target")                         \
    X(source, "a chain's connection from the member before")                                                 \
    X(link, "a worker's connection to a shard")                                                              \
    X(saving, "a shard's part of a checkpoint that is saved")                                                \
    X(loading, "a shard's part of a checkpoint that is loaded, or restored")                                 \
    X(store, "the scheduler's store in a folder")                                                            \
    X(lead, "the scheduler's store in etcd; unsure: its lease may have ended")

/* A state in which an instance may end, and in which its process may be killed. */
#define COVER_ENDS(X, machine, state) X(machine, state, gone) X(machine, state, killed)

/* All transitions. X(machine, from, to); none: there was no instance. */
#define COVER_MOVES(X)                                                                                       \
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
    X(seat, none, joining)                                                                                   \
    X(seat, joining, joined)                                                                                 \
    X(seat, joining, failed)                                                                                 \
    X(seat, joining, ended)                                                                                  \
    X(seat, joined, ended)                                                                                   \
    X(seat, joining, killed)                                                                                 \
    X(seat, joined, killed)                                                                                  \
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
    X(move, none, planned)                                                                                   \
    X(move, none, full)                                                                                      \
    X(move, planned, copying)                                                                                \
    X(move, planned, full)                                                                                   \
    X(move, copying, full)                                                                                   \
    COVER_ENDS(X, move, planned)                                                                             \
    COVER_ENDS(X, move, copying)                                                                             \
    COVER_ENDS(X, move, full)                                                                                \
    X(give, none, copying)                                                                                   \
    X(give, none, full)                                                                                      \
    X(give, none, pausing)                                                                                   \
    X(give, none, paused)                                                                                    \
    X(give, copying, full)                                                                                   \
    X(give, full, pausing)                                                                                   \
    X(give, full, paused)                                                                                    \
    X(give, pausing, paused)                                                                                 \
    COVER_ENDS(X, give, copying)                                                                             \
    COVER_ENDS(X, give, full)                                                                                \
    COVER_ENDS(X, give, pausing)                                                                             \
    COVER_ENDS(X, give, paused)                                                                              \
    X(take, none, filling)                                                                                   \
    X(take, none, full)                                                                                      \
    X(take, filling, full)                                                                                   \
    X(take, full, last)                                                                                      \
    COVER_ENDS(X, take, filling)                                                                             \
    COVER_ENDS(X, take, full)                                                                                \
    COVER_ENDS(X, take, last)                                                                                \
    X(stream, none, idle)                                                                                    \
    X(stream, none, dialing)                                                                                 \
    X(stream, idle, dialing)                                                                                 \
    X(stream, dialing, idle)                                                                                 \
    X(stream, dialing, up)                                                                                   \
    X(stream, up, idle)                                                                                      \
    X(stream, up, dialing)                                                                                   \
    COVER_ENDS(X, stream, idle)                                                                              \
    COVER_ENDS(X, stream, dialing)                                                                           \
    COVER_ENDS(X, stream, up)                                                                                \
    X(source, none, up)                                                                                      \
    X(source, none, lost)                                                                                    \
    X(source, up, lost)                                                                                      \
    X(source, lost, up)                                                                                      \
    COVER_ENDS(X, source, up)                                                                                \
    COVER_ENDS(X, source, lost)                                                                              \
    X(link, none, idle)                                                                                      \
    X(link, none, dialing)                                                                                   \
    X(link, none, pause)                                                                                     \
    X(link, idle, pause)                                                                                     \
    X(link, idle, dialing)                                                                                   \
    X(link, dialing, up)                                                                                     \
    X(link, dialing, pause)                                                                                  \
    X(link, up, pause)                                                                                       \
    X(link, pause, idle)                                                                                     \
    X(link, pause, dialing)                                                                                  \
    COVER_ENDS(X, link, idle)                                                                                \
    COVER_ENDS(X, link, dialing)                                                                             \
    COVER_ENDS(X, link, pause)                                                                               \
    COVER_ENDS(X, link, up)                                                                                  \
    X(saving, none, running)                                                                                 \
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
    X(lead, none, look)                                                                                      \
    X(lead, look, grant)                                                                                     \
    X(lead, look, open)                                                                                      \
    X(lead, grant, look)                                                                                     \
    X(lead, grant, campaign)                                                                                 \
    X(lead, campaign, look)                                                                                  \
    X(lead, campaign, open)                                                                                  \
    X(lead, campaign, read)                                                                                  \
    X(lead, campaign, leads)                                                                                 \
    X(lead, read, look)                                                                                      \
    X(lead, read, open)                                                                                      \
    X(lead, read, leads)                                                                                     \
    X(lead, leads, unsure)                                                                                   \
    X(lead, unsure, leads)                                                                                   \
    X(lead, leads, fenced)                                                                                   \
    X(lead, unsure, fenced)                                                                                  \
    X(lead, open, killed)                                                                                    \
    X(lead, look, killed)                                                                                    \
    X(lead, grant, killed)                                                                                   \
    X(lead, campaign, killed)                                                                                \
    X(lead, read, killed)                                                                                    \
    X(lead, leads, killed)                                                                                   \
    X(lead, unsure, killed)                                                                                  \
    X(lead, fenced, killed)

enum cover_move {
#define COVER_ENUM(machine, from, to) COVER_##machine##_##from##_##to,
    COVER_MOVES(COVER_ENUM)
#undef COVER_ENUM
        COVER_MOVES_COUNT
};
/* As "give full paused". */
const char *cover_move_name(enum cover_move move);
/* As "give: a migration, at its source", if it is the first of its state machine's; else NULL. */
const char *cover_machine_text(enum cover_move move);

struct coverage {
    uint32_t moves[COVER_MOVES_COUNT];
    uint32_t pairs[COVER_MOVES_COUNT][FAULT_KINDS_COUNT];
};

#endif
