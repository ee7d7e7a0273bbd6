#include "cluster/scheduler/sched_clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "wire/capability.h"
#include "wire/clock_calls.h"

/* One worker that counts. */
struct clock {
    struct sched_node *node;
    struct clock *next, *prev; /* of the node */
    uint32_t customer;
    uint64_t session, clock;
    size_t place; /* in the heap */
};

static void changed(struct scheduler *s, uint64_t key)
{
    sched_save_record_changed(s, RECORD_CLOCK, key);
}

static struct clock *clock_next(const struct scheduler *s, size_t *cursor)
{
    uint64_t key;
    void *value;
    return map_next(&s->clocks->by_session, cursor, &key, &value) ? value : NULL;
}

static struct clock *clock_find(const struct sched_node *node, uint64_t session)
{
    struct clock *clock = map_get(&node->sched->clocks->by_session, session);
    return clock && clock->node == node ? clock : NULL;
}

/* ---- the minimum --------------------------------------------------------------------------------------- */

/* Does the caller know how many workers count as a field of the answer? To be asked when the call comes: its node may
 * have no connection later. */
static bool asks_workers(const struct sched_call *call)
{
    const struct sched_peer *peer = call->node->peer;
    return peer && capability_of(peer->conn, CAPABILITY_CLOCK_WORKERS);
}

static uint32_t workers_count(const struct scheduler *s)
{
    return (uint32_t)s->clocks->by_session.count;
}

static void answer_minimum(struct sched_call *call)
{
    const struct sched_clocks *c = call->node->sched->clocks;
    struct clock_result result = {.minimum = c->minimum,
                                  .node = c->raised_node,
                                  .customer = c->raised_customer,
                                  .workers = call->u.clock.workers ? workers_count(call->node->sched) : 0};
    struct writer w = sched_call_result(call);
    clock_result_encode(&result, &w);
    sched_call_answer(call, &w);
}

/* No worker that counts is behind: there may be none at all. */
static bool all_reached(const struct scheduler *s, uint64_t clock)
{
    return clock <= s->clocks->minimum || !s->clocks->by_session.count;
}

/* The heap has every clock and begins with the lowest, and no clock is below the minimum. */
static void clocks_check(const struct sched_clocks *c)
{
    assert(c->by_session.count <= c->heap_room && !c->heap == !c->heap_room);
    assert(!c->by_session.count || (c->heap[0]->place == 0 && c->heap[0]->clock >= c->minimum));
    assert(!c->deferred.first == !c->deferred.last);
}

/* Ends waits that are over. True: some may be left. A wait that ends in another way is taken out by wait_left(). */
static bool wake_turn(struct scheduler *s, unsigned left)
{
    struct sched_clocks *c = s->clocks;
    clocks_check(c);
    while (left) {
        if (!c->wake.next) {
            if (!c->wake.again)
                return false;
            c->wake.again = false;
            c->wake.next = c->deferred.first;
            continue;
        }
        struct sched_call *call = c->wake.next;
        assert(call->queue == &c->deferred && !call->answered);
        bool over = all_reached(s, call->u.clock.clock);
        unsigned cost = over ? SCHED_CLOCKS_ANSWER : 1;
        c->wake.next = call->next;
        if (over)
            answer_minimum(call);
        left -= cost < left ? cost : left;
    }
    return true;
}

static void wake_go_on(struct scheduler *s)
{
    struct lane *lane = s->config.lane;
    assert(!s->clocks->wake.timer.slot && s->clocks->wake.sched == s);
    if (wake_turn(s, SCHED_CLOCKS_TURN) && lane_timer_arm(lane, &s->clocks->wake.timer, lane_now(lane)))
        while (wake_turn(s, UINT32_MAX))
            ;
}

static void wake_due(struct lane_timer *timer)
{
    wake_go_on(container_of(timer, struct sched_clocks, wake.timer)->wake.sched);
}

/* The minimum has risen, or no worker counts. */
static void wake(struct scheduler *s)
{
    struct sched_clocks *c = s->clocks;
    clocks_check(c);
    assert(!c->wake.next || c->wake.timer.slot || c->wake.again); /* a turn is due for the rest */
    c->wake.again = true;
    c->wake.sched = s;
    c->wake.timer.fire = wake_due;
    if (!c->wake.timer.slot)
        wake_go_on(s);
}

static void wait_left(struct sched_call *call)
{
    struct sched_clocks *c = call->node->sched->clocks;
    assert(!call->queue); /* it is out of the list; next still names its place there */
    assert(!c->wake.next || c->wake.next == call || c->wake.next->queue == &c->deferred);
    if (c->wake.next == call)
        c->wake.next = call->next;
}

