#include "cluster/view/view.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/session/address.h"
#include "wire/calls.h"
#include "wire/table_spec.h"

static const char *put_label(char label[VIEW_LABEL_MAX], uint32_t id, const char *place)
{
    char which[32] = "the scheduler";
    if (id >= PARAMO_ID_SERVER(0)) {
        uint32_t nth = id - PARAMO_ID_SERVER(0);
        snprintf(which, sizeof which, "%s %" PRIu32, nth % 2 ? "worker" : "server", nth / 2);
    }
    snprintf(label, VIEW_LABEL_MAX, "%s (node %" PRIu32 "%s%s)", which, id, *place ? ", " : "", place);
    return label;
}

const char *view_node_label(const struct view_node *node, char label[VIEW_LABEL_MAX])
{
    return put_label(label, node->id,
                     node->name[0] || address_is_loopback(node->host) ? node->name : node->host);
}

const char *view_id_label(uint32_t id, char label[VIEW_LABEL_MAX])
{
    return put_label(label, id, "");
}

struct view *view_ref(struct view *view)
{
    assert(atomic_load_explicit(&view->refs, memory_order_relaxed) > 0);
    atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
    return view;
}

void view_unref(struct view *view)
{
    assert(!view || atomic_load_explicit(&view->refs, memory_order_relaxed) > 0);
    if (!view || atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(view->nodes);
    free(view->shards);
    free(view->tables);
    free(view);
}

const struct view_node *view_node(const struct view *view, uint32_t id)
{
    size_t low = 0, high = view->nodes_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (view->nodes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->nodes_count && view->nodes[low].id == id ? &view->nodes[low] : NULL;
}

const struct view_table *view_table(const struct view *view, uint32_t id)
{
    size_t low = 0, high = view->tables_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (view->tables[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->tables_count && view->tables[low].id == id ? &view->tables[low] : NULL;
}

const struct view_table *view_table_named(const struct view *view, const char *name)
{
    for (uint32_t i = 0; i < view->tables_count; i++)
        if (strcmp(view->tables[i].name, name) == 0)
            return &view->tables[i];
    return NULL;
}

uint64_t view_partitions_changed(const struct view *view)
{
    uint64_t last = 0;
    for (uint32_t s = 0; s < view->shards_count; s++)
        last = view->shards[s].partitions_changed > last ? view->shards[s].partitions_changed : last;
    return last;
}

int view_shard_index(const struct view *view, uint32_t node, unsigned index)
{
    for (uint32_t i = 0; i < view->shards_count; i++)
        if (view->shards[i].node == node && view->shards[i].index == index)
            return (int)i;
    return -1;
}

enum { NODE_ALIVE = 1, NODE_LEFT = 2, NODE_RECOVERED = 4 };
enum { VIEW_COMPLETE = 1, VIEW_OWNER_GONE = 2 };

static void node_encode(const struct view_node *node, struct writer *w)
{
    write_u32(w, node->id);
    write_u8(w, (uint8_t)node->role);
    write_u8(w, (uint8_t)((node->alive ? NODE_ALIVE : 0) | (node->left ? NODE_LEFT : 0) |
                          (node->recovered ? NODE_RECOVERED : 0)));
    write_u64(w, node->incarnation);
    write_u16(w, node->port);
    write_u16(w, node->shards);
    write_string(w, node->host);
    write_string(w, node->name);
    write_u32(w, node->weight);
    write_string(w, node->domain);
}

/* True if the two partitions have one chain. */
static bool same_chain(const struct ring_chains *chains, size_t a, size_t b)
{
    for (unsigned l = 0; l <= chains->replicas; l++)
        if (chains->level[l].owner[a] != chains->level[l].owner[b])
            return false;
    return true;
}

/* Chains are encoded as runs: the members, and for how many partitions in a row. */
static void chains_encode(const struct ring_chains *chains, struct writer *w)
{
    write_u8(w, (uint8_t)chains->replicas);
    for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
        for (end = a + 1; end < RING_PARTITIONS && same_chain(chains, a, end); end++)
            ;
        for (unsigned l = 0; l <= chains->replicas; l++)
            write_u16(w, chains->level[l].owner[a]);
        write_u16(w, (uint16_t)(end - a));
    }
}

/* The views in which owners were gone are runs, too: most partitions share one. */
static void owner_gone_encode(const struct view *view, struct writer *w)
{
    for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
        for (end = a + 1; end < RING_PARTITIONS && view->owner_gone[end] == view->owner_gone[a]; end++)
            ;
        write_u64(w, view->owner_gone[a]);
        write_u16(w, (uint16_t)(end - a));
    }
}

/* Lost partitions are encoded as runs, too; nothing if there are none. */
static void lost_encode(const struct view *view, struct writer *w)
{
    write_u64(w, view->lost_at);
    for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
        for (end = a + 1; end < RING_PARTITIONS && view->lost[end] == view->lost[a]; end++)
            ;
        write_u8(w, view->lost[a]);
        write_u16(w, (uint16_t)(end - a));
    }
}

void view_encode(const struct view *view, struct writer *w)
{
    write_u64(w, view->job);
    write_u64(w, view->number);
    write_u32(w, view->num_servers);
    write_u32(w, view->num_workers);
    write_u8(w, (uint8_t)(VIEW_OWNER_GONE | (view->complete ? VIEW_COMPLETE : 0)));
    write_u32(w, view->nodes_count);
    for (uint32_t i = 0; i < view->nodes_count; i++)
        node_encode(&view->nodes[i], w);
    write_u32(w, view->shards_count);
    for (uint32_t i = 0; i < view->shards_count; i++) {
        write_u32(w, view->shards[i].node);
        write_u16(w, view->shards[i].index);
        write_u64(w, view->shards[i].partitions_changed);
        write_u64(w, view->shards[i].chain_changed);
        write_u64(w, view->shards[i].last_migration);
    }
    write_u32(w, view->tables_count);
    for (uint32_t i = 0; i < view->tables_count; i++) {
        write_u32(w, view->tables[i].id);
        write_string(w, view->tables[i].name);
        write_u64(w, view->tables[i].since);
        table_spec_encode(&view->tables[i].options, w);
    }
    chains_encode(&view->chains, w);
    owner_gone_encode(view, w);
    if (view->lost_at)
        lost_encode(view, w);
}

static paramo_err bad(const char *what)
{
    return err_set(PARAMO_E_PROTOCOL, "VIEW: %s", what);
}

/* Each element takes at least `least` bytes, so a false count is refused before memory is allocated. */
static paramo_err array_decode(struct reader *r, uint32_t limit, size_t least, size_t size, uint32_t *count,
                               void **array)
{
    uint32_t n = read_u32(r);
    if (r->failed || n > limit || n > r->left / least)
        return bad("a count is beyond its limit");
    *array = calloc(n ? n : 1, size);
    if (!*array)
        return err_memory(n * size);
    *count = n;
    return PARAMO_OK;
}

static paramo_err node_decode(struct reader *r, const struct view_node *previous, struct view_node *node)
{
    node->id = read_u32(r);
    node->role = read_u8(r);
    unsigned flags = read_u8(r);
    node->alive = flags & NODE_ALIVE;
    node->left = flags & NODE_LEFT;
    node->recovered = flags & NODE_RECOVERED;
    node->incarnation = read_u64(r);
    node->port = read_u16(r);
    node->shards = read_u16(r);
    read_string(r, node->host, sizeof node->host);
    read_string(r, node->name, sizeof node->name);
    node->weight = read_u32(r);
    read_string(r, node->domain, sizeof node->domain);
    if (r->failed || flags > 7 || (previous && node->id <= previous->id))
        return bad("a node is not valid");
    bool id_fits = node->role == PARAMO_ROLE_SCHEDULER ? node->id == PARAMO_ID_SCHEDULER
                   : node->role == PARAMO_ROLE_SERVER  ? node->id >= 8 && node->id % 2 == 0
                   : node->role == PARAMO_ROLE_WORKER  ? node->id >= 9 && node->id % 2 == 1
                                                       : false;
    bool server = node->role == PARAMO_ROLE_SERVER;
    if (!id_fits || (node->alive && node->left) || node->weight > RING_WEIGHT_MAX ||
        (server ? !node->domain[0] : node->shards || node->weight || node->domain[0]))
        return bad("a node is not valid");
    return PARAMO_OK;
}

static paramo_err shards_decode(struct reader *r, struct view *view)
{
    assert(!view->shards);
    assert(view->nodes_count <= VIEW_NODES_MAX);
    void *array;
    paramo_err err = array_decode(r, VIEW_SHARDS_MAX, 30, sizeof *view->shards, &view->shards_count, &array);
    if (err)
        return err;
    view->shards = array;
    for (uint32_t i = 0; i < view->shards_count; i++) {
        struct view_shard *shard = &view->shards[i];
        shard->node = read_u32(r);
        shard->index = read_u16(r);
        shard->partitions_changed = read_u64(r);
        shard->chain_changed = read_u64(r);
        shard->last_migration = read_u64(r);
        const struct view_node *node = view_node(view, shard->node);
        if (r->failed || !node || shard->index >= node->shards ||
            shard->partitions_changed > shard->chain_changed || shard->chain_changed > view->number ||
            shard->last_migration >> 32 > view->number >> 32) /* both begin with a scheduler's term */
            return bad("a shard is not valid");
        if (i && (shard->node < shard[-1].node ||
                  (shard->node == shard[-1].node && shard->index <= shard[-1].index)))
            return bad("shards are not in order");
    }
    return PARAMO_OK;
}

static paramo_err tables_decode(struct reader *r, struct view *view)
{
    assert(!view->tables);
    assert(view->shards_count <= VIEW_SHARDS_MAX);
    void *array;
    paramo_err err = array_decode(r, VIEW_TABLES_MAX, 15, sizeof *view->tables, &view->tables_count, &array);
    if (err)
        return err;
    view->tables = array;
    for (uint32_t i = 0; i < view->tables_count; i++) {
        struct view_table *table = &view->tables[i];
        table->id = read_u32(r);
        read_string(r, table->name, sizeof table->name);
        table->since = read_u64(r);
        err = table_spec_decode(r, &table->options);
        if (err)
            return err_prefix(PARAMO_E_PROTOCOL, "VIEW");
        if (table->id == 0 || (i && table->id <= table[-1].id) || !table->name[0] ||
            table->options.placement == PARAMO_PLACE_AUTO || table->since > view->number)
            return bad("a table is not valid");
    }
    return PARAMO_OK;
}

/* Members are shards of this view, each at most once. Without an owner there are no members. */
static bool chain_fits(const uint16_t *member, unsigned replicas, uint32_t shards)
{
    for (unsigned l = 0; l <= replicas; l++) {
        if (member[l] == RING_NONE)
            continue;
        if (member[l] >= shards || member[0] == RING_NONE)
            return false;
        for (unsigned k = 0; k < l; k++)
            if (member[k] == member[l])
                return false;
    }
    return true;
}

static paramo_err chains_decode(struct reader *r, struct view *view)
{
    struct ring_chains *chains = &view->chains;
    uint16_t member[RING_LEVELS];
    chains->replicas = read_u8(r);
    chains->apart = chains->present = 0;
    if (r->failed || chains->replicas > RING_REPLICAS_MAX)
        return bad("the number of replicas is not valid");
    for (unsigned l = chains->replicas + 1; l < RING_LEVELS; l++)
        memset(&chains->level[l], 0xff, sizeof chains->level[l]); /* RING_NONE */
    for (size_t a = 0; a < RING_PARTITIONS;) {
        for (unsigned l = 0; l <= chains->replicas; l++)
            member[l] = read_u16(r);
        size_t len = read_u16(r);
        if (r->failed || len == 0 || len > RING_PARTITIONS - a ||
            !chain_fits(member, chains->replicas, view->shards_count))
            return bad("the ring is not valid");
        for (unsigned l = 0; l <= chains->replicas; l++)
            for (size_t b = a; b < a + len; b++)
                chains->level[l].owner[b] = member[l];
        a += len;
    }
    return PARAMO_OK;
}

static paramo_err owner_gone_decode(struct reader *r, struct view *view)
{
    for (size_t a = 0; a < RING_PARTITIONS;) {
        uint64_t number = read_u64(r);
        size_t len = read_u16(r);
        if (r->failed || len == 0 || len > RING_PARTITIONS - a || number > view->number)
            return bad("the views in which owners were gone are not valid");
        for (size_t end = a + len; a < end; a++)
            view->owner_gone[a] = number;
    }
    return PARAMO_OK;
}

/* A view of an earlier version, as a scheduler's state may have it, has no such numbers. They are not lower
 * than what its shards say: when the owner's partitions last changed, or (no replicas) when its server died.
 * So rows that exist may count as lost, but lost rows never count as present. */
static void owner_gone_guess(struct view *view)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = view_ring(view)->owner[a];
        assert(owner == RING_NONE || owner < view->shards_count); /* chains_decode() has checked it */
        const struct view_shard *shard = owner == RING_NONE ? NULL : &view->shards[owner];
        view->owner_gone[a] = !shard                  ? 0
                              : view->chains.replicas ? shard->partitions_changed
                                                      : shard->chain_changed;
    }
}

