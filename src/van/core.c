#include "van/core.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "van/pool.h"

enum { CHECKSUM_AT = 8, DEFAULT_FRAME_LIMIT = 4096 };

static uint64_t header_checksum(const uint8_t header[VAN_HEADER_BYTES])
{
    uint8_t copy[VAN_HEADER_BYTES];
    memcpy(copy, header, sizeof copy);
    memset(copy + CHECKSUM_AT, 0, 8);
    return hash_bytes(copy, sizeof copy);
}

static void header_encode(const struct van_frame *frame, uint8_t own, uint8_t out[VAN_HEADER_BYTES])
{
    struct writer w = writer_over(out, VAN_HEADER_BYTES);
    write_u32(&w, VAN_MAGIC);
    write_u8(&w, VAN_VERSION);
    write_u8(&w, frame->nseg);
    write_u8(&w, frame->class);
    write_u8(&w, own);
    write_u64(&w, 0);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        write_u64(&w, i < frame->nseg ? frame->seg[i].len : 0);
    write_bytes(&w, frame->head, VAN_HEAD);
    w.len = CHECKSUM_AT;
    write_u64(&w, hash_bytes(out, VAN_HEADER_BYTES));
}

void van_header_encode(const struct van_frame *frame, uint8_t out[VAN_HEADER_BYTES])
{
    header_encode(frame, 0, out);
}

void van_own_header_encode(uint64_t len, uint8_t out[VAN_HEADER_BYTES])
{
    struct van_frame frame = {.nseg = 1, .class = VAN_CONTROL, .seg[0].len = len};
    header_encode(&frame, 1, out);
}

/* The sum cannot overflow: each length is compared with the limit first. */
static paramo_err lengths_check(const uint64_t *len, unsigned nseg, uint64_t limit, uint64_t *padded)
{
    uint64_t left = limit;
    *padded = 0;
    for (unsigned i = 0; i < nseg; i++) {
        if (len[i] > left)
            return err_set(PARAMO_E_TOO_LARGE, "a frame is longer than the %llu bytes allowed",
                           (unsigned long long)limit);
        left -= len[i];
        *padded += van_padded(len[i]);
    }
    return PARAMO_OK;
}

paramo_err van_header_begins(const uint8_t *bytes, size_t have)
{
    struct reader r = reader_over(bytes, have);
    if (have < sizeof(uint32_t) || read_u32(&r) == VAN_MAGIC)
        return PARAMO_OK;
    return err_set(PARAMO_E_PROTOCOL, "not a Paramo frame (it begins with %02x %02x %02x %02x)", bytes[0],
                   bytes[1], bytes[2], bytes[3]);
}

paramo_err van_header_decode(const uint8_t in[VAN_HEADER_BYTES], uint64_t limit, struct van_header *header)
{
    struct reader r = reader_over(in, VAN_HEADER_BYTES);
    paramo_err err = van_header_begins(in, VAN_HEADER_BYTES);
    if (err)
        return err;
    (void)read_u32(&r);
    unsigned version = read_u8(&r);
    if (version != VAN_VERSION)
        return err_set(PARAMO_E_VERSION, "frame format %u, this side speaks %u", version, VAN_VERSION);
    header->nseg = read_u8(&r);
    header->class = read_u8(&r);
    unsigned own = read_u8(&r);
    if (read_u64(&r) != header_checksum(in))
        return err_set(PARAMO_E_PROTOCOL, "a frame header is damaged");
    if (header->nseg > VAN_SEGS || header->class >= VAN_CLASSES || own > 1)
        return err_set(PARAMO_E_PROTOCOL, "a frame header of %u segments and class %u is not valid",
                       header->nseg, header->class);
    header->own = own == 1;
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        header->len[i] = read_u64(&r);
        if (i >= header->nseg && header->len[i] != 0)
            return err_set(PARAMO_E_PROTOCOL,
                           "a frame header gives a length to a segment that does not exist");
    }
    read_bytes(&r, header->head, VAN_HEAD);
    return lengths_check(header->len, header->nseg, limit < UINT64_MAX / 2 ? limit : UINT64_MAX / 2,
                         &header->padded);
}

paramo_err van_frame_check(const struct van_seg *seg, unsigned nseg, uint64_t limit)
{
    uint64_t len[VAN_SEGS];
    uint64_t padded;
    for (unsigned i = 0; i < nseg; i++)
        len[i] = seg[i].len;
    return lengths_check(len, nseg, limit, &padded);
}

