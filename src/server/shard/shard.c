#include "server/shard/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/session/acceptor.h"
#include "ring/chains.h"
#include "server/migration/target.h"
#include "server/replication/follow.h"
#include "server/replication/forward.h"
#include "server/replication/records.h"
#include "server/replication/replication.h"
#include "server/replication/succession.h"
#include "server/shard/adopting.h"
#include "server/shard/clearing.h"
#include "server/shard/deferred.h"
#include "server/shard/filtered.h"
#include "server/shard/handling.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/shard/shard_impl.h"
#include "server/shard/slice.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "table/table_options.h"
#include "wire/report.h"

enum {
    TABLE_AGAIN_MS = 100, /* arbitrary: soon for a person */
    TRIM_AFTER_MS = 100,  /* a cleared table may be filled again; arbitrary */
    TRIM_CHUNKS = 8,      /* in a step, each 1 ms: without huge pages 100 us each */
    /* In units of SHARD_CHECK_TURN: to close a connection, and to look through what waits for what it asked, 1
     * for this many requests. */
    CHECK_COST_CLOSE = 64,
    CHECK_WAITING = 4
};

/* ---- tables ---- */

struct shard_table *shard_table_find(struct shard *s, uint32_t id)
{
    struct shard_table *t = map_get(&s->tables, id);
    if (t)
        s->last = t;
    return t;
}

void shard_table_free(struct shard_table *t)
{
    rowcache_fini(&t->rows);
    table_destroy(t->table);
    hugemem_fini(&t->memory);
    free(t);
}

/* The partitions of which this shard has the table's rows or will get them, as owner or replica. runs: of the view. */
static void held_partitions(const struct shard *s, const struct shard_table *t, const struct view *view,
                            int self, const uint64_t runs[PARTITION_WORDS],
                            uint64_t partitions[PARTITION_WORDS])
{
    const struct ring_chains *chains = &view->chains;
    const uint64_t *come = s->chain ? migration_target_partitions(s->chain) : NULL;
    if (come && migration_target_gets_table(s->chain, t))
        memcpy(partitions, come, PARTITION_WORDS * sizeof *partitions);
    else
        memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    for (partition_set_runs(a, end, runs))
        for (unsigned level = 0; level <= chains->replicas && level <= t->replicas; level++)
            if (chains->level[level].owner[a] == (unsigned)self)
                partition_set_add_run(partitions, a, end);
}

void shard_table_lose(struct shard_table *t, const uint64_t *partitions, bool lost)
{
    t->lost = false;
    for (unsigned i = 0; i < RING_PARTITIONS / 64; i++) {
        uint64_t these = partitions ? partitions[i] : UINT64_MAX;
        t->lost_partitions[i] = lost ? t->lost_partitions[i] | these : t->lost_partitions[i] & ~these;
        t->lost |= t->lost_partitions[i] != 0;
    }
}

/* A run of partitions is one contiguous range of the table. Returns its end. */
static uint64_t rows_of_run(const struct shard_table *t, unsigned from, unsigned to, uint64_t *first)
{
    *first = ring_first_row(&t->placement, from);
    return to == RING_PARTITIONS ? t->options.rows : ring_first_row(&t->placement, to);
}

static uint64_t rows_of(const struct shard_table *t, const uint64_t partitions[PARTITION_WORDS])
{
    uint64_t rows = 0, first;
    for (unsigned a = partition_set_next(partitions, 0), end; a < RING_PARTITIONS;
         a = partition_set_next(partitions, end)) {
        end = partition_set_next_absent(partitions, a);
        uint64_t last = rows_of_run(t, a, end, &first);
        rows += last - first;
    }
    return rows;
}