/* ---- the heap ------------------------------------------------------------------------------------------ */

static void heap_put(struct sched_clocks *c, size_t place, struct clock *clock)
{
    assert(place < c->heap_room);
    assert(clock->node->clocks_count <= SCHED_NODE_CLOCKS_MAX);
    c->heap[place] = clock;
    clock->place = place;
}

/* Moves it from this place to one between a parent that is not higher and children that are not lower. */
static void heap_settle(struct sched_clocks *c, size_t place, struct clock *clock, size_t count)
{
    assert(place < count && count <= c->heap_room);
    for (size_t up; place > 0 && c->heap[up = (place - 1) / 2]->clock > clock->clock; place = up)
        heap_put(c, place, c->heap[up]);
    for (size_t down; (down = 2 * place + 1) < count; place = down) {
        down += down + 1 < count && c->heap[down + 1]->clock < c->heap[down]->clock;
        if (c->heap[down]->clock >= clock->clock)
            break;
        heap_put(c, place, c->heap[down]);
    }
    heap_put(c, place, clock);
    assert(c->heap[clock->place] == clock);
}

static paramo_err heap_make_room(struct sched_clocks *c)
{
    assert(c->by_session.count <= c->heap_room && !c->heap == !c->heap_room);
    if (c->by_session.count < c->heap_room)
        return PARAMO_OK;
    size_t room = c->heap_room ? 2 * c->heap_room : 16;
    struct clock **heap = realloc(c->heap, room * sizeof(struct clock *));
    if (!heap)
        return err_memory(room * sizeof(struct clock *));
    c->heap = heap;
    c->heap_room = room;
    assert(c->by_session.count < c->heap_room);
    return PARAMO_OK;
}

/* A worker that was at the minimum is no longer there; it may have been the last one. */
static void minimum_left(struct scheduler *s, uint32_t node, uint32_t customer)
{
    struct sched_clocks *c = s->clocks;
    clocks_check(c);
    bool any = c->by_session.count;
    if (any && c->heap[0]->clock == c->minimum)
        return;
    c->raised_node = node;
    c->raised_customer = customer;
    if (any) {
        assert(c->heap[0]->clock > c->minimum);
        c->minimum = c->heap[0]->clock;
        changed(s, 0);
    }
    wake(s);
}

/* ---- the count ---------------------------------------------------------------------------------------- */

