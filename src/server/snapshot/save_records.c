#include "server/snapshot/save_records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication/records.h"
#include "server/shard/senders.h"

/* A block of notes. */
struct save_notes {
    struct save_notes *next;
    size_t n;
    struct sender_note notes[SENDER_NOTES_MAX];
};

paramo_err save_records_begin(struct save_records *r, const struct shard *s,
                              const uint64_t partitions[PARTITION_WORDS])
{
    *r = (struct save_records){.shard = s, .next = senders_first(s), .windows_room = senders_count(s)};
    assert(!r->next == !r->windows_room);
    memcpy(r->partitions, partitions, sizeof r->partitions);
    r->windows = malloc((r->windows_room + 1) * sizeof *r->windows);
    return r->windows ? PARAMO_OK : err_memory(r->windows_room * sizeof *r->windows);
}

static struct sender_note *note_new(struct save_records *r)
{
    assert(!r->notes == !r->notes_last && (!r->notes || r->notes_last->n <= SENDER_NOTES_MAX));
    if (!r->notes_last || r->notes_last->n == SENDER_NOTES_MAX) {
        struct save_notes *more = malloc(sizeof *more);
        if (!more)
            return NULL;
        more->next = NULL;
        more->n = 0;
        if (r->notes_last)
            r->notes_last->next = more;
        else
            r->notes = more;
        r->notes_last = more;
    }
    assert(r->notes_last->n < SENDER_NOTES_MAX);
    return &r->notes_last->notes[r->notes_last->n++];
}

/* The numbers that are applied on some of the shard's partitions: they came through chains before this shard was
 * the owner, or with partitions. */
static paramo_err copy_notes(struct save_records *r, const struct sender *x)
{
    assert(r->windows_count > 0);
    assert(r->next == x);
    for (const struct applied_note *from = x->applied_window.applied_notes; from; from = from->next) {
        if (!applied_note_splits(from, r->partitions))
            continue;
        struct sender_note *note = note_new(r);
        if (!note)
            return err_memory(sizeof *r->notes);
        *note = (struct sender_note){.sender = x->id, .number = from->number};
        for (unsigned i = 0; i < PARTITION_WORDS; i++)
            note->partitions[i] = from->partitions[i] & r->partitions[i];
    }
    return PARAMO_OK;
}

paramo_err save_records_turn(struct save_records *r, bool *done)
{
    assert(r->windows_count <= r->windows_room);
    unsigned left = records_turn(r->shard);
    paramo_err err = PARAMO_OK;
    while (r->next && left && !err) {
        const struct sender *x = r->next;
        unsigned cost = RECORDS_COST + records_cost_of_notes(&x->applied_window);
        assert(r->windows_count < r->windows_room); /* senders that come are before those visited */
        r->windows[r->windows_count++] = (struct sender_window){
            .sender = x->id, .dedup = applied_window_extract(&x->applied_window, r->partitions)};
        err = copy_notes(r, x);
        r->next = x->next;
        r->spent += cost;
        left -= cost < left ? cost : left;
    }
    *done = !r->next;
    return err;
}

void save_records_sender_gone(struct save_records *r, const struct sender *sender)
{
    assert(r->shard);
    assert(r->windows_count <= r->windows_room);
    if (r->next == sender)
        r->next = sender->next;
}

/* For each run of partitions that is the shard's. */
static paramo_err put_windows(const struct save_records *r, struct ckpt_writer *writer)
{
    struct writer w = {0};
    paramo_err err = PARAMO_OK;
    sender_windows_encode(r->windows, r->windows_count, &w);
    if (w.failed)
        err = err_memory(w.len);
    for (unsigned a = partition_set_next(r->partitions, 0), end; a < RING_PARTITIONS && !err;
         a = partition_set_next(r->partitions, end)) {
        end = partition_set_next_absent(r->partitions, a);
        struct ckpt_block block = {
            .kind = CKPT_WINDOWS, .partition = a, .partitions = end - a, .payload = w.data, .bytes = w.len};
        err = ckpt_put(writer, &block);
    }
    writer_fini(&w);
    return err;
}

static paramo_err put_notes(const struct save_notes *list, struct ckpt_writer *writer)
{
    assert(list->n > 0 && list->n <= SENDER_NOTES_MAX);
    struct writer w = {0};
    sender_notes_encode(list->notes, list->n, &w);
    struct ckpt_block block = {
        .kind = CKPT_NOTES, .partition = 0, .partitions = RING_PARTITIONS, .payload = w.data, .bytes = w.len};
    paramo_err err = w.failed ? err_memory(w.len) : ckpt_put(writer, &block);
    writer_fini(&w);
    return err;
}

paramo_err save_records_put(const struct save_records *r, struct ckpt_writer *writer)
{
    assert(!r->next && !r->notes == !r->notes_last);
    paramo_err err = r->windows_count ? put_windows(r, writer) : PARAMO_OK;
    for (const struct save_notes *list = r->notes; list && !err; list = list->next)
        err = put_notes(list, writer); /* after the windows */
    return err;
}

void save_records_fini(struct save_records *r)
{
    free(r->windows);
    for (struct save_notes *list = r->notes, *next; list; list = next) {
        next = list->next;
        free(list);
    }
    *r = (struct save_records){0};
}