/* Makes the rows of these partitions; adds those to `bare` that have no values yet. */
static paramo_err own(struct shard *s, struct shard_table *t, const uint64_t fresh[PARTITION_WORDS],
                      size_t *room, uint64_t bare[PARTITION_WORDS])
{
    uint64_t first;
    paramo_err err = PARAMO_OK;
    bool at_once = clearing_fills_at_once(s, t, rows_of(t, fresh), room);
    for (unsigned a = partition_set_next(fresh, 0), end; a < RING_PARTITIONS && !err;
         a = partition_set_next(fresh, end)) {
        end = partition_set_next_absent(fresh, a);
        uint64_t last = rows_of_run(t, a, end, &first);
        if (last > first && at_once)
            err = table_dense_own(t->table, first, last - first);
        else if (last > first)
            err = table_dense_own_bare(t->table, first, last - first);
        if (err)
            break;
        partition_set_add_run(t->held, a, end);
        if (!at_once && last > first)
            partition_set_add_run(bare, a, end);
    }
    return err;
}

static bool is_any(const uint64_t partitions[PARTITION_WORDS])
{
    return partition_set_next(partitions, 0) < RING_PARTITIONS;
}

paramo_err shard_table_own(struct shard *s, struct shard_table *t, size_t *room)
{
    uint64_t fresh[PARTITION_WORDS], bare[PARTITION_WORDS] = {0};
    held_partitions(s, t, s->view, s->self, s->runs, fresh);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        fresh[i] &= ~t->held[i];
    paramo_err err = own(s, t, fresh, room, bare);
    if (is_any(bare))
        clearing_fill(s, t, bare);
    return err;
}

/* Returns freed memory of tables to the system in steps. */
static void trimming_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard, trimming);
    unsigned chunks = TRIM_CHUNKS;
    bool more = false;
    uint64_t id;
    void *value;
    for (size_t i = 0; !more && map_next(&s->tables, &i, &id, &value);) {
        struct hugemem *m = &((struct shard_table *)value)->memory;
        size_t before = m->chunks.count;
        more = hugemem_trim(m, chunks);
        assert(before >= m->chunks.count && before - m->chunks.count <= chunks);
        chunks -= (unsigned)(before - m->chunks.count);
    }
    if (more && lane_timer_arm(s->lane, timer, lane_now(s->lane) + ENV_MS))
        log_debug("shard %u: no memory for a timer: freed memory is kept", s->config.index);
}

static void trim_soon(void *shard)
{
    struct shard *s = shard;
    if (!s->trimming.slot &&
        lane_timer_arm(s->lane, &s->trimming, lane_now(s->lane) + TRIM_AFTER_MS * ENV_MS))
        log_debug("shard %u: no memory for a timer: freed memory is kept", s->config.index);
}

uint64_t shard_table_bytes(const struct shard_table *t)
{
    return t->table ? table_get_stats(t->table).bytes + hugemem_idle(&t->memory) : 0;
}

static paramo_err table_make(struct shard *s, const struct view_table *from, struct shard_table **made)
{
    struct shard_table *t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    hugemem_init(&t->memory);
    t->memory.emptied = trim_soon;
    t->memory.ctx = s;
    rowcache_init(&t->rows, &s->pool);
    t->id = from->id;
    memcpy(t->name, from->name, sizeof t->name);
    t->options = from->options;
    t->replicas =
        from->options.replicas == PARAMO_REPLICAS_OF_JOB ? RING_REPLICAS_MAX : from->options.replicas;
    t->placement =
        (struct ring_placement){.kind = table_options_placement(&from->options), .rows = from->options.rows};
    t->value_bytes = (uint32_t)table_dtype_size(from->options.dtype);
    if (from->options.kind == PARAMO_TABLE_SPARSE || from->options.kind == PARAMO_TABLE_DENSE) {
        t->row_values = from->options.dim;
        t->state_values = (uint32_t)table_state_values(&from->options);
    }
    *made = t;
    return PARAMO_OK;
}

static paramo_err rows_make(struct shard *s, struct shard_table *t)
{
    struct table_alloc alloc = {.alloc = hugemem_alloc, .release = hugemem_release, .ctx = &t->memory};
    return t->options.kind == PARAMO_TABLE_USER || t->table
               ? PARAMO_OK
               : table_create(&t->options, env_random(lane_env(s->lane)), &alloc, &t->table);
}

/* Makes the table, and room for the rows that belong here. */
static paramo_err table_furnish(struct shard *s, struct shard_table *t, size_t *room)
{
    paramo_err err = rows_make(s, t);
    if (!err && s->self >= 0 && t->options.kind == PARAMO_TABLE_DENSE)
        err = shard_table_own(s, t, room);
    return err;
}

