#include "wire/sender_records.h"

#include <stdlib.h>

enum { WINDOW_WORDS = DATA_WINDOW / 64, WINDOWS_MAX = 1 << 20 };
/* An entry of a list: the sender's name, aligned, the floor or number, and words of bits. */
enum { ENTRY_BYTES = 32 };

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "a block of senders' records is not valid: %s", what);
}

/* The head of a list: u32 entries, u32 words of bits in each. False: not a list of at most `most` such entries. */
static bool list_decode(struct reader *r, uint32_t words, uint32_t most, uint32_t *count)
{
    *count = read_u32(r);
    return read_u32(r) == words && !r->failed && *count <= most &&
           r->left == *count * (ENTRY_BYTES + 8 * (size_t)words);
}

static void list_encode(size_t n, uint32_t words, struct writer *w)
{
    write_u32(w, (uint32_t)n);
    write_u32(w, words);
}

void sender_windows_encode(const struct sender_window *windows, size_t n, struct writer *w)
{
    list_encode(n, WINDOW_WORDS, w);
    for (size_t i = 0; i < n; i++) {
        sender_id_encode_aligned(&windows[i].sender, w);
        write_u64(w, windows[i].dedup.floor);
        for (size_t k = 0; k < WINDOW_WORDS; k++)
            write_u64(w, windows[i].dedup.bits[k]);
    }
}

paramo_err sender_windows_decode(const void *payload, size_t bytes, struct sender_window **windows, size_t *n)
{
    struct reader r = reader_over(payload, bytes);
    uint32_t count;
    if (!list_decode(&r, WINDOW_WORDS, WINDOWS_MAX, &count))
        return wrong("its windows are malformed");
    struct sender_window *list = calloc(count + 1, sizeof *list);
    if (!list)
        return err_memory(count * sizeof *list);
    for (uint32_t i = 0; i < count; i++) {
        list[i].sender = sender_id_decode_aligned(&r);
        list[i].dedup.floor = read_u64(&r);
        for (size_t k = 0; k < WINDOW_WORDS; k++)
            list[i].dedup.bits[k] = read_u64(&r);
        if (!list[i].dedup.floor) /* numbers begin at 1 */
            r.failed = true;
    }
    if (!reader_done(&r)) {
        free(list);
        return wrong("its windows are malformed");
    }
    *windows = list;
    *n = count;
    return PARAMO_OK;
}

/* The two forms of a note differ in the alignment of the sender's name. */
static void note_encode(const struct sender_note *note, bool aligned, struct writer *w)
{
    if (aligned)
        sender_id_encode_aligned(&note->sender, w);
    else
        sender_id_encode(&note->sender, w);
    write_u64(w, note->number);
    partition_bits_encode(note->partitions, w);
}

static void note_decode(struct reader *r, bool aligned, struct sender_note *note)
{
    note->sender = aligned ? sender_id_decode_aligned(r) : sender_id_decode(r);
    note->number = read_u64(r);
    partition_bits_decode(r, note->partitions);
}

void sender_notes_encode(const struct sender_note *notes, size_t n, struct writer *w)
{
    list_encode(n, PARTITION_BITS_WORDS, w);
    for (size_t i = 0; i < n; i++)
        note_encode(&notes[i], true, w);
}

paramo_err sender_notes_decode(const void *payload, size_t bytes, struct sender_note **notes, size_t *n)
{
    struct reader r = reader_over(payload, bytes);
    uint32_t count;
    if (!list_decode(&r, PARTITION_BITS_WORDS, SENDER_NOTES_MAX, &count))
        return wrong("its notes are malformed");
    struct sender_note *list = calloc(count + 1, sizeof *list);
    if (!list)
        return err_memory(count * sizeof *list);
    for (uint32_t i = 0; i < count; i++)
        note_decode(&r, true, &list[i]);
    if (!reader_done(&r)) {
        free(list);
        return wrong("its notes are malformed");
    }
    *notes = list;
    *n = count;
    return PARAMO_OK;
}

void sender_note_encode(const struct sender_note *note, struct writer *w)
{
    note_encode(note, false, w);
}

struct sender_note sender_note_decode(struct reader *r)
{
    struct sender_note note;
    note_decode(r, false, &note);
    return note;
}
