#include <assert.h>
#include <string.h>

#include "base/sm.h"
#include "worker/client_impl.h"
#include "worker/ending.h"
#include "worker/gather.h"

/* What a turn with answers of one request may cost: 1 for a key, 1 for each 64 bytes of its row. At most 2 ms. */
enum { TURN = 1 << 16, TURN_BYTES_SHIFT = 6 };

static const struct sm gather_machine = {"gather",
                                         {[GATHER_LENS] = {"lens", SM_TO(GATHER_STARTS)},
                                          [GATHER_STARTS] = {"starts", SM_TO(GATHER_ROWS)},
                                          [GATHER_ROWS] = {"rows", 0}}};

static void gather_move(struct gather *g, unsigned to)
{
    assert(!g->chunk); /* the pass before has come to its end */
    sm_check(&gather_machine, g->pass, to);
    g->pass = to;
}

/* Rows from one slice of memory to their places in another. Objective: dst[index[i]] = src[i]. */
static void rows_scatter(uint8_t *dst, const uint8_t *src, const uint32_t *index, uint32_t count,
                         uint64_t row)
{
    if (row == 4) {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + 4 * (size_t)index[i], src + 4 * (size_t)i, 4);
    } else if (row == 8) {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + 8 * (size_t)index[i], src + 8 * (size_t)i, 8);
    } else {
        for (uint32_t i = 0; i < count; i++)
            memcpy(dst + row * index[i], src + row * i, row);
    }
}

void gather_split(struct chunk *chunk)
{
    if (!chunk->span.dst)
        return;
    assert(chunk->split && chunk->count > 0 && !chunk->unanswered);
    uint64_t row = chunk->span.dst_bytes / chunk->span.count;
    for (uint32_t i = 0; i < chunk->count; i++) {
        const struct span *s = &chunk->split[i].span;
        assert(s->dst_bytes == row * s->count && s->index);
        rows_scatter(chunk->span.dst, s->dst, s->index, s->count, row);
    }
}

void gather_chunk(struct chunk *chunk)
{
    const struct span *s = &chunk->span;
    assert(s->index && s->dst && !chunk->unanswered);
    assert(s->count && s->dst_bytes % s->count == 0);
    rows_scatter(chunk->request->dst, s->dst, s->index, s->count, s->dst_bytes / s->count);
}

/* Place in the request of key i of a slice. */
static size_t place_of(const struct chunk *chunk, const struct span *s, uint32_t i)
{
    size_t k = s == &chunk->span ? i : s->index[i]; /* in the chunk */
    return chunk->span.index ? chunk->span.index[k] : chunk->span.first + k;
}

