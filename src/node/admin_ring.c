/* Rings of paramo/admin.h: planning, measuring and comparing (ring/place.h) without a cluster. */
#include <stdlib.h>

#include "node/admin_impl.h"
#include "node/config.h"

/* The shards as ring/ has them. The caller frees *out. */
static paramo_err shards_copy(const paramo_ring_shard *shards, size_t n, struct ring_shard **out)
{
    if (!shards || !n || n >= RING_NONE)
        return err_set(PARAMO_E_INVALID, "a ring has 1 to %d shards, not %zu", RING_NONE - 1, n);
    struct ring_shard *list = calloc(n, sizeof *list);
    if (!list)
        return err_memory(n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        if (!shards[i].domain || shards[i].weight > RING_WEIGHT_MAX) {
            free(list);
            return err_set(PARAMO_E_INVALID, "shard %zu: its weight is above %d or its domain is NULL", i,
                           RING_WEIGHT_MAX);
        }
        list[i] = (struct ring_shard){
            .weight = shards[i].weight, .server = shards[i].server, .domain = shards[i].domain};
    }
    *out = list;
    return PARAMO_OK;
}

paramo_err paramo_ring_plan(const paramo_ring_shard *shards, size_t n, uint32_t replicas,
                            const paramo_ring *before, paramo_ring **out)
{
    struct ring_shard *list = NULL;
    if (!out)
        return err_set(PARAMO_E_INVALID, "ring is NULL");
    paramo_err err = shards_copy(shards, n, &list);
    if (err)
        return err;
    paramo_ring *ring = calloc(1, sizeof *ring);
    err = ring ? ring_place(list, n, replicas, before ? &before->chains : NULL, &ring->chains)
               : err_memory(sizeof *ring);
    free(list);
    if (err)
        free(ring);
    else
        *out = ring;
    return err;
}

static paramo_err shards_of(const struct view *view, struct ring_shard **out)
{
    struct ring_shard *list = calloc(view->shards_count + 1u, sizeof *list);
    if (!list)
        return err_memory(view->shards_count * sizeof *list);
    for (uint32_t i = 0; i < view->shards_count; i++) {
        const struct view_node *node = view_node(view, view->shards[i].node);
        list[i] = (struct ring_shard){.server = view->shards[i].node,
                                      .weight = node ? node->weight : 0,
                                      .domain = node ? node->domain : ""};
    }
    *out = list;
    return PARAMO_OK;
}

paramo_err paramo_cluster_ring(const paramo_cluster *cluster, const paramo_ring_shard *shards, size_t n,
                               paramo_ring **out)
{
    struct ring_shard *list = NULL;
    if (!cluster || !out)
        return err_set(PARAMO_E_INVALID, "cluster or ring is NULL");
    if (shards && n < cluster->view->shards_count)
        return err_set(PARAMO_E_INVALID, "the cluster has %u shards, not %zu", cluster->view->shards_count,
                       n);
    paramo_err err = shards ? shards_copy(shards, n, &list) : shards_of(cluster->view, &list);
    if (err)
        return err;
    paramo_ring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        free(list);
        return err_memory(sizeof *ring);
    }
    ring->chains = cluster->view->chains;
    ring_measure(list, &ring->chains);
    free(list);
    *out = ring;
    return PARAMO_OK;
}

void paramo_ring_free(paramo_ring *ring)
{
    free(ring);
}

uint32_t paramo_ring_holder(const paramo_ring *ring, uint32_t partition, uint32_t level)
{
    if (!ring || partition >= RING_PARTITIONS || level > ring->chains.replicas)
        return PARAMO_NO_SHARD;
    uint16_t shard = ring->chains.level[level].owner[partition];
    return shard == RING_NONE ? PARAMO_NO_SHARD : shard;
}

paramo_err paramo_ring_info_get(const paramo_ring *ring, paramo_ring_info *info)
{
    if (!ring || !info)
        return err_set(PARAMO_E_INVALID, "ring or info is NULL");
    paramo_ring_info whole = {
        .replicas = ring->chains.replicas, .apart = ring->chains.apart, .present = ring->chains.present};
    options_copy_out(info, &whole, sizeof whole);
    return PARAMO_OK;
}

int paramo_ring_warning(const paramo_ring *ring, char *text, size_t cap)
{
    return ring && text && cap && ring_warning(&ring->chains, text, cap);
}

paramo_err paramo_ring_compare(const paramo_ring *before, const paramo_ring *after,
                               paramo_ring_transfers *transfers)
{
    struct ring_transfers found;
    if (!before || !after || !transfers)
        return err_set(PARAMO_E_INVALID, "a ring or transfers is NULL");
    paramo_err err = ring_compare(&before->chains, &after->chains, &found);
    if (err)
        return err;
    paramo_ring_transfers whole = {.owners = found.owners,
                                   .owners_least = found.owners_least,
                                   .copies = found.copies,
                                   .copies_least = found.copies_least};
    options_copy_out(transfers, &whole, sizeof whole);
    return PARAMO_OK;
}
