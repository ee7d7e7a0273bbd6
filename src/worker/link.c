#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "cluster/session/control_message.h"
#include "wire/capability.h"
#include "worker/chunk.h"
#include "worker/filtering.h"
#include "worker/floor.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/numbers.h"
#include "worker/page_request.h"
#include "worker/slices.h"
#include "worker/views.h"

#define RTO_FIRST (200 * ENV_MS)
#define RTO_MIN   (20 * ENV_MS) /* the shortest time between probes of a busy shard; arbitrary */
#define RTO_MAX   (4 * ENV_SEC)
#define PAUSE_MIN (10 * ENV_MS)
#define PAUSE_MAX ENV_SEC
enum { PROBES_AT_ONCE = 32, PROBES_OUT_MAX = 256, SAMPLE_EVERY = 8 };

/* ---- states ---- */

static const struct sm link_machine = {
    "link",
    {[LINK_IDLE] = {"idle", SM_TO(LINK_CONNECTING)},
     [LINK_CONNECTING] = {"connecting", SM_TO(LINK_UP) | SM_TO(LINK_PAUSE)},
     [LINK_PAUSE] = {"pause", SM_TO(LINK_IDLE)},
     [LINK_UP] = {"up", SM_TO(LINK_PAUSE)}}};

static void link_move(struct link *l, enum link_state to)
{
    sm_check(&link_machine, l->state, to);
    l->state = to;
}

/* The link has exactly what its state needs. Not for use inside a change of the state. */
static void link_check(const struct link *l)
{
    assert(!l->conn == (l->state != LINK_UP) && (l->conn || !l->sent.head));
    assert(!l->connector == (l->state != LINK_CONNECTING));
    assert(!l->pause.slot == (l->state != LINK_PAUSE));
}

void link_name(const struct link *l, char text[LINK_NAME_MAX])
{
    const struct view_node *node = view_node(l->client->view, l->node);
    if (node && node->incarnation == l->incarnation)
        (void)view_node_label(node, text);
    else
        (void)view_id_label(l->node, text);
}

/* ---- sending ---- */

/* A chunk that has its number may not wait behind one that waits for the floor to move. */
static void number_hurry(struct chunk *chunk, const struct slice *but)
{
    assert(chunk->number && but->chunk == chunk && but->state == SLICE_SENT);
    for (uint32_t i = 0; chunk->split && i < chunk->count; i++) {
        struct slice *p = &chunk->split[i].slice;
        assert(p->chunk == chunk);
        if (p == but || p->state != SLICE_QUEUED)
            continue;
        slices_remove(&p->link->queue, p);
        slices_resend(p->link, p);
        links_hurry(p->link->client);
    }
}

static void slice_head(const struct client *c, const struct slice *p, uint8_t kind, uint8_t head[VAN_HEAD])
{
    const struct chunk *chunk = p->chunk;
    const struct request *r = chunk->request;
    const struct span *s = p->span;
    assert(chunk->number && chunk->count > 0 && r->client == c);
    assert(chunk->split || p == &chunk->one);
    struct wire_head h = {
        .kind = kind,
        .flags = r->flags,
        .table = r->table->id,
        .number = chunk->number,
        .floor = numbers_floor(c),
        .ts = r->ts,
        .view = chunk->view,
        .attempt = chunk->attempt,
        .slice = chunk->split ? (uint32_t)(container_of(p, struct split, slice) - chunk->split) : 0,
        .cmd = r->cmd,
        .count = s->count,
        .columns = s->columns,
        .filter_epoch = p->link->filter_epoch,
    };
    if (chunk->message) {
        h.app = chunk->message->app;
        h.cmd = chunk->message->head;
        h.to.customer = chunk->message->customer;
        h.to.flags = chunk->message->flags;
    }
    if (r->clocked && kind != WIRE_PROBE) {
        bool push = kind == WIRE_PUSH;
        h.flags |= WIRE_CLOCKED;
        h.clock = r->clock + push; /* it is of the iteration that has not ended yet */
        h.workers = push ? r->workers : 0;
    }
    if (kind == WIRE_PROBE) {
        h.count = 0;
        h.columns = (struct wire_columns){0};
        h.probe.kind = r->wire_kind;
        h.filter_epoch = 0;
    } else if (r->kind == REQUEST_SCAN) {
        h.scan.id = s->scan;
    } else if (r->kind == REQUEST_PAGE) {
        h.scan.id = r->page->id;
        h.scan.most = r->page->share;
        h.flags |= r->page->columns.count ? WIRE_COLUMNS : 0;
        h.scan_columns = r->page->columns;
    } else if (!chunk->message && s->columns.count) {
        h.flags |= WIRE_COLUMNS;
    }
    if (kind != WIRE_PROBE && p->range)
        h.flags |= WIRE_RANGE;
    if (kind != WIRE_PROBE && p->coding &&
        p->frame.nseg > WIRE_SEG_BODY) /* else its values are only rounded */
        h.flags |= WIRE_FILTERED;
    wire_head_encode(&h, head);
}

