#include "server/replication/succession.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "server/migration/migration.h"
#include "server/migration/source.h"
#include "server/migration/target.h"
#include "server/replication/acks.h"
#include "server/replication/chain_stream.h"
#include "server/replication/chain_tick.h"
#include "server/replication/chain_wait.h"
#include "server/replication/entry.h"
#include "server/replication/follow.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/replication/routing.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/saving.h"

static struct chain_name name_of(const struct view *v, unsigned shard)
{
    return (struct chain_name){.node = v->shards[shard].node, .shard = v->shards[shard].index};
}

static struct chain_name own_name(const struct chain *c)
{
    return (struct chain_name){.node = c->shard->config.node, .shard = (uint16_t)c->shard->config.index};
}

/* Sets our level in each partition's chain, and the next member. */
static void places(struct chain *c)
{
    const struct shard *s = c->shard;
    const struct ring_chains *chains = &s->view->chains;
    assert(s->self < (int)s->view->shards_count && chains->replicas <= RING_REPLICAS_MAX);
    memcpy(c->runs, s->place->runs, sizeof c->runs);
    for (partition_set_runs(first, end, c->runs)) {
        int8_t own = -1;
        uint8_t after = 0;
        uint16_t next = RING_NONE;
        for (uint8_t level = 0; s->self >= 0 && level <= chains->replicas && next == RING_NONE; level++) {
            uint16_t member = chains->level[level].owner[first];
            if (member == (unsigned)s->self) {
                own = (int8_t)level;
            } else if (own >= 0) {
                next = member;
                after = level;
            }
        }
        assert(next == RING_NONE || (own >= 0 && after > own));
        memset(c->level + first, own, end - first);
        memset(c->next_level + first, after, end - first);
        for (unsigned a = first; a < end; a++)
            c->next[a] = next;
    }
}

/* ---- the next members ---- */

static bool lives(const struct view *v, struct chain_name name, uint64_t incarnation, unsigned *index)
{
    const struct view_node *node = view_node(v, name.node);
    int at = view_shard_index(v, name.node, name.shard);
    *index = at < 0 ? RING_NONE : (unsigned)at;
    return at >= 0 && node && node->alive && node->incarnation == incarnation;
}

/* The partitions whose next member is this shard of the view (RING_NONE: none). */
static void next_partitions(const struct chain *c, unsigned index, uint64_t partitions[CHAIN_WORDS])
{
    memset(partitions, 0, CHAIN_WORDS * sizeof *partitions);
    for (partition_set_runs(a, end, c->runs))
        if (c->next[a] == index && index != RING_NONE)
            partition_set_add_run(partitions, a, end);
}

/* Which tables the next member has on the stream's partitions. */
static void stream_tables(const struct chain *c, struct chain_stream *st)
{
    assert(st->shard->chain == c && !st->migration_source);
    memset(st->some, 0, sizeof st->some);
    for (partition_set_runs(a, end, c->runs)) {
        unsigned level = c->next_level[a];
        assert(!partition_set_has(st->partitions, a) || c->next[a] != RING_NONE);
        for (unsigned replicas = level; partition_set_has(st->partitions, a) && replicas < RING_REPLICAS_MAX;
             replicas++)
            partition_set_add_run(st->some[replicas], a, end);
    }
}

/* Which shards are behind us: our next members, and on partitions that we own all members, because each may take our
 * place and gives the lease for it. */
static void members_behind(const struct chain *c, bool behind[VIEW_SHARDS_MAX])
{
    const struct ring_chains *chains = &c->shard->view->chains;
    memset(behind, 0, VIEW_SHARDS_MAX * sizeof *behind);
    for (partition_set_runs(a, end, c->runs)) {
        if (c->next[a] != RING_NONE)
            behind[c->next[a]] = true;
        for (uint8_t level = 1; !c->level[a] && level <= chains->replicas; level++)
            if (chains->level[level].owner[a] != RING_NONE)
                behind[chains->level[level].owner[a]] = true;
    }
}

/* Closes streams that have lost a partition: their entries go to the new next members. True: some of these entries must
 * be acknowledged before the shard serves. */
