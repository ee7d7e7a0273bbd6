#include "sim/van/simvan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/van/simwire.h"
#include "van/pool.h"

static struct sim_end *end_of(struct van_conn *conn)
{
    return (struct sim_end *)conn;
}

static struct sim_van *van_of(struct van *van)
{
    return (struct sim_van *)van;
}

/* ---- arriving ------------------------------------------------------------------------------------------ */

static void incoming_free(struct sim_end *e)
{
    sim_packets_free(&e->incoming);
    sim_packets_free(&e->early);
}

static void accept_run(struct lane_task *task);
static void end_break(struct sim_end *e, paramo_err why);
static void end_init(struct sim_end *e, struct van *van, struct lane *lane);

/* The listener of that address. */
static struct sim_listener *find_listener(const struct sim_world *world, const char *address,
                                          struct sim_van **van)
{
    for (struct sim_van *v = world->vans; v; v = v->next)
        for (struct sim_listener *l = v->crashed ? NULL : v->listeners; l; l = l->next)
            if (strcmp(l->base.address, address) == 0) {
                *van = v;
                return l;
            }
    return NULL;
}

static void connect_arrive(struct sim_end *e)
{
    struct sim_van *van = NULL;
    const struct sim_listener *l = find_listener(e->pipe->world, e->pipe->address, &van);
    if (!l) {
        e->state = END_CLOSED;
        sim_packets_free(&e->early);
        sim_transmit_end(e, PARAMO_E_CONNECTION_REFUSED);
        return;
    }
    end_init(e, &van->base, l->lane);
    (void)snprintf(e->base.peer, sizeof e->base.peer, "sim:%u", e->pipe->number);
    e->arrive.run = accept_run;
    e->pipe->refs++;
    lane_post(l->lane, &e->arrive);
}

static void packet_arrive(struct sim_event *event)
{
    struct packet *p = container_of(event, struct packet, event);
    struct sim_end *e = p->to;
    sim_landed(e->peer, p->size);
    switch (p->kind) {
    case PACKET_CONNECT:
        connect_arrive(e);
        break;
    case PACKET_FRAME:
        if (e->state == END_CLOSED || e->state == END_CRASHED) {
            sim_transmit_end(e, PARAMO_E_DISCONNECTED);
            break;
        }
        if (e->ended)
            break; /* packets before it may be lost: a stream has no gap */
        if (p->datagram && !e->begun) {
            queue_push(&e->early, &p->node);
            return;
        }
        queue_push(&e->incoming, &p->node);
        e->begun = true;
        for (struct qnode *node; (node = queue_pop(&e->early));)
            queue_push(&e->incoming, node);
        sim_kick(e);
        return;
    case PACKET_END:
        if (!e->ended)
            e->ended_why = p->why; /* a later one answers what was sent since */
        e->ended = true;
        sim_kick(e);
        break;
    }
    sim_packet_free(p);
}

static paramo_err deliver(struct sim_end *e, const struct packet *p)
{
    struct van_seg seg[VAN_SEGS];
    void *dst[VAN_SEGS];
    for (unsigned i = 0; i < p->nseg; i++)
        seg[i].len = p->len[i];
    paramo_err err = van_frame_check(seg, p->nseg, e->base.limits.frame_bytes);
    if (err)
        return err;
    e->base.counters.bytes_received += p->size;
    if (van_drops(e->base.van, p->class))
        return PARAMO_OK;
    err = van_ask_place(&e->base, p->head, p->len, p->nseg, dst);
    if (err || e->state != END_OPEN)
        return err;
    static uint8_t nothing;
    uint8_t *at = p->bytes ? hold_data(p->bytes) : &nothing;
    unsigned pooled = 0;
    for (unsigned i = 0; i < p->nseg; i++) {
        seg[i].data = at;
        if (dst[i] == VAN_SINK) {
            seg[i].data = NULL;
        } else if (dst[i] != VAN_POOL) {
            memcpy(dst[i], at, (size_t)p->len[i]);
            seg[i].data = dst[i];
        } else {
            pooled |= 1u << i;
        }
        at += van_padded(p->len[i]);
    }
    /* A repeated packet shares its bytes, and the user may change them during frame(): they are borrowed, not
     * held. */
    return van_deliver(&e->base, p->head, seg, p->nseg, NULL, pooled);
}