static void retry_arm(struct link *l, uint64_t at)
{
    assert(l->state == LINK_UP && l->sent.head); /* something waits for an answer */
    if (lane_timer_arm(l->client->lane, &l->retry, at))
        log_error("no memory for a timer: lost messages to %s are noticed late", l->address);
}

static uint64_t rtt_timeout(const struct link_rtt *t)
{
    uint64_t rto = t->srtt ? t->srtt + 4 * t->rttvar : RTO_FIRST;
    return rto < RTO_MIN ? RTO_MIN : rto > RTO_MAX ? RTO_MAX : rto;
}

/* When a slice is probed if all is well. */
static uint64_t link_patience(const struct link *l)
{
    if (l->client->config.retry_ms)
        return l->client->config.retry_ms * ENV_MS;
    uint64_t rto = rtt_timeout(&l->answered);
    uint64_t probed = l->probed.srtt ? rtt_timeout(&l->probed) : rto;
    return probed < rto ? probed : rto;
}

/* And after this many probes. A probe costs a header each way. One that comes too early does no harm: its
 * answer is "working". */
static uint64_t link_rto(const struct link *l, unsigned probes)
{
    uint64_t patience = link_patience(l), most = patience > RTO_MAX ? patience : RTO_MAX;
    unsigned doublings = l->backoff > probes ? l->backoff : probes;
    uint64_t rto = patience << (doublings < 8 ? doublings : 8);
    return rto < most ? rto : most;
}

/* What the server must be able to read. */
static uint64_t capability_needed(const struct request *r)
{
    uint64_t user = r->user_function ? CAPABILITY_FUNCTIONS : 0;
    uint64_t columns = r->columns.count ? CAPABILITY_COLUMNS : 0;
    if (r->kind == REQUEST_REDUCE)
        return CAPABILITY_REDUCE | user;
    if (r->range || r->kind == REQUEST_PAGE)
        return CAPABILITY_RANGE | columns;
    if (columns)
        return columns;
    return r->kind == REQUEST_TRANSFORM || r->flags & WIRE_KEYS ? CAPABILITY_TRANSFORM | user : 0;
}

/* The server cannot read it. */
static void unsupported(struct link *l, struct slice *p)
{
    char name[LINK_NAME_MAX];
    assert(p->link == l && !p->in_van && !p->placing);
    assert(l->conn && p->state != SLICE_ANSWERED);
    link_name(l, name);
    uint64_t reader = l->client->config.node ? 0 : CAPABILITY_READERS;
    uint64_t lacks = (capability_needed(p->chunk->request) | reader) & ~l->conn->capabilities;
    (void)err_set(PARAMO_E_UNSUPPORTED, "%s is of an older version, which has no %s", name,
                  lacks & CAPABILITY_READERS   ? "readers"
                  : lacks & CAPABILITY_COLUMNS ? "requests for columns"
                  : lacks & CAPABILITY_RANGE   ? "ranges"
                                               : wire_kind_name(p->chunk->request->wire_kind));
    if (p->state != SLICE_IDLE)
        slices_remove(slices_of(p), p);
    slice_move(p, SLICE_IDLE);
    chunk_failed(p->chunk, PARAMO_E_UNSUPPORTED, err_text());
}