paramo_err shard_table_prepare(struct shard *s, const struct view_table *from, const struct view *view,
                               int self, const uint64_t runs[PARTITION_WORDS], size_t *room,
                               struct shard_table **out)
{
    struct shard_table *t;
    uint64_t fresh[PARTITION_WORDS];
    paramo_err err = table_make(s, from, &t);
    if (err)
        return err;
    err = rows_make(s, t);
    if (!err && self >= 0 && t->options.kind == PARAMO_TABLE_DENSE) {
        held_partitions(s, t, view, self, runs, fresh);
        err = own(s, t, fresh, room, t->clearing);
    }
    if (err)
        shard_table_free(t);
    else
        *out = t;
    return err;
}

/* Tables that lack memory try again. Until they succeed, requests to them answer MEMORY, and members before
 * us wait. */
static void tables_furnish(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    bool lacks = false;
    uint64_t id;
    void *value;
    size_t room = clearing_room(s);
    for (size_t i = 0; map_next(&s->tables, &i, &id, &value);) {
        struct shard_table *t = value;
        bool before = t->lacks;
        t->lacks = table_furnish(s, t, &room) != PARAMO_OK;
        lacks |= t->lacks;
        if (t->lacks && !before)
            log_error("%s, shard %u: table %s is not usable yet; retrying: %s",
                      view_id_label(s->config.node, label), s->config.index, t->name, err_text());
        else if (before && !t->lacks)
            log_info("%s, shard %u: table %s is usable", view_id_label(s->config.node, label),
                     s->config.index, t->name);
    }
    if (lacks)
        shard_table_again(s);
}

void shard_table_again(struct shard *s)
{
    if (!s->furnishing.slot &&
        lane_timer_arm(s->lane, &s->furnishing, lane_now(s->lane) + TABLE_AGAIN_MS * ENV_MS))
        log_debug("shard %u: no memory for a timer: tables wait for the next request", s->config.index);
}

static void furnishing_fire(struct lane_timer *timer)
{
    tables_furnish(container_of(timer, struct shard, furnishing));
}

/* Makes a table when a view first names it: from then on the shard knows which of its rows are lost, even
 * before there is memory for rows. Without memory for the table itself the shard ends, because it cannot know
 * what it has lost. */
static paramo_err table_add(struct shard *s, const struct view_table *from)
{
    struct shard_table *t = adopting_take_table(s, from->id);
    paramo_err err = t ? PARAMO_OK : table_make(s, from, &t);
    if (err)
        return err;
    err = map_put(&s->tables, t->id, t);
    if (err)
        shard_table_free(t);
    else if (is_any(t->clearing))
        clearing_fill(s, t, t->clearing);
    return err;
}

static void tables_update(struct shard *s)
{
    for (uint32_t i = 0; i < s->view->tables_count; i++) {
        const struct view_table *from = &s->view->tables[i];
        paramo_err err = map_get(&s->tables, from->id) ? PARAMO_OK : table_add(s, from);
        if (!err)
            continue;
        err = err_prefix(err, "shard %u cannot continue: table %s", s->config.index, from->name);
        if (s->config.failed)
            s->config.failed(s->config.arg, err);
    }
    tables_furnish(s);
}

/* Number of the last view in which the partition's owner was gone. */
static uint64_t owner_gone(const struct shard *s, unsigned partition)
{
    uint64_t gone = s->view->owner_gone[partition];
    return gone;
}

/* The partitions whose owner was gone after the view before, and, of these, those that the view says will be
 * restored, by the copies that a table has. */
struct bereaved {
    uint64_t got[PARTITION_WORDS], restored[RING_REPLICAS_MAX + 1][PARTITION_WORDS];
    uint64_t first, last; /* numbers of views in which an owner was gone; last 0: none was */
};

