/*
 * The inside of the scheduler: what its files share. Nobody else includes it. Each file is entered by
 * functions named after it (roster_..., barrier_..., pool_..., kv_...); all on the scheduler's lane.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_H
#define CLUSTER_SCHEDULER_SCHED_H

#include "base/map.h"
#include "base/mutant.h"
#include "base/spread.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/migrations.h"
#include "cluster/scheduler/scheduler.h"
#include "cluster/session/acceptor.h"
#include "cluster/session/control_message.h"
#include "wire/calls.h"
#include "wire/heartbeat.h"

enum {
    SCHED_LABEL = VIEW_LABEL_MAX,
    SCHED_BARRIERS_MAX = 65536, /* groups times customers */
    SCHED_POOLS_MAX = 4096,
    SCHED_KV_MAX = 65536,      /* values, and ... */
    SCHED_KV_BYTES = 64 << 20, /* ... their bytes */
    SCHED_TERMS_AHEAD = 1024, /* schedulers since the copy of a store was made that was put back. Arbitrary */
};

struct sched_node;

/* ---- calls done once (sched_calls.c) ----------------------------------------------------------------- */

/* A call from its first arrival until the caller's floor has passed it. Until it is answered it may be parked
 * in one queue. */
struct sched_call {
    struct sched_node *node;
    uint64_t number;
    uint32_t kind;
    bool answered;
    paramo_err status;
    struct writer answer;
    uint64_t save; /* answered, held back: the save that it waits for */
    /* parked, or held back */
    struct call_queue *queue;
    struct sched_call *next, *prev;
    struct lane_timer timer;
    void (*timed_out)(struct sched_call *call); /* answers it */
    void (*withdrawn)(struct sched_call *call); /* it goes without an answer; NULL: nothing to do */
    void *object;                               /* the barrier, pool or value it waits for */
    union {
        struct {
            uint32_t who, round;
        } pool;
        char *kv_key;
        struct table_open *table;
    } u;
};

struct call_queue {
    struct sched_call *first, *last;
};

/* Each answers the call (once) and takes it from its queue. */
void call_answer(struct sched_call *call, struct writer *result); /* takes what result owns; NULL: nothing */
void call_fail(struct sched_call *call, paramo_err status);       /* with this thread's message */
/* Puts it last in the queue until it is answered, or timed_out at the end of timeout_ms. */
void call_defer(struct sched_call *call, struct call_queue *queue, uint32_t timeout_ms,
                void (*timed_out)(struct sched_call *call));

/* ---- nodes (roster.c) -------------------------------------------------------------------------------- */

enum sched_node_state { SNODE_WAITING, SNODE_JOINED, SNODE_ABSENT, SNODE_DEAD, SNODE_LEFT };

struct sched_node {
    struct scheduler *sched;
    enum sched_node_state state;
    struct view_node info; /* id 0 while it waits for a place */
    uint32_t rank;         /* in place */
    uint32_t arrival;      /* WAITING: which came first */
    int32_t wanted_rank;
    struct peer *peer; /* NULL: no connection */
    uint64_t arrived_at, heard_at;
    bool chosen;    /* WAITING while the cluster gathers: it will have a place */
    bool former;    /* ABSENT: the member of the scheduler's own process before this one */
    uint64_t since; /* number of the first view that has it */
    uint64_t view_sent_at;
    bool view_due;                  /* its queue was full */
    struct lane_timer timer;        /* WAITING: for a place; ABSENT: may come back */
    struct sched_node *next, *prev; /* WAITING: in order of arrival */
    uint64_t call_floor;
    struct sched_call *calls[CALL_WINDOW]; /* at number % CALL_WINDOW */
    struct lane_progress {
        uint64_t steps, progressed_at;
        bool reported;
    } * lanes;
    uint32_t lanes_count;
    struct sched_order *orders, *orders_last; /* not answered, by id */
    uint64_t order_next;                      /* id; 0: none was given yet */
    bool ckpt_untold; /* the last order of the checkpoint that there is (sched_ckpt.c) could not be given */
    struct sched_reports *reports; /* sched_status.c; NULL: none, or they are in pauses_gone */
    bool report_asked;
    enum {
        GOODBYE_NONE,
        GOODBYE_ASKED,
        GOODBYE_REPORTED
    } goodbye; /* the last report of one that is drained */
};