static paramo_err clock_add(struct sched_node *node, uint32_t customer, uint64_t session, uint64_t at)
{
    struct sched_clocks *c = node->sched->clocks;
    if (c->by_session.count >= SCHED_CLOCKS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d workers with a clock is reached", SCHED_CLOCKS_MAX);
    if (node->clocks_count >= SCHED_NODE_CLOCKS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d workers with a clock in one process is reached",
                       SCHED_NODE_CLOCKS_MAX);
    assert(!node->clocks == !node->clocks_count);
    paramo_err err = heap_make_room(c);
    if (err)
        return err;
    struct clock *clock = calloc(1, sizeof *clock);
    if (!clock)
        return err_memory(sizeof *clock);
    *clock = (struct clock){
        .node = node, .next = node->clocks, .customer = customer, .session = session, .clock = at};
    size_t place = c->by_session.count;
    err = map_put(&c->by_session, session, clock);
    if (err) {
        free(clock);
        return err;
    }
    assert(c->by_session.count == place + 1);
    heap_settle(c, place, clock, place + 1);
    if (node->clocks)
        node->clocks->prev = clock;
    node->clocks = clock;
    node->clocks_count++;
    return PARAMO_OK;
}

static void clock_remove(struct scheduler *s, struct clock *clock)
{
    struct sched_clocks *c = s->clocks;
    struct sched_node *node = clock->node;
    clocks_check(c);
    assert(clock->clock >= c->minimum);
    uint32_t customer = clock->customer;
    bool last = clock->clock == c->minimum;
    size_t count = c->by_session.count - 1;
    assert(c->heap[clock->place] == clock && node->clocks_count > 0);
    assert(clock->prev ? clock->prev->next == clock : node->clocks == clock);
    (void)map_remove(&c->by_session, clock->session);
    if (c->heap[count] != clock)
        heap_settle(c, clock->place, c->heap[count], count);
    *(clock->prev ? &clock->prev->next : &node->clocks) = clock->next;
    if (clock->next)
        clock->next->prev = clock->prev;
    node->clocks_count--;
    assert(!node->clocks == !node->clocks_count);
    changed(s, clock->session);
    free(clock);
    if (last)
        minimum_left(s, node->info.id, customer);
}

/* Takes out the node's clocks, or that of one of its customers. */
static void clocks_remove(struct sched_node *node, const uint32_t *customer)
{
    assert(!node->clocks == !node->clocks_count && (!node->clocks || !node->clocks->prev));
    for (struct clock *clock = node->clocks, *next; clock; clock = next) {
        next = clock->next;
        if (!customer || clock->customer == *customer)
            clock_remove(node->sched, clock);
    }
}

void sched_clock_node_gone(struct sched_node *node)
{
    clocks_check(node->sched->clocks);
    clocks_remove(node, NULL);
    assert(!node->clocks && !node->clocks_count);
    free(node->left);
    node->left = NULL;
    node->left_count = node->left_room = 0;
}

/* ---- joins that come late ------------------------------------------------------------------------------ */

static bool is_left(const struct sched_node *node, uint64_t session)
{
    for (uint32_t i = 0; i < node->left_count; i++)
        if (node->left[i] == session)
            return true;
    return false;
}

/* The join of this session may still arrive: the caller has given up the call, but a copy is in flight. No copy
 * arrives below the floor. */
static paramo_err left_add(struct sched_node *node, uint64_t session)
{
    assert(node->left_count <= node->left_room && !node->left == !node->left_room);
    uint64_t floor = clock_session(node->info.id, node->calls.floor);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->left_count; i++)
        if (node->left[i] >= floor)
            node->left[kept++] = node->left[i];
    node->left_count = kept;
    if (session < floor || is_left(node, session))
        return PARAMO_OK;
    if (kept == SCHED_CLOCKS_MAX)
        return err_set(PARAMO_E_FULL, "%d joins of this node were given up and have not arrived",
                       SCHED_CLOCKS_MAX);
    if (kept == node->left_room) {
        uint32_t room = kept ? 2 * kept : 4;
        uint64_t *left = realloc(node->left, room * sizeof *left);
        if (!left)
            return err_memory(room * sizeof *left);
        node->left = left;
        node->left_room = room;
    }
    assert(node->left_count < node->left_room);
    node->left[node->left_count++] = session;
    return PARAMO_OK;
}

/* A copy of an earlier join has been overtaken: by the goodbye to it, or by the customer's next join. */
static bool is_late(const struct sched_node *node, uint32_t customer, uint64_t session)
{
    bool late = is_left(node, session);
    for (const struct clock *clock = node->clocks; clock && !late; clock = clock->next)
        late = clock->customer == customer && clock->session > session;
    return late;
}

/* Nodes number their calls so that no two joins have one session. */
static bool is_taken(const struct sched_node *node, uint32_t customer, uint64_t session)
{
    const struct clock *clock = map_get(&node->sched->clocks->by_session, session);
    return clock && (clock->node != node || clock->customer != customer);
}

const char *sched_clock_fault(const struct scheduler *s)
{
    const struct sched_clocks *c = s->clocks;
    size_t cursor = 0;
    if (s->state != SCHED_RUNNING)
        return NULL;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        if (!sched_roster_is_here(clock->node))
            return "the clock of a node counts that is dead or has left";
        if (clock->clock < c->minimum)
            return "a clock is below the minimum";
        if (c->heap[clock->place] != clock ||
            c->heap[(clock->place - !!clock->place) / 2]->clock > clock->clock)
            return "the clocks are out of order";
    }
    if (c->by_session.count && c->heap[0]->clock != c->minimum)
        return "the minimum is not that of the clocks";
    for (const struct sched_call *call = c->deferred.first; call && !c->wake.timer.slot; call = call->next)
        if (all_reached(s, call->u.clock.clock))
            return "a wait for a clock goes on that all have reached";
    return NULL;
}

static struct status_clocks *clocks_of(struct status *m, const struct sched_node *node)
{
    assert(node->status.place < m->nodes_count && m->nodes[node->status.place].id == node->info.id);
    return &m->nodes[node->status.place].clocks;
}

