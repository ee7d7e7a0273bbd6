/* Checkpoints: the calls of applications to the scheduler, and the scheduler's orders to servers. An order goes to
 * all shards of the member slot, each on its lane, and is answered when the last is done. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member/member_orders.h"
#include "env/process.h"
#include "node/checkpoint.h"
#include "node/migrate.h"
#include "node/node.h"
#include "node/reporting.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "wire/ckpt_order.h"
#include "wire/order.h"

enum { HOLD_SLACK_MS = 1000 }; /* for the order that ends the hold. Arbitrary */

/* ---- orders to a server ------------------------------------------------------------------------------- */

struct ckpt_part {
    struct ckpt_job *job;
    struct node_shard *at;
    struct lane_task task; /* there, then back */
    paramo_err err;
    char text[ERR_TEXT_MAX];
    struct ckpt_file file;
};

struct ckpt_job {
    struct member_slot *member_slot;
    uint64_t order; /* the scheduler's */
    uint32_t what;
    struct ckpt_order fields;
    unsigned waiting, count; /* control lane */
    struct ckpt_part part[];
};

/* On the control lane: all shards have ended. */
static void job_end(struct ckpt_job *job)
{
    struct member *m = job->member_slot->member;
    struct ckpt_written *written = calloc(1, sizeof *written);
    struct writer result = {0};
    assert(lane_held(job->member_slot->node->control));
    assert(job->waiting == 0 && job->count == job->member_slot->shards_count);
    paramo_err err = written ? PARAMO_OK : err_memory(sizeof *written);
    for (unsigned i = 0; i < job->count && !err; i++) {
        const struct ckpt_part *p = &job->part[i];
        if (p->err) {
            err = err_set(p->err, "%s", p->text);
        } else if (job->what == ORDER_CKPT_SAVE) {
            struct ckpt_written_file *file = &written->file[written->count++];
            *file = (struct ckpt_written_file){
                .bytes = p->file.bytes, .blocks = p->file.blocks, .sum = p->file.sum};
            memcpy(file->name, p->file.name, sizeof file->name);
        }
    }
    if (!err && job->what == ORDER_CKPT_SAVE)
        ckpt_written_encode(written, &result);
    free(written);
    if (m)
        member_order_done(m, job->order, err, &result);
    else
        writer_fini(&result);
    free(job);
}

static void part_back(struct lane_task *task)
{
    struct ckpt_part *p = container_of(task, struct ckpt_part, task);
    assert(lane_held(p->job->member_slot->node->control));
    assert(p->job->waiting > 0 && p->job->waiting <= p->job->count);
    assert(p->job->count == p->job->member_slot->shards_count);
    if (--p->job->waiting == 0)
        job_end(p->job);
}

static void part_begin(struct lane_task *task);

/* On the shard's lane. */
static void part_done(void *arg, paramo_err status, const struct ckpt_file *file)
{
    struct ckpt_part *p = arg;
    assert(lane_held(p->at->lane));
    assert(p->task.run == part_begin); /* once */
    p->err = status;
    if (status)
        err_text_copy(p->text);
    else if (file)
        p->file = *file;
    p->task.run = part_back;
    lane_post(p->job->member_slot->node->control, &p->task);
}

/* Each clock may run 2 % too fast or too slow (FAULTS.md, section 2): 1.02 / 0.98 < 25 / 24. */
uint32_t checkpoint_hold_ms(uint32_t timeout_ms)
{
    uint64_t hold_ms = timeout_ms + (uint64_t)timeout_ms / 24 + HOLD_SLACK_MS;
    return hold_ms < UINT32_MAX ? (uint32_t)hold_ms : UINT32_MAX;
}

static void part_begin(struct lane_task *task)
{
    struct ckpt_part *p = container_of(task, struct ckpt_part, task);
    const struct ckpt_job *job = p->job;
    assert(lane_held(p->at->lane));
    assert(job->waiting > 0 && p->task.run == part_begin);
    struct shard *s = p->at->shard;
    if (s && shard_defers(s, task))
        return;
    struct shard_save_config config = {.fs = job->member_slot->node->fs,
                                       .blocking_jobs = job->member_slot->node->blocking_jobs,
                                       .dir = job->fields.dir,
                                       .number = job->fields.number,
                                       .id = job->fields.id,
                                       .base_id = job->fields.base_id,
                                       .changes = job->fields.changes,
                                       .term = (uint32_t)(job->order >> 32),
                                       .order = job->order,
                                       .queue_bytes = job->member_slot->node->ckpt_queue_bytes,
                                       .hold_ms = checkpoint_hold_ms(job->fields.timeout_ms),
                                       .arg = p,
                                       .done = part_done};
    paramo_err err = PARAMO_OK;
    if (!s) {
        err = err_set(PARAMO_E_CLOSED, "the node is closed");
    } else if (job->what == ORDER_CKPT_DROP) {
        shard_save_drop(s, job->fields.number);
        shard_load_drop(s, job->fields.id, job->order);
        part_done(p, PARAMO_OK, NULL);
    } else if (job->what == ORDER_CKPT_GO) {
        err = shard_load_go(s, job->fields.id, job->order);
        if (!err)
            part_done(p, PARAMO_OK, NULL);
    } else {
        err = job->what == ORDER_CKPT_HOLD      ? shard_load_hold(s, &config)
              : job->what == ORDER_CKPT_LOAD    ? shard_load(s, &config)
              : job->what == ORDER_CKPT_RESTORE ? shard_restore(s, &config)
                                                : shard_save(s, &config);
    }
    if (err)
        part_done(p, err, NULL);
}

