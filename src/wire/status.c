#include "wire/status.h"

#include <stdlib.h>

#include "wire/calls.h"

enum { NODE_BYTES = 45 }; /* without its shards */

static void clocks_encode(const struct status_clocks *m, struct writer *w)
{
    write_u32(w, m->workers);
    write_u64(w, m->lowest);
    write_u64(w, m->highest);
    write_u32(w, m->waits);
    write_u32(w, m->waited_ms);
}

static void clocks_decode(struct reader *r, struct status_clocks *m)
{
    m->workers = read_u32(r);
    m->lowest = read_u64(r);
    m->highest = read_u64(r);
    m->waits = read_u32(r);
    m->waited_ms = read_u32(r);
    r->failed |=
        m->lowest > m->highest || (!m->workers && (m->highest || m->waits)) || (!m->waits && m->waited_ms);
}

void status_encode(const struct status *m, struct writer *w)
{
    uint32_t shards = 0;
    for (uint32_t i = 0; i < m->nodes_count; i++)
        shards += m->nodes[i].shards;
    write_u32(w, m->replicas);
    write_u8(w, m->converged);
    spread_encode(&m->pauses, w);
    write_u8(w, (uint8_t)m->ckpt.now);
    write_u64(w, m->ckpt.last);
    write_u64(w, m->ckpt.at);
    write_string(w, m->ckpt.dir);
    write_u32(w, m->migrations_count);
    for (uint32_t i = 0; i < m->migrations_count; i++) {
        const struct status_migration *migration = &m->migration[i];
        write_u8(w, migration->state);
        write_u8(w, migration->handover);
        write_u16(w, migration->first);
        write_u16(w, migration->partitions);
        write_u16(w, migration->from);
        write_u16(w, migration->to);
    }
    write_u32(w, m->nodes_count);
    write_u32(w, shards);
    for (uint32_t i = 0; i < m->nodes_count; i++) {
        const struct status_node *node = &m->nodes[i];
        write_u32(w, node->id);
        write_u8(w, (uint8_t)node->state);
        write_u32(w, node->heard_ms);
        write_u32(w, node->reported_ms);
        clocks_encode(&node->clocks, w);
        write_u32(w, node->shards);
        for (uint32_t k = 0; k < node->shards; k++)
            shard_report_encode(&node->shard[k], w);
    }
    write_bytes(w, m->view, m->view_len);
}

static void decode_job(struct reader *r, struct status *m)
{
    m->replicas = read_u32(r);
    uint8_t converged = read_u8(r);
    spread_decode(r, &m->pauses);
    uint8_t now = read_u8(r);
    m->ckpt.last = read_u64(r);
    m->ckpt.at = read_u64(r);
    read_string(r, m->ckpt.dir, sizeof m->ckpt.dir);
    m->migrations_count = read_u32(r);
    r->failed |= converged > 1 || now > STATUS_LOADING || m->migrations_count > STATUS_MIGRATIONS_MAX;
    m->converged = converged == 1;
    m->ckpt.now = r->failed ? STATUS_NO_CKPT : now;
    for (uint32_t i = 0; i < m->migrations_count && !r->failed; i++) {
        struct status_migration *migration = &m->migration[i];
        migration->state = read_u8(r);
        uint8_t handover = read_u8(r);
        migration->handover = handover == 1;
        migration->first = read_u16(r);
        migration->partitions = read_u16(r);
        migration->from = read_u16(r);
        migration->to = read_u16(r);
        r->failed |= handover > 1 || migration->state < 1 || migration->state > 4;
    }
}

static void decode_node(struct reader *r, struct status *m, struct status_node *node, uint32_t *shards)
{
    node->id = read_u32(r);
    uint8_t state = read_u8(r);
    node->heard_ms = read_u32(r);
    node->reported_ms = read_u32(r);
    clocks_decode(r, &node->clocks);
    node->shards = read_u32(r);
    r->failed |= state < STATUS_JOINED || state > STATUS_LEFT || node->shards > *shards ||
                 (node->reported_ms == STATUS_NEVER) != (node->shards == 0);
    if (r->failed)
        return;
    node->state = state;
    node->shard = m->shards;
    for (uint32_t k = 0; k < node->shards && !r->failed; k++) {
        shard_report_decode(r, m->shards++);
        --*shards;
    }
}

paramo_err status_decode(struct reader *r, struct status *m)
{
    *m = (struct status){0};
    decode_job(r, m);
    uint32_t nodes = read_u32(r), shards = read_u32(r);
    if (nodes > STATUS_NODES_MAX || shards > STATUS_SHARDS_MAX || nodes > r->left / NODE_BYTES ||
        shards > r->left)
        r->failed = true;
    if (r->failed)
        return call_body_end(r, "STATUS");
    struct shard_report *all = calloc(shards + 1u, sizeof *all);
    m->nodes = calloc(nodes + 1u, sizeof *m->nodes);
    m->shards = all;
    if (!m->nodes || !all) {
        status_fini(m);
        return err_memory(nodes * sizeof *m->nodes + shards * sizeof *all);
    }
    m->nodes_count = nodes;
    for (uint32_t i = 0; i < nodes && !r->failed; i++)
        decode_node(r, m, &m->nodes[i], &shards);
    m->shards = all;
    r->failed |= shards != 0;
    m->view_len = r->failed ? 0 : r->left;
    m->view = m->view_len ? read_span(r, m->view_len) : NULL;
    paramo_err err = call_body_end(r, "STATUS");
    if (err)
        status_fini(m);
    return err;
}

void status_fini(struct status *m)
{
    free(m->nodes);
    free(m->shards);
    m->nodes = NULL;
    m->shards = NULL;
    m->nodes_count = 0;
}
