#include "server/shard/handling.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/shard/apply_rows.h"
#include "server/shard/reply.h"
#include "van/pool.h"

/* what: GATE_REF; for a poster that ends GATE_POSTING as well. */
static void gate_less(struct gate *gate, uint64_t what)
{
    uint64_t before = atomic_fetch_sub(&gate->uses, what);
    assert((uint32_t)before > 0 && (before >= GATE_POSTING || what == GATE_REF));
    if ((uint32_t)before == 1)
        free(gate);
}

static void request_fini(struct shard_request *q)
{
    van_release(q->hold);
    if (q->answer)
        kept_unref(q->answer);
    gate_less(q->gate, GATE_REF);
}

/* Any thread; the shard is closed, and perhaps gone. */
static void request_free(struct shard_request *q)
{
    request_fini(q);
    free(q);
}

static void handling_check(const struct shard_handling *h)
{
    assert(!h->free == !h->free_count && h->free_count <= SHARD_REQUESTS_FREE);
    assert(!h->first || !h->first->prev);
}

/* On the lane, like request_put. Requests come and end in bursts, for which malloc has no short cut. */
static struct shard_request *request_get(struct shard *s)
{
    struct shard_handling *h = s->handling;
    struct shard_request *q = h->free;
    handling_check(h);
    assert(!h->free == !h->free_count);
    if (q) {
        h->free = q->next;
        h->free_count--;
    } else {
        q = malloc(sizeof *q + s->config.request_room);
    }
    if (q)
        memset(q, 0, sizeof *q);
    return q;
}

static void request_put(struct shard *s, struct shard_request *q)
{
    struct shard_handling *h = s->handling;
    handling_check(h);
    if (h->free_count == SHARD_REQUESTS_FREE) {
        free(q);
        return;
    }
    q->next = h->free;
    h->free = q;
    h->free_count++;
}

static struct shard_request **slot_of(struct sender *sender, uint64_t number)
{
    return &sender->handled[number % DATA_WINDOW];
}

static struct shard_request *find(struct sender *sender, uint64_t number)
{
    struct shard_request *q = sender->handled ? *slot_of(sender, number) : NULL;
    return q && q->head.number == number ? q : NULL;
}

static void handling_unlink(struct shard *s, struct shard_request *q)
{
    assert(q->prev ? q->prev->next == q : s->handling->first == q);
    assert(!q->next || q->next->prev == q);
    if (q->prev)
        q->prev->next = q->next;
    else
        s->handling->first = q->next;
    if (q->next)
        q->next->prev = q->prev;
    q->prev = q->next = NULL;
}

static size_t answer_bytes(const struct shard_request *q)
{
    return sizeof *q + q->shard->config.request_room + (q->answer ? q->answer->bytes : 0);
}

/* No sender waits for the request any more. */
static void request_release(struct shard *s, struct shard_request *q)
{
    if (q->answered) {
        assert(q->sender->kept_bytes >= answer_bytes(q) && s->handling->kept_bytes >= q->sender->kept_bytes);
        s->handling->kept_bytes -= answer_bytes(q);
        q->sender->kept_bytes -= answer_bytes(q);
        request_fini(q);
        request_put(s, q);
    } else {
        assert(s->handling->first); /* it is with its handler */
        q->sender = NULL;           /* freed when it is answered */
    }
}

void handling_floor(struct shard *s, struct sender *sender, uint64_t from)
{
    uint64_t to = sender->applied_window.own.floor;
    if (to - from > DATA_WINDOW)
        to = from + DATA_WINDOW;
    for (uint64_t n = from; n < to; n++) {
        struct shard_request **slot = slot_of(sender, n);
        assert(!*slot || (*slot)->sender == sender);
        if (*slot && (*slot)->head.number < sender->applied_window.own.floor) {
            request_release(s, *slot);
            *slot = NULL;
        }
    }
}