void sched_clock_status(const struct scheduler *s, struct status *m)
{
    uint64_t now = lane_now(s->config.lane);
    size_t cursor = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        struct status_clocks *c = clocks_of(m, clock->node);
        c->lowest = c->workers && c->lowest < clock->clock ? c->lowest : clock->clock;
        c->highest = c->highest > clock->clock ? c->highest : clock->clock;
        c->workers++;
    }
    for (const struct sched_call *call = s->clocks->deferred.first; call; call = call->next) {
        struct status_clocks *c = clocks_of(m, call->node);
        uint64_t ms = (now - call->u.clock.since) / ENV_MS;
        assert(now >= call->u.clock.since);
        if (!c->workers)
            continue; /* its clock has left; its wait ends with its deadline */
        c->waits++;
        c->waited_ms =
            ms > c->waited_ms ? (uint32_t)(ms < STATUS_NEVER ? ms : STATUS_NEVER - 1) : c->waited_ms;
    }
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* A worker that counts already is taken for another that has its place: it begins again. */
void sched_clock_join(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct sched_clocks *c = s->clocks;
    struct clock_join m;
    uint64_t session = clock_session(call->node->info.id, call->number);
    paramo_err err = clock_join_decode(body, &m);
    if (!err && is_late(call->node, m.customer, session))
        err = err_set(PARAMO_E_CANCELLED, "this join was given up");
    if (!err && is_taken(call->node, m.customer, session))
        err = err_set(PARAMO_E_INVALID, "call %" PRIu64 " is too close to the join of another worker",
                      call->number);
    if (!err) {
        clocks_remove(call->node, &m.customer);
        err = clock_add(call->node, m.customer, session, c->minimum);
    }
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    changed(s, session);
    changed(s, 0);
    clocks_check(c);
    assert(clock_find(call->node, session));
    struct clock_joined result = {
        .session = session, .minimum = c->minimum, .workers = asks_workers(call) ? workers_count(s) : 0};
    struct writer w = sched_call_result(call);
    clock_joined_encode(&result, &w);
    sched_call_answer(call, &w);
}

static struct clock *clock_of(struct sched_call *call, uint64_t session, paramo_err err)
{
    struct clock *clock = err ? NULL : clock_find(call->node, session);
    if (!err && !clock)
        err = err_set(PARAMO_E_NOT_FOUND,
                      "this worker's clock does not count: it has left, or has joined again");
    if (err)
        sched_call_fail(call, err);
    return clock;
}

/* The calls of a worker may overtake each other, and come twice: the highest number counts. */
void sched_clock_tell(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct clock_tell m;
    paramo_err err = clock_tell_decode(body, &m);
    struct clock *clock = clock_of(call, err ? 0 : m.session, err);
    assert(!clock || clock->clock >= s->clocks->minimum);
    if (!clock)
        return;
    call->u.clock.workers = asks_workers(call);
    if (m.clock > clock->clock) {
        bool last = clock->clock == s->clocks->minimum;
        clock->clock = m.clock;
        heap_settle(s->clocks, clock->place, clock, s->clocks->by_session.count);
        changed(s, clock->session);
        if (last)
            minimum_left(s, call->node->info.id, clock->customer);
    }
    answer_minimum(call);
    assert_slow(!sched_clock_fault(s));
}

/* Counts the clocks from this place of the heap on that are behind, and adds their names to the text. */
static size_t behind_count(const struct scheduler *s, size_t place, uint64_t at, size_t known, char *names,
                           size_t size)
{
    const struct sched_clocks *c = s->clocks;
    char label[SCHED_LABEL], customer[24] = "";
    if (place >= c->by_session.count || c->heap[place]->clock >= at || known >= SCHED_CLOCKS_NAMED_MAX)
        return known;
    const struct clock *clock = c->heap[place];
    size_t len = strlen(names);
    if (clock->customer)
        (void)snprintf(customer, sizeof customer, ", customer %" PRIu32 ",", clock->customer);
    int wrote = snprintf(names + len, size - len, "%s%s%s is at clock %" PRIu64, len ? "; " : "",
                         sched_roster_label(clock->node, label), customer, clock->clock);
    if (wrote < 0 || (size_t)wrote >= size - len)
        names[len] = '\0';
    known = behind_count(s, 2 * place + 1, at, known + 1, names, size);
    return behind_count(s, 2 * place + 2, at, known, names, size);
}

static void wait_timed_out(struct sched_call *call)
{
    const struct scheduler *s = call->node->sched;
    char names[240] = "";
    size_t behind = behind_count(s, 0, call->u.clock.clock, 0, names, sizeof names);
    clocks_check(s->clocks);
    assert(call->u.clock.since <= lane_now(s->config.lane));
    uint64_t waited = (lane_now(s->config.lane) - call->u.clock.since) / ENV_MS;
    sched_call_fail(call, err_set(PARAMO_E_TIMEOUT,
                                  "%zu%s of %zu workers have not reached clock %" PRIu64
                                  ": %s; waited %" PRIu64 " ms",
                                  behind, behind == SCHED_CLOCKS_NAMED_MAX ? " or more" : "",
                                  s->clocks->by_session.count, call->u.clock.clock, names, waited));
}

