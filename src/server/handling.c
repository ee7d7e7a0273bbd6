/* Requests to USER tables: the record is made when one is handed over; a repeat waits for the same answer,
 * and after it the kept answer is repeated until the sender's floor passes (design, section 3). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/shard_impl.h"

static void gate_unref(struct gate *gate)
{
    if (atomic_fetch_sub(&gate->refs, 1) == 1)
        free(gate);
}

/* Any thread. */
static void request_free(struct shard_request *q)
{
    van_release(q->hold);
    if (q->answer)
        kept_unref(q->answer);
    gate_unref(q->gate);
    free(q);
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
    if (q->prev)
        q->prev->next = q->next;
    else
        s->handling = q->next;
    if (q->next)
        q->next->prev = q->prev;
    q->prev = q->next = NULL;
}

static size_t answer_bytes(const struct shard_request *q)
{
    return sizeof *q + (q->answer ? q->answer->bytes : 0);
}

/* Nobody waits for it any more. */
static void let_go(struct shard *s, struct shard_request *q)
{
    if (q->answered) {
        s->kept_bytes -= answer_bytes(q);
        request_free(q);
    } else {
        q->sender = NULL; /* freed when it is answered */
    }
}

void handling_floor(struct shard *s, struct sender *sender, uint64_t from)
{
    uint64_t to = MUTANT(kept_answer_leaks) ? from : sender->dedup.floor;
    if (to - from > DATA_WINDOW)
        to = from + DATA_WINDOW;
    for (uint64_t n = from; n < to; n++) {
        struct shard_request **slot = slot_of(sender, n);
        if (*slot && (*slot)->head.number < sender->dedup.floor) {
            let_go(s, *slot);
            *slot = NULL;
        }
    }
}

void handling_forget(struct shard *s, struct sender *sender)
{
    for (unsigned i = 0; sender->handled && i < DATA_WINDOW; i++) {
        if (sender->handled[i])
            let_go(s, sender->handled[i]);
        sender->handled[i] = NULL;
    }
}

/* On the lane: the answer is there. */
static void finish(struct shard_request *q)
{
    struct shard *s = q->shard;
    handling_unlink(s, q);
    van_release(q->hold);
    q->hold = NULL;
    q->answered = true;
    if (!q->sender) {
        request_free(q);
        return;
    }
    s->kept_bytes += answer_bytes(q);
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
    atomic_fetch_add(&gate->refs, 1);
    atomic_fetch_add(&gate->posting, 1);
    if (atomic_load(&gate->closed)) {
        request_free(q);
    } else {
        q->task.run = finish_task;
        lane_post(gate->lane, &q->task);
    }
    atomic_fetch_sub(&gate->posting, 1);
    gate_unref(gate);
}

static struct kept_answer *answer_make(const void *lens, size_t lens_bytes, const void *vals,
                                       size_t vals_bytes)
{
    size_t at = (lens_bytes + 7) & ~(size_t)7;
    struct kept_answer *a = malloc(sizeof *a + at + vals_bytes);
    if (!a)
        return NULL;
    atomic_init(&a->refs, 1);
    a->bytes = at + vals_bytes;
    a->lens_bytes = lens_bytes;
    a->vals_bytes = vals_bytes;
    if (lens_bytes)
        memcpy(a->data, lens, lens_bytes);
    if (vals_bytes)
        memcpy(a->data + at, vals, vals_bytes);
    return a;
}

paramo_err shard_answer(struct shard_request *q, const void *vals, size_t vals_len, const uint32_t *lens)
{
    size_t value = q->info.dtype == PARAMO_F64 || q->info.dtype == PARAMO_I64 ? 8
                   : q->info.dtype == PARAMO_U8                               ? 1
                                                                              : 4;
    if (lens && q->info.pull) {
        uint64_t sum = 0;
        for (size_t i = 0; i < q->info.n; i++)
            sum += lens[i];
        if (sum != vals_len)
            return err_set(PARAMO_E_SIZE_MISMATCH,
                           "answer: lens add up to %" PRIu64 ", but there are %zu values", sum, vals_len);
    }
    if (vals_len && !vals)
        return err_set(PARAMO_E_INVALID, "answer: vals is NULL");
    if (q->info.pull) {
        q->answer = answer_make(lens, lens ? 4 * q->info.n : 0, vals, vals_len * value);
        if (!q->answer)
            return err_memory(vals_len * value);
    }
    answer_ready(q);
    return PARAMO_OK;
}

paramo_err shard_answer_error(struct shard_request *q, paramo_err status, const char *text)
{
    if (!status)
        return err_set(PARAMO_E_INVALID, "answer: an error was expected, not PARAMO_OK");
    const char *say = text && text[0] ? text : err_sentence(status);
    q->answer = answer_make(NULL, 0, say, strnlen(say, ERR_TEXT_MAX - 1));
    if (!q->answer)
        return err_memory(ERR_TEXT_MAX);
    q->status = status;
    answer_ready(q);
    return PARAMO_OK;
}

