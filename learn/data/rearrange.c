#include "learn/data/rearrange.h"
#include "learn/data/holdout.h"
#include "learn/data/raw_rows.h"
#include "learn/io/input.h"
#include "learn/io/output.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MAX  256          /* arbitrary */
#define BUCKET_WRITE (256u << 10) /* bytes of a bucket before they go to its file; arbitrary */

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for rows");
}

/* An output file, with the header before its first row. */
struct target {
    struct output *out;
    uint64_t rows;
    int begun;
};

static paramo_err target_begin(struct target *t, const struct raw_rows *r)
{
    size_t len;
    const char *header = raw_rows_header(r, &len);
    t->begun = 1;
    return len > 0 ? output_write(t->out, header, len) : PARAMO_OK;
}

static paramo_err target_row(struct target *t, const struct raw_rows *r, const char *text, size_t len)
{
    paramo_err err = t->begun ? PARAMO_OK : target_begin(t, r);
    t->rows++;
    return err == PARAMO_OK ? output_write(t->out, text, len) : err;
}

/* Ends the file. err: the result so far; if it is not OK, the file does not appear. */
static paramo_err target_end(struct target *t, const struct raw_rows *r, paramo_err err)
{
    if (err == PARAMO_OK && t->out && !t->begun)
        err = target_begin(t, r);
    if (err == PARAMO_OK && t->out)
        err = output_commit(t->out);
    else
        output_abort(t->out);
    t->out = NULL;
    return err;
}

static paramo_err no_rows(const struct rearrange_from *from)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s%s: no rows", from->paths[0],
                            from->n > 1 ? " and the other files" : "");
}

paramo_err rearrange_head(const struct rearrange_from *from, uint64_t rows, const char *out,
                          uint64_t *written)
{
    struct raw_rows *r = NULL;
    struct target t = {0};
    const char *text = "";
    size_t len = 0;
    paramo_err err = raw_rows_open(from->format, from->paths, from->n, &r);
    if (err == PARAMO_OK)
        err = output_open(out, &t.out);
    while (err == PARAMO_OK && text && t.rows < rows) {
        err = raw_rows_next(r, &text, &len);
        if (err == PARAMO_OK && text)
            err = target_row(&t, r, text, len);
    }
    if (err == PARAMO_OK && t.rows == 0)
        err = no_rows(from);
    err = target_end(&t, r, err);
    raw_rows_close(r);
    *written = t.rows;
    return err;
}

paramo_err rearrange_split(const struct rearrange_from *from, double share, uint64_t seed, const char *out,
                           const char *rest, uint64_t written[2])
{
    struct raw_rows *r = NULL;
    struct target t[2] = {{0}, {0}};
    const char *text = "";
    size_t len = 0;
    const uint64_t mixed = holdout_mix(seed);
    paramo_err err = raw_rows_open(from->format, from->paths, from->n, &r);
    if (err == PARAMO_OK)
        err = output_open(out, &t[0].out);
    if (err == PARAMO_OK && rest)
        err = output_open(rest, &t[1].out);
    for (uint64_t row = 0; err == PARAMO_OK && text; row++) {
        err = raw_rows_next(r, &text, &len);
        if (err != PARAMO_OK || !text)
            break;
        struct target *to = &t[(double)(holdout_mix(mixed + row) >> 11) * 0x1p-53 >= share];
        if (to->out)
            err = target_row(to, r, text, len);
        else
            to->rows++;
    }
    if (err == PARAMO_OK && t[0].rows + t[1].rows == 0)
        err = no_rows(from);
    err = target_end(&t[0], r, err);
    err = target_end(&t[1], r, err);
    raw_rows_close(r);
    written[0] = t[0].rows;
    written[1] = t[1].rows;
    return err;
}

/* ---- shuffle ------------------------------------------------------------------------------------------- */

/* Rows in memory, one after the other. */
struct pile {
    char *text;
    size_t len, cap;
};

static paramo_err pile_add(struct pile *p, const char *text, size_t len)
{
    if (p->len + len > p->cap) {
        const size_t cap = 2 * (p->len + len) + 4096;
        char *more = realloc(p->text, cap);
        if (!more)
            return no_memory();
        p->text = more;
        p->cap = cap;
    }
    memcpy(p->text + p->len, text, len);
    p->len += len;
    return PARAMO_OK;
}

/* Adds a row with its length before it: rows may contain newlines. */
static paramo_err pile_row(struct pile *p, const char *text, size_t len)
{
    const uint32_t n = (uint32_t)len;
    paramo_err err = pile_add(p, (const char *)&n, sizeof n);
    return err == PARAMO_OK ? pile_add(p, text, len) : err;
}