void member_slot_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct member_slot *member_slot = arg;
    struct ckpt_order m;
    paramo_err err = PARAMO_OK;
    assert(lane_held(member_slot->node->control) && member_slot->member);
    if (what >= ORDER_MIGRATION_SOURCE && what <= ORDER_MIGRATION_END) {
        member_slot_migration_order(member_slot, order, what, fields);
        return;
    }
    if (what == ORDER_REPORT && member_slot->shards_count) {
        member_slot_report(member_slot, order);
        return;
    }
    if (what < ORDER_CKPT_SAVE || what > ORDER_CKPT_RESTORE || !member_slot->shards_count)
        err = err_set(PARAMO_E_UNSUPPORTED, "this node does not know order %u", what);
    if (!err)
        err = ckpt_order_decode(fields, &m);
    struct ckpt_job *job =
        err ? NULL : calloc(1, sizeof *job + member_slot->shards_count * sizeof(struct ckpt_part));
    if (!err && !job)
        err = err_memory(sizeof *job);
    if (err) {
        member_order_done(member_slot->member, order, err, NULL);
        return;
    }
    *job = (struct ckpt_job){.member_slot = member_slot,
                             .order = order,
                             .what = what,
                             .fields = m,
                             .waiting = member_slot->shards_count,
                             .count = member_slot->shards_count};
    for (unsigned i = 0; i < job->count; i++) {
        struct ckpt_part *p = &job->part[i];
        p->job = job;
        p->at = &member_slot->shards[i];
        p->task.run = part_begin;
    }
    assert(lane_held(member_slot->node->control) && job->waiting == job->count);
    for (unsigned i = 0; i < member_slot->shards_count; i++)
        lane_post(member_slot->shards[i].lane, &job->part[i].task);
}

/* ---- calls of an application -------------------------------------------------------------------------- */

struct ckpt_args {
    bool load, changes;
    char dir[FS_PATH_MAX];
    uint64_t number, deadline;
};

static paramo_err begin_ckpt(struct node_call *c, struct member *m, void *arg)
{
    const struct ckpt_args *a = arg;
    return a->load ? member_ckpt_load(m, &c->call, a->dir, a->number, a->deadline)
                   : member_ckpt_save(m, &c->call, a->dir, a->changes, a->deadline);
}

static void taken_ckpt(struct node_call *c, void *arg)
{
    ((struct ckpt_args *)arg)->number = c->call.result.number;
}

static paramo_err checkpoint(paramo_node *node, const char *dir, struct ckpt_args *args, uint32_t timeout_ms)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (!node->joined)
        return err_set(PARAMO_E_CLOSED,
                       "the node has not joined a cluster; paramo_join or paramo_start comes first");
    if (!dir || !*dir)
        return err_set(PARAMO_E_INVALID, "dir is NULL or empty");
    err = process_path(dir, args->dir, sizeof args->dir);
    if (err)
        return err;
    args->deadline = node_deadline(node, timeout_ms);
    return node_call(node->own, begin_ckpt, taken_ckpt, args);
}

paramo_err paramo_checkpoint_save(paramo_node *node, const char *dir, uint32_t flags, uint32_t timeout_ms,
                                  uint64_t *number)
{
    struct ckpt_args args = {.changes = flags == PARAMO_CHECKPOINT_INCREMENTAL};
    if (flags > PARAMO_CHECKPOINT_INCREMENTAL)
        return err_set(PARAMO_E_INVALID, "flags is %u: the only flag is PARAMO_CHECKPOINT_INCREMENTAL",
                       flags);
    paramo_err err = checkpoint(node, dir, &args, timeout_ms);
    if (!err && number)
        *number = args.number;
    return err;
}

paramo_err paramo_checkpoint_load(paramo_node *node, const char *dir, uint64_t number, uint32_t timeout_ms)
{
    struct ckpt_args args = {.load = true, .number = number};
    return checkpoint(node, dir, &args, timeout_ms);
}
