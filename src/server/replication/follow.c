#include "server/replication/follow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/session/acceptor.h"
#include "server/migration/target.h"
#include "server/replication/acks.h"
#include "server/replication/chain_stream.h"
#include "server/replication/chain_wait.h"
#include "server/replication/combined.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/replication/splitting.h"
#include "server/shard/apply_rows.h"
#include "server/shard/clearing.h"
#include "server/shard/partial_apply.h"
#include "server/shard/senders.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "wire/capability.h"

/* ---- members before us ---- */

/* Detaches the steps of the source: no acknowledgement is sent for them. */
static void waits_detach(struct chain_source *source)
{
    chain_source_check(source);
    for (struct qnode *node; (node = queue_pop(&source->waits));) {
        struct chain_wait *w = container_of(node, struct chain_wait, node);
        assert(w->source == source && w->seq > source->acked);
        w->source = NULL;
        if (!w->entries)
            free(w);
    }
}

void follow_lease(struct chain *c, const struct chain_source *source)
{
    assert(source->shard == c->shard);
    assert(source->beat_at <= lane_now(c->shard->lane));
    uint64_t until = source->beat_at ? source->beat_at + CHAIN_LEASE_WAIT_MS * ENV_MS : 0;
    if (until > c->leased_until)
        c->leased_until = until;
}

void follow_forget(struct chain *c, struct chain_source *source)
{
    struct chain_source **at = &c->sources;
    assert(source->shard == c->shard);
    while (*at != source) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = source->next;
    follow_lease(c, source);
    if (source->conn)
        van_close(source->conn, false);
    migration_target_source_closed(c, source);
    waits_detach(source);
    assert(!source->waits.head);
    source->shard = NULL;
    if (!source->due)
        free(source);
}

/* ---- what comes ---- */

/* Is `before` the member before us on this partition? */
static bool comes_from(const struct shard *s, unsigned partition, unsigned before)
{
    const struct ring_chains *chains = &s->view->chains;
    int level = chain_level(s, partition) - 1;
    while (level > 0 && chains->level[level].owner[partition] == RING_NONE)
        level--;
    return level >= 0 && chains->level[level].owner[partition] == before;
}

static paramo_err refuse_partition(unsigned partition)
{
    return err_set(PARAMO_E_PROTOCOL,
                   "CHAIN of partition %u came from a node that is not the previous member", partition);
}

/* The partitions on which a change is new here. */
static paramo_err fresh_partitions(const struct chain_source *source, const struct shard_table *t,
                                   const struct chain_message *m, const struct van_seg *seg,
                                   uint64_t touched[CHAIN_WORDS], uint64_t fresh[CHAIN_WORDS], bool *any)
{
    const struct shard *s = source->shard;
    const struct chain *c = s->chain;
    int before = view_shard_index(s->view, source->from.node, source->from.shard);
    memset(fresh, 0, CHAIN_WORDS * sizeof *fresh);
    memcpy(touched, m->partitions, CHAIN_WORDS * sizeof *touched);
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < m->request.count; i++)
        partition_set_add(touched, ring_partition(ring_position(&t->placement, keys[i])));
    *any = false;
    for (partition_set_each(a, touched)) {
        if (before < 0 || !comes_from(s, a, (unsigned)before))
            return refuse_partition(a);
        if (m->order <= c->last[a] || !chain_has(t, c->level[a]))
            continue;
        if (!c->origin_of[a] || !chain_same(c->origin_of[a]->name, m->origin))
            return err_set(PARAMO_E_PROTOCOL, "CHAIN names an owner that does not own partition %u", a);
        partition_set_add(fresh, a);
        *any = true;
    }
    return PARAMO_OK;
}