static void hook_arm(struct sim_end *e);

static void end_run(struct lane_task *task)
{
    struct sim_end *e = container_of(task, struct sim_end, task);
    struct sim_pipe *pipe = e->pipe;
    e->posted = false;
    if (e->out.frames)
        hook_arm(e);
    for (struct qnode *node; e->state == END_OPEN && !e->moving && (node = queue_pop(&e->incoming));) {
        struct packet *p = container_of(node, struct packet, node);
        if (p->world->watch.arrives)
            p->world->watch.arrives(p->world->watch.arg, e->link->to, e->link->from, p->head);
        paramo_err err = deliver(e, p);
        sim_packet_free(p);
        if (err)
            end_break(e, err_prefix(err, "peer %s", e->base.peer));
    }
    if (e->ended && !e->moving && e->state >= END_OPEN && e->state <= END_FLUSHING) {
        if (e->ended_why == PARAMO_E_CONNECTION_REFUSED)
            end_break(e,
                      err_set(PARAMO_E_CONNECTION_REFUSED, "connect %s: connection refused", e->base.peer));
        else
            end_break(e, err_set(e->ended_why, "the connection to %s is gone", e->base.peer));
    }
    sim_pipe_unref(pipe);
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static void hook_arm(struct sim_end *e)
{
    if (e->hooked || e->moving || e->state > END_FLUSHING)
        return;
    e->hooked = true;
    lane_at_end(e->base.lane, &e->hook);
}

static void break_later(struct sim_end *e, paramo_err why)
{
    if (e->broken_why)
        return;
    e->broken_why = why;
    err_text_copy(e->broken_text);
    hook_arm(e);
}

static paramo_err sim_van_send(struct van_conn *base, struct van_frame *frame)
{
    struct sim_end *e = end_of(base);
    if ((e->state != END_OPEN && e->state != END_CRASHED) || e->moving)
        return err_set(PARAMO_E_DISCONNECTED, "the connection to %s is gone", base->peer);
    paramo_err err = outq_put(&e->out, &base->limits, frame);
    if (!err)
        hook_arm(e);
    return err;
}

static void send_queued(struct sim_end *e)
{
    struct van_frame *frame;
    /* After a break nothing leaves behind the lost packets. */
    while ((e->state == END_OPEN || e->state == END_FLUSHING) && !e->ended && (frame = outq_peek(&e->out))) {
        uint64_t size = outq_frame_bytes(frame);
        if (e->flying && e->flying + size > SIMVAN_WINDOW_BYTES)
            return;
        struct packet *p = sim_packet_of_frame(e, frame);
        if (!p) {
            break_later(e, PARAMO_E_MEMORY);
            return;
        }
        outq_remove(&e->out, frame);
        outq_complete(&e->out, frame);
        bool first = e->base.counters.frames_sent++ == 0;
        e->base.counters.bytes_sent += size;
        if (p->world->watch.leaves)
            p->world->watch.leaves(p->world->watch.arg, e->link->from, e->link->to, frame);
        sim_transmit(e, p, !first && van_of(e->base.van)->faulty >> frame->class & 1);
        frame->done(frame, PARAMO_OK);
    }
}

static void sim_van_withdraw(struct van_conn *base, struct van_frame *frame)
{
    struct sim_end *e = end_of(base);
    if (outq_where(frame) == OUTQ_NOWHERE)
        return;
    outq_remove(&e->out, frame);
    outq_complete(&e->out, frame);
    hook_arm(e);
    frame->done(frame, PARAMO_E_CANCELLED);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end_free(struct lane_task *task)
{
    sim_pipe_unref(container_of(task, struct sim_end, end)->pipe);
}

static void end_close(struct sim_end *e, paramo_err status)
{
    struct sim_van *van = van_of(e->base.van);
    bool tell = e->state != END_CRASHED && !e->ended;
    if (e->state == END_CLOSED)
        return;
    e->state = END_CLOSED;
    van_orphan_remove(&e->base);
    lane_timer_cancel(e->base.lane, &e->deadline);
    if (e->van_prev)
        e->van_prev->van_next = e->van_next;
    else
        van->ends = e->van_next;
    if (e->van_next)
        e->van_next->van_prev = e->van_prev;
    outq_cancel(&e->out, status);
    incoming_free(e);
    if (tell)
        sim_transmit_end(e, PARAMO_E_DISCONNECTED);
    e->end.run = end_free;
    lane_at_end(e->base.lane, &e->end);
}

static void end_break(struct sim_end *e, paramo_err why)
{
    char text[ERR_TEXT_MAX];
    if (e->state == END_FLUSHING) {
        end_close(e, why);
        return;
    }
    if (e->state != END_OPEN)
        return;
    err_text_copy(text);
    e->state = END_BROKEN;
    if (!e->ended)
        sim_transmit_end(e, PARAMO_E_DISCONNECTED);
    e->ended = true;
    outq_cancel(&e->out, why);
    if (e->state == END_BROKEN && e->base.user_ops)
        e->base.user_ops->closed(e->base.user, &e->base, why, text);
}

static void flush_deadline(struct lane_timer *timer)
{
    end_close(container_of(timer, struct sim_end, deadline), PARAMO_E_TIMEOUT);
}

static void sim_van_close(struct van_conn *base, bool flush)
{
    struct sim_end *e = end_of(base);
    assert(!e->moving && e->state != END_FLUSHING);
    if (!flush || e->state != END_OPEN || e->broken_why || !e->out.frames ||
        lane_timer_arm(base->lane, &e->deadline, lane_now(base->lane) + VAN_FLUSH_SECONDS * ENV_SEC)) {
        end_close(e, PARAMO_E_CLOSED);
        return;
    }
    base->user_ops = NULL;
    e->state = END_FLUSHING;
    incoming_free(e);
    van_orphan_add(base);
    hook_arm(e);
}

static void sim_van_abandon(struct van_conn *base)
{
    end_close(end_of(base), PARAMO_E_CLOSED);
}

static void hook_run(struct lane_task *task)
{
    struct sim_end *e = container_of(task, struct sim_end, hook);
    e->hooked = false;
    if (e->moving)
        return;
    if (e->broken_why && e->state < END_BROKEN) {
        end_break(e, err_set(e->broken_why, "%s", e->broken_text));
        return;
    }
    send_queued(e);
    if (e->state == END_FLUSHING && !e->out.frames) {
        end_close(e, PARAMO_OK);
        return;
    }
    if (e->state == END_OPEN && outq_writable(&e->out, &e->base.limits) && e->base.user_ops->writable)
        e->base.user_ops->writable(e->base.user, &e->base);
}

/* ---- moving -------------------------------------------------------------------------------------------- */

static void move_arrive(struct lane_task *task)
{
    struct sim_end *e = container_of(task, struct sim_end, arrive);
    e->moving = false;
    e->arrived(e->arrived_arg, &e->base);
    sim_kick(e); /* for packets that came since */
}

static void move_leave(struct lane_task *task)
{
    struct sim_end *e = container_of(task, struct sim_end, end);
    e->arrive.run = move_arrive;
    lane_post(e->base.lane, &e->arrive);
}

static void sim_van_move(struct van_conn *base, struct lane *lane,
                         void (*arrived)(void *arg, struct van_conn *conn), void *arg)
{
    struct sim_end *e = end_of(base);
    assert((e->state == END_OPEN || e->state == END_CRASHED) && !e->moving && !e->out.frames);
    struct lane *from = base->lane;
    e->moving = true;
    e->arrived = arrived;
    e->arrived_arg = arg;
    base->lane = lane;
    e->end.run = move_leave;
    lane_at_end(from, &e->end);
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

static void end_init(struct sim_end *e, struct van *van, struct lane *lane)
{
    struct sim_van *v = van_of(van);
    van_conn_init(&e->base, van, lane);
    e->van_next = v->ends;
    if (e->van_next)
        e->van_next->van_prev = e;
    v->ends = e;
}

static void accept_run(struct lane_task *task)
{
    struct sim_end *e = container_of(task, struct sim_end, arrive);
    struct sim_van *van = NULL;
    const struct sim_listener *l = find_listener(e->pipe->world, e->pipe->address, &van);
    if (!l || &van->base != e->base.van || e->state == END_CRASHED) {
        end_close(e, PARAMO_E_CLOSED);
        return;
    }
    e->state = END_OPEN;
    l->accept(l->arg, &e->base);
    sim_kick(e);
}

static void pipe_init(struct sim_pipe *pipe)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sim_end *e = &pipe->end[i];
        e->pipe = pipe;
        e->peer = &pipe->end[1 - i];
        e->task.run = end_run;
        e->hook.run = hook_run;
        e->wire_event.fire = sim_wire_fire;
        e->wire_event.tag = SIM_TAG(SIM_TAG_WIRE, pipe->number << 1 | i);
        e->deadline.fire = flush_deadline;
    }
}

static paramo_err sim_van_connect(struct van *base, struct lane *lane, const char *address,
                                  const struct van_user *user_ops, void *user, struct van_conn **conn)
{
    struct sim_van *van = van_of(base);
    struct sim_van *target = NULL;
    struct sim_pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe)
        return err_memory(sizeof *pipe);
    paramo_err err = PARAMO_OK;
    if (strlen(address) >= sizeof pipe->address)
        err = err_set(PARAMO_E_ADDRESS, "address \"%s\" is too long", address);
    struct sim_end *e = &pipe->end[0];
    if (!find_listener(van->world, address, &target))
        target = van; /* refused, over the node's link to itself */
    if (!err)
        err = simnet_link(van->net, van->node, target->node, &pipe->end[0].link);
    if (!err)
        err = simnet_link(van->net, target->node, van->node, &pipe->end[1].link);
    if (err) {
        free(pipe);
        return err;
    }
    pipe->world = van->world;
    pipe->number = ++van->world->connections;
    pipe->refs = 1;
    memcpy(pipe->address, address, strlen(address) + 1);
    pipe_init(pipe);
    struct packet *p = sim_packet_make(&pipe->end[1], PACKET_CONNECT);
    if (!p) {
        free(pipe);
        return err_memory(sizeof *p);
    }
    end_init(e, base, lane);
    (void)snprintf(e->base.peer, sizeof e->base.peer, "%s", address);
    e->state = END_OPEN;
    van_set_user(&e->base, user_ops, user);
    sim_transmit(e, p, false);
    *conn = &e->base;
    return PARAMO_OK;
}

