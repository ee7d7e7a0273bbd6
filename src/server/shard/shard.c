#include "server/shard/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/session/acceptor.h"
#include "ring/chains.h"
#include "server/replication/follow.h"
#include "server/replication/gate.h"
#include "server/replication/records.h"
#include "server/replication/replication.h"
#include "server/replication/succession.h"
#include "server/shard/adopting.h"
#include "server/shard/clearing.h"
#include "server/shard/collecting.h"
#include "server/shard/collecting_turn.h"
#include "server/shard/deferred.h"
#include "server/shard/deferred_turn.h"
#include "server/shard/filtered.h"
#include "server/shard/handling.h"
#include "server/shard/housekeeping.h"
#include "server/shard/kept.h"
#include "server/shard/peers.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/shard/senders.h"
#include "server/shard/shard_impl.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "wire/report.h"

/* ---- tables ---- */

/* Makes a table when a view first names it: from then on the shard knows which of its rows are lost, even
 * before there is memory for rows. Without memory for the table itself the shard ends, because it cannot know
 * what it has lost. */
static paramo_err table_add(struct shard *s, const struct view_table *from)
{
    assert(!shard_table_get(s, from->id) && !s->config.app_endpoint);
    struct shard_table *t = adopting_take_table(s, from->id);
    paramo_err err = t ? PARAMO_OK : shard_table_make(s, from, &t);
    if (err)
        return err;
    err = shard_table_add(s, t);
    if (err)
        shard_table_free(t);
    else if (partition_set_next(t->clearing, 0) < RING_PARTITIONS)
        clearing_fill(s, t, t->clearing);
    return err;
}

