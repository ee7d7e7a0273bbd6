#include "cluster/member/member_calls.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member/member_impl.h"
#include "cluster/session/control_message.h"
#include "wire/barrier_call.h"
#include "wire/ckpt_order.h"
#include "wire/kv_calls.h"
#include "wire/table_spec.h"

/* How long after the deadline the scheduler's own answer, which names the missing nodes, may still come. */
#define ANSWER_SLACK (400 * ENV_MS)

enum { RESEND_MAX = 256 /* calls that are sent in one step */ };

static uint32_t timeout_ms(struct member *m, uint64_t deadline)
{
    uint64_t now = lane_now(m->config.lane);
    uint64_t ms = deadline > now ? (deadline - now) / ENV_MS : 0;
    return ms < CALL_TIMEOUT_MAX_MS ? (uint32_t)ms : CALL_TIMEOUT_MAX_MS;
}

/* ---- places ------------------------------------------------------------------------------------------- */

/* The lowest free place, so that the scheduler keeps no more of this node than it needs. */
static paramo_err place_find(struct member *m, uint32_t *out)
{
    uint32_t place = m->place_free;
    assert(place <= m->places_count && !(m->places_count & (m->places_count - 1)));
    while (place < m->places_count && m->places[place])
        place++;
    if (place == CALL_PLACES)
        return err_set(PARAMO_E_AGAIN, "%d calls to the scheduler are in flight; wait for one of them",
                       CALL_PLACES);
    if (place == m->places_count) {
        uint32_t count = m->places_count ? 2 * m->places_count : 8;
        struct member_call **places = realloc(m->places, count * sizeof(struct member_call *));
        if (!places)
            return err_memory(count * sizeof(struct member_call *));
        memset(places + m->places_count, 0, (count - m->places_count) * sizeof(struct member_call *));
        m->places = places;
        m->places_count = count;
    }
    assert(place < m->places_count && place < CALL_PLACES && !m->places[place]);
    *out = place;
    return PARAMO_OK;
}

static struct member_call *call_numbered(const struct member *m, uint64_t number)
{
    uint32_t place = number % CALL_PLACES;
    struct member_call *call = place < m->places_count ? m->places[place] : NULL;
    return call && call->call_number == number ? call : NULL;
}

/* The unanswered calls: by number in the list, and at their places. */
static void calls_check(const struct member *m)
{
    assert(!m->oldest == !m->newest && (!m->oldest || (!m->oldest->older && !m->newest->newer)));
    assert(!m->places == !m->places_count && !(m->places_count & (m->places_count - 1)));
    assert(m->place_free <= m->places_count && (m->places_count || !m->oldest));
    assert(!m->newest || m->newest->call_number / CALL_PLACES < m->next_sequence);
}

static void call_unlink(struct member *m, struct member_call *call)
{
    calls_check(m);
    assert(call->older ? call->older->newer == call : m->oldest == call);
    assert(call->newer ? call->newer->older == call : m->newest == call);
    *(call->older ? &call->older->newer : &m->oldest) = call->newer;
    *(call->newer ? &call->newer->older : &m->newest) = call->older;
    uint32_t place = call->call_number % CALL_PLACES;
    assert(m->places[place] == call);
    m->places[place] = NULL;
    m->place_free = place < m->place_free ? place : m->place_free;
    lane_timer_cancel(m->config.lane, &call->timer);
    writer_fini(&call->body);
    calls_check(m);
}

static void call_finish(struct member *m, struct member_call *call, paramo_err status)
{
    assert(call->member == m && call->done);
    call_unlink(m, call);
    call->done(call, status);
}

static void call_due(struct lane_timer *timer)
{
    struct member_call *call = container_of(timer, struct member_call, timer);
    assert(call_numbered(call->member, call->call_number) == call);
    assert(!timer->slot);
    if (call->finished)
        call_finish(call->member, call, PARAMO_OK);
    else
        call_finish(call->member, call,
                    err_set(PARAMO_E_TIMEOUT,
                            "the scheduler did not answer %s in time; is it stopped or overloaded?",
                            call_kind_name(call->kind)));
}

uint64_t member_calls_floor(const struct member *m)
{
    return m->oldest ? m->oldest->call_number : m->next_sequence * CALL_PLACES;
}

