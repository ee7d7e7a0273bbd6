#include "learn/data/reader.h"
#include "learn/data/reader_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bad_lines {
    struct reader *reader;
    uint32_t stream;
    uint64_t index;
    const struct stream_text *text;
    int seen;                         /* they were counted in an earlier epoch */
    uint64_t bad;                     /* their number in this part */
    char first_bad[PARAMO_ERROR_MAX]; /* ":17: what" if one of them is the first of the reader */
};

static void note_first_bad(struct reader *r, const char *message)
{
    (void)pthread_mutex_lock(&r->lock);
    (void)snprintf(r->first_bad, sizeof r->first_bad, "%s", message);
    (void)pthread_mutex_unlock(&r->lock);
}

static paramo_err on_bad_line(void *arg, uint64_t line, const char *what)
{
    struct bad_lines *bad = arg;
    struct reader *r = bad->reader;
    bad->bad++;
    if (bad->seen)
        return PARAMO_OK;
    uint64_t count = atomic_fetch_add(&r->bad_lines, 1) + 1;
    if (count > 1 && count <= r->skip_bad)
        return PARAMO_OK;
    char message[PARAMO_ERROR_MAX];
    const char *name = reader_stream_name(r, bad->stream);
    uint64_t first = stream_first_line(r->stream[bad->stream], bad->text);
    if (first != 0)
        (void)snprintf(bad->first_bad, sizeof bad->first_bad, ":%llu: %s", (unsigned long long)first + line,
                       what);
    else
        (void)snprintf(bad->first_bad, sizeof bad->first_bad, ": %s", what);
    (void)snprintf(message, sizeof message, "%s%s", name, bad->first_bad);
    if (count <= r->skip_bad) {
        note_first_bad(r, message);
        return PARAMO_OK;
    }
    (void)atomic_fetch_sub(&r->bad_lines, 1); /* it was not skipped */
    if (r->skip_bad > 0) {
        return paramo_error_set(PARAMO_E_FORMAT, "%s (more than %llu bad lines)", message,
                                (unsigned long long)r->skip_bad);
    }
    return paramo_error_set(PARAMO_E_FORMAT, "%s", message);
}

static paramo_err scratch_get(struct reader *r, struct parse_scratch **scratch)
{
    (void)pthread_mutex_lock(&r->lock);
    *scratch = r->idle;
    if (*scratch)
        r->idle = (*scratch)->next;
    (void)pthread_mutex_unlock(&r->lock);
    if (!*scratch && !(*scratch = calloc(1, sizeof **scratch)))
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    return PARAMO_OK;
}

static void scratch_put(struct reader *r, struct parse_scratch *scratch)
{
    (void)pthread_mutex_lock(&r->lock);
    scratch->next = r->idle;
    r->idle = scratch;
    (void)pthread_mutex_unlock(&r->lock);
}

/* Makes a part's block of the rows of one side in buffer, or of all rows (side NULL). */
static paramo_err make_block(const struct parse_buffer *buffer, enum reader_fields wanted,
                             const uint8_t *side, enum holdout_side want, const struct block *part,
                             struct held **held)
{
    struct held *h = calloc(1, sizeof *h);
    if (!h)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of rows");
    const int fields = wanted != READER_NO_FIELDS;
    paramo_err err = !side ? parse_block(buffer, fields, &h->block)
                           : parse_block_side(buffer, fields, side, (uint8_t)want, &h->block);
    if (err != PARAMO_OK) {
        free(h);
        return err;
    }
    const struct block_shape shape = block_shape(&h->block);
    h->bytes = block_bytes(&shape) + sizeof *h;
    h->block.stream = part->stream;
    h->block.index = part->index;
    h->block.first_line = part->first_line;
    atomic_init(&h->owners, 1);
    *held = h;
    return PARAMO_OK;
}

