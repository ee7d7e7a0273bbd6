#include "server/snapshot/load_records.h"

#include <assert.h>
#include <stdlib.h>

#include "server/replication/records.h"
#include "server/shard/senders.h"
#include "server/shard/slice.h"
#include "server/snapshot/load_state.h"

paramo_err load_records_decode(const struct ckpt_block *block, struct load_records *records)
{
    assert(block->kind == CKPT_WINDOWS || block->kind == CKPT_NOTES);
    *records = (struct load_records){.partition = block->partition, .partitions = block->partitions};
    if (block->kind == CKPT_WINDOWS)
        return sender_windows_decode(block->payload, block->bytes, &records->windows, &records->n);
    return sender_notes_decode(block->payload, block->bytes, &records->notes, &records->n);
}

void load_records_fini(struct load_records *records)
{
    free(records->windows);
    free(records->notes);
    *records = (struct load_records){0};
}

/* One turn. */
struct turn {
    struct shard *shard;
    unsigned left;
    uint64_t partitions[PARTITION_WORDS]; /* those that the block's records are added on */
    uint64_t held[PARTITION_WORDS];       /* the shard's */
};

/* False: the block has no partition of ours. */
static bool turn_begin(struct turn *turn, struct shard *s, const bool own[RING_PARTITIONS],
                       const struct load_records *records)
{
    uint64_t any = 0;
    *turn = (struct turn){.shard = s, .left = records_turn(s)};
    for (partition_set_runs(a, end, s->place->runs))
        if (view_ring(s->view)->owner[a] == (unsigned)s->self)
            partition_set_add_run(turn->held, a, end);
    for (unsigned i = 0; i < records->partitions && records->partition + i < RING_PARTITIONS; i++)
        if (own[records->partition + i])
            partition_set_add(turn->partitions, records->partition + i);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        any |= turn->partitions[i];
    return any;
}

/* Others never send again. */
static bool lives(const struct shard *s, const struct sender_id *id)
{
    const struct view_node *node = view_node(s->view, id->node);
    return node && node->alive && node->incarnation == id->incarnation;
}

static void spend(struct turn *turn, unsigned cost)
{
    loading_spend(turn->shard, cost);
    turn->left -= cost < turn->left ? cost : turn->left;
}

static paramo_err add_window(struct turn *turn, const struct sender_window *from)
{
    struct shard *s = turn->shard;
    assert(turn->left > 0 && s->view);
    spend(turn, RECORDS_COST);
    if (!lives(s, &from->sender))
        return PARAMO_OK;
    struct sender *x = shard_sender(s, &from->sender);
    if (!x)
        return err_memory(sizeof *x);
    spend(turn, records_cost_of_notes(&x->applied_window) +
                    records_cost_of_bits(&x->applied_window.own, &from->dedup));
    shard_floor(s, x, from->dedup.floor);
    return applied_window_merge(&x->applied_window, turn->held, turn->partitions, &from->dedup);
}

static paramo_err add_note(struct turn *turn, const struct sender_note *note)
{
    struct shard *s = turn->shard;
    uint64_t partitions[PARTITION_WORDS], any = 0;
    assert(turn->left > 0 && s->view);
    spend(turn, RECORDS_COST);
    for (unsigned i = 0; i < PARTITION_WORDS; i++) {
        partitions[i] = turn->partitions[i] & note->partitions[i];
        any |= partitions[i];
    }
    if (!any || !lives(s, &note->sender))
        return PARAMO_OK;
    struct sender *x = shard_sender(s, &note->sender);
    if (!x)
        return err_memory(sizeof *x);
    spend(turn, RECORDS_COST_NOTE);
    if (note->number >= DATA_WINDOW) /* a sender is never further ahead of its floor */
        shard_floor(s, x, note->number - DATA_WINDOW + 1);
    assert(x->applied_window.own.floor + DATA_WINDOW > note->number);
    return applied_window_note_number(&x->applied_window, note->number, partitions);
}

paramo_err load_records_turn(struct shard *s, const bool own[RING_PARTITIONS], struct load_records *records,
                             bool *done)
{
    assert(records->at <= records->n && (!records->windows || !records->notes));
    struct turn turn;
    paramo_err err = PARAMO_OK;
    if (!turn_begin(&turn, s, own, records))
        records->at = records->n;
    for (; records->at < records->n && turn.left && !err; records->at++)
        err = records->windows ? add_window(&turn, &records->windows[records->at])
                               : add_note(&turn, &records->notes[records->at]);
    *done = records->at == records->n;
    assert(*done || err || !turn.left);
    return err;
}