/* The owned partitions whose owner was gone after the view before: mostly none, in the words of a set. */
static void gone_after(const struct shard *s, const uint64_t owned[PARTITION_WORDS],
                       uint64_t after[PARTITION_WORDS])
{
    for (unsigned word = 0; word < PARTITION_WORDS; word++) {
        const uint64_t *gone = &s->view->owner_gone[64 * word];
        bool any = false;
        after[word] = 0;
        if (!owned[word])
            continue;
        for (unsigned i = 0; i < 64; i++) /* without a branch, so that it becomes vector code */
            any |= gone[i] > s->view_before;
        for (unsigned i = 0; i < 64 && any; i++)
            after[word] |= (uint64_t)(gone[i] > s->view_before) << i;
        after[word] &= owned[word];
    }
}

static void bereaved_find(const struct shard *s, const uint64_t owned[PARTITION_WORDS], struct bereaved *b)
{
    uint64_t after[PARTITION_WORDS];
    *b = (struct bereaved){.first = UINT64_MAX};
    gone_after(s, owned, after);
    for (partition_set_each(a, after)) {
        uint64_t gone = owner_gone(s, a);
        b->first = gone < b->first ? gone : b->first;
        b->last = gone > b->last ? gone : b->last;
        partition_set_add(b->got, a);
        for (unsigned r = 0; r <= RING_REPLICAS_MAX && r < s->view->lost[a]; r++)
            partition_set_add(b->restored[r], a);
    }
}

/* Were the table's rows lost with the owner? They were if they had no copies, or if the view says that they
 * will be restored. A table that was opened after the death had no rows there: no view that names it has that
 * owner alive. */
static void rows_lost(const struct shard *s, const struct bereaved *b, uint64_t since, unsigned replicas,
                      uint64_t lost[PARTITION_WORDS])
{
    memset(lost, 0, PARTITION_WORDS * sizeof *lost);
    if (since < s->view->lost_at)
        memcpy(lost, b->restored[replicas], sizeof b->restored[replicas]);
    if (replicas || since >= b->last)
        return;
    if (since < b->first) {
        memcpy(lost, b->got, sizeof b->got);
        return;
    }
    for (partition_set_each(a, b->got)) /* opened between two deaths */
        if (since < owner_gone(s, a))
            partition_set_add(lost, a);
}

/* Marks what was lost on our partitions with owners that were gone after the view before: never zeros in
 * silence. This shard may have missed views, even one in which it gave a partition to that owner: then it has
 * old rows. replaces: it came in the place of the owner, which had the only copy of all that it had. */
static void tables_bereave(struct shard *s, const uint64_t owned[PARTITION_WORDS], bool replaces)
{
    struct bereaved bereaved;
    uint64_t id, lost[PARTITION_WORDS];
    void *value;
    bereaved_find(s, owned, &bereaved);
    for (size_t i = 0; bereaved.last && map_next(&s->tables, &i, &id, &value);) {
        struct shard_table *t = value;
        const struct view_table *from = view_table(s->view, t->id);
        rows_lost(s, &bereaved, from ? from->since : 0, replaces ? 0 : t->replicas, lost);
        if (t->options.kind != PARAMO_TABLE_USER)
            shard_table_lose(t, lost, true);
    }
}

/* ---- senders and peers ---- */

enum life { LIFE_UNKNOWN, LIFE_ALIVE, LIFE_OVER };

/* UNKNOWN: the view may be older than the incarnation. known: a view has had it. */
static enum life life_of(const struct shard *s, uint32_t id, uint64_t incarnation, bool known)
{
    const struct view_node *node = s->view ? view_node(s->view, id) : NULL;
    bool is = node && node->incarnation == incarnation;
    if (is && node->alive)
        return LIFE_ALIVE;
    return is || known ? LIFE_OVER : LIFE_UNKNOWN;
}

static unsigned sender_bucket(const struct sender_id *id)
{
    return (unsigned)(sender_id_hash(id) % SHARD_SENDER_BUCKETS);
}