static paramo_err sim_van_listen(struct van *base, struct lane *lane, const char *address,
                                 void (*accept)(void *arg, struct van_conn *conn), void *arg,
                                 struct van_listener **listener)
{
    struct sim_van *van = van_of(base);
    struct sim_van *other = NULL;
    if (find_listener(van->world, address, &other))
        return err_set(PARAMO_E_ADDRESS_IN_USE, "listen %s: the address is in use", address);
    struct sim_listener *l = calloc(1, sizeof *l);
    if (!l)
        return err_memory(sizeof *l);
    if (strlen(address) >= sizeof l->base.address || !*address) {
        free(l);
        return err_set(PARAMO_E_ADDRESS, "address \"%s\" is empty or too long", address);
    }
    memcpy(l->base.address, address, strlen(address) + 1);
    l->base.van = base;
    l->lane = lane;
    l->accept = accept;
    l->arg = arg;
    l->next = van->listeners;
    van->listeners = l;
    *listener = &l->base;
    return PARAMO_OK;
}

static void sim_van_listener_close(struct van_listener *listener)
{
    struct sim_listener **at = &van_of(listener->van)->listeners;
    while (&(*at)->base != listener)
        at = &(*at)->next;
    *at = (*at)->next;
    free(listener);
}

/* ---- the van ------------------------------------------------------------------------------------------- */

