/* The scheduler's orders to migrate partitions: each goes to the lane of the shard it names, and the answer
 * comes back here. */
#include <assert.h>
#include <stdlib.h>

#include "cluster/member/member_orders.h"
#include "node/migrate.h"
#include "node/node.h"
#include "wire/migration_order.h"
#include "wire/order.h"

struct migration_job {
    struct member_slot *member_slot;
    struct node_shard *at;
    struct lane_task task; /* there, then back */
    uint64_t order;        /* the scheduler's */
    uint32_t what;
    struct migration_order fields;
    struct node_shard *also; /* END: source and target are both of this server */
    paramo_err err;
    char text[ERR_TEXT_MAX];
};

/* On the control lane. */
static void job_end(struct lane_task *task)
{
    struct migration_job *job = container_of(task, struct migration_job, task);
    struct member *m = job->member_slot->member;
    assert(lane_held(job->member_slot->node->control));
    assert(!job->also && job->at->member_slot == job->member_slot); /* both sides have carried it out */
    if (m)
        member_order_done(m, job->order, job->err ? err_set(job->err, "%s", job->text) : PARAMO_OK, NULL);
    free(job);
}

static void job_begin(struct lane_task *task);

/* On the shard's lane. */
static void job_done(void *arg, paramo_err status)
{
    struct migration_job *job = arg;
    assert(lane_held(job->at->lane));
    assert(!job->also || job->what == ORDER_MIGRATION_END);
    job->err = status;
    if (status)
        err_text_copy(job->text);
    if (job->also) {
        job->at = job->also;
        job->also = NULL;
        job->task.run = job_begin;
        lane_post(job->at->lane, &job->task);
        return;
    }
    job->task.run = job_end;
    lane_post(job->member_slot->node->control, &job->task);
}

static void job_begin(struct lane_task *task)
{
    struct migration_job *job = container_of(task, struct migration_job, task);
    assert(lane_held(job->at->lane));
    assert(job->at != job->also && job->at->member_slot == job->member_slot);
    if (job->at->shard && shard_defers(job->at->shard, task))
        return;
    if (job->at->shard)
        shard_migration_order(job->at->shard, job->what, &job->fields, job_done, job);
    else
        job_done(job, err_set(PARAMO_E_CLOSED, "the node is closed"));
}

static struct node_shard *shard_of(struct member_slot *member_slot, const struct migration_shard *name)
{
    return name->node == member_id(member_slot->member) && name->index < member_slot->shards_count
               ? &member_slot->shards[name->index]
               : NULL;
}

void member_slot_migration_order(struct member_slot *member_slot, uint64_t order, uint32_t what,
                                 struct reader *fields)
{
    struct migration_order m;
    struct node_shard *from = NULL, *to = NULL;
    assert(lane_held(member_slot->node->control) && member_slot->member);
    paramo_err err = migration_order_decode(fields, &m);
    if (!err && what != ORDER_MIGRATION_TARGET)
        from = shard_of(member_slot, &m.from);
    if (!err && (what == ORDER_MIGRATION_TARGET || what == ORDER_MIGRATION_END))
        to = shard_of(member_slot, &m.to);
    if (!err && !from && !to)
        err = err_set(PARAMO_E_INVALID, "the scheduler ordered to migrate partitions of another server");
    struct migration_job *job = err ? NULL : calloc(1, sizeof *job);
    if (!err && !job && what == ORDER_MIGRATION_END) { /* without it paused partitions would wait forever */
        member_order_later(member_slot->member, order);
        return;
    }
    if (!err && !job)
        err = err_memory(sizeof *job);
    if (err) {
        member_order_done(member_slot->member, order, err, NULL);
        return;
    }
    *job = (struct migration_job){.member_slot = member_slot,
                                  .at = from ? from : to,
                                  .also = from ? to : NULL,
                                  .order = order,
                                  .what = what,
                                  .fields = m,
                                  .task.run = job_begin};
    assert(job->at && job->at != job->also);
    lane_post(job->at->lane, &job->task);
}