bool member_call_send(struct member *m, struct member_call *call)
{
    calls_check(m);
    assert(m->conn && m->registered && !call->finished && !call->min_view);
    struct wire_head head = {.call = {.kind = WIRE_CALL,
                                      .what = call->kind,
                                      .number = call->call_number,
                                      .floor = member_calls_floor(m),
                                      .view = m->view ? m->view->number : 0}};
    if (control_message_send(m->conn, &head, call->body.data, call->body.len))
        return false;
    call->sent_at = lane_now(m->config.lane);
    return true;
}

void member_calls_resend(struct member *m, uint64_t overdue)
{
    uint64_t now = lane_now(m->config.lane);
    unsigned sent = 0;
    calls_check(m);
    assert(m->conn && m->registered);
    for (struct member_call *call = m->oldest; call; call = call->newer) {
        if (call->min_view || call->finished || (call->sent_at && now - call->sent_at < overdue))
            continue;
        if (sent++ == RESEND_MAX) {
            paramo_err err = lane_timer_arm(m->config.lane, &m->resend_timer, now);
            (void)err; /* without memory the next heartbeat sends the others */
            return;
        }
        if (!member_call_send(m, call))
            return; /* the queue is full: the next heartbeat tries again */
    }
}

void member_calls_resend_due(struct lane_timer *timer)
{
    struct member *m = container_of(timer, struct member, resend_timer);
    if (m->conn && m->registered)
        member_calls_resend(m, UINT64_MAX);
}

void member_calls_unsend(struct member *m)
{
    calls_check(m);
    for (struct member_call *call = m->oldest; call; call = call->newer)
        call->sent_at = 0;
}

void member_calls_viewed(struct member *m)
{
    calls_check(m);
    assert(m->view);
    for (struct member_call *call = m->oldest, *newer; call; call = newer) {
        newer = call->newer;
        uint64_t number = newer ? newer->call_number : 0;
        assert(!call->min_view || !call->finished);
        if (!call->min_view || call->min_view > m->view->number)
            continue;
        call_finish(m, call, PARAMO_OK);
        if (newer && call_numbered(m, number) != newer)
            newer = m->oldest; /* done has cancelled it */
    }
}

void member_calls_fail(struct member *m, paramo_err status, bool with_leave)
{
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    uint64_t end = m->next_sequence * CALL_PLACES; /* excludes calls that the callbacks begin */
    calls_check(m);
    for (struct member_call *call = m->oldest; call && call->call_number < end;) {
        if (call->kind == CALL_LEAVE && !with_leave) {
            call = call->newer;
            continue;
        }
        call_finish(m, call, call->kind == CALL_LEAVE ? PARAMO_OK : err_set(status, "%s", text));
        call = m->oldest;
    }
}

paramo_err member_call_begin(struct member *m, struct member_call *call, enum call_kind kind,
                             uint64_t deadline)
{
    uint32_t place = 0;
    paramo_err err = PARAMO_OK;
    if (call->body.failed)
        err = err_memory(call->body.len);
    else if (m->state == MEMBER_ENDED && kind != CALL_LEAVE)
        err = err_set(m->end_status, "%s", m->end_text);
    else if (m->state != MEMBER_JOINED && !(kind == CALL_LEAVE && m->state == MEMBER_ENDED))
        err = err_set(PARAMO_E_CLOSED, "this node is not part of a running job");
    else
        err = place_find(m, &place);
    call->timer = (struct lane_timer){.fire = call_due};
    if (!err)
        err = lane_timer_arm(m->config.lane, &call->timer,
                             deadline > UINT64_MAX - ANSWER_SLACK ? UINT64_MAX : deadline + ANSWER_SLACK);
    if (err) {
        writer_fini(&call->body);
        return err;
    }
    call->member = m;
    call->kind = kind;
    call->deadline = deadline;
    call->call_number = m->next_sequence++ * CALL_PLACES + place;
    assert(!m->places[place] && call->call_number % CALL_PLACES == place);
    m->places[place] = call;
    m->place_free = place + 1;
    call->sent_at = call->min_view = 0;
    call->finished = false;
    call->newer = NULL;
    assert(!m->newest || m->newest->call_number < call->call_number);
    call->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = call;
    m->newest = call;
    calls_check(m);
    if (m->conn && m->registered)
        (void)member_call_send(m, call); /* else a heartbeat does */
    return PARAMO_OK;
}