static void sim_van_destroy(struct van *base)
{
    struct sim_van *van = van_of(base);
    assert(!van->ends && !van->listeners);
    struct sim_van **at = &van->world->vans;
    while (*at != van)
        at = &(*at)->next;
    *at = van->next;
    van_fini(base);
    free(van);
}

static const struct van_ops sim_van_ops = {
    .name = "sim",
    .connect = sim_van_connect,
    .listen = sim_van_listen,
    .listener_close = sim_van_listener_close,
    .send = sim_van_send,
    .withdraw = sim_van_withdraw,
    .close = sim_van_close,
    .move = sim_van_move,
    .abandon = sim_van_abandon,
    .destroy = sim_van_destroy,
};

static void world_free(void *arg)
{
    struct sim_world *world = arg;
    assert(!world->vans);
    sim_packets_forget(world);
    free(world);
}

static struct sim_world *world_of(struct simnet *net)
{
    struct sim_world *world = simnet_world(net);
    if (!world) {
        world = calloc(1, sizeof *world);
        if (!world)
            return NULL;
        world->sim = simnet_sim(net);
        world->net = net;
        world->arrive = packet_arrive;
        simnet_set_world(net, world, world_free);
    }
    return world;
}

paramo_err van_sim_watch(struct simnet *net, const struct simvan_watch *watch)
{
    struct sim_world *world = world_of(net);
    if (!world)
        return err_memory(sizeof *world);
    world->watch = *watch;
    return PARAMO_OK;
}