static void tables_update(struct shard *s)
{
    assert(s->view && s->place->adopting);
    for (uint32_t i = 0; i < s->view->tables_count; i++) {
        const struct view_table *from = &s->view->tables[i];
        paramo_err err = shard_table_get(s, from->id) ? PARAMO_OK : table_add(s, from);
        if (!err)
            continue;
        err = err_prefix(err, "shard %u cannot continue: table %s", s->config.index, from->name);
        if (s->config.failed)
            s->config.failed(s->config.arg, err);
    }
    shard_tables_furnish(s);
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
    assert(s->place->view_before < s->view->number);
    for (unsigned word = 0; word < PARTITION_WORDS; word++) {
        const uint64_t *gone = &s->view->owner_gone[64 * word];
        bool any = false;
        after[word] = 0;
        if (!owned[word])
            continue;
        for (unsigned i = 0; i < 64; i++) /* without a branch, so that it becomes vector code */
            any |= gone[i] > s->place->view_before;
        for (unsigned i = 0; i < 64 && any; i++)
            after[word] |= (uint64_t)(gone[i] > s->place->view_before) << i;
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
    assert(!b->last || b->first <= b->last);
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
    uint64_t lost[PARTITION_WORDS];
    struct shard_table *t;
    bereaved_find(s, owned, &bereaved);
    for (size_t i = 0; bereaved.last && (t = shard_table_next(s, &i));) {
        const struct view_table *from = view_table(s->view, t->id);
        rows_lost(s, &bereaved, from ? from->since : 0, replaces ? 0 : t->replicas, lost);
        if (t->options.kind != PARAMO_TABLE_USER)
            shard_table_lose(t, lost, true);
    }
}

/* ---- connections ---- */

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
    if (!hello->node && s->config.app_endpoint) {
        acceptor_reject(conn, PARAMO_E_REFUSED, "a reader sends no messages");
        return;
    }
    enum sender_life life = sender_life(s, hello->node, hello->incarnation, false);
    if (life == LIFE_OVER) {
        acceptor_reject(conn, PARAMO_E_FENCED, "this incarnation of the node was declared dead");
        return;
    }
    struct sender_id id = hello_sender(hello);
    struct sender *sender = shard_sender_find(s, &id);
    if (!sender && senders_full(s)) {
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
    assert(sender_id_equal(&sender->id, &id));
    sender->known |= life == LIFE_ALIVE;
    peer->shard = s;
    peer->conn = conn;
    peer->sender = sender;
    peer->since = lane_now(s->lane);
    filtered_peer_init(peer);
    peers_add(s, peer);
    sender->peers++;
    assert(peers_first(s) == peer && sender->peers > 0);
    van_set_user(conn, &shard_van_user, peer);
    van_set_frame_limit(conn, s->config.frame_bytes);
    van_conn_stays(conn);
    if (acceptor_welcome(conn, s->view ? s->view->job : hello->job, s->config.incarnation)) {
        van_close(conn, false);
        shard_peer_forget(s, peer);
    }
    if (life == LIFE_UNKNOWN)
        peers_set_unknown(s, true);
    if (peers_unknown(s))
        housekeeping_schedule(s);
}

/* ---- views ---- */

static void owned_partitions(const struct shard *s, uint64_t partitions[PARTITION_WORDS])
{
    assert(s->view);
    memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    for (partition_set_runs(a, end, s->place->runs))
        if (s->self >= 0 && view_ring(s->view)->owner[a] == (unsigned)s->self)
            partition_set_add_run(partitions, a, end);
}

static void adopt_view(struct shard *s, struct view *view)
{
    const struct view_node *node = adopting_node(s, view);
    if (node)
        s->config.node = node->id;
    uint64_t before[PARTITION_WORDS] = {0}, owned[PARTITION_WORDS], gained = 0;
    collecting_give_back(s);
    assert(!s->place->adopting && (!s->view || view->number > s->view->number));
    if (s->view)
        owned_partitions(s, before);
    s->place->view_before = s->view ? s->view->number : 0;
    view_unref(s->view);
    s->view = view_ref(view);
    memset(s->place->runs, 0, sizeof s->place->runs);
    ring_begins(&view->chains, s->place->runs);
    s->place->adopting = true;
    /* Not in the view: not yet, or declared dead, or another process has our rank; nothing is ours. */
    s->self = adopting_index(s, view);
    assert(s->self < (int)view->shards_count);
    owned_partitions(s, owned);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        gained |= owned[i] & ~before[i];
    if (gained) /* only the previous owner knows its changes since the last checkpoint */
        saving_lose_base(s);
    s->place->partitions_changed = s->self >= 0 ? view->shards[s->self].partitions_changed : UINT64_MAX;
    s->place->owns_all = partition_set_next_absent(owned, 0) == RING_PARTITIONS;
    if (!s->config.app_endpoint)
        tables_update(s);
    s->place->chain_changed = s->self >= 0 ? view->shards[s->self].chain_changed : UINT64_MAX;
    loading_expect(s);
    if (s->chain)
        chain_succeed(s->chain);
    tables_bereave(s, owned, !s->place->view_before && node && node->recovered);
    loading_update(s);
    loading_check(s);
    saving_new_view(s);
    saving_check(s);
    shard_senders_check(s);
    slice_resume_view_deferred(s);
    s->place->adopting = false;
    assert(s->view == view && (!s->place->owns_all || s->self >= 0));
    assert(s->self < 0 || s->place->partitions_changed <= view->number);
    if (s->chain)
        chain_reopen(s);
    slice_resume_all(s);
}

void shard_set_view(struct shard *s, struct view *view)
{
    assert(!s->place->adopting && lane_held(s->lane));
    if (!s->view || view->number > s->view->number)
        adopting_begin(s, view);
    assert(!s->place->adopting);
}

bool shard_defers(struct shard *s, struct lane_task *task)
{
    return adopting_defers(s, task);
}

/* ---- housekeeping ---- */

static bool house_needed(const struct shard *s)
{
    return kept_for_view(s) || scanning_sessions(s) || deferred_waiting(s) || peers_unknown(s);
}

static void house_keep(struct shard *s)
{
    uint64_t now = lane_now(s->lane);
    kept_drop_for_view(s, NULL, now);
    deferred_drop(s, NULL, now);
    if (peers_unknown(s))
        shard_senders_check(s);
    scanning_expire(s, now > SCAN_SESSION_SECONDS * ENV_SEC ? now - SCAN_SESSION_SECONDS * ENV_SEC : 0);
}

void shard_get_counters(const struct shard *s, struct shard_counters *counters)
{
    *counters = s->counters;
    counters->senders = senders_count(s);
    counters->kept_bytes = handling_kept_bytes(s);
    counters->view_deferred_bytes = kept_for_view_bytes(s);
    const struct shard_table *t;
    for (size_t i = 0; (t = shard_table_next(s, &i));)
        counters->tables_bytes += shard_table_bytes(t);
}

void shard_get_report(const struct shard *s, struct shard_report *report)
{
    size_t bytes = 0;
    const struct shard_table *t;
    *report = (struct shard_report){.senders = senders_count(s),
                                    .requests = s->counters.slices,
                                    .repeats = s->counters.repeats,
                                    .pauses = s->pauses};
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        struct table_stats stats = t->table ? table_get_stats(t->table) : (struct table_stats){0};
        report->rows += stats.rows;
        report->table_bytes += shard_table_bytes(t);
    }
    for (const struct sender *x = senders_first(s); x; x = x->next) {
        bytes += sizeof *x;
        report->applied_window_notes += applied_window_count_notes(&x->applied_window, &bytes);
    }
    report->applied_window_bytes = bytes;
}