/* Makes a step's place in the source, and its entries for the next members. */
static struct chain_wait *wait_make(struct chain_source *source, const struct shard_table *t,
                                    const struct chain_message *m, const struct van_seg *seg, unsigned nseg)
{
    assert(m->seq == source->received + 1);
    assert(m->seq > source->acked);
    struct chain_wait *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->source = source;
    w->seq = m->seq;
    if (chain_split(source->shard->chain, t, m, seg, nseg, NULL, false, w, &w->made)) {
        chain_abandon(w);
        return NULL;
    }
    return w;
}

static void wait_commit(struct chain_source *source, struct chain_wait *w)
{
    struct chain *c = source->shard->chain;
    assert(w->source == source && !w->sender);
    assert(w->seq == source->received + 1); /* nothing between was dropped */
    source->received = w->seq;
    queue_push(&source->waits, &w->node);
    struct queue made = w->made;
    w->made = (struct queue){0};
    for (struct qnode *node; (node = queue_pop(&made));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        chain_append(e->to, e);
    }
    chain_send_all(c);
    acks_advance(source);
}

/* The records of what a change has brought. */
struct brought {
    struct chain_sender *sender;
    struct applied_note *note;
    uint64_t floor;
};

static void brought_free(struct brought *brought, size_t n)
{
    for (size_t i = 0; brought && i < n; i++)
        free(brought[i].note);
    free(brought);
}

/* All is allocated first, because it may fail. NULL: no memory. */
static struct brought *brought_make(struct chain *c, const struct chain_message *m, const struct van_seg *seg,
                                    const uint64_t fresh[CHAIN_WORDS])
{
    size_t n = chain_pushes(m, seg);
    struct brought *brought = calloc(n, sizeof *brought);
    struct chain_origin *origin = brought ? origin_get(c, m->origin) : NULL;
    bool all = origin;
    for (size_t i = 0; i < n && all; i++) {
        struct chain_push push = chain_push_get(m, seg, i);
        brought[i].floor = push.floor;
        brought[i].sender = origin_sender(origin, &push.sender);
        brought[i].note = applied_note_make(push.number, fresh);
        all = brought[i].sender && brought[i].note;
    }
    if (all)
        return brought;
    brought_free(brought, n);
    return NULL;
}

static void brought_record(struct brought *brought, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct applied_window *window = &brought[i].sender->applied_window;
        assert(brought[i].note);
        applied_window_raise_floor(window, brought[i].floor);
        applied_window_attach(window, brought[i].note);
        brought[i].note = NULL;
    }
}

static paramo_err apply(struct shard *s, struct shard_table *t, const struct chain_message *m,
                        const struct van_seg *seg, unsigned nseg, const uint64_t fresh[CHAIN_WORDS])
{
    uint64_t pushes = t->pushes; /* the owner counts pushes */
    assert(t->table && !t->lacks);
    assert(t->options.kind != PARAMO_TABLE_USER && !records_pending(s->chain));
    paramo_err err = m->what == CHAIN_COMBINED ? combined_apply(s, t, m, seg, fresh)
                                               : partial_apply(s, t, &m->request, seg, nseg, fresh);
    t->pushes = pushes;
    return err;
}