/* ---- answers ------------------------------------------------------------------------------------------ */

static paramo_err result_decode(struct member_call *call, struct reader *body)
{
    struct barrier_result barrier;
    struct table_open_result table;
    struct pool_next_result unit;
    struct ckpt_result ckpt;
    struct clock_joined clock;
    /* A goodbye may come from a node that has not joined. */
    assert(!call->min_view && (call->member->view || call->kind == CALL_LEAVE));
    assert(!call->finished && call->call_number);
    paramo_err err = PARAMO_OK;
    switch (call->kind) {
    case CALL_BARRIER:
        err = barrier_result_decode(body, &barrier);
        call->result.number = barrier.number;
        return err;
    case CALL_TABLE_OPEN:
        err = table_open_result_decode(body, &table);
        call->result.table = table.table;
        if (!err && call->member->view->number < table.view)
            call->min_view = table.view;
        return err;
    case CALL_POOL_NEXT:
        err = pool_next_result_decode(body, &unit);
        call->result.state = unit.state;
        call->result.unit = unit.unit;
        /* Requests that this node issues from now on wait at the shards for that view, in which the dead
         * holder is refused. So nothing of the old holder is applied after anything of ours. */
        if (!err && call->member->view->number < unit.view)
            call->min_view = unit.view;
        return err;
    case CALL_CKPT_SAVE:
    case CALL_CKPT_LOAD:
        err = ckpt_result_decode(body, &ckpt);
        call->result.number = ckpt.number;
        return err;
    case CALL_CLOCK_JOIN:
        err = clock_joined_decode(body, &clock);
        call->result.session = clock.session;
        call->result.clock = (struct clock_result){.minimum = clock.minimum, .workers = clock.workers};
        return err;
    case CALL_CLOCK_TELL:
    case CALL_CLOCK_WAIT:
        return clock_result_decode(body, &call->result.clock);
    case CALL_KV_GET:
        call->result.value_len = body->left;
        call->result.value = read_span(body, body->left);
        return PARAMO_OK;
    default:
        return call_body_end(body, call_kind_name(call->kind));
    }
}

paramo_err member_calls_reply(struct member *m, const struct wire_reply *head, struct reader *body)
{
    struct member_call *call = call_numbered(m, head->number);
    calls_check(m);
    if (!call || call->min_view || call->finished)
        return PARAMO_OK; /* a repeated answer, or the answer to an abandoned call */
    if (call->kind != head->what)
        return err_set(PARAMO_E_PROTOCOL, "the scheduler's answer is to %s, but the call was %s",
                       call_kind_name(head->what), call_kind_name(call->kind));
    paramo_err status = err_from_wire(head->status), err;
    if (status) {
        char text[CALL_TEXT_MAX];
        err = call_text_decode(body, text);
        if (err)
            return err;
        call_finish(m, call, err_set(status, "%s", text));
        return PARAMO_OK;
    }
    err = result_decode(call, body);
    if (err || call->min_view)
        return err;
    if (call->kind == CALL_LEAVE)
        m->has_left(m);
    call_finish(m, call, PARAMO_OK);
    return PARAMO_OK;
}

/* ---- the calls ---------------------------------------------------------------------------------------- */

static paramo_err set_name(char *dst, size_t capacity, const char *what, const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len >= capacity)
        return err_set(PARAMO_E_INVALID, "the %s is empty or longer than %zu bytes", what, capacity - 1);
    memcpy(dst, name, len + 1);
    return PARAMO_OK;
}

paramo_err member_barrier(struct member *m, struct member_call *call, uint32_t group, uint32_t customer,
                          uint64_t deadline)
{
    if (group == 0 || group > PARAMO_GROUP_ALL)
        return err_set(PARAMO_E_INVALID, "there is no group %" PRIu32, group);
    if (!(group & m->config.role))
        return err_set(PARAMO_E_INVALID, "this node is not in group %" PRIu32, group);
    struct barrier_call body = {.group = group, .customer = customer, .timeout_ms = timeout_ms(m, deadline)};
    barrier_call_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_BARRIER, deadline);
}