static void sender_free(struct shard *s, struct sender *sender)
{
    struct sender **at = &s->sender_buckets[sender_bucket(&sender->id)];
    if (s->check.sender == sender)
        s->check.sender = sender->next;
    saving_sender_gone(s, sender);
    while (*at != sender) {
        assert(*at); /* its bucket has it */
        at = &(*at)->bucket_next;
    }
    assert(!sender->peers && !sender->peer && s->senders_count > 0);
    assert(sender->prev ? sender->prev->next == sender : s->senders == sender);
    *at = sender->bucket_next;
    if (sender->prev)
        sender->prev->next = sender->next;
    else
        s->senders = sender->next;
    if (sender->next)
        sender->next->prev = sender->prev;
    s->senders_count--;
    handling_forget(s, sender);
    applied_window_fini(&sender->applied_window);
    chain_sender_gone(sender);
    scanning_forget(s, sender);
    free(sender->handled);
    free(sender);
}

/* The customer was closed, and no other was opened since: numbers below `over` come no more, and none exist
 * above. */
static bool sender_closed(const struct sender *sender)
{
    return sender->over && sender->applied_window.own.floor == sender->over &&
           applied_window_is_empty(&sender->applied_window) && !handling_any(sender);
}

/* A record without a connection is kept while its worker may return: the view has the incarnation alive, and
 * the customer is not closed. */
static bool sender_over(const struct shard *s, const struct sender *sender)
{
    if (sender->peers)
        return false;
    if (sender_closed(sender))
        return true;
    const struct view_node *node = s->view ? view_node(s->view, sender->id.node) : NULL;
    return !node || !node->alive || node->incarnation != sender->id.incarnation;
}

struct sender *shard_sender_find(const struct shard *s, const struct sender_id *id)
{
    struct sender *sender = s->sender_buckets[sender_bucket(id)];
    while (sender && !sender_id_equal(&sender->id, id))
        sender = sender->bucket_next;
    return sender;
}

struct sender *shard_sender(struct shard *s, const struct sender_id *id)
{
    struct sender *sender = shard_sender_find(s, id);
    if (sender)
        return sender;
    sender = calloc(1, sizeof *sender);
    if (!sender)
        return NULL;
    sender->id = *id;
    sender->checked = UINT64_MAX;
    applied_window_init(&sender->applied_window);
    sender->next = s->senders;
    if (s->senders)
        s->senders->prev = sender;
    s->senders = sender;
    struct sender **bucket = &s->sender_buckets[sender_bucket(id)];
    sender->bucket_next = *bucket;
    *bucket = sender;
    s->senders_count++;
    return sender;
}

/* A job that passes records on may be about to visit any of them. Its end calls shard_senders_check. */
static bool senders_stay(const struct shard *s)
{
    return s->chain && records_pending(s->chain);
}

void shard_peer_forget(struct shard *s, struct peer *peer)
{
    struct sender *sender = peer->sender;
    if (s->check.peer == peer)
        s->check.peer = peer->next;
    slice_drop_view_deferred(s, peer, 0);
    deferred_drop(s, peer, 0);
    slice_drop_deferred(peer);
    for (struct qnode *node; (node = queue_pop(&peer->backlog));)
        reply_free(container_of(container_of(node, struct van_frame, node), struct reply, frame));
    assert(queue_empty(&peer->behind) && sender->peers > 0);
    assert(peer->prev ? peer->prev->next == peer : s->peers == peer);
    if (peer->prev)
        peer->prev->next = peer->next;
    else
        s->peers = peer->next;
    if (peer->next)
        peer->next->prev = peer->prev;
    sender->peers--;
    if (sender->peer == peer)
        sender->peer = NULL;
    filtered_peer_fini(peer);
    free(peer);
    if (!senders_stay(s) && sender_over(s, sender))
        sender_free(s, sender);
}

