#include "cluster/session/control_message.h"

#include <assert.h>
#include <stdlib.h>

struct control_message {
    struct van_frame frame;
    struct control_message_body *shared; /* NULL: the body follows */
    uint8_t body[];
};

struct control_message_body {
    unsigned refs;
    size_t len;
    uint8_t *data;
};

static void control_message_done(struct van_frame *frame, paramo_err status)
{
    (void)status; /* the caller that misses the answer sends it again */
    struct control_message *control_message = container_of(frame, struct control_message, frame);
    control_message_body_unref(control_message->shared);
    free(control_message);
}

static paramo_err control_message_leave(struct van_conn *conn, const struct wire_head *head,
                                        struct control_message *control_message)
{
    assert(control_message->frame.nseg <= 1 && !control_message->frame.done);
    assert(!control_message->shared || control_message->frame.nseg == 1);
    wire_head_encode(head, control_message->frame.head);
    control_message->frame.class = VAN_CONTROL;
    control_message->frame.done = control_message_done;
    paramo_err err = van_send(conn, &control_message->frame);
    if (err)
        control_message_done(&control_message->frame, err);
    return err;
}

paramo_err control_message_send(struct van_conn *conn, const struct wire_head *head, const void *body,
                                size_t len)
{
    assert(!len || body);
    struct control_message *control_message = malloc(sizeof *control_message + len);
    if (!control_message)
        return err_memory(sizeof *control_message + len);
    memset(control_message, 0, sizeof *control_message);
    if (len) {
        memcpy(control_message->body, body, len);
        control_message->frame.seg[0] = (struct van_seg){control_message->body, len};
        control_message->frame.nseg = 1;
    }
    return control_message_leave(conn, head, control_message);
}

paramo_err control_message_send_written(struct van_conn *conn, const struct wire_head *head, struct writer *w)
{
    assert(!w->fixed);
    paramo_err err = w->failed ? err_memory(w->len) : control_message_send(conn, head, w->data, w->len);
    writer_fini(w);
    return err;
}

struct control_message_body *control_message_body_new(struct writer *w)
{
    assert(!w->fixed);
    struct control_message_body *body = w->failed ? NULL : malloc(sizeof *body);
    if (!body) {
        writer_fini(w);
        return NULL;
    }
    *body = (struct control_message_body){.refs = 1, .len = w->len, .data = w->data};
    *w = (struct writer){0};
    return body;
}

struct control_message_body *control_message_body_ref(struct control_message_body *body)
{
    assert(body->refs > 0);
    body->refs++;
    return body;
}

void control_message_body_unref(struct control_message_body *body)
{
    assert(!body || body->refs > 0);
    if (!body || --body->refs)
        return;
    free(body->data);
    free(body);
}

void control_message_body_write(const struct control_message_body *body, struct writer *w)
{
    assert(body->refs > 0);
    write_bytes(w, body->data, body->len);
}

paramo_err control_message_send_shared(struct van_conn *conn, const struct wire_head *head,
                                       struct control_message_body *body)
{
    assert(body->refs > 0);
    assert((!body->len || body->data));
    struct control_message *control_message = calloc(1, sizeof *control_message);
    if (!control_message)
        return err_memory(sizeof *control_message);
    control_message->shared = control_message_body_ref(body);
    control_message->frame.seg[0] = (struct van_seg){body->data, body->len};
    control_message->frame.nseg = 1;
    return control_message_leave(conn, head, control_message);
}

paramo_err control_message_open(const uint8_t bytes[VAN_HEAD], const struct van_seg *seg, unsigned nseg,
                                struct wire_head *head, struct reader *body)
{
    paramo_err err = wire_open(bytes, seg, nseg, head);
    if (err)
        return err;
    if (nseg > 1)
        return err_set(PARAMO_E_PROTOCOL, "%s has %u segments instead of at most 1",
                       wire_kind_name(head->kind), nseg);
    *body = nseg ? reader_over(seg[0].data, seg[0].len) : reader_over(NULL, 0);
    return PARAMO_OK;
}
