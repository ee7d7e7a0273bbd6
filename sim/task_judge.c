#include "sim/task_judge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "node/tasks.h"
#include "sim/judge.h"
#include "sim/memory.h"
#include "sim/world.h"
#include "worker/client_impl.h"
#include "worker/requests.h"

/* In the calm period: until a death is known (invariants.c). */
#define PATIENCE (40 * ENV_SEC)

/* ---- called nodes -------------------------------------------------------------------------------------- */

static uint32_t role_of(uint32_t node)
{
    return node % 2 ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER;
}

static bool goes_to(const struct task_call *call, uint32_t node)
{
    return call->to == node || (call->to <= PARAMO_GROUP_ALL && call->to & role_of(node));
}

/* The process of this incarnation; NULL: it is gone. */
static const struct machine *process_of(const struct world *w, uint64_t incarnation)
{
    for (uint32_t k = 1; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (m->up && m->made->own && m->made->own->incarnation == incarnation)
            return m;
    }
    return NULL;
}

static bool is_gone(const struct world *w, uint64_t incarnation)
{
    const struct machine *m = process_of(w, incarnation);
    return !m || m->declared_dead || atomic_load(&m->made->own->state) != MEMBER_SLOT_JOINED;
}

/* NULL: the customer is closed, and this callback is one of its last. */
static const struct view *view_of(const struct task_call *call)
{
    return call->machine->customers[call->customer].worker->client->view;
}

/* Has a node to which the call goes died or left, perhaps not known yet? */
static bool is_lost(const struct task_call *call)
{
    const struct world *w = call->machine->world;
    const struct view *view = view_of(call);
    bool lost = false;
    for (unsigned i = 0; i < call->targets_count; i++)
        lost = lost || is_gone(w, call->targets[i]);
    for (uint32_t i = 0; view && i < view->nodes_count; i++)
        lost = lost || (goes_to(call, view->nodes[i].id) &&
                        (!view->nodes[i].alive || is_gone(w, view->nodes[i].incarnation)));
    return lost;
}

/* Does a node to which the call goes take no more calls? */
static bool is_refused(const struct task_call *call)
{
    const struct world *w = call->machine->world;
    for (uint32_t k = 1; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (m->up && m->tasks_ended && m->place >= 0 && goes_to(call, member_id(machine_member(m))))
            return true;
    }
    return false;
}

/* ---- a function runs ----------------------------------------------------------------------------------- */

static struct task_call *call_of(struct machine *m, const paramo_task_info *info)
{
    struct world *w = m->world;
    struct task_call *call = task_calls_find(w, info);
    if (!call) {
        judge_broken(w, "%s: a task has a payload that no call has", m->name);
        return NULL;
    }
    if (info->ts != call->ts)
        judge_broken(w, "%s: task %" PRIu32 " says that it is request %" PRIu64 ", which is %" PRIu64,
                     m->name, call->index, info->ts, call->ts);
    return call;
}

static struct task_run *run_at(struct task_call *call, uint32_t node)
{
    for (unsigned i = 0; i < call->runs; i++)
        if (call->run[i].node == node)
            return &call->run[i];
    return NULL;
}

/* The calls that it comes after have ended at this process, without an error. */
static void order_check(const struct machine *m, const struct task_call *call, uint32_t node)
{
    for (unsigned i = 0; i < call->after_n; i++) {
        const struct task_run *first = run_at(call->after[i], node);
        if (!goes_to(call->after[i], node))
            continue;
        if (!first || first->incarnation != m->made->own->incarnation || !task_run_over(first))
            judge_broken(m->world,
                         "%s: task %" PRIu32 " runs before task %" PRIu32 ", which it comes after, has ended",
                         m->name, call->index, call->after[i]->index);
        else if (first->status)
            judge_broken(m->world,
                         "%s: task %" PRIu32 " runs although task %" PRIu32
                         ", which it comes after, has failed",
                         m->name, call->index, call->after[i]->index);
    }
}

struct task_run *task_judge_begins(struct machine *m, const paramo_task_info *info)
{
    struct world *w = m->world;
    struct task_call *call = call_of(m, info);
    if (!call)
        return NULL;
    if (call->unknown || !goes_to(call, info->node) || info->node != member_id(machine_member(m)))
        judge_broken(w, "%s: task %" PRIu32 " runs on node %" PRIu32 ", which was not asked for it", m->name,
                     call->index, info->node);
    if (run_at(call, info->node) || call->runs == SCHEDULE_NODES_MAX) {
        judge_broken(w, "%s: task %" PRIu32 " runs on node %" PRIu32 " twice", m->name, call->index,
                     info->node);
        return NULL;
    }
    order_check(m, call, info->node);
    w->counts[PLAY_task_orders] += call->after_n > 0;
    struct task_run *run = &call->run[call->runs++];
    *run = (struct task_run){.call = call,
                             .machine = m,
                             .node = info->node,
                             .incarnation = m->made->own->incarnation,
                             .next = m->runs};
    m->runs = run;
    return run;
}