static bool streams_update(struct chain *c, struct queue *entries)
{
    struct shard *s = c->shard;
    bool behind[VIEW_SHARDS_MAX], gated = false;
    members_behind(c, behind);
    assert(s->view->shards_count <= VIEW_SHARDS_MAX);
    for (struct chain_stream *st = c->streams, *following; st; st = following) {
        uint64_t partitions[CHAIN_WORDS];
        unsigned index;
        bool lost = false, alive = lives(s->view, st->to, st->incarnation, &index);
        following = st->next;
        if (st->migration_source)
            continue;
        next_partitions(c, alive ? index : RING_NONE, partitions);
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            lost |= (st->partitions[i] & ~partitions[i]) != 0;
        if (!alive || !behind[index] || (lost && st->count)) {
            assert(st->shard == s && st->gate <= st->seq);
            gated |= st->acked < st->gate;
            chain_stream_close(c, st, entries);
            continue;
        }
        memcpy(st->partitions, partitions, sizeof partitions);
        stream_tables(c, st);
        behind[index] = false;
    }
    for (unsigned index = 0; index < s->view->shards_count; index++) {
        if (!behind[index])
            continue;
        assert((int)index != s->self); /* no shard is behind itself */
        struct chain_name to = name_of(s->view, index);
        const struct view_node *node = view_node(s->view, to.node);
        struct chain_stream *st = node ? chain_stream_open(c, node, to) : NULL;
        if (!st) {
            chain_fail(c, err_memory(sizeof *st));
            continue;
        }
        next_partitions(c, index, st->partitions);
        stream_tables(c, st);
    }
    return gated;
}

/* ---- partitions ---- */

struct change {
    uint64_t fresh[CHAIN_WORDS]; /* ours, and we followed no owner there; others may have */
    uint64_t promoted[CHAIN_WORDS], demoted[CHAIN_WORDS], dropped[CHAIN_WORDS];
    uint64_t farther[CHAIN_WORDS]; /* from the owner than before: fewer tables */
    uint64_t nothing[CHAIN_WORDS]; /* no chain has us for these */
    bool promotes, demotes, drops, sheds;
};

/* Where runs of partitions begin that roles treats alike. runs: those of the previous view. */
static void roles_begin(const struct chain *c, const uint64_t runs[CHAIN_WORDS], uint64_t begins[CHAIN_WORDS])
{
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        begins[i] = runs[i] | c->runs[i];
    partition_set_run_starts(c->mine, begins);
    for (unsigned word = 0; word < CHAIN_WORDS; word++) {
        unsigned first = word ? 64 * word : 1, end = 64 * word + 64;
        struct chain_origin *const *origin = c->origin_of;
        if (memcmp(origin + first, origin + first - 1, (end - first) * sizeof *origin) == 0)
            continue; /* most words: runs are long */
        for (unsigned a = first; a < end; a++)
            begins[word] |= (uint64_t)(origin[a] != origin[a - 1]) << (a % 64);
    }
}

/* Follows the owner of partitions of which this shard is a replica. */
static void follow(struct chain *c, unsigned first, unsigned end)
{
    const struct view *view = c->shard->view;
    struct chain_origin *o = origin_get(c, name_of(view, view_ring(view)->owner[first]));
    if (!o) {
        chain_fail(c, err_memory(sizeof *o));
        return;
    }
    for (unsigned a = first; a < end; a++) {
        assert(!c->origin_of[a] && c->level[a] > 0);
        c->origin_of[a] = o;
    }
    assert(o->partitions + (end - first) <= RING_PARTITIONS);
    o->partitions += end - first;
}

/* before, runs: our levels and the runs of the previous view. */
static void roles(struct chain *c, const int8_t before[RING_PARTITIONS], const uint64_t runs[CHAIN_WORDS],
                  struct change *change)
{
    uint64_t begins[CHAIN_WORDS], mine[CHAIN_WORDS] = {0};
    memset(change, 0, sizeof *change);
    roles_begin(c, runs, begins);
    for (partition_set_runs(a, end, begins)) {
        int level = c->level[a];
        bool was = partition_set_has(c->mine, a);
        assert(!was || (!c->origin_of[a] && before[a] == 0));
        assert(level <= RING_REPLICAS_MAX);
        if (level < 0)
            partition_set_add_run(change->nothing, a, end);
        if (before[a] >= 0 && level > before[a]) {
            partition_set_add_run(change->farther, a, end);
            change->sheds = true;
        }
        if (level == 0 && !was && !c->origin_of[a])
            partition_set_add_run(change->fresh, a, end);
        if (level == 0)
            partition_set_add_run(mine, a, end);
        if (level == 0 && c->origin_of[a]) {
            partition_set_add_run(change->promoted, a, end);
            change->promotes = true;
        } else if (level > 0 && was) {
            partition_set_add_run(change->demoted, a, end);
            change->demotes = true;
        } else if (level < 0 && (was || c->origin_of[a])) {
            for (unsigned b = a; b < end; b++)
                if (!migration_target_has(c, b)) {
                    partition_set_add(change->dropped, b);
                    change->drops = true;
                }
        } else if (level > 0 && !c->origin_of[a]) {
            follow(c, a, end);
        }
    }
    memcpy(c->mine, mine, sizeof mine);
}