/* Decides the side of each row of a part. */
static paramo_err draw_sides(struct reader *r, struct parse_scratch *scratch, const struct block *part,
                             size_t rows)
{
    if (rows > scratch->side_cap) {
        free(scratch->side);
        scratch->side = malloc(rows);
        scratch->side_cap = scratch->side ? rows : 0;
        if (!scratch->side)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    }
    if (r->folds > 0)
        holdout_fold(part->stream, part->index, r->folds, r->fold, rows, scratch->side);
    else
        holdout_sides(part->stream, part->index, r->hold_out, rows, scratch->side);
    return PARAMO_OK;
}

/* Fills held[] for each side that there is, from the rows of buffer. */
static paramo_err cut_sides(struct reader *r, struct parse_scratch *scratch,
                            const struct parse_buffer *buffer, const struct block *part, struct held *held[2])
{
    const int two = r->hold_out > 0;
    paramo_err err = two ? draw_sides(r, scratch, part, buffer->rows) : PARAMO_OK;
    for (unsigned i = 0; err == PARAMO_OK && i < (two ? 2u : 1u); i++)
        err = make_block(buffer, r->fields, two ? scratch->side : NULL, (enum holdout_side)i, part, &held[i]);
    return err;
}

/* Keeps the rows of buffer on disk. Returns 1 on success. */
static int keep_part(struct reader *r, const struct parse_buffer *buffer, const struct block *part,
                     const struct bad_lines *bad, const struct held *learn)
{
    struct held *all = NULL;
    if (!r->kept)
        return 0;
    if (r->hold_out == 0) /* there is one side: all rows */
        return disk_cache_put(r->kept, part->stream, &learn->block, bad->bad, bad->first_bad);
    if (make_block(buffer, r->fields, NULL, HOLDOUT_LEARN, part, &all) != PARAMO_OK)
        return 0;
    const int kept = disk_cache_put(r->kept, part->stream, &all->block, bad->bad, bad->first_bad);
    held_release(all);
    return kept;
}

/* Fills held[] for each side that there is. */
static paramo_err parse_part(struct reader *r, struct parse_scratch *scratch, struct bad_lines *bad,
                             struct held *held[2], int *kept)
{
    const struct parse_settings settings = {
        .format = (enum parse_format)atomic_load(&r->stream_format[bad->stream]),
        .hash_bits = r->hash_bits,
        .label = r->label,
        .columns = r->columns,
        .plan = r->plan[bad->stream],
        .header = bad->index == 0,
        .names = r->names_of_keys,
    };
    const struct block part = {
        .stream = bad->stream, .index = bad->index, .first_line = scratch->text.first_line};
    const size_t mark = bad->index == 0 ? parse_mark(scratch->text.data, scratch->text.len) : 0;
    paramo_err err = parse_text(&settings, scratch->text.data + mark, scratch->text.len - mark,
                                &scratch->buffer, on_bad_line, bad);
    if (err == PARAMO_OK)
        err = cut_sides(r, scratch, &scratch->buffer, &part, held);
    if (err != PARAMO_OK)
        return err;
    *kept = keep_part(r, &scratch->buffer, &part, bad, held[HOLDOUT_LEARN]);
    (void)atomic_fetch_add(&r->parts_parsed, 1);
    (void)atomic_fetch_add(&r->rows_parsed, scratch->buffer.rows);
    (void)atomic_fetch_add(&r->text_bytes, scratch->text.len);
    return PARAMO_OK;
}

/* Counts the bad lines of a part that was kept on disk. Returns 0 if they are too many: the text must be parsed, for
 * the message. */
static int count_kept_bad(struct reader *r, uint32_t stream, uint64_t bad, const char *first_bad)
{
    char message[PARAMO_ERROR_MAX];
    const uint64_t count = atomic_fetch_add(&r->bad_lines, bad) + bad;
    if (count > r->skip_bad) {
        (void)atomic_fetch_sub(&r->bad_lines, bad);
        return 0;
    }
    (void)snprintf(message, sizeof message, "%s%s", reader_stream_name(r, stream),
                   first_bad[0] != '\0' ? first_bad : ": a bad line");
    if (count == bad)
        note_first_bad(r, message);
    return 1;
}