/* ---- life ---- */

static void clearing_over(struct shard *s)
{
    if (!s->place->adopting)
        slice_resume_all(s);
}

/* All of one shard. */
struct shard_parts {
    struct shard shard;
    struct shard_place place;
    struct shard_adopting adopting;
    struct shard_tables tables;
    struct shard_upkeep upkeep;
    struct shard_senders senders;
    struct shard_peers peers;
    struct shard_kept kept;
    struct shard_handling handling;
    struct shard_scans scans;
    struct shard_deferred deferred;
    struct shard_saves saves;
    struct shard_loads loads;
    struct shard_clearing clearing;
    struct shard_collecting collecting;
    struct shard_replies replies;
    struct shard_filters filters;
    struct shard_housekeeping housekeeping;
};

static void parts_join(struct shard_parts *all)
{
    struct shard *s = &all->shard;
    s->place = &all->place;
    s->adopting = &all->adopting;
    s->tables = &all->tables;
    s->upkeep = &all->upkeep;
    s->senders = &all->senders;
    s->peers = &all->peers;
    s->kept = &all->kept;
    s->handling = &all->handling;
    s->scans = &all->scans;
    s->deferred = &all->deferred;
    s->saves = &all->saves;
    s->loads = &all->loads;
    s->clearing = &all->clearing;
    s->collecting = &all->collecting;
    s->replies = &all->replies;
    s->filters = &all->filters;
    s->housekeeping = &all->housekeeping;
}

paramo_err shard_create(const struct shard_config *config, struct shard **shard)
{
    struct shard_parts *all = calloc(1, sizeof *all);
    if (!all)
        return err_memory(sizeof *all);
    struct shard *s = &all->shard;
    parts_join(all);
    s->config = *config;
    s->lane = config->lane;
    s->self = -1;
    paramo_err err = handling_init(s, slice_examine);
    if (err) {
        free(all);
        return err;
    }
    housekeeping_init(s, house_needed, house_keep);
    shard_tables_init(s);
    senders_init(s);
    adopting_init(s, adopt_view);
    deferred_init(s, deferred_turn);
    clearing_init(s, clearing_over);
    collecting_init(s, collecting_turn);
    bufpool_init(&s->pool, SHARD_POOL_BYTES);
    if (config->van) {
        err = chain_create(s, &s->chain);
        if (err) {
            shard_close(s);
            return err;
        }
    }
    assert(!s->view && !s->place->adopting);
    assert(!s->chain == !config->van);
    *shard = s;
    return PARAMO_OK;
}

size_t shard_unsent(const struct shard *s)
{
    return reply_out(s);
}

void shard_close(struct shard *s)
{
    if (!s)
        return;
    if (s->counters.chain_bytes)
        log_debug("shard %u: %llu bytes of changes went to next members; %llu changes were of several pushes",
                  s->config.index, (unsigned long long)s->counters.chain_bytes,
                  (unsigned long long)s->counters.combined);
    adopting_close(s);
    handling_close(s);
    saving_close(s);
    loading_close(s);
    for (struct peer *peer; (peer = peers_first(s));) {
        van_close(peer->conn, false);
        shard_peer_forget(s, peer);
    }
    chain_destroy(s->chain);
    s->chain = NULL;
    senders_close(s);
    scanning_expire(s, UINT64_MAX);
    housekeeping_close(s);
    deferred_close(s);
    clearing_close(s);
    collecting_close(s);
    shard_tables_close(s);
    assert(handling_kept_bytes(s) == 0 && senders_count(s) == 0);
    assert(kept_for_view(s) == 0 && scanning_sessions(s) == 0);
    reply_fini(s);
    handling_fini(s);
    filtered_fini(s);
    bufpool_fini(&s->pool);
    view_unref(s->view);
    free(container_of(s, struct shard_parts, shard));
}