/* Tells in each stream which partitions of `from` are ours now, after all that had to be sent again. They
 * are served when that is acknowledged. */
static void announce(struct chain *c, struct chain_name from, const uint64_t partitions[CHAIN_WORDS])
{
    struct chain_message m = {.what = CHAIN_TAKEOVER, .from = from, .origin = own_name(c)};
    if (chain_routes(c)) {
        memcpy(m.partitions, partitions, sizeof m.partitions);
        paramo_err err =
            partition_set_next(partitions, 0) < RING_PARTITIONS ? chain_route_behind(c, &m) : PARAMO_OK;
        if (err)
            chain_fail(c, err);
        return;
    }
    for (struct chain_stream *st = c->streams; st; st = st->next) {
        bool any = false;
        for (unsigned i = 0; i < CHAIN_WORDS && !st->migration_source; i++) {
            m.partitions[i] = partitions[i] & st->partitions[i];
            any |= m.partitions[i] != 0;
        }
        struct chain_entry *e = any ? chain_entry_make(NULL, &m, NULL, 0, NULL) : NULL;
        if (any && !e)
            chain_fail(c, err_memory(sizeof *e));
        if (e) {
            chain_append(st, e);
            assert(st->gate < st->seq);
            st->gate = st->seq;
        }
    }
}

static void promote(struct chain *c, const struct change *change)
{
    for (struct chain_origin *o = c->origins, *next; o; o = next) {
        uint64_t partitions[CHAIN_WORDS] = {0};
        bool any = false;
        next = o->next;
        for (partition_set_each(a, change->promoted))
            if (c->origin_of[a] == o) {
                assert(c->level[a] == 0);
                partition_set_add(partitions, a);
                any = true;
            }
        if (!any)
            continue;
        assert(o->partitions > 0);
        paramo_err err = records_pass(c, o, NULL, partitions);
        if (err)
            chain_fail(c, err);
        else
            announce(c, o->name, partitions);
    }
    for (partition_set_each(a, c->mine))
        if (c->last[a] > c->order)
            c->order = c->last[a];
}

/* Passes our partitions to their new owners, which we follow. */
static void demote(struct chain *c, const struct change *change)
{
    struct shard *s = c->shard;
    for (unsigned owner = 0; owner < s->view->shards_count; owner++) {
        uint64_t partitions[CHAIN_WORDS] = {0};
        bool any = false;
        for (partition_set_each(a, change->demoted))
            if (view_ring(s->view)->owner[a] == owner) {
                assert(c->level[a] > 0);
                partition_set_add(partitions, a);
                any = true;
            }
        struct chain_origin *to = any ? origin_get(c, name_of(s->view, owner)) : NULL;
        paramo_err err = !any ? PARAMO_OK
                         : to ? records_pass(c, NULL, to, partitions)
                              : err_memory(sizeof *to);
        if (err)
            chain_fail(c, err);
    }
}

/* A partition that lost all its members starts with empty records. Our records are about other keys of the same
 * chunks, or about rows that this shard had before: it may have missed the view in which it left their chain. The
 * checkpoint's records are added later (loading.c). */
static void restart_empty(struct chain *c)
{
    struct shard *s = c->shard;
    uint64_t gone[CHAIN_WORDS] = {0}, any = 0;
    paramo_err err = PARAMO_OK;
    if (!s->view->lost_at) /* nothing is lost */
        return;
    for (partition_set_each(a, c->mine))
        if (s->view->lost[a] >= RING_LEVELS && s->view->owner_gone[a] > s->place->view_before) {
            partition_set_add(gone, a);
            any = 1;
        }
    if (any)
        err = records_restart(c, NULL, gone);
    if (err)
        chain_fail(c, err);
}

void chain_shed(struct chain *c, const uint64_t partitions[CHAIN_WORDS])
{
    struct shard *s = c->shard;
    uint64_t farther[RING_REPLICAS_MAX][CHAIN_WORDS] = {0}; /* than a table of [index] replicas has copies */
    bool any[RING_REPLICAS_MAX] = {false};
    struct shard_table *t;
    size_t room = clearing_room(s);
    for (partition_set_each(a, partitions))
        for (int r = 0; r < c->level[a]; r++) {
            partition_set_add(farther[r], a);
            any[r] = true;
        }
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        if (!t->table || t->replicas >= RING_REPLICAS_MAX || !any[t->replicas])
            continue;
        shard_table_lose(t, farther[t->replicas], false);
        clearing_begin_some(s, t, farther[t->replicas], &room);
    }
}

