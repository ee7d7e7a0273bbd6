#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx_switch.h"

#include <assert.h>
#include <string.h>

#include "van/copy.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"

/* AREA_MIN: fewer bytes go in a message, since the area does not pay off. PART: the bytes that one message announces,
 * so that the peer reads them while the next part is written. RUN_MAX: the most bytes in one piece. Even if as many
 * are skipped at the area's end, and TELL bytes are read but not yet reported, there is room for such a piece. So
 * neither side waits for the other forever. */
enum { AREA_MIN = 16 << 10, PART = 64 << 10, RUN_MAX = AREA_BYTES / 8 * 3, TELL = AREA_BYTES / 8 };

static const uint64_t words[MESSAGE_KINDS] = {MESSAGE_DATA, MESSAGE_PROBE, MESSAGE_ECHO, MESSAGE_GO,
                                              MESSAGE_END};

/* If both ends are in one process, ThreadSanitizer does not see that a message's sending happens before its
 * receipt. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *);
void __tsan_release(void *);
static char by_memory;
#define CARRY_AWAY() __tsan_release(&by_memory)
#define CARRY_IN()   __tsan_acquire(&by_memory)
#else
#define CARRY_AWAY() ((void)0)
#define CARRY_IN()   ((void)0)
#endif

/* ---- messages ------------------------------------------------------------------------------------------ */

static void send_failed(struct ucx_way *way, ucs_status_t status)
{
    tcp_break_later(way->conn, err_set(PARAMO_E_DISCONNECTED, "UCX to %s: %s", way->conn->base.peer,
                                       way->context->api->status_string(status)));
}

/* Sends a message that has only a word. The word's memory is used until the message is sent. True: it is not
 * sent yet. */
static bool word_send(struct ucx_way *way, const uint64_t *word, ucp_send_nbx_callback_t done)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .cb.send = done,
                                 .user_data = way};
    CARRY_AWAY();
    ucs_status_ptr_t sent =
        way->context->api->am_send(way->ep, UCX_AM_ID, word, sizeof *word, NULL, 0, &param);
    if (UCS_PTR_IS_ERR(sent))
        send_failed(way, UCS_PTR_STATUS(sent));
    return UCS_PTR_IS_PTR(sent);
}

static void signal_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    (void)status; /* a failure shows as the socket's end or as a timeout of the set-up */
    way->moved = true;
    way->context->api->request_free(request);
}

void ucx_signal(struct ucx_way *way, enum ucx_message message)
{
    (void)word_send(way, &words[message], signal_sent);
}

static void data_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    assert(way->pending);
    way->moved = true;
    way->pending = false;
    way->context->api->request_free(request);
    if (!way->conn)
        return;
    if (status != UCS_OK)
        send_failed(way, status);
    else
        tcp_way_open(way->conn, way->message_len);
}

/* UCX asks for the bytes of a message when it has room for them, which may be long after the message was
 * posted. They are the bytes to send next at that time. */