/* *done: applied; otherwise the member before must send it again. */
static paramo_err on_update(struct chain_source *source, struct chain_message *m, const struct van_seg *seg,
                            unsigned nseg, bool *done)
{
    struct shard *s = source->shard;
    struct chain *c = s->chain;
    uint64_t touched[CHAIN_WORDS], fresh[CHAIN_WORDS];
    bool any;
    struct shard_table *t = shard_table_find(s, m->request.table);
    if (!t || t->lacks)
        return PARAMO_OK;
    if (t->options.kind == PARAMO_TABLE_USER || !t->table)
        return t ? err_set(PARAMO_E_PROTOCOL, "CHAIN to table %s, which has no copies", t->name) : PARAMO_OK;
    paramo_err err = m->what == CHAIN_COMBINED ? combined_check(t, m, seg, nseg)
                                               : apply_check_rows(t, &m->request, seg, nseg);
    if (!err && m->request.count)
        err = apply_check_order(t, seg[WIRE_SEG_KEYS].data, m->request.count);
    if (!err)
        err = fresh_partitions(source, t, m, seg, touched, fresh, &any);
    if (err)
        return err;
    if (any && m->request.kind != WIRE_CLEAR && clearing_touches(t, fresh))
        return PARAMO_OK;
    struct brought *brought = any ? brought_make(c, m, seg, fresh) : NULL;
    struct chain_wait *w = any && !brought ? NULL : wait_make(source, t, m, seg, nseg);
    err = w && any ? apply(s, t, m, seg, nseg, fresh) : PARAMO_OK;
    if (!w || err) {
        brought_free(brought, any ? chain_pushes(m, seg) : 0);
        chain_abandon(w);
        return err == PARAMO_E_MEMORY ? PARAMO_OK : err;
    }
    assert(w->source == source);
    assert(w->seq == m->seq);
    for (partition_set_each(a, fresh))
        c->last[a] = m->order;
    if (any && m->request.kind == WIRE_CLEAR)
        shard_table_lose(t, fresh, false);
    if (any)
        brought_record(brought, chain_pushes(m, seg));
    free(brought);
    wait_commit(source, w);
    *done = true;
    return PARAMO_OK;
}

/* The old owner is the one that this shard followed; the member before may have followed another if either missed a
 * view. Many records pass in turns: then the message is dropped, and the member before sends it again. When all have
 * passed, there is nothing left to pass, and it is acknowledged. No change of these partitions comes before it. */
static paramo_err on_takeover(struct chain_source *source, const struct chain_message *m, bool *done)
{
    struct chain *c = source->shard->chain;
    struct chain_origin *to = origin_get(c, m->origin);
    paramo_err err = to ? PARAMO_OK : err_memory(sizeof *to);
    for (struct chain_origin *from = c->origins, *next; from && !err; from = next) {
        uint64_t partitions[CHAIN_WORDS] = {0};
        bool any = false;
        next = from->next;
        for (unsigned a = 0; a < RING_PARTITIONS && from != to; a++)
            if (partition_set_has(m->partitions, a) && c->origin_of[a] == from &&
                !migration_target_is_new(c, a)) {
                partition_set_add(partitions, a);
                any = true;
            }
        if (any)
            err = records_pass(c, from, to, partitions);
        if (any && !err && !from->partitions)
            records_end(c, from);
    }
    records_go(c);
    struct chain_wait *w = err || records_pending(c) ? NULL : wait_make(source, NULL, m, NULL, 0);
    if (!w)
        return PARAMO_OK; /* it comes again when there is memory, or when the records have passed */
    wait_commit(source, w);
    *done = true;
    return PARAMO_OK;
}

static paramo_err on_forget(struct chain_source *source, const struct chain_message *m, bool *done)
{
    struct chain *c = source->shard->chain;
    struct chain_wait *w = wait_make(source, NULL, m, NULL, 0);
    if (!w)
        return PARAMO_OK;
    /* A floor holds for the sender everywhere; any member may send it. */
    struct sender *own = shard_sender_find(c->shard, &m->sender);
    if (own)
        shard_floor(c->shard, own, m->request.floor);
    for (struct chain_origin *o = c->origins; o; o = o->next)
        origin_sender_forget(o, m);
    migration_target_forget_sender(c, m);
    wait_commit(source, w);
    *done = true;
    return PARAMO_OK;
}

static paramo_err refuse_view(struct chain_source *source)
{
    struct wire_head refused = {.plain = {.kind = WIRE_CHAIN_REFUSED, .view = source->shard->view->number}};
    return control_message_send(source->conn, &refused, NULL, 0);
}