/* Reads the part from disk into held[]; they stay NULL if it is not there. */
static paramo_err kept_part(struct reader *r, struct parse_scratch *scratch, const struct bad_lines *bad,
                            struct held *held[2])
{
    struct held *all;
    uint64_t lines;
    char first_bad[PARAMO_ERROR_MAX];
    if (!r->kept || !disk_cache_get(r->kept, bad->stream, bad->index, &all, &lines, first_bad))
        return PARAMO_OK;
    if (lines > 0 && !bad->seen && !count_kept_bad(r, bad->stream, lines, first_bad)) {
        held_release(all);
        return PARAMO_OK;
    }
    (void)atomic_fetch_add(&r->parts_kept, 1);
    if (r->hold_out == 0) {
        held[HOLDOUT_LEARN] = all;
        return PARAMO_OK;
    }
    const struct block *b = &all->block;
    const struct parse_buffer view = {.rows = b->rows,
                                      .features = b->features,
                                      .not_one = b->value != NULL,
                                      .has_field = b->field != NULL,
                                      .has_weight = b->weight != NULL,
                                      .label = b->label,
                                      .weight = b->weight,
                                      .offset = b->offset,
                                      .key = b->key,
                                      .value = b->value,
                                      .field = b->field};
    paramo_err err = cut_sides(r, scratch, &view, b, held);
    held_release(all);
    return err;
}

/* Takes the part that reader_peek has kept; NULL if it is not this one. */
static struct held *take_peeked(struct reader *r, uint32_t stream, uint64_t index)
{
    struct held *first = NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->peeked && r->peeked->block.stream == stream && r->peeked->block.index == index) {
        first = r->peeked;
        r->peeked = NULL;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return first;
}

/* Adds the features of pairs of fields. */
static paramo_err interact_held(struct reader *r, struct held *held)
{
    struct block with;
    paramo_err err = interact_block(&r->interactions, r->hash_bits, &held->block, &with);
    if (err != PARAMO_OK)
        return err;
    const struct block_shape shape = block_shape(&with);
    atomic_fetch_add(&r->pairs_made, with.features - held->block.features);
    block_free(&held->block);
    held->block = with;
    held->bytes = block_bytes(&shape) + sizeof *held;
    return PARAMO_OK;
}

/* Reads the next part from the text; *ended: the stream ends before it. */
static paramo_err text_part(struct reader *r, struct parse_scratch *scratch, struct bad_lines *bad,
                            int *ended, struct held *held[2], int *kept)
{
    paramo_err err = PARAMO_OK;
    if (atomic_load(&r->stream_format[bad->stream]) == PARSE_AUTO)
        err = reader_detect_format(r, bad->stream); /* of a pipe, when it is first read */
    if (err == PARAMO_OK)
        err = stream_part(r->stream[bad->stream], bad->index, &scratch->text, ended);
    if (err == PARAMO_OK && *ended && r->kept && stream_parts(r->stream[bad->stream]) != UINT64_MAX)
        disk_cache_end(r->kept, bad->stream, stream_parts(r->stream[bad->stream]));
    return err == PARAMO_OK && !*ended ? parse_part(r, scratch, bad, held, kept) : err;
}