static void *pack_start(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static size_t pack_size(void *state)
{
    return ((const struct ucx_way *)state)->message_len;
}

/* Copies len bytes of iov, from skip on, or fewer at its end. */
static size_t copy_out(uint8_t *to, const struct iovec *iov, int n, size_t skip, size_t len)
{
    size_t at = 0;
    for (int i = 0; i < n && at < len; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        size_t have = iov[i].iov_len - skip, take = have < len - at ? have : len - at;
        copy_away(to + at, (const uint8_t *)iov[i].iov_base + skip, take);
        at += take;
        skip = 0;
    }
    CARRY_AWAY();
    return at;
}

static size_t pack(void *state, size_t offset, void *dst, size_t len)
{
    struct ucx_way *way = state;
    struct iovec iov[1 + 2 * VAN_SEGS];
    int n = 0;
    if (way->conn)
        (void)tcp_gather(way->conn, iov, &n, offset + len);
    return copy_out(dst, iov, n, offset, len);
}

static void pack_finish(void *state)
{
    (void)state;
}

static void *unpack_start(void *context, void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return buffer;
}

static ucs_status_t unpack(void *state, size_t offset, const void *src, size_t len)
{
    (void)state;
    (void)offset;
    (void)src;
    (void)len;
    return UCS_ERR_UNSUPPORTED; /* messages are read in place */
}

const ucp_generic_dt_ops_t ucx_pack_ops = {.start_pack = pack_start,
                                           .start_unpack = unpack_start,
                                           .packed_size = pack_size,
                                           .pack = pack,
                                           .unpack = unpack,
                                           .finish = pack_finish};

/* ---- sending ------------------------------------------------------------------------------------------- */

/* Copies bytes into our area, where the peer reads them. Bytes that fit stay in one piece (run). */
static size_t area_write(struct ucx_way *way, const struct iovec *iov, int n, size_t len)
{
    size_t run = way->run_left && way->run_left < len ? way->run_left : len;
    size_t room = AREA_BYTES - (size_t)(way->head % AREA_BYTES);
    struct ucx_word word = {.message = MESSAGE_AREA, .wrap = !way->run_left && run <= RUN_MAX && run > room};
    uint64_t end = way->head;
    size_t part = run < PART ? run : PART, offset;
    word.len = (uint32_t)(!word.wrap && part > room ? room : part);
    if (ucx_area_step(&word, &end, &offset) || end - way->tail > AREA_BYTES) {
        way->full = true;
        return 0;
    }
    (void)copy_out(way->ours.data + offset, iov, n, 0, word.len);
    way->head = end;
    way->run_left = run - word.len;
    way->area_word = ucx_word_encode(&word);
    way->message_len = word.len;
    way->pending = word_send(way, &way->area_word, data_sent);
    return way->pending ? 0 : word.len;
}

size_t ucx_write(struct tcp_conn *conn, const struct iovec *iov, int n)
{
    struct ucx_way *way = conn->way;
    if (way->pending || way->full)
        return 0;
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    if (way->ours.head && (way->run_left || len >= AREA_MIN))
        return area_write(way, iov, n, len);
    way->message_len = len < way->context->message_bytes ? len : way->context->message_bytes;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .datatype = way->context->datatype,
                                 .cb.send = data_sent,
                                 .user_data = way};
    ucs_status_ptr_t sent = way->context->api->am_send(way->ep, UCX_AM_ID, &words[MESSAGE_DATA],
                                                       sizeof words[MESSAGE_DATA], way, 1, &param);
    if (UCS_PTR_IS_ERR(sent))
        send_failed(way, UCS_PTR_STATUS(sent));
    way->pending = UCS_PTR_IS_PTR(sent);
    return !sent ? way->message_len : 0;
}

/* ---- receiving ----------------------------------------------------------------------------------------- */

static void room_tell(struct ucx_way *way);

static void room_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    signal_sent(request, status, arg);
    way->room_pending = false;
    if (way->conn)
        room_tell(way);
}

static void room_tell(struct ucx_way *way)
{
    if (way->room_pending || way->released - way->told < TELL)
        return;
    way->told = way->released;
    way->room_word = ucx_word_encode(&(struct ucx_word){.message = MESSAGE_ROOM, .position = way->told});
    way->room_pending = word_send(way, &way->room_word, room_sent);
}

static paramo_err room_came(struct ucx_way *way, const struct ucx_word *word)
{
    if (word->position <= way->tail || word->position > way->head)
        return err_set(PARAMO_E_PROTOCOL, "the peer frees bytes that were not written");
    way->tail = word->position;
    if (way->full) {
        way->full = false;
        tcp_way_open(way->conn, 0);
    }
    return PARAMO_OK;
}

static paramo_err area_came(struct ucx_way *way, const struct ucx_word *word)
{
    size_t offset;
    if (!way->theirs.head || !way->ep)
        return err_set(PARAMO_E_PROTOCOL, "the peer wrote to an area that does not exist");
    paramo_err err = ucx_area_step(word, &way->at, &offset);
    if (err)
        return err;
    size_t lasting = AREA_BYTES - offset;
    (void)tcp_recv_bytes(way->conn, way->theirs.data + offset, word->len,
                         lasting < RUN_MAX ? lasting : RUN_MAX);
    if (!way->conn)
        return PARAMO_OK;
    if (!tcp_recv_in_place(way->conn))
        way->released = way->at;
    room_tell(way);
    return PARAMO_OK;
}

paramo_err ucx_word_came(const void *header, size_t header_len, const ucp_am_recv_param_t *param,
                         struct ucx_word *word)
{
    uint64_t bits;
    bool whole = header_len == sizeof bits && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    memcpy(&bits, whole ? header : &(uint64_t){UINT64_MAX}, sizeof bits);
    CARRY_IN();
    return ucx_word_decode(bits, word);
}

paramo_err ucx_bytes_came(struct ucx_way *way, const struct ucx_word *word, void *data, size_t len)
{
    if (word->message == MESSAGE_AREA)
        return area_came(way, word);
    if (word->message == MESSAGE_ROOM)
        return room_came(way, word);
    assert(word->message == MESSAGE_DATA);
    (void)tcp_recv_bytes(way->conn, data, len, 0);
    return PARAMO_OK;
}
#else
typedef int ucx_switch_is_left_out; /* a translation unit may not be empty */
#endif