paramo_err member_table_open(struct member *m, struct member_call *call, const char *name,
                             const paramo_table_options *options, uint64_t deadline)
{
    struct table_open body = {.create = options != NULL};
    paramo_err err = set_name(body.name, sizeof body.name, "table's name", name);
    if (!err && options) {
        body.options = table_spec_resolved(options);
        err = table_spec_check(&body.options);
    }
    if (err)
        return err;
    table_open_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_TABLE_OPEN, deadline);
}

paramo_err member_pool_open(struct member *m, struct member_call *call, const char *pool, uint32_t streams,
                            uint32_t rounds, uint64_t deadline)
{
    struct pool_open body = {.streams = streams, .rounds = rounds};
    paramo_err err = set_name(body.name, sizeof body.name, "pool's name", pool);
    if (err)
        return err;
    if (streams == 0 || streams > POOL_STREAMS_MAX || rounds == 0 || rounds > POOL_ROUNDS_MAX)
        return err_set(PARAMO_E_INVALID, "a pool has 1 to %d streams and 1 to %d rounds", POOL_STREAMS_MAX,
                       POOL_ROUNDS_MAX);
    pool_open_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_POOL_OPEN, deadline);
}

paramo_err member_pool_next(struct member *m, struct member_call *call, const char *pool, uint32_t customer,
                            uint32_t round, uint32_t wait_ms, uint64_t deadline)
{
    uint32_t most = timeout_ms(m, deadline);
    struct pool_next body = {
        .customer = customer, .round = round, .timeout_ms = wait_ms < most ? wait_ms : most};
    paramo_err err = set_name(body.name, sizeof body.name, "pool's name", pool);
    if (err)
        return err;
    pool_next_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_POOL_NEXT, deadline);
}

static paramo_err pool_report(struct member *m, struct member_call *call, enum call_kind kind,
                              const char *pool, const struct work_unit *unit, uint64_t deadline)
{
    struct pool_report body = {.unit = *unit};
    paramo_err err = set_name(body.name, sizeof body.name, "pool's name", pool);
    if (err)
        return err;
    pool_report_encode(&body, &call->body);
    return member_call_begin(m, call, kind, deadline);
}

paramo_err member_pool_done(struct member *m, struct member_call *call, const char *pool,
                            const struct work_unit *unit, uint64_t deadline)
{
    return pool_report(m, call, CALL_POOL_DONE, pool, unit, deadline);
}

paramo_err member_pool_end(struct member *m, struct member_call *call, const char *pool,
                           const struct work_unit *unit, uint64_t deadline)
{
    return pool_report(m, call, CALL_POOL_END, pool, unit, deadline);
}

static paramo_err kv_write(struct member *m, struct member_call *call, enum call_kind kind, const char *key,
                           const void *value, size_t len, uint64_t deadline)
{
    struct kv_put body = {.value = value, .len = (uint32_t)len};
    paramo_err err = set_name(body.key, sizeof body.key, "key", key);
    if (err)
        return err;
    if (len > KV_VALUE_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the value of %s has %zu bytes, at most %d", key, len,
                       KV_VALUE_MAX);
    kv_put_encode(&body, &call->body);
    return member_call_begin(m, call, kind, deadline);
}

paramo_err member_kv_put(struct member *m, struct member_call *call, const char *key, const void *value,
                         size_t len, uint64_t deadline)
{
    return kv_write(m, call, CALL_KV_PUT, key, value, len, deadline);
}

paramo_err member_kv_add(struct member *m, struct member_call *call, const char *key, const double *values,
                         size_t n, uint64_t deadline)
{
    struct writer doubles = {0};
    if (n == 0 || n > KV_VALUE_MAX / sizeof *values)
        return err_set(PARAMO_E_INVALID, "1 to %zu numbers can be added to %s", KV_VALUE_MAX / sizeof *values,
                       key);
    for (size_t i = 0; i < n; i++)
        write_f64(&doubles, values[i]);
    paramo_err err = doubles.failed
                         ? err_memory(n * sizeof *values)
                         : kv_write(m, call, CALL_KV_ADD, key, doubles.data, doubles.len, deadline);
    writer_fini(&doubles);
    return err;
}