/* A control connection that was welcomed. */
struct peer {
    struct scheduler *sched;
    struct van_conn *conn;
    struct sched_node *node; /* NULL before REGISTER */
    uint64_t incarnation;
    struct lane_timer timer; /* for the REGISTER */
    uint32_t ckpt_call;      /* an admin client that waits for a checkpoint: its call and number; 0: none */
    uint64_t ckpt_number;
    bool status_waits; /* an admin client that waits for the answer to STATUS, and its call's number */
    uint64_t status_number;
    uint64_t
        drain_save; /* an admin client that waits for the answer to DRAIN: for this save; 0: none waits */
    uint64_t drain_number;
    struct peer *next, *prev;
};

enum { SCHED_REPLACED = 1024 /* arbitrary: far more than dial again within a minute or so */ };
enum sched_state { SCHED_GATHERING, SCHED_RUNNING, SCHED_ENDING, SCHED_OVER };

struct slot_list {
    uint32_t role, count;
    uint32_t
        founders; /* what the job is complete with; workers that come later have the ranks from here on */
    struct sched_node **node; /* by rank; NULL while gathering */
    uint32_t gone;            /* DEAD or LEFT */
    uint32_t founders_gone;   /* of these */
};
enum { SLOTS_SCHEDULER, SLOTS_SERVERS, SLOTS_WORKERS, SLOTS };

/* ---- what survives (sched_save.c) --------------------------------------------------------------------- */

/* Kinds of durable records; the key tells those of a kind apart. Each file writes and reads its own. */
enum record_kind {
    RECORD_VIEW = 1,  /* the last announced, or about to be */
    RECORD_END,       /* the job is over: status and text */
    RECORD_CALL,      /* an answer that may be asked for again; node id << 8 | number % CALL_WINDOW */
    RECORD_BARRIER,   /* customer << 3 | group */
    RECORD_VALUES,    /* of one hash */
    RECORD_POOL,      /* its place among the pools */
    RECORD_OWNERS,    /* the same */
    RECORD_UNITS,     /* pool << 20 | parts / 64 */
    RECORD_RESTORING, /* the checkpoint that the job begins with is not loaded yet */
    RECORD_UNASKED    /* in a checkpoint only: it was taken by the clock (sched_ckpt.c) */
};

/* Changes are saved in batches: what has changed by the time that the save before has ended. */
struct saves {
    uint64_t begun, ended; /* how many; at most one is under way */
    struct map dirty;      /* ids of durable records that have changed since the last began */
    bool all;              /* everything is to be saved */
    bool proof;            /* it is to be shown that nobody else leads, whatever is to be saved */
    bool timed;            /* the timer is armed: a save begins in a moment, or is tried again */
    bool failing;          /* the last one did, which was said */
    size_t whole_bytes, more_bytes;
    struct lane_timer timer;
    struct call_queue held;            /* answers that wait for a save, by its number */
    struct control_message_body *view; /* to be saved and then announced; NULL: there is none */
    uint64_t view_number;
    struct control_message_body *view_flying;
    uint64_t view_flying_number;
    bool end, end_flying; /* to be saved and then told to all */
    bool end_saved;       /* the end is durable */
    void (*emptied)(struct scheduler *s);
};

/* A checkpoint of which shards know what has changed since. */
struct ckpt_base {
    char dir[FS_PATH_MAX];
    uint64_t number, id; /* 0: there is none */
    uint32_t links;      /* it and those that it is based on */
};

struct migration_end {
    struct migration migration;
    bool committed;
    bool untold[2]; /* from, to */
};

struct scheduler {
    struct scheduler_config config;
    struct saves saves;
    uint32_t term;
    struct acceptor *acceptor;
    enum sched_state state;
    uint64_t job, incarnation;
    struct view_node self; /* while no member of its own has joined */
    struct peer *peers;
    uint32_t peers_count;
    struct slot_list slots[SLOTS];
    struct sched_node *waiting_first, *waiting_last;
    uint32_t arrivals;
    uint32_t came[SLOTS];              /* while gathering: most that were there at a time */
    struct map incarnations;           /* -> sched_node */
    uint64_t replaced[SCHED_REPLACED]; /* incarnations declared dead in whose place others are, the latest */
    uint32_t replaced_count;           /* that there have been */
    struct lane_timer tick, end_timer;
    bool awaits_worker; /* RUNNING, and none is left: end_timer ends the wait for one (recovery_ms) */
    uint64_t ticked_at;