/* A shard that no longer holds a partition forgets it: its copy would be old when the partition returns. */
void chain_drop(struct chain *c, const uint64_t partitions[CHAIN_WORDS])
{
    struct shard *s = c->shard;
    for (partition_set_each(a, partitions)) {
        assert(c->failed || !c->origin_of[a] || !partition_set_has(c->mine, a));
        if (c->origin_of[a]) {
            assert(c->origin_of[a]->partitions > 0);
            c->origin_of[a]->partitions--;
        }
        c->origin_of[a] = NULL;
        c->last[a] = 0;
    }
    records_forget(c);
    struct shard_table *t;
    size_t room = clearing_room(s);
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        shard_table_lose(t, partitions, false);
        if (t->table)
            clearing_begin_some(s, t, partitions, &room);
    }
}

/* Since the previous view, has an owner died whose partitions are ours now? It may be cut off, not know of its death,
 * and answer pulls until its lease is over. Every other owner had paused for a migration before its partitions passed
 * on; it may have left since, in a view that this shard has missed. */
static bool owner_died(const struct chain *c, const struct change *change)
{
    const struct shard *s = c->shard;
    assert(s->place->view_before < s->view->number);
    for (partition_set_each(a, change->promoted)) {
        assert(c->origin_of[a] && c->level[a] == 0);
        if (s->view->owner_gone[a] > s->place->view_before)
            return true;
    }
    return false;
}

/* Every answer that this shard gave counts, to any member. */
static void forget_gone(struct chain *c, bool died)
{
    unsigned index;
    for (struct chain_source *source = c->sources, *next; source; source = next) {
        next = source->next;
        assert(source->shard == c->shard);
        if (lives(c->shard->view, source->from, source->incarnation, &index))
            continue;
        follow_lease(c, source);
        follow_forget(c, source);
    }
    if (died && c->leased_until > c->wait_until)
        c->wait_until = c->leased_until;
    for (struct chain_origin *o = c->origins, *next; o; o = next) {
        next = o->next;
        if (!o->partitions)
            records_end(c, o);
        else
            records_of_gone(c, o);
    }
}

/* Each origin counts its partitions, and no partition that is ours has one. */
static bool origins_count(const struct chain *c)
{
    unsigned counted = 0, followed = 0;
    for (const struct chain_origin *o = c->origins; o; o = o->next)
        counted += o->partitions;
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        followed += c->origin_of[a] != NULL;
        if (c->origin_of[a] && partition_set_has(c->mine, a) && !c->failed)
            return false;
    }
    return counted == followed;
}

/* Each stream counts its entries that are not acknowledged, which have rising numbers. */
static bool streams_count(const struct chain *c)
{
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        size_t count = 0, bytes = 0;
        uint64_t before = st->acked;
        for (const struct qnode *node = st->entries.head; node; node = node->next) {
            const struct chain_entry *e = container_of(node, const struct chain_entry, node);
            if (e->m.seq != ++before)
                return false;
            count += !e->acked;
            bytes += e->acked ? 0 : e->bytes;
        }
        if (before != st->seq || count != st->count || bytes != st->bytes)
            return false;
    }
    return true;
}

/* All this is one step, except for the records of senders, and for unacknowledged entries of streams that end:
 * records.h holds the shard until they have passed. */
void chain_succeed(struct chain *c)
{
    struct queue entries = {0};
    struct change change;
    int8_t before[RING_PARTITIONS];
    uint64_t runs[CHAIN_WORDS];
    memcpy(before, c->level, sizeof before);
    memcpy(runs, c->runs, sizeof runs);
    places(c);
    migration_view_changed(c);
    bool gated = streams_update(c, &entries);
    roles(c, before, runs, &change);
    bool died = change.promotes && owner_died(c, &change); /* before the records change owner */
    if (c->shard->self < 0) {
        /* This shard was declared dead: the new owners may lack unacknowledged changes, so none of these is
         * answered. */
        while (c->sources)
            follow_forget(c, c->sources);
        chain_cancel(&entries);
        chain_cancel(&c->routing.entries);
    }
    records_route(c, &entries, change.nothing, gated);
    if (change.promotes)
        promote(c, &change);
    announce(c, own_name(c), change.fresh);
    if (change.demotes)
        demote(c, &change);
    if (change.drops)
        chain_drop(c, change.dropped);
    if (change.sheds)
        chain_shed(c, change.farther);
    restart_empty(c);
    forget_gone(c, died);
    assert_slow(origins_count(c));
    assert_slow(streams_count(c));
    records_go(c);
    for (struct chain_source *source = c->sources; source; source = source->next) {
        source->again = true; /* the messages that came before our view */
        acks_send(source);
    }
    chain_connect(c);
    chain_send_all(c);
    chain_tick_start(c);
}