void handling_forget(struct shard *s, struct sender *sender)
{
    assert(!sender->peers && s->handling->kept_bytes >= sender->kept_bytes);
    for (unsigned i = 0; sender->handled && i < DATA_WINDOW; i++) {
        if (sender->handled[i])
            request_release(s, sender->handled[i]);
        sender->handled[i] = NULL;
    }
    assert(!sender->kept_bytes); /* they were of the answers */
}

bool handling_any(const struct sender *sender)
{
    for (unsigned i = 0; sender->handled && i < DATA_WINDOW; i++)
        if (sender->handled[i])
            return true;
    return false;
}

/* On the lane: the handler has answered. */
static void finish(struct shard_request *q)
{
    struct shard *s = q->shard;
    assert(!q->answered && q->gate == s->handling->gate);
    handling_unlink(s, q);
    assert(s->handling->bytes >= q->bytes);
    assert(!q->sender || *slot_of(q->sender, q->head.number) == q);
    s->handling->bytes -= q->bytes;
    van_release(q->hold);
    q->hold = NULL;
    q->answered = true;
    if (!q->sender) {
        request_fini(q);
        request_put(s, q);
        return;
    }
    s->handling->kept_bytes += answer_bytes(q);
    q->sender->kept_bytes += answer_bytes(q);
    if (q->sender->peer)
        reply_kept(q->sender->peer, &q->head, q->status, q->answer);
}

static void finish_task(struct lane_task *task)
{
    struct shard_request *q = container_of(task, struct shard_request, task);
    if (atomic_load(&q->gate->closed))
        request_free(q);
    else
        finish(q);
}

static void answer_ready(struct shard_request *q)
{
    struct gate *gate = q->gate;
    if (!atomic_load(&gate->closed) && lane_held(gate->lane)) {
        finish(q);
        return;
    }
    /* shard_close waits until no poster is between these two lines. */
    atomic_fetch_add(&gate->uses, GATE_REF + GATE_POSTING);
    if (atomic_load(&gate->closed)) {
        request_free(q);
    } else {
        q->task.run = finish_task;
        lane_post(gate->lane, &q->task);
    }
    gate_less(gate, GATE_REF + GATE_POSTING);
}

/* Segments with an array are referenced, the others are copied. */
static struct kept_answer *answer_make(const struct van_seg seg[VAN_SEGS],
                                       struct paramo_array *const array[VAN_SEGS])
{
    size_t copied = 0;
    for (unsigned i = 0; i < VAN_SEGS; i++)
        copied += array[i] ? 0 : (size_t)(seg[i].len + 7) & ~(size_t)7;
    struct kept_answer *a = malloc(sizeof *a + copied);
    if (!a)
        return NULL;
    memset(a, 0, sizeof *a);
    atomic_init(&a->refs, 1);
    uint8_t *at = a->data;
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        if (array[i]) {
            a->array[i] = array_ref(array[i]);
            a->seg[i] = (struct van_seg){.data = array[i]->data, .len = array[i]->len};
        } else if (seg[i].len) {
            memcpy(at, seg[i].data, (size_t)seg[i].len);
            a->seg[i] = (struct van_seg){.data = at, .len = seg[i].len};
            at += (seg[i].len + 7) & ~(size_t)7;
        }
        a->bytes += (size_t)a->seg[i].len;
        if (a->seg[i].len)
            a->nseg = i + 1;
    }
    assert(at == a->data + copied);
    return a;
}

static size_t value_bytes(const struct shard_request *q)
{
    if (!q->info.table)
        return 1;
    paramo_dtype t = q->info.dtype;
    return t == PARAMO_F64 || t == PARAMO_I64 ? 8 : t == PARAMO_U8 ? 1 : 4;
}

/* Checks that lens add up to the values. */
static paramo_err answer_check(const struct shard_request *q, const uint32_t *lens, size_t vals_bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; lens && i < q->info.n; i++)
        sum += lens[i];
    if (vals_bytes % value_bytes(q) || (lens && sum * value_bytes(q) != vals_bytes))
        return err_set(PARAMO_E_SIZE_MISMATCH, "answer: lens add up to %" PRIu64 ", but there are %zu values",
                       sum, vals_bytes / value_bytes(q));
    return PARAMO_OK;
}