paramo_err member_kv_get(struct member *m, struct member_call *call, const char *key, uint64_t deadline)
{
    struct kv_get body = {.timeout_ms = timeout_ms(m, deadline)};
    paramo_err err = set_name(body.key, sizeof body.key, "key", key);
    if (err)
        return err;
    kv_get_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_KV_GET, deadline);
}

paramo_err member_kv_delete(struct member *m, struct member_call *call, const char *key, uint64_t deadline)
{
    struct kv_delete body;
    paramo_err err = set_name(body.key, sizeof body.key, "key", key);
    if (err)
        return err;
    kv_delete_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_KV_DELETE, deadline);
}

paramo_err member_clock_join(struct member *m, struct member_call *call, uint32_t customer, uint64_t deadline)
{
    struct clock_join body = {.customer = customer};
    clock_join_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_CLOCK_JOIN, deadline);
}

paramo_err member_clock_tell(struct member *m, struct member_call *call, uint64_t session, uint64_t clock,
                             uint64_t deadline)
{
    struct clock_tell body = {.session = session, .clock = clock};
    clock_tell_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_CLOCK_TELL, deadline);
}

paramo_err member_clock_wait(struct member *m, struct member_call *call, uint64_t session, uint64_t clock,
                             uint64_t deadline)
{
    struct clock_wait body = {.session = session, .clock = clock, .timeout_ms = timeout_ms(m, deadline)};
    clock_wait_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_CLOCK_WAIT, deadline);
}

paramo_err member_clock_leave(struct member *m, struct member_call *call, uint64_t session, uint64_t deadline)
{
    struct clock_leave body = {.session = session};
    clock_leave_encode(&body, &call->body);
    return member_call_begin(m, call, CALL_CLOCK_LEAVE, deadline);
}

static paramo_err ckpt_begin_call(struct member *m, struct member_call *call, uint32_t kind,
                                  struct ckpt_order *body, const char *dir, uint64_t deadline)
{
    body->timeout_ms = timeout_ms(m, deadline);
    if (strlen(dir) >= sizeof body->dir)
        return err_set(PARAMO_E_INVALID, "the folder's path is longer than %zu bytes", sizeof body->dir - 1);
    memcpy(body->dir, dir, strlen(dir) + 1);
    ckpt_order_encode(body, &call->body);
    return member_call_begin(m, call, kind, deadline);
}

paramo_err member_ckpt_save(struct member *m, struct member_call *call, const char *dir, bool changes,
                            uint64_t deadline)
{
    struct ckpt_order body = {.changes = changes};
    return ckpt_begin_call(m, call, CALL_CKPT_SAVE, &body, dir, deadline);
}

paramo_err member_ckpt_load(struct member *m, struct member_call *call, const char *dir, uint64_t number,
                            uint64_t deadline)
{
    struct ckpt_order body = {.number = number};
    return ckpt_begin_call(m, call, CALL_CKPT_LOAD, &body, dir, deadline);
}

paramo_err member_shutdown(struct member *m, struct member_call *call, const char *reason, uint64_t deadline)
{
    call_text_encode(reason, &call->body);
    return member_call_begin(m, call, CALL_SHUTDOWN, deadline);
}

paramo_err member_drain(struct member *m, struct member_call *call, uint64_t deadline)
{
    write_u32(&call->body, 0);
    return member_call_begin(m, call, CALL_DRAIN, deadline);
}

paramo_err member_leave(struct member *m, struct member_call *call, uint64_t deadline)
{
    bool alone = m->state == MEMBER_ENDED && !m->conn;
    calls_check(m);
    uint64_t now = lane_now(m->config.lane);
    paramo_err err = member_call_begin(m, call, CALL_LEAVE, alone ? now : deadline);
    if (!err && alone) {
        call->finished = true;
        err = lane_timer_arm(m->config.lane, &call->timer, now); /* it is armed, so this only moves it */
    }
    return err;
}

void member_cancel(struct member *m, struct member_call *call)
{
    assert(call_numbered(m, call->call_number) == call);
    call_finish(m, call, err_set(PARAMO_E_CANCELLED, "%s was cancelled", call_kind_name(call->kind)));
}