static paramo_err lost_decode(struct reader *r, struct view *view)
{
    bool any = false;
    view->lost_at = read_u64(r);
    for (size_t a = 0; a < RING_PARTITIONS;) {
        uint8_t level = read_u8(r);
        size_t len = read_u16(r);
        if (r->failed || len == 0 || len > RING_PARTITIONS - a || level > RING_LEVELS)
            return bad("the lost partitions are not valid");
        memset(view->lost + a, level, len);
        any |= level;
        for (size_t end = a + len; a < end; a++)
            if (level && view_ring(view)->owner[a] == RING_NONE)
                return bad("a lost partition has no owner");
    }
    return any && view->lost_at && view->lost_at <= view->number ? PARAMO_OK
                                                                 : bad("the lost partitions are not valid");
}

static paramo_err nodes_decode(struct reader *r, struct view *view)
{
    assert(!view->nodes && !view->nodes_count);
    assert(view->number);
    void *array;
    paramo_err err = array_decode(r, VIEW_NODES_MAX, 28, sizeof *view->nodes, &view->nodes_count, &array);
    if (err)
        return err;
    view->nodes = array;
    for (uint32_t i = 0; i < view->nodes_count && !err; i++)
        err = node_decode(r, i ? &view->nodes[i - 1] : NULL, &view->nodes[i]);
    return err;
}