void shard_accept(struct shard *s, struct van_conn *conn, const struct hello *hello)
{
    if ((hello->purpose == HELLO_CHAIN || hello->purpose == HELLO_MIGRATION) &&
        hello->shard == s->config.index) {
        follow_accept(s, conn, hello);
        return;
    }
    if (hello->purpose != HELLO_DATA || hello->shard != s->config.index) {
        acceptor_reject(conn, PARAMO_E_REFUSED, "this server has no such shard");
        return;
    }
    enum life life = life_of(s, hello->node, hello->incarnation, false);
    if (life == LIFE_OVER) {
        acceptor_reject(conn, PARAMO_E_FENCED, "this incarnation of the node was declared dead");
        return;
    }
    struct sender_id id = hello_sender(hello);
    struct sender *sender = shard_sender_find(s, &id);
    if (!sender && s->senders_count >= SHARD_SENDERS_MAX) {
        acceptor_reject(conn, PARAMO_E_FULL, "the server has too many senders");
        return;
    }
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer && !sender)
        sender = shard_sender(s, &id);
    if (!peer || !sender) {
        free(peer);
        acceptor_reject(conn, PARAMO_E_MEMORY, "the server is out of memory");
        return;
    }
    sender->known |= life == LIFE_ALIVE;
    peer->shard = s;
    peer->conn = conn;
    peer->sender = sender;
    peer->since = lane_now(s->lane);
    filtered_peer_init(peer);
    peer->next = s->peers;
    if (s->peers)
        s->peers->prev = peer;
    s->peers = peer;
    sender->peers++;
    van_set_user(conn, &shard_van_user, peer);
    van_set_frame_limit(conn, s->config.frame_bytes);
    van_conn_stays(conn);
    if (acceptor_welcome(conn, s->view ? s->view->job : hello->job, s->config.incarnation)) {
        van_close(conn, false);
        shard_peer_forget(s, peer);
    }
    s->strangers |= life == LIFE_UNKNOWN;
    if (s->strangers)
        shard_keep_house(s);
}

/* ---- which senders are over ---- */

static unsigned peer_close(struct shard *s, struct peer *peer)
{
    size_t waiting = s->view_deferred_count + s->deferred_count;
    van_close(peer->conn, false);
    shard_peer_forget(s, peer);
    return CHECK_COST_CLOSE + (unsigned)(waiting / CHECK_WAITING);
}

/* Closes the connection of a dead sender: a host that has vanished resets none. So too of one that no view has
 * had for a while: it is not a node of the job. Returns the cost. */
static unsigned peer_check(struct shard *s, struct peer *peer)
{
    struct sender *x = peer->sender;
    enum life life = life_of(s, x->id.node, x->id.incarnation, x->known);
    x->known |= life == LIFE_ALIVE;
    if (life == LIFE_OVER)
        return peer_close(s, peer);
    if (life == LIFE_UNKNOWN && lane_now(s->lane) - peer->since >= SHARD_UNKNOWN_SENDER_SECONDS * ENV_SEC)
        return peer_close(s, peer);
    s->strangers |= life == LIFE_UNKNOWN;
    return 1;
}

static unsigned sender_check(struct shard *s, struct sender *sender)
{
    if (!sender_over(s, sender))
        return 1;
    sender_free(s, sender);
    return SHARD_CHECK_FREE;
}

static void check_begin(struct shard *s)
{
    s->check.on = true;
    s->check.again = false;
    s->check.peer = s->peers;
    s->check.sender = s->senders;
    s->strangers = false;
}

/* Looks at the next connection, then at the next record, or ends. Returns the cost. */
static unsigned check_next(struct shard *s)
{
    struct peer *peer = s->check.peer;
    struct sender *sender = s->check.sender;
    if (peer) {
        s->check.peer = peer->next;
        return peer_check(s, peer);
    }
    if (sender && !senders_stay(s)) {
        s->check.sender = sender->next;
        return sender_check(s, sender);
    }
    s->check.on = false;
    s->check.sender = NULL;
    if (s->check.again)
        check_begin(s);
    else
        shard_keep_house(s);
    return 0;
}

static void check_turn(struct shard *s, uint64_t left)
{
    while (left && s->check.on) {
        unsigned cost = check_next(s);
        s->check.spent += cost;
        left -= cost < left ? cost : left;
    }
}

/* In a simulation, other events come between two turns. */
static void check_go_on(struct shard *s)
{
    size_t few = s->config.turn_records;
    check_turn(s, few ? few : SHARD_CHECK_TURN);
    if (s->check.on && lane_timer_arm(s->lane, &s->check.timer, lane_now(s->lane) + (few ? ENV_MS : 0)))
        check_turn(s, UINT64_MAX); /* without memory for a timer */
}