/* True if the slice has left its list (sent, or its request has ended). */
static bool transmit(struct link *l, struct slice *p)
{
    struct client *c = l->client;
    struct chunk *chunk = p->chunk;
    bool first = chunk->number == 0;
    assert(l->state == LINK_UP && l->conn && p->link == l && !p->in_van);
    assert(chunk->unanswered > 0 && chunk->unanswered <= chunk->count && !chunk->need);
    uint64_t needs = capability_needed(chunk->request) | (c->config.node ? 0 : CAPABILITY_READERS);
    if (needs && !capability_of(l->conn, needs)) {
        unsupported(l, p);
        return true;
    }
    if (first && !numbers_assign(c, chunk))
        return false;
    paramo_err err = filtering_out(l, p);
    if (err == PARAMO_E_AGAIN) {
        if (first)
            numbers_take_back(c, chunk);
        return false;
    }
    if (!err) {
        slice_head(c, p, chunk->request->wire_kind, p->frame.head);
        err = van_send(l->conn, &p->frame);
    }
    if (err)
        filtering_sent(p);
    if (err == PARAMO_E_AGAIN || err == PARAMO_E_DISCONNECTED) {
        if (first)
            numbers_take_back(c, chunk);
        l->blocked = true; /* writable() or closed() will come */
        return false;
    }
    if (p->state != SLICE_IDLE)
        slices_remove(slices_of(p), p);
    slice_move(p, SLICE_IDLE);
    if (err) {
        chunk_failed(chunk, err, err_text());
        return true;
    }
    p->in_van = true;
    slice_move(p, SLICE_SENT);
    p->sent_at = lane_now(c->lane);
    l->told = numbers_floor(c);
    l->told_at = p->sent_at;
    p->probes = 0;
    p->probes_out = 0;
    p->probe_at = p->sent_at + link_rto(l, 0);
    slices_insert(&l->sent, NULL, p);
    if (!l->retry.slot || p->probe_at < l->retry.at) /* earlier slices may have been probed already */
        retry_arm(l, p->probe_at);
    if (first && chunk->split)
        number_hurry(chunk, p);
    return true;
}

static void link_connect(struct link *l);

void link_pump(struct link *l)
{
    link_check(l);
    if (l->state == LINK_IDLE && (l->queue.head || l->resend.head))
        link_connect(l);
    while (l->state == LINK_UP && !l->blocked) {
        struct slice *p = l->resend.head ? l->resend.head : l->queue.head;
        if (!p || !transmit(l, p))
            return;
    }
}

void link_enqueue(struct link *l, struct slice *p)
{
    link_check(l);
    assert(p->link == l && p->state == SLICE_IDLE && !p->in_van);
    if (l->state == LINK_UP && !l->blocked && !l->resend.head && !l->queue.head) {
        slice_move(p, SLICE_IDLE);
        if (transmit(l, p))
            return;
    }
    if (p->chunk->number) {
        slices_resend(l, p);
        links_hurry(l->client); /* queued chunks may only be waiting for the floor */
    } else {
        slices_queue(l, p);
    }
    if (l->state == LINK_IDLE)
        link_connect(l);
}

void link_again(struct link *l, struct slice *p)
{
    assert(p->link == l && p->chunk->number);
    if (p->state != SLICE_SENT || p->in_van)
        return;
    assert(l->state == LINK_UP && p->chunk->unanswered > 0);
    slices_remove(&l->sent, p);
    p->resent = true;
    l->client->counts->retries++;
    slices_resend(l, p);
    link_pump(l);
}

void link_restart(struct link *l)
{
    link_check(l);
    assert(l->state == LINK_UP);
    while (l->sent.head) {
        struct slice *p = l->sent.head;
        assert(p->link == l && p->state == SLICE_SENT);
        if (p->in_van) /* calls slice_sent */
            van_withdraw(l->conn, &p->frame);
        slices_remove(&l->sent, p);
        p->resent = true;
        l->client->counts->retries++;
        slices_resend(l, p);
    }
    link_pump(l);
}

