#include "sim/van/simwire.h"

#include <stdlib.h>
#include <string.h>

#include "van/pool.h"

/* ---- packets ------------------------------------------------------------------------------------------- */

void sim_pipe_unref(struct sim_pipe *pipe)
{
    if (--pipe->refs)
        return;
    for (unsigned i = 0; i < 2; i++) /* scheduled only when the net is freed with packets on the wire */
        sim_cancel(pipe->world->sim, &pipe->end[i].wire_event);
    free(pipe);
}

static struct packet *packet_get(struct sim_world *world)
{
    struct packet *p = world->spare;
    if (!p)
        return sim_calloc(world->sim, sizeof *p);
    world->spare = p->next;
    *p = (struct packet){0};
    return p;
}

struct packet *sim_packet_make(struct sim_end *to, enum packet_kind kind)
{
    struct packet *p = packet_get(to->pipe->world);
    if (!p)
        return NULL;
    p->world = to->pipe->world;
    p->to = to;
    p->kind = kind;
    p->size = VAN_HEADER_BYTES;
    p->event.fire = p->world->arrive;
    p->event.tag = SIM_TAG(SIM_TAG_PACKET, to->pipe->number << 1 | (to == &to->pipe->end[1]));
    p->next = p->world->packets;
    if (p->next)
        p->next->prev = p;
    p->world->packets = p;
    to->pipe->refs++;
    return p;
}

void sim_packet_free(struct packet *p)
{
    sim_cancel(p->world->sim, &p->event);
    if (p->prev)
        p->prev->next = p->next;
    else
        p->world->packets = p->next;
    if (p->next)
        p->next->prev = p->prev;
    van_release(p->bytes);
    sim_pipe_unref(p->to->pipe);
    p->next = p->world->spare;
    p->world->spare = p;
}

void sim_packets_forget(struct sim_world *world)
{
    while (world->packets)
        sim_packet_free(world->packets);
    for (struct packet *p = world->spare, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    world->spare = NULL;
}

void sim_packets_free(struct queue *q)
{
    for (struct qnode *node; (node = queue_pop(q));)
        sim_packet_free(container_of(node, struct packet, node));
}

struct packet *sim_packet_of_frame(struct sim_end *e, const struct van_frame *frame)
{
    struct packet *p = sim_packet_make(e->peer, PACKET_FRAME);
    if (!p)
        return NULL;
    p->size = outq_frame_bytes(frame);
    if (p->size > VAN_HEADER_BYTES && pool_get(e->base.van->pool, p->size - VAN_HEADER_BYTES, &p->bytes)) {
        sim_packet_free(p);
        return NULL;
    }
    memcpy(p->head, frame->head, VAN_HEAD);
    p->nseg = frame->nseg;
    p->class = frame->class;
    uint8_t *at = p->bytes ? hold_data(p->bytes) : NULL;
    for (unsigned i = 0; i < frame->nseg; i++) {
        p->len[i] = frame->seg[i].len;
        if (!p->len[i])
            continue;
        memcpy(at, frame->seg[i].data, (size_t)p->len[i]);
        at += van_padded(p->len[i]);
    }
    return p;
}

static struct packet *packet_repeat(const struct packet *p)
{
    struct packet *copy = sim_packet_make(p->to, p->kind);
    if (!copy)
        return NULL;
    copy->size = p->size;
    memcpy(copy->head, p->head, VAN_HEAD);
    memcpy(copy->len, p->len, sizeof copy->len);
    copy->nseg = p->nseg;
    copy->class = p->class;
    copy->datagram = p->datagram;
    copy->bytes = p->bytes;
    if (copy->bytes)
        hold_ref(copy->bytes);
    return copy;
}

void sim_kick(struct sim_end *e)
{
    if (e->posted || e->moving || e->state < END_OPEN || e->state > END_FLUSHING)
        return;
    e->posted = true;
    e->pipe->refs++;
    lane_post(e->base.lane, &e->task);
}

static void must_schedule(struct sim *sim, struct sim_event *event, uint64_t at)
{
    if (sim_schedule(sim, event, at))
        abort(); /* the simulation itself is out of memory: its result would be worthless */
}

void sim_landed(struct sim_end *e, uint64_t size)
{
    e->flying -= size;
    if (e->out.frames)
        sim_kick(e);
}

static void wire_next(struct sim_end *e)
{
    if (queue_empty(&e->wire) || e->wire_event.slot)
        return;
    const struct packet *p = container_of(e->wire.head, struct packet, node);
    must_schedule(p->world->sim, &e->wire_event, simnet_bottleneck(p->world->net, e->link, p->size));
}

/* ---- the stream: its head is sent again until it passes ------------------------------------------------ */

void sim_wire_fire(struct sim_event *event)
{
    struct sim_end *e = container_of(event, struct sim_end, wire_event);
    struct packet *p = container_of(e->wire.head, struct packet, node);
    struct sim_world *world = p->world;
    uint64_t now = sim_now(world->sim);
    struct simnet_fate fate = simnet_decide(world->net, e->link);
    if (fate.copies == 0 && !e->stalled_since)
        e->stalled_since = now;
    if (fate.copies == 0 && now - e->stalled_since < SIMVAN_GIVE_UP_NS) {
        must_schedule(world->sim, event, now + SIMVAN_RESEND_NS);
        return;
    }
    if (fate.copies == 0) { /* nothing has passed for too long; the other side learns of it when it sends */
        e->pipe->refs++;
        e->ended = true;
        e->ended_why = PARAMO_E_DISCONNECTED;
        sim_packets_free(&e->wire);
        sim_kick(e);
        sim_pipe_unref(e->pipe);
        return;
    }
    e->stalled_since = 0;
    (void)queue_pop(&e->wire);
    uint64_t at = now + fate.delay[0];
    e->last_arrival = at > e->last_arrival ? at : e->last_arrival;
    must_schedule(world->sim, &p->event, e->last_arrival);
    wire_next(e);
}

void sim_transmit(struct sim_end *e, struct packet *p, bool faulty)
{
    struct sim_world *world = p->world;
    e->flying += p->size;
    if (!faulty) {
        queue_push(&e->wire, &p->node);
        wire_next(e);
        return;
    }
    p->datagram = true;
    uint64_t at = simnet_bottleneck(world->net, e->link, p->size);
    struct simnet_fate fate = simnet_decide(world->net, e->link);
    for (unsigned i = 1; i < fate.copies; i++) {
        struct packet *copy = packet_repeat(p);
        if (copy) {
            e->flying += copy->size;
            must_schedule(world->sim, &copy->event, at + fate.delay[i]);
        }
    }
    if (fate.copies) {
        must_schedule(world->sim, &p->event, at + fate.delay[0]);
    } else {
        sim_landed(e, p->size);
        sim_packet_free(p);
    }
}

void sim_transmit_end(struct sim_end *e, paramo_err why)
{
    struct packet *p = sim_packet_make(e->peer, PACKET_END);
    if (!p)
        abort(); /* as must_schedule */
    p->why = why;
    sim_transmit(e, p, false);
}
