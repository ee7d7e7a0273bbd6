#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx_worker.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "van/ucx/ucx_lane.h"

#define WIRE_NS (200 * ENV_MS) /* how long the end of a way waits for UCX to connect */

static struct ucx_way *way_of(struct blocking_job *job)
{
    return container_of(job, struct ucx_way, job);
}

static void way_free(struct ucx_way *way)
{
    area_close(&way->ours);
    area_close(&way->theirs);
    free(way);
}

/* ---- the end, beside the lanes ------------------------------------------------------------------------- */

/* UCX before 1.14 aborts the process if a worker is destroyed while the message that connects its endpoint
 * waits to be sent (openucx/ucx#8175). Only RDMA has one: TCP and shared memory connect by UCX's transport, and no
 * message of ours comes before that (prove()). */
static bool may_destroy(struct ucx_way *way)
{
    struct env *env = way->van->tcp.base.env;
    uint64_t until = env_now(env) + WIRE_NS;
    if (!way->ep || !way->context->rdma)
        return true;
    while (!way->wired && env_now(env) < until)
        (void)way->context->api->worker_progress(way->worker);
    return way->wired;
}

/* Takes a way whose UCX worker cannot be destroyed. It and its context stay until the process ends.
 * After UCX_KEPT_MAX of them the van offers UCX no more. */
static void way_keep(struct ucx_way *way)
{
    static _Atomic(struct ucx_way *) kept; /* never freed, so that a leak checker finds them */
    struct ucx_way *first = atomic_load(&kept);
    assert(way->ep);
    assert(!way->wired);
    atomic_fetch_add(&way->van->kept[way->kind], 1);
    way->van = NULL;
    do {
        way->next = first;
    } while (!atomic_compare_exchange_weak(&kept, &first, way));
    log_debug("van: UCX keeps a connection that ended before it was made");
}

static void worker_destroy(struct ucx_way *way)
{
    assert(!way->conn);
    assert(!way->lane);
    if (!way->worker || !may_destroy(way))
        return;
    way->context->api->worker_destroy(way->worker); /* with its endpoint and messages */
    way->worker = NULL;
}

static void way_over(struct ucx_way *way)
{
    if (way->worker)
        way_keep(way);
    else
        way_free(way);
}

static void end_work(struct blocking_job *job)
{
    worker_destroy(way_of(job));
}

static void end_done(struct blocking_job *job)
{
    way_over(way_of(job));
}

static void end_post(struct ucx_way *way)
{
    way->job = (struct blocking_job){.work = end_work, .done = end_done};
    blocking_jobs_post(way->van->jobs, &way->job);
}

/* ---- the beginning, beside the lanes ------------------------------------------------------------------- */

static paramo_err worker_make(struct ucx_way *way)
{
    paramo_err err = ucx_context_of(way->van, way->kind, &way->context);
    if (err)
        return err;
    const struct ucx_api *api = way->context->api;
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = UCX_AM_ID,
                                      .cb = way->came,
                                      .arg = way};
    ucs_status_t status = api->worker_create(way->context->handle, &params, &way->worker);
    if (status) {
        way->worker = NULL;
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(status));
    }
    status = api->worker_set_am_recv_handler(way->worker, &handler);
    if (!status)
        status = api->worker_get_efd(way->worker, &way->source.fd);
    return status ? err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(status)) : PARAMO_OK;
}

static void begin_work(struct blocking_job *job)
{
    struct ucx_way *way = way_of(job);
    way->made = worker_make(way);
    if (way->made)
        err_text_copy(way->made_text);
}

/* The lane exists as long as the connection. So the task is posted under the lock that guards `ended`. */
static void begin_done(struct blocking_job *job)
{
    struct ucx_way *way = way_of(job);
    struct ucx_van *van = way->van;
    pthread_mutex_lock(&van->lock);
    assert(way->making);
    bool ended = way->ended;
    way->making = false;
    if (!ended)
        lane_post(way->home, &way->begun);
    pthread_mutex_unlock(&van->lock);
    if (ended) {
        worker_destroy(way);
        way_over(way);
    }
}

/* ---- on the lane --------------------------------------------------------------------------------------- */

static void worker_woken(struct lane_source *source, uint32_t events)
{
    (void)events;
    container_of(source, struct ucx_way, source)->armed = false;
}

static paramo_err lane_take(struct ucx_way *way)
{
    assert(way->conn && !way->lane);
    assert(way->home == way->conn->base.lane);
    way->source.events = EPOLLIN;
    way->source.ready = worker_woken;
    way->source.quiet = true;
    paramo_err err = lane_source_add(way->home, &way->source);
    if (err)
        return err;
    err = ucx_lane_join(way, way->home);
    if (err)
        lane_source_remove(way->home, &way->source);
    return err;
}

static void worker_begun(struct lane_task *task)
{
    struct ucx_way *way = container_of(task, struct ucx_way, begun);
    assert(way->posted);
    assert(!way->lane);
    way->posted = false;
    if (!way->conn) {
        end_post(way);
        return;
    }
    paramo_err err = way->made ? err_set(way->made, "%s", way->made_text) : lane_take(way);
    way->ready(way, err);
}

paramo_err ucx_worker_begin(struct ucx_way *way, enum ucx_kind kind, ucp_am_recv_callback_t came,
                            void (*ready)(struct ucx_way *way, paramo_err err))
{
    struct ucx_van *van = way->van;
    assert(way->conn && !way->posted && !way->worker);
    assert(!way->making && !way->ended && !way->lane);
    pthread_mutex_lock(&van->lock);
    paramo_err err = van->jobs ? PARAMO_OK : blocking_jobs_create(van->tcp.base.env, "pm-ucx", &van->jobs);
    pthread_mutex_unlock(&van->lock);
    if (err)
        return err;
    way->kind = kind;
    way->came = came;
    way->ready = ready;
    way->home = way->conn->base.lane;
    way->begun.run = worker_begun;
    way->making = way->posted = true;
    way->job = (struct blocking_job){.work = begin_work, .done = begin_done};
    atomic_fetch_add(&van->ways, 1);
    blocking_jobs_post(van->jobs, &way->job);
    return PARAMO_OK;
}

/* At the end of the round: UCX may be calling us. */
static void worker_part(struct lane_task *task)
{
    struct ucx_way *way = container_of(task, struct ucx_way, end);
    assert(way->lane);
    assert(!way->conn);
    ucx_lane_part(way);
    way->lane = NULL;
    end_post(way);
}

void ucx_worker_end(struct ucx_way *way)
{
    struct ucx_van *van = way->van;
    assert(!way->conn);
    assert(!way->ended);
    if (!way->home) { /* none was begun */
        way_free(way);
        return;
    }
    atomic_fetch_sub(&van->ways, 1);
    pthread_mutex_lock(&van->lock);
    bool making = way->making;
    way->ended = true;
    pthread_mutex_unlock(&van->lock);
    if (making || way->posted)
        return; /* begin_done() or worker_begun() ends it */
    if (!way->lane) {
        end_post(way);
        return;
    }
    lane_source_remove(way->home, &way->source);
    way->end.run = worker_part;
    lane_at_end(way->home, &way->end);
}
#else
typedef int ucx_worker_is_left_out; /* a translation unit may not be empty */
#endif