    uint64_t view_number;              /* of the newest change */
    uint64_t announced;                /* of `view` */
    struct control_message_body *view; /* encoded; NULL before it is complete */
    struct lane_timer view_timer;      /* several changes of one moment are one view */
    bool view_changed;
    struct view_shard *shards;
    uint32_t shards_count;
    bool *shards_gone;       /* scratch of sched_ring.c, so that a death needs no memory */
    uint8_t *shards_touched; /* enum ring_touched; likewise */
    struct ring_chains chains, chains_before;
    struct ring_chains chains_told;  /* of the last view that was built, without those who are gone since */
    char ring_warned[160];           /* what was last said of the placement: once is enough */
    uint32_t *shards_owned;          /* the same */
    uint8_t lowest[RING_PARTITIONS]; /* of the last death, as ring_promote has it, until sched_lost_check */
    uint8_t lost[RING_PARTITIONS];   /* what is to be restored, and ... */
    uint64_t lost_at;                /* ... since which view; as in struct view */
    bool lost_more;                  /* since the restore was begun */
    unsigned lost_tries;             /* to restore it, that have failed */
    bool lost_said;                  /* to where these rows go back */
    struct lane_timer lost_timer;    /* the next is due */
    struct ring_shard *ring_shards;  /* as ring_place wants them */
    struct migrations migrations;
    struct migrations_shard *migrations_shards;
    struct lane_timer migrations_timer; /* one has failed */
    struct lane_timer drain_timer;      /* a server that is to go may have nothing left */
    bool migrations_converged;          /* sched_converged, and it has been said */
    bool migrations_short;              /* nothing moves, but there are too few servers: it has been said */
    bool migrations_unsent;             /* an order was not even given */
    struct migration_note *migration_notes; /* orders that are not answered */
    /* Moves that are over, whose END could not be given to a side yet. Meanwhile no other begins, so that
     * with those under way there are MIGRATIONS_MAX at most. */
    struct migration_end migrations_ends[MIGRATIONS_MAX];
    unsigned migrations_ends_count;
    struct lane_timer migrations_ends_timer;
    struct view_table *tables;
    uint32_t tables_count;

    struct map barriers;
    struct sched_pool *pools;
    uint32_t pools_count;
    struct map kv; /* hash of the key -> kv_value, a chain */
    size_t kv_count, kv_bytes;
    struct call_queue kv_deferred;
    struct call_queue
        tables_deferred; /* TABLE_OPEN of new ones, while rows are lost: those have not lost any */

    struct sched_ckpt *ckpt;    /* NULL: none is taken or loaded */
    struct ckpt_base ckpt_base; /* of the next, perhaps */
    struct call_queue ckpt_calls;
    struct lane_timer ckpt_timer;
    bool restoring; /* the job begins with a checkpoint: workers get no view before it is loaded */

    struct { /* the last that was taken */
        uint64_t number, at;
        char dir[FS_PATH_MAX];
    } ckpt_last;

    struct lane_timer status_timer; /* servers have been asked for reports */
    uint32_t reports_due;
    struct spread pauses_gone; /* of servers that are gone */

    paramo_err end_status;
    char end_text[CALL_TEXT_MAX];
    bool end_told;
    uint64_t ending_since;
};

/* view_node_label, or "a worker (host-3)" of one that has no place yet. */
const char *node_label(const struct sched_node *node, char label[SCHED_LABEL]);

/* ---- between the files ------------------------------------------------------------------------------- */

/* roster.c */
/* seen: the number of the newest view that the node has. */
void roster_register(struct scheduler *s, struct peer *peer, uint64_t seen, struct reader *body);
void roster_connection_lost(struct sched_node *node);
void roster_left(struct sched_node *node);
void roster_check_silence(struct scheduler *s);
void roster_refuse_waiting(struct scheduler *s, paramo_err status, const char *text);
void roster_fini(struct scheduler *s);
/* The nodes of a view that was saved, each with heartbeat_timeout_ms to register again. */
MUST_USE paramo_err roster_restore(struct scheduler *s, const struct view *view);
/* By id; NULL. */
struct sched_node *roster_node(const struct scheduler *s, uint32_t id);
/* Writes the labels of dead (left too, if asked) nodes of a group, cut to fit; returns how many there are. */
size_t roster_gone(const struct scheduler *s, uint32_t group, bool left, char *text, size_t capacity);
/* One of those that the job was complete with, or in such a one's place. Of nodes in place. */
bool roster_founder(const struct sched_node *node);
/* The next node in place, from cursor 0 on: scheduler, servers, workers; NULL at the end. */
struct sched_node *roster_next(const struct scheduler *s, size_t *cursor);