static void check_fire(struct lane_timer *timer)
{
    check_go_on(container_of(timer, struct shard, check.timer));
}

void shard_senders_check(struct shard *s)
{
    if (s->check.on) {
        s->check.again = true;
        return;
    }
    check_begin(s);
    check_go_on(s);
}

/* ---- views ---- */

static void owned_partitions(const struct shard *s, uint64_t partitions[PARTITION_WORDS])
{
    memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    for (partition_set_runs(a, end, s->runs))
        if (s->self >= 0 && view_ring(s->view)->owner[a] == (unsigned)s->self)
            partition_set_add_run(partitions, a, end);
}

const struct view_node *shard_node_in(const struct shard *s, const struct view *view)
{
    for (uint32_t i = 0; i < view->nodes_count; i++)
        if (view->nodes[i].incarnation == s->config.incarnation &&
            (s->config.app_endpoint || view->nodes[i].role == PARAMO_ROLE_SERVER))
            return &view->nodes[i];
    return NULL;
}

int shard_index_in(const struct shard *s, const struct view *view)
{
    const struct view_node *node = shard_node_in(s, view);
    return node && node->alive ? view_shard_index(view, node->id, s->config.index) : -1;
}

void shard_set_view(struct shard *s, struct view *view)
{
    assert(!s->adopting_view);
    if (!s->view || view->number > s->view->number)
        adopting_begin(s, view);
}

void shard_adopt_view(struct shard *s, struct view *view)
{
    const struct view_node *node = shard_node_in(s, view);
    if (node)
        s->config.node = node->id;
    uint64_t before[PARTITION_WORDS] = {0}, owned[PARTITION_WORDS], gained = 0;
    if (s->view)
        owned_partitions(s, before);
    s->view_before = s->view ? s->view->number : 0;
    view_unref(s->view);
    s->view = view_ref(view);
    memset(s->runs, 0, sizeof s->runs);
    ring_begins(&view->chains, s->runs);
    s->adopting_view = true;
    /* Not in the view: not yet, or declared dead, or another process has our rank; nothing is ours. */
    s->self = shard_index_in(s, view);
    owned_partitions(s, owned);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        gained |= owned[i] & ~before[i];
    if (gained) /* only the previous owner knows its changes since the last checkpoint */
        s->saved_id = 0;
    s->partitions_changed = s->self >= 0 ? view->shards[s->self].partitions_changed : UINT64_MAX;
    s->owns_all = partition_set_next_absent(owned, 0) == RING_PARTITIONS;
    if (!s->config.app_endpoint)
        tables_update(s);
    s->chain_changed = s->self >= 0 ? view->shards[s->self].chain_changed : UINT64_MAX;
    s->restoring = view->lost_at != 0; /* nothing is answered until loading_update has looked */
    if (s->chain)
        chain_succeed(s->chain);
    tables_bereave(s, owned, !s->view_before && node && node->recovered);
    loading_update(s);
    loading_check(s);
    saving_new_view(s);
    saving_check(s);
    shard_senders_check(s);
    slice_resume_view_deferred(s);
    s->adopting_view = false;
    if (s->chain)
        chain_reopen(s);
    slice_resume_all(s);
}

/* ---- housekeeping ---- */

void shard_keep_house(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    if (s->housekeeping.slot ||
        (!s->view_deferred_count && !s->sessions && !s->deferred_count && !s->strangers))
        return;
    if (lane_timer_arm(s->lane, &s->housekeeping, lane_now(s->lane) + 5 * ENV_SEC))
        log_warn("%s: no memory for a timer: abandoned requests stay until the next request",
                 view_id_label(s->config.node, label));
}

static void housekeeping_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard, housekeeping);
    uint64_t now = lane_now(s->lane);
    slice_drop_view_deferred(s, NULL, now);
    deferred_drop(s, NULL, now);
    if (s->strangers)
        shard_senders_check(s);
    scanning_expire(s, now > SCAN_SESSION_SECONDS * ENV_SEC ? now - SCAN_SESSION_SECONDS * ENV_SEC : 0);
    shard_keep_house(s);
}