paramo_err view_decode(struct reader *r, struct view **out)
{
    struct view *view = malloc(sizeof *view);
    if (!view)
        return err_memory(sizeof *view);
    memset(view, 0, offsetof(struct view, chains)); /* the arrays after it are large, and written below */
    atomic_init(&view->refs, 1);
    view->job = read_u64(r);
    view->number = read_u64(r);
    view->num_servers = read_u32(r);
    view->num_workers = read_u32(r);
    unsigned flags = read_u8(r);
    view->complete = flags & VIEW_COMPLETE;
    paramo_err err =
        r->failed || flags > (VIEW_COMPLETE | VIEW_OWNER_GONE) || view->job == 0 || view->number == 0
            ? bad("its head is not valid")
            : PARAMO_OK;
    if (!err)
        err = nodes_decode(r, view);
    if (!err)
        err = shards_decode(r, view);
    if (!err)
        err = tables_decode(r, view);
    if (!err)
        err = chains_decode(r, view);
    if (!err && flags & VIEW_OWNER_GONE)
        err = owner_gone_decode(r, view);
    else if (!err)
        owner_gone_guess(view);
    view->lost_at = 0;
    memset(view->lost, 0, sizeof view->lost);
    if (!err && r->left)
        err = lost_decode(r, view);
    if (!err)
        err = call_body_end(r, "VIEW");
    if (err) {
        view_unref(view);
        return err;
    }
    assert(view->job && view->number && view->lost_at <= view->number);
    assert(view->chains.replicas <= RING_REPLICAS_MAX && view->tables_count <= VIEW_TABLES_MAX);
    *out = view;
    return PARAMO_OK;
}