static paramo_err follow(struct chain_source *source, const struct wire_head *head, const struct van_seg *seg,
                         unsigned nseg)
{
    struct shard *s = source->shard;
    struct chain_message m;
    bool done = false;
    paramo_err err = chain_decode(head, seg, nseg, &m);
    if (err)
        return err;
    chain_source_check(source);
    if (m.what == CHAIN_COMBINED && !capability_of(source->conn, CAPABILITY_AGGREGATE))
        return err_set(PARAMO_E_PROTOCOL, "CHAIN combines pushes, which was not negotiated");
    if (m.seq <= source->received)
        return PARAMO_OK; /* the next beat says so; an answer to each message would only add load */
    if (s->view && m.view < s->place->chain_changed)
        return refuse_view(source);
    if (m.seq == source->received + 1 && s->view && s->self >= 0 && m.view <= s->view->number &&
        !records_pending(s->chain))
        err = chain_changes(&m)          ? on_update(source, &m, seg, nseg, &done)
              : m.what == CHAIN_TAKEOVER ? on_takeover(source, &m, &done)
                                         : on_forget(source, &m, &done);
    assert(!done || (!err && source->received == m.seq));
    if (!err && !done)
        source->again = true; /* the next beat or view tells the member before */
    return err;
}

static paramo_err beat(struct chain_source *source, const struct wire_head *head, unsigned nseg)
{
    const struct shard *s = source->shard;
    uint64_t clock;
    paramo_err err = chain_beat_decode(head, nseg, &clock);
    if (err)
        return err;
    chain_source_check(source);
    if (s->view && head->chain_beat.view < s->place->chain_changed)
        return refuse_view(source);
    if (clock > source->beat_clock)
        source->beat_clock = clock;
    source->beat_at = lane_now(s->lane);
    acks_soon(source);
    return PARAMO_OK;
}

/* ---- connections ---- */

static paramo_err source_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                               const struct van_seg *seg, unsigned nseg)
{
    struct chain_source *source = user;
    struct wire_head head;
    assert(source->shard && source->conn == conn);
    paramo_err err = wire_open(bytes, seg, nseg, &head);
    if (!err && head.kind == WIRE_HELLO)
        return PARAMO_OK; /* a second copy of the first */
    if (!err && head.kind == WIRE_CHAIN_BEAT)
        return beat(source, &head, nseg);
    if (!err && head.kind != WIRE_CHAIN && !(source->for_migration && head.kind == WIRE_MIGRATION))
        err = err_set(PARAMO_E_PROTOCOL, "unexpected message %s from the previous member",
                      wire_kind_name(head.kind));
    if (!err && head.kind == WIRE_CHAIN && head.chain.flags & WIRE_COLUMNS && head.chain.count > 1 &&
        !capability_of(conn, CAPABILITY_COLUMNS))
        err = err_set(PARAMO_E_PROTOCOL, "CHAIN has columns of %u rows, which was not negotiated",
                      head.chain.count);
    if (err)
        return err;
    return source->for_migration ? migration_target_frame(source, &head, seg, nseg)
                                 : follow(source, &head, seg, nseg);
}

static void source_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct chain_source *source = user;
    assert(source->shard);
    assert(source->conn == conn);
    char self[VIEW_LABEL_MAX], from[VIEW_LABEL_MAX];
    if (why == PARAMO_E_PROTOCOL || why == PARAMO_E_TOO_LARGE || why == PARAMO_E_VERSION)
        log_warn("%s: %s broke the protocol: %s", view_id_label(source->shard->config.node, self),
                 view_id_label(source->from.node, from), text);
    van_close(conn, false);
    source->conn = NULL;
    if (source->for_migration && !migration_target_is_source(source))
        follow_forget(source->shard->chain, source);
}

static const struct van_user source_user = {.frame = source_frame, .closed = source_closed};

/* ---- guests: connections that have sent HELLO, and nothing else ---- */

static void guest_forget(struct chain_guest *g)
{
    assert(g->shard && g->conn);
    struct chain_guest **at = &g->shard->chain->guests;
    while (*at != g) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = g->next;
    free(g);
}