static void ends(struct task_run *run)
{
    struct task_run **at = &run->machine->runs;
    if (!run->returned || run->open)
        return;
    run->over_at = sim_now(run->machine->world->sim);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
}

void task_judge_returns(struct task_run *run)
{
    run->returned = true;
    ends(run);
}

void task_judge_part_ends(struct task_run *run)
{
    run->open--;
    ends(run);
}

void task_judge_fails(struct task_run *run, paramo_err status)
{
    run->status = run->status ? run->status : status;
}

/* ---- answers and ends ---------------------------------------------------------------------------------- */

void task_judge_answered(struct task_call *call, uint32_t node, const void *answer, size_t bytes)
{
    struct world *w = call->machine->world;
    struct task_run *run = run_at(call, node);
    uint64_t words[TASK_ANSWER] = {0};
    call->answers++;
    w->tasks->answers++;
    if (bytes == sizeof words)
        memcpy(words, answer, sizeof words);
    if (!run || run->answered || !call->open)
        judge_broken(w, "task %" PRIu32 " has an answer of node %" PRIu32 ", which has %s", call->index, node,
                     run ? "answered before" : "not run it");
    else if (!task_run_over(run) || run->status)
        judge_broken(w, "task %" PRIu32 " has an answer of node %" PRIu32 ", where it has %s", call->index,
                     node, run->status ? "failed" : "subtasks that have not ended");
    else if (bytes != sizeof words || words[0] != call->index || words[1] != node)
        judge_broken(w, "task %" PRIu32 " has an answer of node %" PRIu32 " that the function did not give",
                     call->index, node);
    if (run)
        run->answered = true;
}

/* It has ended without an error: it has run once on each node that was asked, to the end. */
static void success_check(const struct task_call *call)
{
    struct world *w = call->machine->world;
    bool group = call->to <= PARAMO_GROUP_ALL;
    if (call->must_fail || call->cancelled || !call->runs || (!group && call->runs > 1))
        judge_broken(w, "task %" PRIu32 " has succeeded, which %s", call->index,
                     call->must_fail   ? "a call that comes after it was told otherwise"
                     : call->cancelled ? "was cancelled"
                                       : "has not run");
    for (unsigned i = 0; i < call->runs; i++)
        if (!task_run_over(&call->run[i]) || call->run[i].status)
            judge_broken(w, "task %" PRIu32 " has succeeded, and at node %" PRIu32 " it has %s", call->index,
                         call->run[i].node, call->run[i].status ? "failed" : "subtasks that have not ended");
    if (!call->unwatched && call->answers != call->runs)
        judge_broken(w, "task %" PRIu32 " has run on %u nodes, and %u have answered", call->index, call->runs,
                     call->answers);
    w->counts[PLAY_task_groups] += group;
}

/* The status in the node's answer. AGAIN and MOVED mean something else to a client. */
static paramo_err as_answer(paramo_err status)
{
    return status == PARAMO_E_AGAIN || status == PARAMO_E_MOVED ? PARAMO_E_HANDLER : status;
}

/* A function, or a subtask of it, has failed with that. */
static bool has_run_into(const struct task_call *call, paramo_err status)
{
    bool failed = false;
    for (unsigned i = 0; i < call->runs; i++)
        failed = failed || (task_run_over(&call->run[i]) && as_answer(call->run[i].status) == status);
    return failed;
}

/* Has a call that it comes after failed, or may one have failed? If only one is not known to be well, that one has
 * failed. */
static bool after_failed(const struct task_call *call)
{
    struct task_call *some = NULL;
    unsigned n = 0;
    for (unsigned i = 0; i < call->after_n; i++) {
        struct task_call *first = call->after[i];
        bool met = first->to == call->to || first->to <= PARAMO_GROUP_ALL || call->to <= PARAMO_GROUP_ALL;
        if (!met || (!first->open && !first->status))
            continue;
        some = first;
        n++;
    }
    if (n == 1)
        some->must_fail = true;
    return n > 0;
}

/* Of its own process, or of one that it goes to. */
static bool memory_has_failed(const struct task_call *call)
{
    const struct world *w = call->machine->world;
    uint32_t servers = 0;
    for (uint32_t place = 0; place < SIM_SERVERS; place++)
        servers |= (uint32_t)goes_to(call, PARAMO_ID_SERVER(place)) << place;
    bool failed = memory_failed(call->machine, servers, call->from);
    for (uint32_t i = 0; i < w->schedule->workers && !failed; i++) {
        const struct machine *m = &w->workers[i];
        bool goes = m->place < 0 || goes_to(call, PARAMO_ID_WORKER((uint32_t)m->place));
        failed = goes && memory_failed(m, 0, call->from);
    }
    return failed;
}