static paramo_err check(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                        const struct van_seg *seg, unsigned nseg)
{
    uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS);
    if (h->kind != WIRE_PUSH && h->kind != WIRE_PULL && h->kind != WIRE_PUSHPULL)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s, which has no storage", wire_kind_name(h->kind),
                       t->name);
    if (h->flags & WIRE_PART)
        return err_set(PARAMO_E_PROTOCOL, "a part of a row of table %s", t->name);
    if (vals % t->value_bytes)
        return err_set(PARAMO_E_PROTOCOL, "%" PRIu64 " bytes of values to table %s", vals, t->name);
    if (h->flags & WIRE_LENS && h->kind != WIRE_PULL) {
        const uint32_t *lens = seg[WIRE_SEG_LENS].data;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < h->count; i++)
            sum += lens[i];
        if (sum * t->value_bytes != vals)
            return err_set(PARAMO_E_PROTOCOL, "lens of %" PRIu64 " values with %" PRIu64 " bytes to table %s",
                           sum, vals, t->name);
    }
    return apply_check_keys(s, t, seg[WIRE_SEG_KEYS].data, h->count);
}

static struct shard_request *request_make(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                                          const struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    struct van_seg at[VAN_SEGS] = {{0}};
    struct shard_request *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    for (unsigned i = 0; i < nseg; i++)
        at[i] = seg[i];
    if (hold) {
        q->hold = *hold;
        *hold = NULL;
    } else if (van_keep(peer->conn, at, nseg, &q->hold)) {
        free(q);
        return NULL;
    }
    memcpy(q->table, t->name, sizeof q->table);
    q->gate = s->gate;
    atomic_fetch_add(&s->gate->refs, 1);
    q->shard = s;
    q->sender = peer->sender;
    q->head = *h;
    q->info = (struct shard_request_info){
        .table = q->table,
        .dtype = t->options.dtype,
        .sender = peer->sender->node,
        .customer = peer->sender->customer,
        .ts = h->ts,
        .cmd = h->cmd,
        .push = h->kind != WIRE_PULL,
        .pull = h->kind != WIRE_PUSH,
        .keys = at[WIRE_SEG_KEYS].data,
        .n = h->count,
        .vals = at[WIRE_SEG_VALS].data,
        .vals_len = at[WIRE_SEG_VALS].len / t->value_bytes,
        .lens = at[WIRE_SEG_LENS].len ? at[WIRE_SEG_LENS].data : NULL,
    };
    q->next = s->handling;
    if (s->handling)
        s->handling->prev = q;
    s->handling = q;
    return q;
}

paramo_err handling_piece(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    struct sender *sender = peer->sender;
    if (h->number < sender->dedup.floor)
        return PARAMO_OK;
    struct shard_request *q = find(sender, h->number);
    uint64_t keys_hash = hash_bytes(seg[WIRE_SEG_KEYS].data, seg[WIRE_SEG_KEYS].len);
    if (q && !q->info.push && q->keys_hash != keys_hash) {
        /* Cut anew by a newer view: what was read was for other keys. (Pushed keys do not change hands.) */
        let_go(s, q);
        *slot_of(sender, h->number) = NULL;
        q = NULL;
    }
    if (q && MUTANT(handler_repeated)) {
        let_go(s, q);
        q = NULL;
    }
    if (q) {
        s->counters.repeats++;
        q->head = *h;
        if (q->answered)
            reply_kept(peer, h, q->status, q->answer);
        return PARAMO_OK;
    }
    paramo_err err = check(s, t, h, seg, nseg);
    if (err)
        return err;
    if (!s->config.handler) {
        (void)err_set(PARAMO_E_HANDLER, "the server has no request handler for table %s", t->name);
        reply_status(peer, h, PARAMO_E_HANDLER, err_text());
        return PARAMO_OK;
    }
    if (!sender->handled)
        sender->handled = calloc(DATA_WINDOW, sizeof *sender->handled);
    if (!sender->handled || s->kept_bytes > SHARD_KEPT_BYTES) {
        s->counters.dropped++; /* asked again, when floors have passed */
        return PARAMO_OK;
    }
    q = request_make(peer, t, h, seg, nseg, hold);
    if (!q) {
        s->counters.dropped++;
        return PARAMO_OK;
    }
    q->keys_hash = keys_hash;
    *slot_of(sender, h->number) = q;
    if (q->info.push)
        t->pushes += h->count;
    if (q->info.pull)
        t->pulls += h->count;
    s->config.handler(s->config.arg, q, &q->info);
    return PARAMO_OK;
}

bool handling_probe(struct peer *peer, const struct wire_head *h)
{
    struct shard_request *q = find(peer->sender, h->number);
    if (!q)
        return false;
    if (q->head.attempt != h->attempt) { /* perhaps for other keys: only the request itself can tell */
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

void handling_close(struct shard *s)
{
    atomic_store(&s->gate->closed, true);
    while (atomic_load(&s->gate->posting))
        ; /* a poster is on its way through a few instructions */
    gate_unref(s->gate);
}