void follow_guests_close(struct chain *c)
{
    while (c->guests) {
        assert(c->guests->shard == c->shard);
        van_close(c->guests->conn, false);
        guest_forget(c->guests);
    }
}

/* Is that a shard of a server that is alive by our view? */
static bool lives(const struct shard *s, struct chain_name name, uint64_t incarnation)
{
    const struct view_node *node = s->view ? view_node(s->view, name.node) : NULL;
    return node && node->alive && node->incarnation == incarnation &&
           view_shard_index(s->view, name.node, name.shard) >= 0;
}

/* Are both streams, by their HELLO, of the same shard, for the same purpose? */
static bool same_member(const struct chain_source *source, const struct chain_guest *g)
{
    return chain_same(source->from, g->from) && source->incarnation == g->incarnation &&
           source->for_migration == g->for_migration;
}

/* A stream that migrates begins with nothing, so all of them have one source. */
static struct chain_source *source_of(const struct chain *c, const struct chain_guest *g)
{
    struct chain_source *source = c->sources;
    while (source &&
           !(same_member(source, g) && (source->for_migration || source->generation == g->generation)))
        source = source->next;
    return source;
}

/* Does a later stream of the member keep the guest out? Not if it has no connection, and not forever: the later one
 * may be of another process that has the token, and the guest the member's. */
static bool is_late(const struct chain *c, const struct chain_guest *g)
{
    uint64_t now = lane_now(c->shard->lane);
    assert(g->shard == c->shard);
    for (const struct chain_source *source = c->sources; source; source = source->next)
        if (same_member(source, g) && source->generation > g->generation && source->conn &&
            (migration_target_is_source(source) || now < source->connected_at + CHAIN_PLACE_MS * ENV_MS))
            return true;
    return false;
}

/* Ends the connections of the member's other streams. One that received nothing is forgotten: if it comes back, it
 * begins with nothing, as before. Of the others the latest is kept. It is the member's present stream if `source` is of
 * another process, since only the member sends changes, and numbers its streams upwards. Forgotten, it could never
 * continue: the member has released what this shard acknowledged. When it last had a connection proves nothing. */
static void others_end(struct chain *c, const struct chain_guest *g, const struct chain_source *source)
{
    struct chain_source *kept = NULL;
    for (struct chain_source *other = c->sources, *next; other; other = next) {
        next = other->next;
        if (other == source || !same_member(other, g))
            continue;
        assert(!other->for_migration && other->generation != source->generation);
        struct chain_source *gone = other;
        if (other->received && (!kept || other->generation > kept->generation)) {
            gone = kept;
            kept = other;
        }
        if (other->conn)
            van_close(other->conn, false);
        other->conn = NULL;
        if (gone)
            follow_forget(c, gone);
    }
    assert(!kept || (!kept->conn && kept->received));
}

/* The guest means this process, and is the source from now on. */
static struct chain_source *guest_stays(const struct chain_guest *g)
{
    struct chain *c = g->shard->chain;
    struct chain_source *source = source_of(c, g);
    if (!source) {
        source = calloc(1, sizeof *source);
        if (!source)
            return NULL;
        source->shard = g->shard;
        source->from = g->from;
        source->for_migration = g->for_migration;
        source->incarnation = g->incarnation;
        source->generation = g->generation;
        source->next = c->sources;
        c->sources = source;
    }
    others_end(c, g, source);
    if (source->conn)
        van_close(source->conn, false);
    if (source->generation != g->generation) {
        assert(source->for_migration && queue_empty(&source->waits));
        migration_target_source_closed(c, source);
        source->received = source->acked = 0;
        source->generation = g->generation;
    }
    assert(source->acked <= source->received && source->generation == g->generation);
    chain_source_check(source);
    source->conn = g->conn;
    source->connected_at = lane_now(g->shard->lane);
    source->beat_clock = 0; /* a member ends a connection on which the clock of another one comes back */
    source->again = true;
    van_set_user(source->conn, &source_user, source);
    return source;
}