/* A node with an order waits for as long as the caller, by its own clock: both may be bad. */
static bool is_late(const struct task_call *call, uint64_t now)
{
    const struct machine *m = call->machine;
    const struct world *w = m->world;
    uint64_t waits = call->deadline - call->issued_at;
    if (w->calm && call->patient && !call->after_n && !w->scheduler_lost && !is_lost(call) &&
        sim_now(w->sim) > w->calm_since + PATIENCE)
        return false;
    return now >= call->deadline ||
           (call->after_n &&
            (now + sim_host_stood(m->host, call->issued_at) - call->issued_at >= waits / 10 * 9 ||
             w->jumped_at > call->from));
}

static bool has_cause(const struct task_call *call, paramo_err status)
{
    const struct machine *m = call->machine;
    const struct customer *c = &m->customers[call->customer];
    if (has_run_into(call, status))
        return true;
    switch (status) {
    case PARAMO_E_TIMEOUT:
        return is_late(call, lane_now(c->worker->lane));
    case PARAMO_E_CANCELLED:
        return call->cancelled || after_failed(call);
    case PARAMO_E_NODE_LOST:
        return is_lost(call);
    case PARAMO_E_CLOSED:
        return c->closing || is_refused(call);
    case PARAMO_E_HANDLER: /* its app is closed */
        return is_refused(call);
    case PARAMO_E_UNSUPPORTED:
        return call->unknown;
    case PARAMO_E_MEMORY:
        return memory_has_failed(call);
    case PARAMO_E_FENCED:
        return m->declared_dead;
    default:
        return false;
    }
}

void task_judge_ended(struct task_call *call, paramo_err status)
{
    struct machine *m = call->machine;
    struct world *w = m->world;
    if (!call->open) {
        judge_broken(w, "%s: task %" PRIu32 " ended twice", m->name, call->index);
        return;
    }
    call->open = false;
    call->status = status;
    m->customers[call->customer].calls--;
    sim_note(w->sim, (uint64_t)call->index << 8 ^ (uint64_t)status);
    w->moment++;
    if (!status) {
        w->counts[call->parent ? PLAY_task_calls : PLAY_tasks]++;
        success_check(call);
    } else if (!m->dying && !has_cause(call, status)) {
        judge_broken(w, "%s: task %" PRIu32 " ended with %s, without a cause: %s", m->name, call->index,
                     err_name(status), err_text());
    }
}

bool task_judge_in_flight(const struct world *w, const struct customer *c, uint64_t ts)
{
    bool any = false;
    for (uint32_t i = 0; i < w->tasks->count && !any; i++) {
        const struct task_call *call = w->tasks->calls[i];
        any = call->open && call->ts && call->ts <= ts && &call->machine->customers[call->customer] == c;
    }
    return any;
}

/* ---- after each event ---------------------------------------------------------------------------------- */

/* Has a call that it names not ended in this process? The node learns of an end on its lane of apps, at the same time
 * unless the process is stopped. */
static bool has_reason(const struct machine *m, const struct task_call *call, uint32_t node)
{
    struct world *w = m->world;
    uint64_t now = sim_now(w->sim);
    bool waits = false;
    for (unsigned i = 0; i < call->after_n; i++) {
        const struct task_run *first = run_at(call->after[i], node);
        bool here = first && first->incarnation == m->made->own->incarnation;
        waits =
            waits || (goes_to(call->after[i], node) && (!here || !first->over_at || first->over_at == now));
    }
    return waits || now <= sim_host_paused_until(m->host);
}

static void held_check(const struct machine *m)
{
    const paramo_task_info *held[TASK_RECENT];
    size_t n = tasks_held(m->made, held, TASK_RECENT);
    for (size_t i = 0; i < n && i < TASK_RECENT; i++) {
        const struct task_call *call = task_calls_find(m->world, held[i]);
        if (!call || !has_reason(m, call, held[i]->node))
            judge_broken(m->world, "%s: task %" PRIu32 " waits, and all that it comes after have ended",
                         m->name, call ? call->index : 0);
    }
}

void task_judge_check(const struct machine *m)
{
    held_check(m);
    const struct customer *c = &m->customers[SIM_TASKS_CUSTOMER];
    const struct client *client = c->worker ? c->worker->client : NULL;
    if (client && atomic_load(&client->tracker.in_flight) != c->open + c->calls)
        judge_broken(m->world, "the tasks of %s: %u requests are tracked, %u are in flight", m->name,
                     atomic_load(&client->tracker.in_flight), c->open + c->calls);
}