void shard_get_counters(const struct shard *s, struct shard_counters *counters)
{
    *counters = s->counters;
    counters->senders = s->senders_count;
    counters->kept_bytes = s->kept_bytes;
    counters->view_deferred_bytes = s->view_deferred_bytes;
    uint64_t key;
    void *value;
    for (size_t i = 0; map_next(&s->tables, &i, &key, &value);) {
        const struct shard_table *t = value;
        counters->tables_bytes += shard_table_bytes(t);
    }
}

void shard_get_report(const struct shard *s, struct shard_report *report)
{
    size_t bytes = 0;
    uint64_t key;
    void *value;
    *report = (struct shard_report){.senders = s->senders_count,
                                    .requests = s->counters.slices,
                                    .repeats = s->counters.repeats,
                                    .pauses = s->pauses};
    for (size_t i = 0; map_next(&s->tables, &i, &key, &value);) {
        const struct shard_table *t = value;
        struct table_stats stats = t->table ? table_get_stats(t->table) : (struct table_stats){0};
        report->rows += stats.rows;
        report->table_bytes += shard_table_bytes(t);
    }
    for (const struct sender *x = s->senders; x; x = x->next) {
        bytes += sizeof *x;
        report->applied_window_notes += applied_window_count_notes(&x->applied_window, &bytes);
    }
    report->applied_window_bytes = bytes;
}

/* ---- life ---- */

paramo_err shard_create(const struct shard_config *config, struct shard **shard)
{
    struct shard *s = calloc(1, sizeof *s);
    struct gate *gate = calloc(1, sizeof *gate);
    if (!s || !gate) {
        free(s);
        free(gate);
        return err_memory(sizeof *s + sizeof *gate);
    }
    s->config = *config;
    s->lane = config->lane;
    s->self = -1;
    s->gate = gate;
    s->housekeeping.fire = housekeeping_fire;
    s->furnishing.fire = furnishing_fire;
    s->trimming.fire = trimming_fire;
    s->check.timer.fire = check_fire;
    adopting_init(s);
    s->deferring.fire = deferred_fire;
    s->clearing.fire = clearing_fire;
    gate->lane = config->lane;
    atomic_store(&gate->refs, 1);
    map_init(&s->tables);
    bufpool_init(&s->pool, SHARD_POOL_BYTES);
    if (config->van) {
        paramo_err err = chain_create(s, &s->chain);
        if (err) {
            shard_close(s);
            return err;
        }
    }
    *shard = s;
    return PARAMO_OK;
}

size_t shard_unsent(const struct shard *s)
{
    return atomic_load_explicit(&s->replies_out, memory_order_relaxed);
}

void shard_close(struct shard *s)
{
    if (!s)
        return;
    adopting_close(s);
    handling_close(s);
    saving_close(s);
    loading_close(s);
    while (s->peers) {
        struct peer *peer = s->peers;
        van_close(peer->conn, false);
        shard_peer_forget(s, peer);
    }
    chain_destroy(s->chain);
    s->chain = NULL;
    lane_timer_cancel(s->lane, &s->check.timer);
    while (s->senders)
        sender_free(s, s->senders);
    scanning_expire(s, UINT64_MAX);
    lane_timer_cancel(s->lane, &s->housekeeping);
    lane_timer_cancel(s->lane, &s->furnishing);
    while (!scanning_close_step(s))
        ;
    lane_timer_cancel(s->lane, &s->deferring);
    lane_timer_cancel(s->lane, &s->clearing);
    uint64_t key;
    void *value;
    for (size_t i = 0; map_next(&s->tables, &i, &key, &value);)
        shard_table_free(value);
    map_fini(&s->tables);
    lane_timer_cancel(s->lane, &s->trimming); /* freeing tables may have armed it */
    assert(s->replies_out == 0 && s->kept_bytes == 0 && s->senders_count == 0);
    assert(s->deferred_count == 0 && s->view_deferred_count == 0 && s->sessions_count == 0);
    while (s->free_replies) {
        struct reply *next = s->free_replies->next;
        free(s->free_replies);
        s->free_replies = next;
    }
    filtered_fini(s);
    bufpool_fini(&s->pool);
    view_unref(s->view);
    free(s);
}