void sched_clock_wait(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct clock_wait m;
    paramo_err err = clock_wait_decode(body, &m);
    if (!clock_of(call, err ? 0 : m.session, err))
        return;
    call->u.clock.workers = asks_workers(call);
    if (all_reached(s, m.clock)) {
        answer_minimum(call);
        return;
    }
    clocks_check(s->clocks);
    assert(!call->queue && !call->withdrawn);
    call->u.clock.clock = m.clock;
    call->u.clock.since = lane_now(s->config.lane);
    call->withdrawn = wait_left;
    (void)sched_call_defer(call, &s->clocks->deferred, m.timeout_ms, wait_timed_out);
}

/* A worker that does not count has left already, perhaps by an earlier copy of this call. */
void sched_clock_leave(struct sched_call *call, struct reader *body)
{
    struct clock_leave m;
    paramo_err err = clock_leave_decode(body, &m);
    struct clock *clock = err ? NULL : clock_find(call->node, m.session);
    if (clock)
        clock_remove(call->node->sched, clock);
    else if (!err && m.session >> 32 == call->node->info.id &&
             m.session < clock_session(call->node->info.id, call->number))
        err = left_add(call->node, m.session);
    if (err)
        sched_call_fail(call, err);
    else
        sched_call_answer(call, NULL);
    clocks_check(call->node->sched->clocks);
    assert_slow(!sched_clock_fault(call->node->sched));
}

/* ---- durable records ----------------------------------------------------------------------------------- */

static void clock_write(const struct clock *clock, struct writer *w)
{
    assert(clock->clock >= clock->node->sched->clocks->minimum);
    assert(clock->place < clock->node->sched->clocks->by_session.count);
    write_u64(w, clock->node->info.incarnation);
    write_u32(w, clock->customer);
    write_u64(w, clock->clock);
}

void sched_clock_record(const struct scheduler *s, uint64_t key, struct writer *w)
{
    const struct clock *clock = key ? map_get(&s->clocks->by_session, key) : NULL;
    if (!key)
        write_u64(w, s->clocks->minimum);
    else if (clock)
        clock_write(clock, w);
}

static void one_record(void *arg, uint64_t key, void *value)
{
    struct writer *w = arg;
    size_t mark;
    sched_save_record_begin(w, RECORD_CLOCK, key, &mark);
    clock_write(value, w);
    store_record_end(w, mark);
}

bool sched_clock_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w)
{
    size_t mark;
    if (!cursor->at++ && (s->clocks->minimum || s->clocks->by_session.count)) {
        sched_save_record_begin(w, RECORD_CLOCK, 0, &mark);
        sched_clock_record(s, 0, w);
        store_record_end(w, mark);
    }
    return map_scan(&s->clocks->by_session, &cursor->map, 1, one_record, w);
}

paramo_err sched_clock_restore(struct scheduler *s, uint64_t key, struct reader *record)
{
    uint64_t incarnation = key ? read_u64(record) : 0;
    uint32_t customer = key ? read_u32(record) : 0;
    uint64_t at = read_u64(record);
    assert(s->state == SCHED_GATHERING);
    if (!reader_done(record) || at >= CLOCK_COUNT_MAX)
        return err_set(PARAMO_E_CORRUPT, "the durable record of a clock is malformed");
    if (!key) {
        s->clocks->minimum = at;
        return PARAMO_OK;
    }
    struct sched_node *node = sched_roster_find_incarnation(s, incarnation);
    if (!node || !sched_roster_is_here(node))
        return PARAMO_OK; /* it has died or left */
    return clock_add(node, customer, key, at);
}

/* A clock that died with its node may have held the minimum. */
void sched_clock_restored(struct scheduler *s)
{
    struct sched_clocks *c = s->clocks;
    if (c->by_session.count)
        c->minimum = c->heap[0]->clock;
    clocks_check(c);
}

void sched_clock_fini(struct scheduler *s)
{
    size_t cursor = 0;
    assert(!s->clocks->deferred.first); /* the calls are gone */
    for (struct clock *clock; (clock = clock_next(s, &cursor));)
        free(clock);
    map_fini(&s->clocks->by_session);
    free(s->clocks->heap);
    lane_timer_cancel(s->config.lane, &s->clocks->wake.timer);
}