paramo_err shard_answer_segs(struct shard_request *q, const struct van_seg seg[VAN_SEGS],
                             struct paramo_array *const array[VAN_SEGS])
{
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        if (!array[i] && seg[i].len && !seg[i].data)
            return err_set(PARAMO_E_INVALID, "answer: a segment of %" PRIu64 " bytes is NULL", seg[i].len);
    }
    if (q->info.table && q->info.pull) {
        const struct paramo_array *l = array[WIRE_SEG_LENS], *v = array[WIRE_SEG_VALS];
        size_t lens_bytes = l ? l->len : (size_t)seg[WIRE_SEG_LENS].len;
        if (lens_bytes && lens_bytes != 4 * q->info.n)
            return err_set(PARAMO_E_SIZE_MISMATCH, "answer: %zu bytes of lens do not fit %zu keys",
                           lens_bytes, q->info.n);
        const void *lens = l ? l->data : seg[WIRE_SEG_LENS].data;
        paramo_err err =
            answer_check(q, lens_bytes ? lens : NULL, v ? v->len : (size_t)seg[WIRE_SEG_VALS].len);
        if (err)
            return err;
    }
    bool any = false; /* an answer without bytes, as to each push of ps/ps.h, needs no memory */
    for (unsigned i = 0; i < VAN_SEGS; i++)
        any = any || array[i] || seg[i].len;
    if (any && (!q->info.table || q->info.pull)) {
        q->answer = answer_make(seg, array);
        if (!q->answer)
            return err_memory(sizeof *q->answer);
    }
    answer_ready(q);
    return PARAMO_OK;
}

static struct paramo_array *const no_arrays[VAN_SEGS];

paramo_err shard_answer(struct shard_request *q, const void *vals, size_t vals_len, const uint32_t *lens)
{
    struct van_seg seg[VAN_SEGS] = {{0}};
    if (vals_len && !vals)
        return err_set(PARAMO_E_INVALID, "answer: vals is NULL");
    bool given = lens && q->info.n && (q->info.pull || !q->info.table);
    paramo_err err = given ? answer_check(q, lens, vals_len * value_bytes(q)) : PARAMO_OK;
    if (err)
        return err;
    if (given)
        seg[WIRE_SEG_LENS] =
            (struct van_seg){.data = (void *)(uintptr_t)lens, .len = sizeof *lens * q->info.n};
    seg[WIRE_SEG_VALS] = (struct van_seg){.data = (void *)(uintptr_t)vals, .len = vals_len * value_bytes(q)};
    return shard_answer_segs(q, seg, no_arrays);
}

paramo_err shard_answer_error(struct shard_request *q, paramo_err status, const char *text)
{
    if (!status)
        return err_set(PARAMO_E_INVALID, "answer: an error was expected, not PARAMO_OK");
    const char *message = text && text[0] ? text : err_sentence(status);
    struct van_seg seg[VAN_SEGS] = {{0}};
    seg[WIRE_SEG_BODY] =
        (struct van_seg){.data = (void *)(uintptr_t)message, .len = strnlen(message, ERR_TEXT_MAX - 1)};
    q->answer = answer_make(seg, no_arrays); /* without memory, the answer has no text */
    q->status = status;
    answer_ready(q);
    return PARAMO_OK;
}

void *shard_request_room(struct shard_request *q)
{
    return q->room;
}

static void hold_release(void *arg, void *data)
{
    (void)data;
    van_release(arg);
}

paramo_err shard_request_keep(struct shard_request *q, unsigned i, struct paramo_array **array)
{
    const struct van_seg *seg = &q->info.seg[i];
    paramo_err err = array_wrap(seg->data, (size_t)seg->len, hold_release, q->hold, array);
    if (!err && q->hold)
        hold_ref(q->hold);
    return err;
}

