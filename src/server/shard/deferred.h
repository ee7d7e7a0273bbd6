/*
 * Requests that read a whole table or a page of it (SCAN, STAT, REDUCE), and so take longer than a step of the lane.
 * Their result is found in steps, with everything else between the steps; beats and leases go on. When it is
 * there, the request is handled as if it came now, because the view may have changed. All STATs and REDUCEs
 * take their turns together. Of the SCANs only the first does: unfinished pages would push each other out of memory.
 *
 *     add --> waiting (the first has the next step) --> handled again --> answered, or deferred again
 *                ^                                            |
 *                +--- deferred_resume --- held <--------------+ the shard, or its connection, is shut
 *
 * A repeat replaces the request that it repeats. Nothing of this is replicated or migrated: a client asks the
 * next owner (MOVED).
 *
 * This is the list; deferred_turn.h has the steps. It must never know how a page is found. Tests:
 * test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_DEFERRED_H
#define SERVER_SHARD_DEFERRED_H

#include "server/shard/shard_impl.h"

struct reducing;

/* What is found in steps belongs together only while this stays the same: which partitions are the shard's, and which
 * load of a checkpoint has put the rows there. */
struct rows_epoch {
    uint64_t partitions_changed, loads;
};

struct rows_epoch rows_epoch_now(const struct shard *s);
bool rows_epoch_is(const struct shard *s, struct rows_epoch epoch);

/* What is known of a scan between its batches (scanning.h). Here, for its page is freed in steps. */
struct session {
    struct session *next;
    struct sender_id sender;
    uint32_t id, table;
    uint64_t number; /* of the sender's latest request for it */
    uint64_t used_at;
    struct rows_epoch epoch; /* when the page was begun */
    struct table_page page;  /* being found, or there, or closed */
    uint64_t asked, past;    /* a scan from `asked` found no row in any key before `past` */
    bool over;               /* its last row has been sent */
};

/* There is at most one for each sender and number. */
struct deferred {
    struct qnode node;
    struct peer *peer;
    struct wire_head head;
    uint64_t deadline;
    uint64_t keys[2];        /* SCAN: the first that is wanted, and perhaps the last */
    struct rows_epoch epoch; /* when the count, or the reduction, began */
    struct table_count count;
    struct reducing *reducing; /* REDUCE: its own */
};

struct shard_deferred {
    struct shard *shard;
    struct queue turn, held; /* struct deferred: in turn; until they may be handled again */
    size_t count;
    const struct deferred *over; /* is being handled again */
    struct session *closing;     /* their pages' memory is being freed in steps */
    struct lane_timer timer;
};

/* turn: the function of the timer. */
void deferred_init(struct shard *s, void (*turn)(struct lane_timer *timer));
/* Frees the pages at once. No request is deferred any more. */
void deferred_close(struct shard *s);
/* Requests that are deferred. */
static inline size_t deferred_waiting(const struct shard *s)
{
    return s->deferred->count;
}

/* keys: head->count of them, at most two. */
MUST_USE paramo_err deferred_add(struct peer *peer, const struct wire_head *head, const uint64_t *keys);
/* Like deferred_add(), for a REDUCE. It takes r over, also on an error; a repeat continues with the result so far. */
MUST_USE paramo_err deferred_add_reducing(struct peer *peer, const struct wire_head *head,
                                          struct reducing *r);
/* Is the request deferred? This also tells that its sender still wants it. */
bool deferred_asked(const struct shard *s, const struct sender *sender, uint64_t number);
/* The deferred request that is being handled again, if it is this one and the shard's rows are of the epoch in which
 * it began; else NULL. */
const struct deferred *deferred_again(const struct peer *peer, const struct wire_head *head);
/* True: a deferred STAT is being handled again, and this is its count. */
bool deferred_count(const struct peer *peer, const struct wire_head *head, struct table_count *count);
void deferred_free(struct shard *s, struct deferred *d);
/* Frees the memory of a scan's page in steps. */
void deferred_close_page(struct shard *s, struct session *x);
/* Frees some of it. True: all is free. */
bool deferred_close_step(struct shard *s);
/* Starts the timer of steps: for waiting requests, or to free memory. */
void deferred_go(struct shard *s);
/* The shard or a connection may be open again: held requests are handled again. */
void deferred_resume(struct shard *s);
/* Drops the requests of a peer (NULL: of none), and those past their deadline. */
void deferred_drop(struct shard *s, const struct peer *peer, uint64_t now);

#endif