/* Writes the rows of a pile in a random order (Fisher and Yates). */
static paramo_err pile_write(const struct pile *p, uint64_t *state, struct target *t,
                             const struct raw_rows *r)
{
    size_t n = 0, cap = 1024;
    size_t *place = malloc(cap * sizeof *place);
    for (size_t at = 0; place && at < p->len; n++) {
        uint32_t len;
        if (n == cap) {
            size_t *more = realloc(place, 2 * cap * sizeof *place);
            if (!more)
                free(place);
            place = more;
            cap *= 2;
            if (!place)
                break;
        }
        memcpy(&len, p->text + at, sizeof len);
        place[n] = at;
        at += sizeof len + len;
    }
    paramo_err err = place ? PARAMO_OK : no_memory();
    for (size_t i = 0; err == PARAMO_OK && i < n; i++) {
        const size_t other = i + (size_t)(holdout_mix((*state)++) % (n - i)), at = place[other];
        uint32_t len;
        place[other] = place[i];
        memcpy(&len, p->text + at, sizeof len);
        err = target_row(t, r, p->text + at + sizeof len, len);
    }
    free(place);
    return err;
}

/* Rows on their way to a temporary file. */
struct bucket {
    struct pile pile;
    int fd;
    uint64_t bytes; /* in the file */
};

static paramo_err bucket_flush(struct bucket *b)
{
    paramo_err err = b->fd >= 0 ? PARAMO_OK : input_temp_open(NULL, &b->fd);
    if (err == PARAMO_OK)
        err = input_temp_write(b->fd, b->bytes, b->pile.text, b->pile.len);
    b->bytes += b->pile.len;
    b->pile.len = 0;
    return err;
}

static paramo_err bucket_row(struct bucket *b, size_t limit, const char *text, size_t len)
{
    paramo_err err = pile_row(&b->pile, text, len);
    return err == PARAMO_OK && b->pile.len > limit ? bucket_flush(b) : err;
}

/* Reads the bucket's rows back and writes them. */
static paramo_err bucket_write(struct bucket *b, uint64_t *state, struct target *t, const struct raw_rows *r)
{
    paramo_err err = b->pile.len > 0 ? bucket_flush(b) : PARAMO_OK;
    if (err == PARAMO_OK && b->bytes > 0) {
        char *text = realloc(b->pile.text, b->bytes);
        if (!text)
            return no_memory();
        b->pile.text = text;
        b->pile.cap = b->pile.len = b->bytes;
        err = input_temp_read(b->fd, 0, text, b->bytes);
    }
    return err == PARAMO_OK ? pile_write(&b->pile, state, t, r) : err;
}

static void bucket_free(struct bucket *b)
{
    free(b->pile.text);
    b->pile.text = NULL;
    input_temp_close(b->fd);
    b->fd = -1;
}

/* Shuffles rows that do not fit in memory through buckets: those of first, and those that follow. */
static paramo_err by_buckets(struct raw_rows *r, struct pile *first, uint64_t memory, uint64_t *state,
                             struct target *t)
{
    const uint64_t size = raw_rows_size(r), want = size > 0 ? 4 * (size / memory + 1) : BUCKETS_MAX;
    const size_t n = want < BUCKETS_MAX ? (size_t)want : BUCKETS_MAX;
    const size_t limit = memory / n / 2 < BUCKET_WRITE ? (size_t)(memory / n / 2) : BUCKET_WRITE;
    struct bucket *bucket = calloc(n, sizeof *bucket);
    const char *text = "";
    size_t len = 0;
    if (!bucket)
        return no_memory();
    for (size_t i = 0; i < n; i++)
        bucket[i].fd = -1;
    paramo_err err = PARAMO_OK;
    for (size_t at = 0; err == PARAMO_OK && at < first->len; at += sizeof(uint32_t) + len) {
        uint32_t row;
        memcpy(&row, first->text + at, sizeof row);
        len = row;
        err = bucket_row(&bucket[holdout_mix((*state)++) % n], limit, first->text + at + sizeof row, len);
    }
    free(first->text);
    *first = (struct pile){0};
    while (err == PARAMO_OK && text) {
        err = raw_rows_next(r, &text, &len);
        if (err == PARAMO_OK && text)
            err = bucket_row(&bucket[holdout_mix((*state)++) % n], limit, text, len);
    }
    for (size_t i = 0; i < n; i++) {
        if (err == PARAMO_OK)
            err = bucket_write(&bucket[i], state, t, r);
        bucket_free(&bucket[i]);
    }
    free(bucket);
    return err;
}

paramo_err rearrange_shuffle(const struct rearrange_from *from, uint64_t memory, uint64_t seed,
                             const char *out, uint64_t *written)
{
    struct raw_rows *r = NULL;
    struct target t = {0};
    struct pile pile = {0};
    const char *text = "";
    size_t len = 0;
    uint64_t state = holdout_mix(seed);
    paramo_err err = raw_rows_open(from->format, from->paths, from->n, &r);
    if (err == PARAMO_OK)
        err = output_open(out, &t.out);
    /* Half of the memory, because the array doubles when it grows. */
    while (err == PARAMO_OK && text && pile.len < memory / 2) {
        err = raw_rows_next(r, &text, &len);
        if (err == PARAMO_OK && text)
            err = pile_row(&pile, text, len);
    }
    if (err == PARAMO_OK)
        err = text ? by_buckets(r, &pile, memory, &state, &t) : pile_write(&pile, &state, &t, r);
    if (err == PARAMO_OK && t.rows == 0)
        err = no_rows(from);
    free(pile.text);
    err = target_end(&t, r, err);
    raw_rows_close(r);
    *written = t.rows;
    return err;
}