static paramo_err check(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                        const struct van_seg *seg, unsigned nseg, const struct examination *x)
{
    uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS);
    if (h->kind != WIRE_PUSH && h->kind != WIRE_PULL && h->kind != WIRE_PUSHPULL)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s, which has no storage", wire_kind_name(h->kind),
                       t->name);
    if (h->flags & WIRE_COLUMNS)
        return err_set(PARAMO_E_PROTOCOL,
                       "a request for a part of a row cannot go to the handler of table %s", t->name);
    if (vals % t->value_bytes)
        return err_set(PARAMO_E_PROTOCOL, "%" PRIu64 " bytes are not a whole number of values of table %s",
                       vals, t->name);
    if (!x->bad && h->flags & WIRE_LENS && h->kind != WIRE_PULL && x->sum * t->value_bytes != vals)
        return err_set(PARAMO_E_SIZE_MISMATCH,
                       "table %s: lens that add up to %" PRIu64 " came with %" PRIu64 " values%s", t->name,
                       x->sum, vals / t->value_bytes, APPLY_CHANGED);
    return examining_error(s, t, h, seg, x);
}

static struct shard_request *request_make(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                                          const struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    struct van_seg at[VAN_SEGS] = {{0}};
    assert(nseg <= VAN_SEGS && peer->sender->peers > 0);
    struct shard_request *q = request_get(s);
    if (!q)
        return NULL;
    for (unsigned i = 0; i < nseg; i++)
        at[i] = seg[i];
    if (hold) {
        q->hold = *hold;
        *hold = NULL;
    } else if (van_keep(peer->conn, at, nseg, &q->hold)) {
        request_put(s, q);
        return NULL;
    }
    for (unsigned i = 0; i < nseg; i++)
        q->bytes += (size_t)seg[i].len;
    s->handling->bytes += q->bytes;
    q->gate = s->handling->gate;
    atomic_fetch_add(&s->handling->gate->uses, GATE_REF);
    q->shard = s;
    q->sender = peer->sender;
    q->head = *h;
    struct shard_request_info *info = &q->info;
    *info = (struct shard_request_info){
        .to = s->config.node,
        .sender = peer->sender->id.node,
        .customer = peer->sender->id.customer,
        .app = t ? peer->sender->id.app : h->app,
        .ts = h->ts,
        .cmd = h->cmd,
        .keys = at[WIRE_SEG_KEYS].data,
        .n = t ? h->count : (size_t)(at[WIRE_SEG_KEYS].len / sizeof *info->keys),
        .vals = at[WIRE_SEG_VALS].data,
        .vals_len = (size_t)(at[WIRE_SEG_VALS].len / (t ? t->value_bytes : 1)),
        .lens = at[WIRE_SEG_LENS].len ? at[WIRE_SEG_LENS].data : NULL,
    };
    memcpy(info->seg, at, sizeof info->seg);
    if (t) {
        memcpy(q->table, t->name, sizeof q->table);
        info->table = q->table;
        info->dtype = t->options.dtype;
        info->push = h->kind != WIRE_PULL;
        info->pull = h->kind != WIRE_PUSH;
    } else {
        info->for_customer = h->to.customer;
        info->flags = h->to.flags;
    }
    q->next = s->handling->first;
    assert(!q->next || !q->next->prev);
    if (s->handling->first)
        s->handling->first->prev = q;
    s->handling->first = q;
    return q;
}