paramo_err van_init(struct van *van, const struct van_ops *ops, struct env *env)
{
    van->ops = ops;
    van->env = env;
    van->orphans = NULL;
    atomic_init(&van->drop_percent, 0);
    int cause = pthread_mutex_init(&van->orphan_lock, NULL);
    if (cause)
        return err_errno(PARAMO_E_SYSTEM, cause, "make the lock of a van");
    paramo_err err = pool_create(&van->pool);
    if (err)
        pthread_mutex_destroy(&van->orphan_lock);
    return err;
}

void van_fini(struct van *van)
{
    pool_destroy(van->pool);
    pthread_mutex_destroy(&van->orphan_lock);
}

void van_conn_init(struct van_conn *conn, struct van *van, struct lane *lane)
{
    assert(!conn->user_ops);
    assert(!conn->orphan);
    conn->van = van;
    conn->lane = lane;
    /* Arbitrary except for their order: a peer that floods requests leaves room for all later stages. */
    conn->limits = (struct van_limits){.frame_bytes = DEFAULT_FRAME_LIMIT,
                                       .queue_bytes = {[VAN_CONTROL] = UINT64_C(1) << 20,
                                                       [VAN_ANSWER] = UINT64_C(16) << 20,
                                                       [VAN_CHAIN] = UINT64_C(16) << 20,
                                                       [VAN_REQUEST] = UINT64_C(8) << 20}};
}

bool van_drops(struct van *van, uint8_t class)
{
    unsigned percent = atomic_load_explicit(&van->drop_percent, memory_order_relaxed);
    return percent && class != VAN_CONTROL && env_random(van->env) % 100 < percent;
}

paramo_err van_ask_place(struct van_conn *conn, const uint8_t *head, const uint64_t *len, unsigned nseg,
                         void *dst[VAN_SEGS])
{
    for (unsigned i = 0; i < VAN_SEGS; i++)
        dst[i] = VAN_POOL;
    return conn->user_ops->place ? conn->user_ops->place(conn->user, conn, head, len, nseg, dst) : PARAMO_OK;
}

paramo_err van_deliver(struct van_conn *conn, const uint8_t *head, const struct van_seg *seg, unsigned nseg,
                       struct van_hold *hold, unsigned borrowed)
{
    assert(!conn->rx_hold && !conn->rx_borrowed);
    assert(nseg <= VAN_SEGS);
    conn->counters.frames_received++;
    lane_count(conn->lane);
    conn->rx_hold = hold;
    conn->rx_borrowed = borrowed;
    paramo_err err = conn->user_ops->frame(conn->user, conn, head, seg, nseg);
    conn->rx_hold = NULL;
    conn->rx_borrowed = 0;
    return err;
}

const void *van_note(const struct van_conn *conn)
{
    return conn->rx_note;
}

bool van_flush_wait(struct van_conn *conn, struct lane_timer *timer)
{
    uint64_t now = lane_now(conn->lane), sent = conn->counters.bytes_sent;
    assert(conn->flush_sent <= sent);
    if (!conn->flush_until)
        conn->flush_until = now + VAN_FLUSH_MOST * ENV_SEC;
    else if (sent == conn->flush_sent || now >= conn->flush_until)
        return false;
    conn->flush_sent = sent;
    uint64_t at = now + VAN_FLUSH_SECONDS * ENV_SEC;
    return lane_timer_arm(conn->lane, timer, at < conn->flush_until ? at : conn->flush_until) == PARAMO_OK;
}

void van_orphan_add(struct van_conn *conn)
{
    struct van *van = conn->van;
    pthread_mutex_lock(&van->orphan_lock);
    assert(!conn->orphan);
    assert(!van->orphans || !van->orphans->orphan_prev);
    conn->orphan = true;
    conn->orphan_prev = NULL;
    conn->orphan_next = van->orphans;
    if (van->orphans)
        van->orphans->orphan_prev = conn;
    van->orphans = conn;
    pthread_mutex_unlock(&van->orphan_lock);
}

void van_orphan_remove(struct van_conn *conn)
{
    struct van *van = conn->van;
    if (!conn->orphan)
        return;
    pthread_mutex_lock(&van->orphan_lock);
    assert(conn->orphan_prev ? conn->orphan_prev->orphan_next == conn : van->orphans == conn);
    assert(!conn->orphan_next || conn->orphan_next->orphan_prev == conn);
    conn->orphan = false;
    if (conn->orphan_prev)
        conn->orphan_prev->orphan_next = conn->orphan_next;
    else
        van->orphans = conn->orphan_next;
    if (conn->orphan_next)
        conn->orphan_next->orphan_prev = conn->orphan_prev;
    pthread_mutex_unlock(&van->orphan_lock);
}