/* The first frame after HELLO makes the guest a source, and is handled as the source's. */
static paramo_err guest_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                              const struct van_seg *seg, unsigned nseg)
{
    struct chain_guest *g = user;
    struct wire_head head;
    assert(g->shard && g->conn == conn);
    paramo_err err = wire_head_decode(bytes, &head);
    if (err || head.kind == WIRE_HELLO)
        return err; /* a second copy of the first */
    bool stays = lives(g->shard, g->from, g->incarnation) && !is_late(g->shard->chain, g);
    struct chain_source *source = stays ? guest_stays(g) : NULL;
    guest_forget(g);
    if (!source) { /* the member died, or has a later stream, or there is no memory: it connects again */
        van_close(conn, false);
        return PARAMO_OK;
    }
    acks_send(source);
    return source_frame(source, conn, bytes, seg, nseg);
}

static void guest_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)why, (void)text;
    assert(((struct chain_guest *)user)->conn == conn);
    van_close(conn, false);
    guest_forget(user);
}

static const struct van_user guest_user = {.frame = guest_frame, .closed = guest_closed};

/* Ends the guest that has connected again as g, and those that have sent nothing for too long. The earliest one makes
 * room for g: such connections keep no member out. */
static void guests_end(struct chain *c, const struct chain_guest *g)
{
    unsigned guests = 0;
    assert(g->shard == c->shard);
    for (struct chain_guest *other = c->guests, *next; other; other = next) {
        next = other->next;
        assert(other != g && other->accepted_at <= g->accepted_at);
        bool again = chain_same(other->from, g->from) && other->generation == g->generation &&
                     other->for_migration == g->for_migration;
        if (again || ++guests >= CHAIN_GUESTS_MAX ||
            g->accepted_at - other->accepted_at > CHAIN_CONNECT_MS * ENV_MS) {
            van_close(other->conn, false);
            guest_forget(other);
        }
    }
}

/* WELCOME tells the member before whether this is the process that it means: another process, still in a
 * view, may have had this address. Only its first frame after that (a beat) makes it a source. A HELLO that
 * meant another process must not end the present stream, nor count as the later one. */
void follow_accept(struct shard *s, struct van_conn *conn, const struct hello *hello)
{
    struct chain_name from = {.node = hello->node, .shard = (uint16_t)hello->customer};
    if (!s->chain || !lives(s, from, hello->incarnation)) {
        acceptor_reject(conn, PARAMO_E_REFUSED, "in this shard's view that server is not alive");
        return;
    }
    struct chain *c = s->chain;
    assert(c->shard == s);
    assert(s->view);
    struct chain_guest *g = calloc(1, sizeof *g);
    if (!g) {
        acceptor_reject(conn, PARAMO_E_MEMORY, "out of memory");
        return;
    }
    *g = (struct chain_guest){.shard = s,
                              .conn = conn,
                              .from = from,
                              .incarnation = hello->incarnation,
                              .accepted_at = lane_now(s->lane),
                              .generation = hello->app,
                              .for_migration = hello->purpose == HELLO_MIGRATION};
    if (is_late(c, g)) {
        free(g);
        acceptor_reject(conn, PARAMO_E_REFUSED, "a newer connection of this chain exists");
        return;
    }
    guests_end(c, g);
    g->next = c->guests;
    c->guests = g;
    van_set_user(conn, &guest_user, g);
    van_set_frame_limit(conn, s->config.frame_bytes +
                                  (g->for_migration ? migration_target_frame_bytes(s) : CHAIN_BODY_MAX));
    van_conn_stays(conn);
    if (acceptor_welcome(conn, s->view->job, s->config.incarnation)) {
        van_close(conn, false);
        guest_forget(g);
    }
}