paramo_err handling_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    struct sender *sender = peer->sender;
    if (h->number < sender->applied_window.own.floor)
        return PARAMO_OK;
    struct shard_request *q = find(sender, h->number);
    assert(!q || (q->sender == sender && q->shard == s));
    struct examination x = s->handling->examined ? *s->handling->examined : (struct examination){0};
    while (t && h->count && !examining_done(s, &x, h))
        examining_step(s, t, h, seg, &x);
    assert(sender->kept_bytes <= s->handling->kept_bytes);
    uint64_t keys_hash = x.hash;
    if (q && !q->info.push && q->keys_hash != keys_hash) {
        /* The slice was made by a newer view: the values that were read are for other keys. */
        request_release(s, q);
        *slot_of(sender, h->number) = NULL;
        q = NULL;
    }
    if (q && q->info.push && q->info.pull && q->keys_hash != keys_hash) {
        /* The handler has the request, and its answer is for all the keys that were here then. */
        reply_status(peer, h, PARAMO_E_HANDLER,
                     "some of the keys moved to another server while the handler had the request");
        return PARAMO_OK;
    }
    if (q) {
        s->counters.repeats++;
        q->head = *h;
        if (q->answered)
            reply_kept(peer, h, q->status, q->answer);
        return PARAMO_OK;
    }
    paramo_err err = t ? check(s, t, h, seg, nseg, &x) : PARAMO_OK;
    if (err == PARAMO_E_PROTOCOL)
        return err;
    if (err) {
        reply_status(peer, h, err, err_text());
        return PARAMO_OK;
    }
    if (!s->config.handler) {
        (void)err_set(
            PARAMO_E_HANDLER,
            "the server has no request handler for table %s; the application must set one (paramo_serve)",
            t ? t->name : "");
        reply_status(peer, h, PARAMO_E_HANDLER, err_text());
        return PARAMO_OK;
    }
    if (!sender->handled)
        sender->handled = calloc(DATA_WINDOW, sizeof *sender->handled);
    if (!sender->handled || sender->kept_bytes > SENDER_KEPT_BYTES ||
        s->handling->bytes > SHARD_HANDLING_BYTES) {
        s->counters.dropped++; /* the client asks again; floors may have risen by then */
        return PARAMO_OK;
    }
    q = request_make(peer, t, h, seg, nseg, hold);
    if (!q) {
        s->counters.dropped++;
        return PARAMO_OK;
    }
    q->keys_hash = keys_hash;
    assert(!*slot_of(sender, h->number)); /* numbers of a window have different slots */
    *slot_of(sender, h->number) = q;
    if (t && q->info.push)
        t->pushes += h->count;
    if (t && q->info.pull)
        t->pulls += h->count;
    s->config.handler(s->config.arg, q, &q->info);
    return PARAMO_OK;
}

bool handling_probe(struct peer *peer, const struct wire_head *h)
{
    struct shard_request *q = find(peer->sender, h->number);
    if (!q)
        return false;
    if (q->head.attempt != h->attempt) { /* perhaps it has other keys: only the request itself tells */
        reply_probe(peer, h, PROBE_UNKNOWN);
        return true;
    }
    if (!q->answered) {
        reply_probe(peer, h, PROBE_WORKING);
        return true;
    }
    reply_kept(peer, &q->head, q->status, q->answer);
    return true;
}

paramo_err handling_init(struct shard *s, void (*examine)(struct lane_timer *timer))
{
    assert(!s->handling->gate && !s->handling->first);
    assert(!s->handling->bytes);
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return err_memory(sizeof *gate);
    gate->lane = s->lane;
    atomic_store(&gate->uses, GATE_REF);
    s->handling->gate = gate;
    s->handling->shard = s;
    s->handling->examining.fire = examine;
    return PARAMO_OK;
}

void handling_close(struct shard *s)
{
    assert(!atomic_load(&s->handling->gate->closed));
    assert(!s->handling->examined); /* no request is being handled */
    lane_timer_cancel(s->lane, &s->handling->examining);
    atomic_store(&s->handling->gate->closed, true);
    while (atomic_load(&s->handling->gate->uses) >= GATE_POSTING)
        ; /* a poster needs only a few more instructions */
    gate_less(s->handling->gate, GATE_REF);
    s->handling->gate = NULL;
}

void handling_fini(struct shard *s)
{
    /* Requests that are not answered are their handlers' now, whose threads may free them at any time. */
    assert(!s->handling->gate);
    assert(!s->handling->free == !s->handling->free_count);
    for (struct shard_request *q = s->handling->free, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    s->handling->free = NULL;
    s->handling->free_count = 0;
}