static const struct slice *slice_values(const struct chunk *chunk, uint32_t i)
{
    return chunk->split ? &chunk->split[i].slice : &chunk->one;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The turn continues with this slice, at its first key, or with the first one of the next chunk that has any: one
 * that stood for keys that were not sliced yet has none. */
static void slice_begin(struct gather *g, const struct chunk *chunk, uint32_t slice)
{
    assert(!chunk || slice <= chunk->count);
    for (; chunk && slice == chunk->count; slice = 0)
        chunk = chunk->next;
    g->chunk = chunk;
    g->slice = slice;
    g->key = 0;
    g->copied = 0;
    g->from = g->chunk ? slice_values(g->chunk, g->slice)->vals : NULL;
    assert(!g->chunk || g->slice < g->chunk->count);
}

/* Lengths to their places. */
static size_t lens_turn(struct request *r, size_t left)
{
    struct gather *g = &r->gather;
    const struct slice *slice = slice_values(g->chunk, g->slice);
    size_t n = least(slice->span->count - g->key, left);
    assert(slice->state == SLICE_ANSWERED && slice->lens);
    assert(g->key < slice->span->count);
    for (size_t i = 0; i < n; i++, g->key++)
        r->dst_lens[place_of(g->chunk, slice->span, g->key)] = slice->lens[g->key];
    if (g->key == slice->span->count)
        slice_begin(g, g->chunk, g->slice + 1);
    return n;
}

/* Where each row begins. */
static size_t starts_turn(struct request *r, size_t left)
{
    struct gather *g = &r->gather;
    assert(g->starts <= r->n && (g->at || !r->n));
    assert(g->pass == GATHER_STARTS && !g->chunk);
    size_t end = g->starts + least(r->n - g->starts, left), n = end - g->starts;
    for (; g->starts < end; g->starts++) {
        g->at[g->starts] = g->total;
        g->total += r->dst_lens[g->starts];
    }
    return n;
}

/* Rows of a slice; a long one in parts. */
static size_t rows_turn(struct request *r, size_t left)
{
    struct gather *g = &r->gather;
    const struct slice *slice = slice_values(g->chunk, g->slice);
    assert(slice->state == SLICE_ANSWERED && g->key < slice->span->count);
    assert(g->pass == GATHER_ROWS && g->starts == r->n);
    uint64_t value = r->table->value_bytes;
    size_t spent = 0;
    while (g->key < slice->span->count && spent < left) {
        uint64_t len = slice->lens[g->key] * value;
        uint64_t part = least(len - g->copied, (left - spent) << TURN_BYTES_SHIFT);
        if (part) /* if all are empty, there are no values */
            memcpy(r->dst + g->at[place_of(g->chunk, slice->span, g->key)] * value + g->copied, g->from,
                   part);
        spent += 1 + (part >> TURN_BYTES_SHIFT);
        g->from = part ? g->from + part : g->from;
        g->copied += part;
        if (g->copied < len)
            continue;
        g->key++;
        g->copied = 0;
    }
    if (g->key == slice->span->count)
        slice_begin(g, g->chunk, g->slice + 1);
    return spent;
}

/* True: the request has ended. */
static bool turn(struct request *r, size_t left)
{
    struct gather *g = &r->gather;
    assert(r->pulls_lens && !r->ended && !r->unfinished);
    assert(!g->chunk || (g->chunk->request == r && g->pass != GATHER_STARTS));
    while (left) {
        size_t spent = 0;
        if (g->pass == GATHER_LENS && g->chunk) {
            spent = lens_turn(r, left);
        } else if (g->pass == GATHER_LENS) {
            gather_move(g, GATHER_STARTS);
        } else if (g->pass == GATHER_STARTS && g->starts < r->n) {
            spent = starts_turn(r, left);
        } else if (g->pass == GATHER_STARTS && g->total > r->dst_len) {
            request_end(r,
                        err_set(PARAMO_E_SIZE_MISMATCH,
                                "the rows hold %llu values, but there is room for %zu",
                                (unsigned long long)g->total, r->dst_len),
                        err_text());
            return true;
        } else if (g->pass == GATHER_STARTS) {
            gather_move(g, GATHER_ROWS);
            slice_begin(g, r->chunks, 0);
        } else if (g->chunk) {
            spent = rows_turn(r, left);
        } else {
            request_end(r, PARAMO_OK, "");
            return true;
        }
        r->client->gathers->spent += spent;
        left -= least(spent, left);
    }
    return false;
}

static size_t turn_cost(const struct client *c)
{
    return c->config.turn_keys ? c->config.turn_keys : TURN;
}

static void turn_soon(struct client *c)
{
    uint64_t pause =
        c->config.turn_keys ? ENV_MS : 0; /* in a simulation, other events come between two turns */
    if (!lane_timer_arm(c->lane, &c->gathers->timer, lane_now(c->lane) + pause))
        return;
    for (struct request *r = c->gathers->first; r; r = r->gather.next)
        while (!r->ended && !turn(r, SIZE_MAX))
            ;
}

static void gather_wait(struct request *r)
{
    assert(!r->gather.waits && !r->ended);
    assert(!r->unfinished && r->pulls_lens);
    struct request **at = &r->client->gathers->first;
    while (*at)
        at = &(*at)->gather.next;
    *at = r;
    r->gather.waits = true;
    r->gather.next = NULL;
}

static void gather_forget(struct request *r)
{
    struct request **at = &r->client->gathers->first;
    while (r->gather.waits && *at != r) {
        assert(*at); /* it waits there */
        at = &(*at)->gather.next;
    }
    if (r->gather.waits)
        *at = r->gather.next;
    r->gather.waits = false;
}

/* One turn of one request; then the next one has its turn. */
static void gather_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_gathers, timer)->client;
    struct request *r = c->gathers->first;
    assert(!client_is_down(c) && (!r || (r->gather.waits && r->client == c)));
    if (r && !turn(r, turn_cost(c)) && r->gather.next) {
        gather_forget(r);
        gather_wait(r);
    }
    client_finish(c);
    if (c->gathers->first)
        turn_soon(c);
    client_finish(c);
}

void gather_lens(struct request *r)
{
    struct client *c = r->client;
    struct gather *g = &r->gather;
    size_t bytes = r->n * sizeof *g->at;
    assert(!g->at && !g->waits);
    assert(!r->ended && !r->unfinished && r->pulls_lens);
    *g = (struct gather){.at = bufpool_get(&c->pool, bytes)};
    if (!g->at) {
        request_end(r, err_memory(bytes), err_text());
        return;
    }
    slice_begin(g, r->chunks, 0);
    if (turn(r, turn_cost(c)))
        return;
    gather_wait(r);
    if (!c->gathers->timer.slot)
        turn_soon(c);
}

void gather_end(struct request *r)
{
    assert(r->ended);
    gather_forget(r);
    bufpool_put_late(&r->client->pool, r->gather.at, r->n * sizeof *r->gather.at);
    r->gather = (struct gather){0};
}

void gather_init(struct client *c)
{
    c->gathers->client = c;
    c->gathers->timer.fire = gather_fire;
}

void gather_close(struct client *c)
{
    assert(client_is_down(c) && !c->gathers->first);
    lane_timer_cancel(c->lane, &c->gathers->timer);
}