/* sched_view.c */
void sched_view_change(struct scheduler *s); /* number goes up now; it is sent in a moment */
void sched_view_send(struct sched_node *node);
/* An admin client asks: the view as it was last announced, or AGAIN while there is none. */
MUST_USE paramo_err sched_view_admin_query(struct peer *peer, const struct wire_head *head,
                                           const struct reader *body);
void sched_table_open(struct sched_call *call, struct reader *body);
/* Opens those that wait. */
void sched_tables_go_on(struct scheduler *s);
/* A table of a checkpoint: makes it if there is none of its name. TABLE_EXISTS: it has other options. */
MUST_USE paramo_err sched_table_make(struct scheduler *s, const struct view_table *table);
/* The number of the next view, which says what changes now. */
uint64_t sched_view_next(const struct scheduler *s);
void sched_view_fini(struct scheduler *s);
/* Builds the view now that a change has made due. */
void sched_view_flush(struct scheduler *s);
/* Takes `view`, of this number, and sends it to all. */
void sched_view_announce(struct scheduler *s, struct control_message_body *view, uint64_t number);
/* A node has seen a view of this number: the next is above it. REFUSED: that is no view of this job; nothing
 * that a node says brings numbers near their end. */
MUST_USE paramo_err sched_view_above(struct scheduler *s, uint64_t number);
MUST_USE paramo_err sched_view_restore(struct scheduler *s, struct reader *record);

/* sched_save.c: nothing of it does anything without a store */
/* This durable record is not what was saved any more. */
void record_changed(struct scheduler *s, enum record_kind kind, uint64_t key);
/* The number of the save that brings all that has changed so far; 0: that is durable already. */
uint64_t sched_save_due(struct scheduler *s);
/* Makes sure that nobody else leads the job, if that is not sure. */
void sched_save_proof(struct scheduler *s);
/* Saves it, then announces it. Takes view. */
void sched_save_view(struct scheduler *s, struct control_message_body *view, uint64_t number);
void sched_save_end(struct scheduler *s);
/* The job is over: its store is for the next one. done(s) when that is durable, or cannot be. */
void sched_save_nothing(struct scheduler *s, void (*done)(struct scheduler *s));
MUST_USE paramo_err sched_save_restore(struct scheduler *s);
/* What a checkpoint keeps of the job beside its tables: values and pools, as durable records; and back, in
 * place of what there is. Who held a part then is gone: it is dealt again. */
