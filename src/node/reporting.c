/* What a server's shards hold, when the scheduler asks: one shard after the other reports on its lane. */
#include <assert.h>
#include <stdlib.h>

#include "cluster/member/member_orders.h"
#include "node/node.h"
#include "node/reporting.h"
#include "wire/report.h"

struct report_job {
    struct member_slot *member_slot;
    struct lane_task task; /* at each shard, then back */
    uint64_t order;
    unsigned at;
    struct shard_report shard[];
};

/* On the control lane. */
static void job_end(struct lane_task *task)
{
    struct report_job *job = container_of(task, struct report_job, task);
    struct member *m = job->member_slot->member;
    struct writer w = {0};
    assert(lane_held(job->member_slot->node->control));
    assert(job->at == job->member_slot->shards_count); /* each shard has reported */
    for (unsigned i = 0; i < job->at; i++)
        shard_report_encode(&job->shard[i], &w);
    paramo_err err = w.failed ? err_memory(w.len) : PARAMO_OK;
    if (m)
        member_order_done(m, job->order, err, &w);
    else
        writer_fini(&w);
    free(job);
}

static void ask(struct report_job *job);

/* On a shard's lane. */
static void ask_shard(struct lane_task *task)
{
    struct report_job *job = container_of(task, struct report_job, task);
    assert(job->at < job->member_slot->shards_count);
    assert(lane_held(job->member_slot->shards[job->at].lane));
    const struct shard *shard = job->member_slot->shards[job->at].shard;
    if (shard)
        shard_get_report(shard, &job->shard[job->at]);
    job->at++;
    ask(job);
}

static void ask(struct report_job *job)
{
    assert(job->at <= job->member_slot->shards_count);
    bool more = job->at < job->member_slot->shards_count;
    job->task.run = more ? ask_shard : job_end;
    lane_post(more ? job->member_slot->shards[job->at].lane : job->member_slot->node->control, &job->task);
}

void member_slot_report(struct member_slot *member_slot, uint64_t order)
{
    assert(lane_held(member_slot->node->control) && member_slot->shards_count);
    size_t bytes = sizeof(struct report_job) + member_slot->shards_count * sizeof(struct shard_report);
    struct report_job *job = calloc(1, bytes);
    if (!job) {
        member_order_done(member_slot->member, order, err_memory(bytes), NULL);
        return;
    }
    job->member_slot = member_slot;
    job->order = order;
    assert(!job->at);
    ask(job);
}
