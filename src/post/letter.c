#include "post/letter.h"

#include <stdlib.h>

struct letter {
    struct van_frame frame;
    struct letter_body *shared; /* or the body follows */
    uint8_t body[];
};

struct letter_body {
    unsigned refs;
    size_t len;
    uint8_t *data;
};

static void letter_done(struct van_frame *frame, paramo_err status)
{
    (void)status; /* a lost letter is repeated by whoever misses its answer */
    struct letter *letter = container_of(frame, struct letter, frame);
    letter_body_unref(letter->shared);
    free(letter);
}

static paramo_err letter_leave(struct van_conn *conn, const struct wire_head *head, struct letter *letter)
{
    wire_head_encode(head, letter->frame.head);
    letter->frame.class = VAN_CONTROL;
    letter->frame.done = letter_done;
    paramo_err err = van_send(conn, &letter->frame);
    if (err)
        letter_done(&letter->frame, err);
    return err;
}

paramo_err letter_send(struct van_conn *conn, const struct wire_head *head, const void *body, size_t len)
{
    struct letter *letter = malloc(sizeof *letter + len);
    if (!letter)
        return err_memory(sizeof *letter + len);
    memset(letter, 0, sizeof *letter);
    if (len) {
        memcpy(letter->body, body, len);
        letter->frame.seg[0] = (struct van_seg){letter->body, len};
        letter->frame.nseg = 1;
    }
    return letter_leave(conn, head, letter);
}

paramo_err letter_send_written(struct van_conn *conn, const struct wire_head *head, struct writer *w)
{
    paramo_err err = w->failed ? err_memory(w->len) : letter_send(conn, head, w->data, w->len);
    writer_fini(w);
    return err;
}

struct letter_body *letter_body_new(struct writer *w)
{
    struct letter_body *body = w->failed ? NULL : malloc(sizeof *body);
    if (!body) {
        writer_fini(w);
        return NULL;
    }
    *body = (struct letter_body){.refs = 1, .len = w->len, .data = w->data};
    *w = (struct writer){0};
    return body;
}

struct letter_body *letter_body_ref(struct letter_body *body)
{
    body->refs++;
    return body;
}

void letter_body_unref(struct letter_body *body)
{
    if (!body || --body->refs)
        return;
    free(body->data);
    free(body);
}

void letter_body_write(const struct letter_body *body, struct writer *w)
{
    write_bytes(w, body->data, body->len);
}

paramo_err letter_send_shared(struct van_conn *conn, const struct wire_head *head, struct letter_body *body)
{
    struct letter *letter = calloc(1, sizeof *letter);
    if (!letter)
        return err_memory(sizeof *letter);
    letter->shared = letter_body_ref(body);
    letter->frame.seg[0] = (struct van_seg){body->data, body->len};
    letter->frame.nseg = 1;
    return letter_leave(conn, head, letter);
}

paramo_err letter_open(const uint8_t bytes[VAN_HEAD], const struct van_seg *seg, unsigned nseg,
                       struct wire_head *head, struct reader *body)
{
    paramo_err err = wire_head_decode(bytes, head);
    if (err)
        return err;
    if (nseg > 1)
        return err_set(PARAMO_E_PROTOCOL, "%s with %u segments", wire_kind_name(head->kind), nseg);
    *body = nseg ? reader_over(seg[0].data, seg[0].len) : reader_over(NULL, 0);
    return PARAMO_OK;
}
