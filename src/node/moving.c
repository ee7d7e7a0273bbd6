/* Orders of the scheduler to move arcs: each goes to the shard that it names, on its lane, and its answer
 * comes back here. */
#include <stdlib.h>

#include "node/node.h"
#include "wire/move_order.h"
#include "wire/order.h"

struct move_job {
    struct seat *seat;
    struct seat_shard *at;
    struct lane_task task; /* there, then back */
    uint64_t order;        /* the scheduler's */
    uint32_t what;
    struct move_order fields;
    struct seat_shard *also; /* END: both sides are of this server */
    paramo_err err;
    char text[ERR_TEXT_MAX];
};

/* On the control lane. */
static void job_end(struct lane_task *task)
{
    struct move_job *job = container_of(task, struct move_job, task);
    struct member *m = job->seat->member;
    if (m)
        member_order_done(m, job->order, job->err ? err_set(job->err, "%s", job->text) : PARAMO_OK, NULL);
    free(job);
}

static void job_begin(struct lane_task *task);

/* On the shard's lane. */
static void job_done(void *arg, paramo_err status)
{
    struct move_job *job = arg;
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
    lane_post(job->seat->node->control, &job->task);
}

static void job_begin(struct lane_task *task)
{
    struct move_job *job = container_of(task, struct move_job, task);
    if (job->at->shard)
        shard_move(job->at->shard, job->what, &job->fields, job_done, job);
    else
        job_done(job, err_set(PARAMO_E_CLOSED, "the node is closed"));
}

static struct seat_shard *shard_of(struct seat *seat, const struct move_shard *name)
{
    return name->node == member_id(seat->member) && name->index < seat->shards_count
               ? &seat->shards[name->index]
               : NULL;
}

void seat_move(struct seat *seat, uint64_t order, uint32_t what, struct reader *fields)
{
    struct move_order m;
    struct seat_shard *from = NULL, *to = NULL;
    paramo_err err = move_order_decode(fields, &m);
    if (!err && what != ORDER_MOVE_TAKE)
        from = shard_of(seat, &m.from);
    if (!err && (what == ORDER_MOVE_TAKE || what == ORDER_MOVE_END))
        to = shard_of(seat, &m.to);
    if (!err && !from && !to)
        err = err_set(PARAMO_E_INVALID, "an order to move arcs of others");
    struct move_job *job = err ? NULL : calloc(1, sizeof *job);
    if (!err && !job && what == ORDER_MOVE_END) { /* without it what has paused would wait for ever */
        member_order_later(seat->member, order);
        return;
    }
    if (!err && !job)
        err = err_memory(sizeof *job);
    if (err) {
        member_order_done(seat->member, order, err, NULL);
        return;
    }
    *job = (struct move_job){.seat = seat,
                             .at = from ? from : to,
                             .also = from ? to : NULL,
                             .order = order,
                             .what = what,
                             .fields = m,
                             .task.run = job_begin};
    lane_post(job->at->lane, &job->task);
}