/* The next step of filtering. */
static void more_fire(struct lane_timer *timer)
{
    struct link *l = container_of(timer, struct link, more);
    link_check(l);
    assert(l->state == LINK_UP); /* filtering_reset cancels it */
    l->filtered_bytes = 0;
    link_pump(l);
    client_finish(l->client);
}

/* ---- measuring and asking ---- */

/* The clock is read for samples only: with each answer it would take longer than all else here. */
static void rtt_sample(struct link *l, struct link_rtt *t, uint64_t since)
{
    uint64_t now = lane_now(l->client->lane);
    assert(now >= since);
    uint64_t rtt = now - since;
    if (!t->srtt) {
        t->srtt = rtt + 1;
        t->rttvar = rtt / 2;
        return;
    }
    uint64_t off = rtt > t->srtt ? rtt - t->srtt : t->srtt - rtt;
    t->rttvar = t->rttvar - t->rttvar / 4 + off / 4;
    t->srtt = t->srtt - t->srtt / 8 + rtt / 8;
    assert(t->srtt); /* 0 says that nothing is known */
}

void link_heard(struct link *l, struct slice *p, bool probe_answer)
{
    assert(p->link == l && p->probes_out <= 2);
    assert(l->state == LINK_UP && p->chunk->number);
    l->backoff = 0;
    if (probe_answer && p->probes_out == 1)
        rtt_sample(l, &l->probed, p->probed_at);
    p->probes_out = 0;
    if (!probe_answer && !p->resent && (!l->answered.srtt || ++l->samples % SAMPLE_EVERY == 0))
        rtt_sample(l, &l->answered, p->sent_at);
}

static void probe_sent(struct van_frame *frame, paramo_err status)
{
    (void)status;
    struct probe *probe = container_of(frame, struct probe, frame);
    assert(probe->out && (!probe->client || probe->client->probes->out > 0));
    probe->out = false;
    if (!probe->client) {
        free(probe);
        return;
    }
    probe->next = probe->client->probes->free;
    probe->client->probes->free = probe;
    probe->client->probes->out--;
}

/* A probe that cannot leave now is not needed: the next one will do. */
static bool probe_send(struct link *l, struct slice *p)
{
    struct client *c = l->client;
    assert(p->link == l && c->probes->made_count <= PROBES_OUT_MAX);
    struct probe *probe = c->probes->free;
    if (probe) {
        c->probes->free = probe->next;
    } else {
        if (c->probes->made_count >= PROBES_OUT_MAX)
            return false;
        probe = calloc(1, sizeof *probe);
        if (!probe)
            return false;
        c->probes->made_count++;
        probe->client = c;
        probe->made_next = c->probes->made;
        c->probes->made = probe;
        probe->frame.class = VAN_REQUEST;
        probe->frame.done = probe_sent;
    }
    slice_head(c, p, WIRE_PROBE, probe->frame.head);
    c->probes->out++;
    assert(!probe->out && c->probes->out <= c->probes->made_count);
    probe->out = true;
    if (van_send(l->conn, &probe->frame)) {
        probe_sent(&probe->frame, PARAMO_E_AGAIN);
        return false;
    }
    return true;
}

void link_orphan_probes(struct client *c)
{
    assert(client_is_down(c) && !links_count(c)); /* no link sends more */
    for (struct probe *probe = c->probes->made; probe; probe = probe->made_next)
        if (probe->out) {
            assert(probe->client == c);
            probe->client = NULL;
        }
}

void link_free_probes(struct client *c)
{
    for (struct probe *probe; (probe = c->probes->free);) {
        assert(!probe->out && probe->client == c);
        c->probes->free = probe->next;
        free(probe);
    }
}