paramo_err van_sim_create(struct simnet *net, const char *node, struct van **out)
{
    struct sim_world *world = world_of(net);
    if (!world)
        return err_memory(sizeof *world);
    struct sim_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    paramo_err err = simnet_node(net, node, &van->node);
    if (!err)
        err = van_init(&van->base, &sim_van_ops, sim_env(world->sim));
    if (err) {
        free(van);
        return err;
    }
    van->net = net;
    van->world = world;
    van->next = world->vans;
    world->vans = van;
    *out = &van->base;
    return PARAMO_OK;
}

void van_sim_set_faulty(struct van *base, unsigned classes)
{
    van_of(base)->faulty = classes;
}

/* Packets on their way to the other end are lost, and that end learns of it in its next round. */
static void end_cut(struct sim_end *e)
{
    if (e->state != END_OPEN && e->state != END_FLUSHING)
        return;
    sim_cancel(e->pipe->world->sim, &e->wire_event);
    sim_packets_free(&e->wire);
    incoming_free(e);
    e->stalled_since = 0;
    if (!e->ended)
        e->ended_why = PARAMO_E_DISCONNECTED;
    e->ended = true;
    sim_kick(e);
}

void van_sim_reset(struct van *base, uint32_t node)
{
    for (struct sim_end *e = van_of(base)->ends; e; e = e->van_next)
        if (node == UINT32_MAX || e->link->to == node) {
            end_cut(e);
            end_cut(e->peer);
        }
}

void van_sim_crash(struct van *base)
{
    struct sim_van *van = van_of(base);
    van->crashed = true;
    for (struct sim_end *e = van->ends; e; e = e->van_next) {
        if (e->state == END_BROKEN)
            continue; /* the other end is gone */
        e->state = END_CRASHED;
        incoming_free(e);
        if (e->wire_event.slot)
            sim_cancel(van->world->sim, &e->wire_event);
        sim_packets_free(&e->wire);
        e->stalled_since = 0;
        if (!e->ended)
            sim_transmit_end(e, PARAMO_E_DISCONNECTED);
    }
}