void sched_save_extra(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_save_restore_extra(struct scheduler *s, const uint8_t *records, size_t bytes);
void sched_save_fini(struct scheduler *s);
/* For writing durable records: begins one of this id. */
static inline void record_begin(struct writer *w, enum record_kind kind, uint64_t key, size_t *mark)
{
    store_record_begin(w, (uint64_t)kind << 56 | key, mark);
}

/* Each file's own durable records: one of them (empty: it is gone), all of them, and back. */
void calls_record(const struct scheduler *s, uint64_t key, struct writer *w);
void calls_records(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err calls_restore(struct scheduler *s, uint64_t key, struct reader *record);
/* Answers that waited for saves up to this one. */
void calls_saved(struct scheduler *s, uint64_t save);
void sched_barrier_record(const struct scheduler *s, uint64_t key, struct writer *w);
void sched_barrier_records(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_barrier_restore(struct scheduler *s, uint64_t key, struct reader *record);
void sched_kv_record(const struct scheduler *s, uint64_t key, struct writer *w);
void sched_kv_records(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_kv_restore(struct scheduler *s, struct reader *record);
void sched_pool_record(const struct scheduler *s, enum record_kind kind, uint64_t key, struct writer *w);
void sched_pool_records(const struct scheduler *s, struct writer *w);
/* Pools first, then owners, then parts; sched_pool_restored when all are there. */
MUST_USE paramo_err sched_pool_restore(struct scheduler *s, enum record_kind kind, uint64_t key,
                                       struct reader *record);
void sched_pool_restored(struct scheduler *s);

/* sched_ckpt.c */
void sched_ckpt_call(struct sched_call *call, struct reader *body);
MUST_USE paramo_err sched_ckpt_admin_query(struct peer *peer, const struct wire_head *head,
                                           struct reader *body);
/* The job is complete, or goes on under a new scheduler: begins to load what it starts with, if it is not
 * loaded yet, and the clock of --checkpoint-every. */
MUST_USE paramo_err sched_ckpt_start(struct scheduler *s);
/* Rows are lost (s->lost): they are restored from the last one, in a moment, and what goes on is given up; if
 * there are no more than before, that goes on. */
void sched_ckpt_lost(struct scheduler *s, bool more);
/* A view has been announced, and is durable. */
void sched_ckpt_announced(struct scheduler *s);
void sched_ckpt_fini(struct scheduler *s);
/* The checkpoint that servers take what is lost from at present; 0: none. */
uint64_t sched_ckpt_returns(const struct scheduler *s);
struct status;
void sched_ckpt_status(const struct scheduler *s, struct status *m);
/* sched_ring.c */
MUST_USE paramo_err sched_ring_build(struct scheduler *s);
/* Says what is not as it was asked for, if that is news. */
void sched_ring_warn(struct scheduler *s, const struct ring_chains *chains);
/* Room for so many shards more; then, when they have their names, they are the last. */
MUST_USE paramo_err sched_ring_reserve(struct scheduler *s, uint16_t shards);
void sched_ring_grow(struct scheduler *s, const struct view_node *server);
/* Takes shards and chains over from a view that was saved. */
MUST_USE paramo_err sched_ring_restore(struct scheduler *s, const struct view *view);
/* Its shards are in no chain any more, whoever is left of them: whoever takes its place has lost the rows of
 * the tables that were there before the next view, and of no others. */
void sched_ring_died(const struct sched_node *server);
/* Servers have died or left: those who have copies take over, in the next view. */
void sched_ring_gone(struct scheduler *s);
/* Sets s->shards_gone. */
void sched_ring_check_gone(struct scheduler *s);
/* The chains have changed from chains_before: whoever that concerns must have the next view before it goes
 * on. */
void sched_ring_changed(struct scheduler *s);
/* Members may hear of the chains of these partitions as they are. */
void sched_ring_told(struct scheduler *s, size_t first, size_t partitions);
/* This shard hears, by an order, that it has none of these partitions. */
void sched_ring_untold(struct scheduler *s, uint16_t shard, size_t first, size_t partitions);
void sched_ring_fini(struct scheduler *s);

/* sched_lost.c */
/* Do rows whose last copy is lost return to a checkpoint? */
bool sched_lost_restores(const struct scheduler *s);
/* Whoever is gone has left these holes (s->lowest, s->shards_gone): what is to be restored is noted, and
 * partitions of which nobody is left get owners. */
void sched_lost_note(struct scheduler *s);
/* Ends the job if rows are lost, or has them restored: who is gone and which keys of which tables with them
 * is said. */
void sched_lost_check(struct scheduler *s);
/* Of what is to be restored: has the table any of it? */
bool sched_lost_table(const struct scheduler *s, const struct view_table *table);
/* Who is gone, and which keys of which tables go back to where `back` says. */
void sched_lost_warn(const struct scheduler *s, const char *back);
/* The job ends: what is lost, and why it cannot be restored (or NULL). It goes on with a warning if it does
 * so when nothing is to be restored. Nothing if no table has lost any. */
void sched_lost_end(struct scheduler *s, const char *why);
/* It has been, or will not be: no view says any more that it comes back. */
void sched_lost_restored(struct scheduler *s);

/* sched_migrations.c */
MUST_USE paramo_err sched_migrations_init(struct scheduler *s); /* after sched_ring_build */
/* Servers have come, or are gone, or another weight holds: the chains are brought to what is best now. */
void sched_migrations_retarget(struct scheduler *s);
/* While a checkpoint is taken or loaded nothing moves: what does is given up, and begun anew afterwards. */
void sched_migrations_suspend(struct scheduler *s);
void sched_migrations_resume(struct scheduler *s);
/* Servers will take the next view, of this term, for another scheduler's, which knows of no move: none may be
 * committed that they have let go by then. They begin anew. */
void sched_migrations_restart(struct scheduler *s, uint64_t term);
MUST_USE paramo_err sched_migrations_reserve(struct scheduler *s, size_t shards);
/* CALL_DRAIN of a server: its partitions go to others, then it is told to leave. */
void sched_drain_call(struct sched_call *call, struct reader *body);
/* The same of an admin client. */
MUST_USE paramo_err sched_drain_admin_query(struct peer *peer, const struct wire_head *head,
                                            struct reader *body);
/* All up to this save is durable: admin clients that waited for it are answered. */
void sched_drain_saved(struct scheduler *s, uint64_t save);
/* Every partition has all the copies that the job is to have, on servers that are registered with this
 * scheduler now, all where they are to be, and nothing is being restored. So any of them may go that others
 * have copies of. */
bool sched_converged(const struct scheduler *s);
/* A server that is to go may have nothing left, or all be settled. */
void sched_migrations_check(struct scheduler *s);
void sched_migrations_fini(struct scheduler *s);

/* sched_status.c */
/* An admin client asks how the job is: AGAIN while there is no view; else the answer comes within a second.
 */
MUST_USE paramo_err sched_status_admin_query(struct peer *peer, const struct wire_head *head,
                                             const struct reader *body);
/* Has a server that has been drained told what is to be known of it? Else it is asked, and
 * sched_migrations_check follows. */
bool sched_status_goodbye(struct sched_node *node);
/* It is DEAD or LEFT. */
void sched_status_gone(struct sched_node *node);
void sched_status_fini(struct scheduler *s);

/* sched_calls.c */
MUST_USE paramo_err calls_received(struct sched_node *node, const struct wire_head *head,
                                   struct reader *body);
MUST_USE paramo_err calls_floor(struct sched_node *node, uint64_t floor);
/* The node is gone: parked calls are withdrawn. */
void calls_drop(struct sched_node *node, bool keep_answered);
MUST_USE paramo_err peer_send(struct peer *peer, const struct wire_head *head, const void *body, size_t len);
MUST_USE paramo_err peer_reply(struct peer *peer, uint32_t kind, uint64_t number, paramo_err status,
                               const struct writer *body);

/* sched_orders.c: what this scheduler tells a member to do (wire/order.h) */

/* done comes once: OK and the result; what the member says went wrong (this thread's message), NODE_LOST when
 * it is gone; never from inside order_issue, and not any more after the scheduler's end. Takes what fields
 * owns. FULL: the member has too many; NODE_LOST. */
MUST_USE paramo_err order_issue(struct sched_node *node, uint32_t what, struct writer *fields,
                                void (*done)(void *arg, struct sched_node *node, paramo_err status,
                                             struct reader *result),
                                void *arg);
/* Sends those that have not been sent for so long. */
void orders_send(struct sched_node *node, uint64_t overdue);
/* They will be sent again as soon as there is a connection. */
void orders_unsend(struct sched_node *node);
/* The node is gone: each is done with NODE_LOST, if there is anybody left to be told. */
void orders_drop(struct sched_node *node, bool tell);
/* The term has risen above that of an earlier scheduler nobody knew of: members take the orders given so far
 * for its, and may have seen such numbers. Each is done with CANCELLED. */
void orders_cancel(struct scheduler *s);
void order_done_call(struct sched_call *call, struct reader *body);

/* scheduler.c */
void sched_node_gone(
    struct sched_node *node); /* DEAD or LEFT: tells barriers and pools, looks whether the job is over */
void sched_end(struct scheduler *s, paramo_err status, const char *text);
/* In a dead one's place: the job goes on, if it was waiting for that. */
void sched_worker_came(struct scheduler *s);
/* Another scheduler leads the job: this one says nothing to anybody any more. err_text() says who. */
void sched_deposed(struct scheduler *s);
/* It may be told to the members now. */
void sched_end_told(struct scheduler *s);
void sched_end_write(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_end_restore(struct scheduler *s, struct reader *record);
void sched_send_end(struct sched_node *node, paramo_err status, const char *text);
void sched_peer_close(struct peer *peer, bool flush);

/* sched_barrier.c, sched_pool.c, sched_kv.c */
void sched_barrier_enter(struct sched_call *call, struct reader *body);
void sched_barrier_node_gone(struct sched_node *node);
void sched_barrier_fini(struct scheduler *s);
void sched_pool_open(struct sched_call *call, struct reader *body);
void sched_pool_next(struct sched_call *call, struct reader *body);
void sched_pool_done(struct sched_call *call, struct reader *body);
void sched_pool_end(struct sched_call *call, struct reader *body);
/* Parts of work that the node holds. */
size_t sched_pool_held(const struct sched_node *node);
void sched_pool_node_gone(struct sched_node *node);
void sched_pool_fini(struct scheduler *s);
void sched_kv_put(struct sched_call *call, struct reader *body);
void sched_kv_get(struct sched_call *call, struct reader *body);
void sched_kv_add(struct sched_call *call, struct reader *body);
void sched_kv_delete(struct sched_call *call, struct reader *body);
void sched_kv_fini(struct scheduler *s);

#endif