static void retry_fire(struct lane_timer *timer)
{
    struct link *l = container_of(timer, struct link, retry);
    uint64_t now = lane_now(l->client->lane), next = UINT64_MAX;
    unsigned sent = 0, seen = 0;
    link_check(l);
    if (l->state != LINK_UP)
        return;
    for (struct slice *p = l->sent.head; p && seen < DATA_WINDOW; p = p->next, seen++) {
        assert(p->state == SLICE_SENT && p->link == l);
        assert(p->probes_out <= 2);
        if (p->probe_at <= now) {
            if (sent == PROBES_AT_ONCE) {
                next = now + RTO_MIN; /* the others soon after */
                break;
            }
            /* A slice that has not left yet, or is being answered, is not lost. */
            if (!p->in_van && !p->placing && probe_send(l, p)) {
                p->probes_out = p->probes_out ? 2 : 1;
                p->probes = (uint8_t)(p->probes < UINT8_MAX ? p->probes + 1 : UINT8_MAX);
                p->probed_at = now;
                p->resent = true;
                sent++;
            }
            p->probe_at = now + link_rto(l, p->probes ? p->probes : 1);
        }
        if (p->probe_at < next)
            next = p->probe_at;
        if (!p->resent && p->sent_at + link_patience(l) > now) {
            /* Later slices were sent later, but perhaps with a shorter limit. */
            if (p->sent_at + link_patience(l) < next)
                next = p->sent_at + link_patience(l);
            break;
        }
    }
    if (sent)
        l->backoff++;
    if (next != UINT64_MAX)
        retry_arm(l, next > now + ENV_MS ? next : now + ENV_MS);
}

/* ---- connecting ---- */

static void link_pause(struct link *l)
{
    struct client *c = l->client;
    assert(!l->conn && !l->connector && !l->sent.head && !l->pause.slot);
    link_move(l, LINK_PAUSE);
    uint64_t pause = PAUSE_MIN << (l->failures < 7 ? l->failures : 7);
    if (pause > PAUSE_MAX)
        pause = PAUSE_MAX;
    pause = pause / 2 + env_random(lane_env(c->lane)) % (pause / 2 + 1);
    l->failures++;
    if (lane_timer_arm(c->lane, &l->pause, lane_now(c->lane) + pause)) {
        link_move(l, LINK_IDLE); /* the next request connects again */
        log_error("no memory for a timer: the connection to %s waits for the next request", l->address);
    }
    link_check(l);
}

static void pause_fire(struct lane_timer *timer)
{
    struct link *l = container_of(timer, struct link, pause);
    assert(l->failures > 0 && !l->sent.head);
    link_move(l, LINK_IDLE);
    link_check(l);
    link_pump(l);
    client_finish(l->client);
}

/* Another attempt cannot help the requests that wait for this link. */
static void link_hopeless(struct link *l, paramo_err code)
{
    char name[LINK_NAME_MAX];
    assert(!l->conn && !l->connector && !l->sent.head);
    link_name(l, name);
    struct slice_list *lists[] = {&l->resend, &l->queue, &l->sent};
    for (unsigned i = 0; i < 3; i++) {
        for (struct slice *p = lists[i]->head, *next; p; p = next) {
            next = p->next; /* a message is taken out */
            assert(p->link == l && p->chunk->unanswered > 0);
            (void)err_set(code, "%s: %s", name, l->trouble);
            chunk_failed(p->chunk, code, err_text());
        }
    }
}

static void link_failed(void *arg, paramo_err code, const char *text)
{
    struct link *l = arg;
    link_check(l);
    assert(l->state == LINK_CONNECTING);
    l->connector = NULL;
    (void)snprintf(l->trouble, sizeof l->trouble, "%s", text);
    log_debug("server %u (%s): %s", l->node, l->address, l->trouble);
    if (code == PARAMO_E_TOKEN || code == PARAMO_E_VERSION || code == PARAMO_E_FENCED)
        link_hopeless(l, code);
    views_ask_forgotten(l->client);
    link_pause(l);
    client_finish(l->client);
}

static void link_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct link *l = arg;
    link_check(l);
    assert(l->state == LINK_CONNECTING);
    if (welcome->incarnation != l->incarnation) {
        van_close(conn, false);
        link_failed(l, PARAMO_E_REFUSED, "another process listens at its address now");
        return;
    }
    l->connector = NULL;
    l->conn = conn;
    link_move(l, LINK_UP);
    link_check(l);
    l->blocked = false;
    l->failures = 0;
    l->trouble[0] = 0;
    van_set_user(conn, l->client->van_user, l);
    van_conn_stays(conn);
    link_pump(l);
    floor_rises(l->client);
    client_finish(l->client);
}