paramo_err reader_part_get(struct reader *r, uint32_t stream, uint64_t index, enum holdout_side side,
                           struct held **held)
{
    struct bad_lines bad = {.reader = r, .stream = stream, .index = index};
    if (side == HOLDOUT_LEARN && (*held = take_peeked(r, stream, index)))
        return PARAMO_OK;
    paramo_err err = cache_get(r->cache[side], stream, index, held, &bad.seen);
    if (err != PARAMO_OK || *held) {
        (void)atomic_fetch_add(&r->parts_cached, err == PARAMO_OK);
        return err;
    }
    struct parse_scratch *scratch;
    struct held *both[2] = {NULL, NULL};
    if ((err = scratch_get(r, &scratch)) != PARAMO_OK)
        return err;
    bad.text = &scratch->text;
    const uint64_t parts = r->kept ? disk_cache_parts(r->kept, stream) : UINT64_MAX;
    int ended = index >= parts, kept = 0;
    if (!ended)
        err = kept_part(r, scratch, &bad, both);
    if (err == PARAMO_OK && !ended && !both[HOLDOUT_LEARN]) {
        err = text_part(r, scratch, &bad, &ended, both, &kept);
    } else {
        kept = 1;
    }
    scratch_put(r, scratch);
    for (unsigned i = 0; i < 2 && err == PARAMO_OK && r->interactions.n > 0; i++)
        if (both[i])
            err = interact_held(r, both[i]);
    for (unsigned i = 0; i < 2; i++) {
        if (err == PARAMO_OK && both[i])
            err = cache_put(r->cache[i], both[i], i == HOLDOUT_MEASURE || !kept);
        if (both[i] && (err != PARAMO_OK || i != side)) {
            held_release(both[i]);
            both[i] = NULL;
        }
    }
    if (err != PARAMO_OK && both[side]) { /* the block of the other side could not be kept */
        held_release(both[side]);
        both[side] = NULL;
    }
    *held = both[side];
    return err;
}

static paramo_err part_of_side(struct reader *r, uint32_t stream, uint64_t index, enum holdout_side side,
                               const struct block **block, int *ended)
{
    struct held *held = NULL;
    paramo_err err = reader_state(r);
    if (err != PARAMO_OK)
        return err;
    if (stream >= r->streams)
        return paramo_error_set(PARAMO_E_INVALID, "there is no stream %u: there are %u", stream, r->streams);
    err = reader_part_get(r, stream, index, side, &held);
    if (err != PARAMO_OK)
        return reader_fail(r, err);
    *ended = !held;
    *block = held ? &held->block : NULL;
    return PARAMO_OK;
}

paramo_err reader_part(struct reader *r, uint32_t stream, uint64_t index, const struct block **block,
                       int *ended)
{
    return part_of_side(r, stream, index, HOLDOUT_LEARN, block, ended);
}

/* The block is const for its users; only its count of owners, which is not theirs, changes. */
static struct held *held_of(const struct block *block)
{
    return (struct held *)(uintptr_t)block;
}

paramo_err reader_peek(struct reader *r, uint32_t stream, uint64_t index, const struct block **block,
                       int *ended)
{
    paramo_err err = part_of_side(r, stream, index, HOLDOUT_LEARN, block, ended);
    if (err != PARAMO_OK || !*block || !stream_is_pipe(r->stream[stream]))
        return err;
    struct held *peeked = held_of(*block), *before;
    held_retain(peeked);
    (void)pthread_mutex_lock(&r->lock);
    before = r->peeked;
    r->peeked = peeked;
    (void)pthread_mutex_unlock(&r->lock);
    if (before)
        held_release(before);
    return PARAMO_OK;
}

paramo_err reader_held_out(struct reader *r, uint32_t stream, uint64_t index, const struct block **block,
                           int *ended)
{
    assert(r->hold_out > 0);
    return part_of_side(r, stream, index, HOLDOUT_MEASURE, block, ended);
}

const struct block_keys *reader_keys(struct reader *r, const struct block *block, int *wanted)
{
    (void)r;
    return cache_keys(held_of(block), wanted);
}

const struct block_keys *reader_keep_keys(struct reader *r, const struct block *block,
                                          struct block_keys *keys)
{
    (void)r;
    return cache_keep_keys(held_of(block), keys);
}

void reader_release(struct reader *r, const struct block *block)
{
    (void)r;
    if (block)
        held_release(held_of(block));
}

void reader_retain(struct reader *r, const struct block *block)
{
    (void)r;
    held_retain(held_of(block));
}