static void link_connect(struct link *l)
{
    struct client *c = l->client;
    struct connector_config config = {
        .van = c->config.van,
        .lane = c->lane,
        .address = l->address,
        .frame_bytes = c->config.frame_bytes,
        .deadline = lane_now(c->lane) + c->config.connect_timeout_ms * ENV_MS,
        .up = link_up,
        .failed = link_failed,
        .arg = l,
    };
    config.hello = (struct hello){
        .purpose = HELLO_DATA,
        .node = c->config.node,
        .incarnation = c->config.incarnation,
        .job = c->view->job,
        .app = c->config.app,
        .customer = c->config.customer,
        .shard = l->index,
    };
    memcpy(config.hello.token, c->token, sizeof config.hello.token);
    link_check(l);
    link_move(l, LINK_CONNECTING);
    if (connector_start(&config, &l->connector)) {
        (void)snprintf(l->trouble, sizeof l->trouble, "%s", err_text());
        l->connector = NULL;
        link_pause(l);
    }
}

static void link_hang_up(struct link *l)
{
    assert(l->conn && !l->connector);
    assert(l->state == LINK_UP);
    links_count_closed(l->client, &l->conn->counters);
    van_close(l->conn, l->goodbye);
    l->conn = NULL;
}

void link_goodbye(struct link *l)
{
    struct wire_head head = {.kind = WIRE_BYE, .floor = numbers_next(l->client)};
    assert(client_is_down(l->client) && !l->goodbye);
    assert(numbers_floor(l->client) == numbers_next(l->client)); /* all chunks are over */
    l->goodbye = l->state == LINK_UP && control_message_send(l->conn, &head, NULL, 0) == PARAMO_OK;
}

void link_lost(struct link *l, const char *text)
{
    struct client *c = l->client;
    link_check(l);
    assert(l->state == LINK_UP);
    link_hang_up(l);
    filtering_reset(l);
    l->blocked = false;
    lane_timer_cancel(c->lane, &l->retry);
    (void)snprintf(l->trouble, sizeof l->trouble, "%s", text);
    l->told = l->told ? 1 : 0; /* it may have been lost */
    while (l->sent.head) {
        struct slice *p = l->sent.head;
        slices_remove(&l->sent, p);
        p->placing = false;
        p->resent = true;
        c->counts->retries++;
        slices_resend(l, p);
    }
    if (l->left) {
        l->dead = true;
        (void)snprintf(l->trouble, sizeof l->trouble, "it has left");
        link_hopeless(l, PARAMO_E_NODE_LOST);
    }
    link_pause(l);
}

/* ---- life ---- */

paramo_err link_create(struct client *c, const struct view_node *node, unsigned index, struct link **link)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        return err_memory(sizeof *l);
    l->client = c;
    l->node = node->id;
    l->index = (uint16_t)index;
    l->incarnation = node->incarnation;
    if (index == HELLO_APP_ENDPOINT && node->role == PARAMO_ROLE_SCHEDULER)
        memcpy(l->address, c->scheduler, sizeof l->address);
    else
        address_join(node->host, node->port, l->address);
    keylists_init(&l->lists, c->config.list_keys,
                  c->config.list_bytes ? c->config.list_bytes : KEYLISTS_BYTES, NULL, 0);
    l->pause.fire = pause_fire;
    l->retry.fire = retry_fire;
    l->more.fire = more_fire;
    link_check(l);
    *link = l;
    return PARAMO_OK;
}

void link_destroy(struct link *l)
{
    struct lane *lane = l->client->lane;
    assert(!l->queue.head && !l->resend.head && !l->sent.head);
    if (l->connector)
        connector_cancel(l->connector);
    if (l->conn)
        link_hang_up(l);
    if (l->pause.slot)
        lane_timer_cancel(lane, &l->pause);
    if (l->retry.slot)
        lane_timer_cancel(lane, &l->retry);
    filtering_reset(l);
    assert(!l->conn && !l->more.slot && !l->retry.slot);
    free(l);
}
