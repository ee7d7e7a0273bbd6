#include "learn/data/stream.h"
#include "learn/data/header.h"
#include "learn/io/input.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES (256u << 10) /* arbitrary */

struct recent_part {
    const struct stream *stream; /* NULL: empty */
    uint64_t index;
    struct stream_text text;
};

struct stream_recent {
    pthread_mutex_t lock;
    unsigned next; /* the oldest, replaced next */
    struct recent_part part[STREAM_RECENT];
};

struct stream {
    struct input *input;
    struct stream_recent *recent;
    const _Atomic int *stop;
    size_t part_bytes;
    int plain;                 /* read at offsets, without the decoder */
    _Atomic int quoted;        /* newlines within quotes end no line */
    _Atomic uint64_t parts;    /* UINT64_MAX: not known yet */
    _Atomic uint64_t position; /* bytes of the file used by the decoder, for progress */

    pthread_mutex_t lock;       /* of what follows: the decoder's place */
    uint64_t next;              /* the part that the decoder cuts next */
    uint64_t offset;            /* of carry in the text; a line starts there */
    uint64_t lines;             /* in the text before offset */
    struct stream_text carry;   /* text that is decoded and belongs to later parts */
    struct stream_text skipped; /* a part on its way to the ring */
    uint8_t *odd;               /* [odd_n] plain and quoted: is the number of quotes before part k odd? */
    uint64_t odd_n;
    int end;        /* the input has no more text than carry */
    paramo_err err; /* of the decoder: later calls return it, too */
    char err_text[PARAMO_ERROR_MAX];
};

/* ---- text ---------------------------------------------------------------------------------------------- */

void stream_text_free(struct stream_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

/* Makes room for len bytes and the padding. Keeps the first text->len bytes. */
static paramo_err text_reserve(struct stream_text *text, size_t len)
{
    if (len + STREAM_PAD <= text->cap)
        return PARAMO_OK;
    size_t cap = len + len / 4 + STREAM_PAD;
    char *data = realloc(text->data, cap);
    if (!data)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu bytes of text", cap);
    text->data = data;
    text->cap = cap;
    return PARAMO_OK;
}

static void text_pad(struct stream_text *text)
{
    memset(text->data + text->len, '\n', STREAM_PAD);
}

static uint64_t count_lines(const char *text, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

static void text_swap(struct stream_text *a, struct stream_text *b)
{
    struct stream_text t = *a;
    *a = *b;
    *b = t;
}

/* ---- recent parts -------------------------------------------------------------------------------------- */

paramo_err stream_recent_open(struct stream_recent **recent)
{
    struct stream_recent *r = calloc(1, sizeof *r);
    if (!r)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    (void)pthread_mutex_init(&r->lock, NULL);
    *recent = r;
    return PARAMO_OK;
}

void stream_recent_close(struct stream_recent *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < STREAM_RECENT; i++)
        stream_text_free(&r->part[i].text);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Gives text to the ring and takes an old buffer in its place. */
static void recent_put(struct stream_recent *r, const struct stream *stream, uint64_t index,
                       struct stream_text *text)
{
    (void)pthread_mutex_lock(&r->lock);
    struct recent_part *part = &r->part[r->next];
    r->next = (r->next + 1) % STREAM_RECENT;
    part->stream = stream;
    part->index = index;
    text_swap(&part->text, text);
    (void)pthread_mutex_unlock(&r->lock);
}

static int recent_next(struct stream_recent *r, const struct stream *stream, uint64_t index,
                       struct stream_text *text)
{
    int found = 0;
    (void)pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < STREAM_RECENT && !found; i++) {
        struct recent_part *part = &r->part[i];
        if (part->stream == stream && part->index == index) {
            part->stream = NULL;
            text_swap(&part->text, text);
            found = 1;
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    return found;
}

/* ---- a stream ------------------------------------------------------------------------------------------ */

static uint64_t parts_of(uint64_t bytes, size_t part_bytes)
{
    return (bytes + part_bytes - 1) / part_bytes;
}

paramo_err stream_open(const char *path, size_t part_bytes, struct stream_recent *recent, int stop_fd,
                       const _Atomic int *stop, struct stream **stream)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a stream");
    paramo_err err = input_open(path, stop_fd, &s->input);
    if (err != PARAMO_OK) {
        free(s);
        return err;
    }
    (void)pthread_mutex_init(&s->lock, NULL);
    s->part_bytes = part_bytes;
    s->recent = recent;
    s->stop = stop;
    s->plain = input_is_plain(s->input);
    atomic_init(&s->parts, s->plain ? parts_of(input_size(s->input), part_bytes) : UINT64_MAX);
    *stream = s;
    return PARAMO_OK;
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    input_close(s->input);
    stream_text_free(&s->carry);
    stream_text_free(&s->skipped);
    free(s->odd);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

const char *stream_name(const struct stream *s)
{
    return input_name(s->input);
}

int stream_is_pipe(const struct stream *s)
{
    return input_size(s->input) == 0;
}

int stream_is_kept(const struct stream *s)
{
    return input_is_kept(s->input);
}

uint64_t stream_parts(const struct stream *s)
{
    return atomic_load(&s->parts);
}

uint64_t stream_size(const struct stream *s)
{
    return input_size(s->input);
}

uint64_t stream_position(const struct stream *s, uint64_t index)
{
    uint64_t size = input_size(s->input), parts = stream_parts(s), position = atomic_load(&s->position);
    if (parts != UINT64_MAX && index < parts)
        position = (uint64_t)((double)size / (double)parts * (double)(index + 1));
    return position < size ? position : size;
}

static paramo_err restart(struct stream *s)
{
    paramo_err err = input_rewind(s->input);
    if (err == PARAMO_OK) {
        s->next = s->offset = s->lines = 0;
        s->carry.len = 0;
        s->end = 0;
    }
    return err;
}

paramo_err stream_detect(struct stream *s, stream_detect_fn detect, void *arg)
{
    const char *text;
    size_t len;
    int whole;
    (void)pthread_mutex_lock(&s->lock);
    paramo_err err = input_head(s->input, &text, &len, &whole);
    if (err == PARAMO_OK && (err = detect(text, len, whole, arg)) != PARAMO_OK)
        err = paramo_error_set(err, "%s: %s", stream_name(s), paramo_last_error());
    if (err == PARAMO_OK && !stream_is_pipe(s))
        err = restart(s); /* closes the file until it is read */
    (void)pthread_mutex_unlock(&s->lock);
    return err;
}

void stream_set_quoted(struct stream *s)
{
    atomic_store(&s->quoted, 1);
}

static paramo_err line_too_long(const struct stream *s, uint64_t line)
{
    const char *what = atomic_load(&s->quoted) ? "a row longer than 16 MiB: is a quote not closed?"
                                               : "a line longer than 16 MiB";
    if (line != 0) {
        return paramo_error_set(PARAMO_E_FORMAT, "%s:%llu: %s", stream_name(s), (unsigned long long)line,
                                what);
    }
    return paramo_error_set(PARAMO_E_FORMAT, "%s: %s", stream_name(s), what);
}

/* The newline that ends the line in which p lies; *odd as in table_record_end. */
static const char *line_end(const struct stream *s, const char *p, const char *end, int *odd)
{
    return atomic_load_explicit(&s->quoted, memory_order_relaxed) ? table_record_end(p, end, odd)
                                                                  : memchr(p, '\n', (size_t)(end - p));
}

/* The number of newlines before the line or record in which text ends. A record begins at text. */
static uint64_t lines_before_last(const struct stream *s, const char *text, size_t len)
{
    const char *p = text, *nl;
    for (int odd = 0; (nl = line_end(s, p, text + len, &odd));)
        p = nl + 1;
    return count_lines(text, (size_t)(p - text));
}

static paramo_err interrupted(const struct stream *s)
{
    return atomic_load_explicit(s->stop, memory_order_relaxed)
               ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the data has not been read to its end")
               : PARAMO_OK;
}

/* Reads more text until there are `want` bytes, or the input ends. */
static paramo_err fill(struct stream *s, struct stream_text *text, size_t want)
{
    while (text->len < want && !s->end) {
        size_t got, room = want - text->len < READ_BYTES ? READ_BYTES : want - text->len;
        paramo_err err = interrupted(s);
        if (err == PARAMO_OK)
            err = text_reserve(text, text->len + room);
        if (err == PARAMO_OK)
            err = input_read(s->input, text->data + text->len, room, &got);
        if (err != PARAMO_OK)
            return err;
        text->len += got;
        s->end = got == 0;
    }
    return PARAMO_OK;
}

/* Cuts the next part off the decoder's text; *ended if there is none. */
static paramo_err cut_next(struct stream *s, struct stream_text *text, int *ended)
{
    const uint64_t first = s->next * s->part_bytes,
                   last = first + s->part_bytes; /* text bytes [first, last) */
    paramo_err err;
    *ended = 0;
    /* 1. the carry becomes the head of this part */
    text_swap(text, &s->carry);
    s->carry.len = 0;
    text->first_line = s->lines + 1;
    /* 2. text up to byte last - 1, where the last line that belongs here may end */
    size_t want = last > s->offset ? (size_t)(last - s->offset) : 1;
    if ((err = fill(s, text, want)) != PARAMO_OK)
        return err;
    if (s->end && s->offset + text->len <= first) {
        uint64_t parts = parts_of(s->offset + text->len, s->part_bytes);
        atomic_store(&s->parts, parts);
        text_swap(text, &s->carry);
        text->len = 0;
        *ended = 1;
        return PARAMO_OK;
    }
    /* 3. the end of the last line that starts before byte last; 0 if the carry starts after it */
    size_t cut = 0;
    if (s->offset < last && text->len < want) {
        cut = text->len;
    } else if (s->offset < last) {
        size_t from = want - 1;
        int odd = atomic_load(&s->quoted) && table_quotes_odd(text->data, text->data + from);
        for (;;) {
            const char *nl = line_end(s, text->data + from, text->data + text->len, &odd);
            if (nl) {
                cut = (size_t)(nl + 1 - text->data);
                break;
            }
            if (s->end) {
                cut = text->len;
                break;
            }
            if (text->len - want > STREAM_MAX_LINE)
                return line_too_long(s, s->lines + lines_before_last(s, text->data, text->len) + 1);
            from = text->len;
            if ((err = fill(s, text, text->len + 1)) != PARAMO_OK)
                return err;
        }
    }
    /* 4. the rest is carried over */
    size_t rest = text->len - cut;
    if ((err = text_reserve(&s->carry, rest)) != PARAMO_OK || (err = text_reserve(text, cut)) != PARAMO_OK)
        return err;
    memcpy(s->carry.data, text->data + cut, rest);
    s->carry.len = rest;
    text->len = cut;
    s->offset += cut;
    s->lines += count_lines(text->data, cut);
    s->next++;
    text_pad(text);
    atomic_store(&s->position, input_used(s->input));
    return PARAMO_OK;
}

static paramo_err decoded_part(struct stream *s, uint64_t index, struct stream_text *text, int *ended)
{
    paramo_err err = PARAMO_OK;
    if (index < s->next) {
        if (recent_next(s->recent, s, index, text))
            return PARAMO_OK;
        err = restart(s);
    }
    while (err == PARAMO_OK && s->next < index && !*ended) {
        const uint64_t passed = s->next;
        err = cut_next(s, &s->skipped, ended);
        if (err == PARAMO_OK && !*ended)
            recent_put(s->recent, s, passed, &s->skipped);
    }
    if (err == PARAMO_OK && !*ended)
        err = cut_next(s, text, ended);
    return err;
}

/* Is the number of quotes before part `index` odd? Reads the text that was not read before. */
static paramo_err odd_before(struct stream *s, uint64_t index, int *odd)
{
    char *buf = malloc(READ_BYTES);
    paramo_err err = buf ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for a stream");
    (void)pthread_mutex_lock(&s->lock);
    if (err == PARAMO_OK && !s->odd) {
        s->odd = calloc(stream_parts(s) + 1, 1);
        s->odd_n = s->odd ? 1 : 0;
        err = s->odd ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for a stream");
    }
    while (err == PARAMO_OK && s->odd_n <= index) {
        uint64_t at = (s->odd_n - 1) * s->part_bytes, to = at + s->part_bytes;
        int sum = s->odd[s->odd_n - 1];
        for (size_t n; at < to && err == PARAMO_OK; at += n) {
            n = to - at < READ_BYTES ? (size_t)(to - at) : READ_BYTES;
            err = interrupted(s);
            if (err == PARAMO_OK && (err = input_read_at(s->input, at, buf, n)) == PARAMO_OK)
                sum ^= table_quotes_odd(buf, buf + n);
        }
        if (err == PARAMO_OK)
            s->odd[s->odd_n++] = (uint8_t)sum;
    }
    *odd = err == PARAMO_OK && s->odd[index];
    (void)pthread_mutex_unlock(&s->lock);
    free(buf);
    return err;
}

/* Part `index` was read: notes whether the number of quotes before the next one is odd. */
static void note_odd(struct stream *s, uint64_t index, const char *own, size_t len)
{
    const int odd = table_quotes_odd(own, own + len);
    (void)pthread_mutex_lock(&s->lock);
    if (s->odd && s->odd_n == index + 1 && index + 1 < stream_parts(s))
        s->odd[s->odd_n++] = (uint8_t)(s->odd[index] ^ odd);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Reads a part of a plain file, and the text after it in which its last line ends. */
static paramo_err plain_part(struct stream *s, uint64_t index, struct stream_text *text)
{
    const uint64_t size = input_size(s->input);
    /* one byte before the part shows whether a line starts at its first byte */
    const uint64_t from = index == 0 ? 0 : index * s->part_bytes - 1;
    uint64_t last = (index + 1) * s->part_bytes;
    last = last < size ? last : size;
    paramo_err err = text_reserve(text, (size_t)(last - from));
    if (err == PARAMO_OK)
        err = input_read_at(s->input, from, text->data, (size_t)(last - from));
    if (err != PARAMO_OK)
        return err;
    const int quoted = atomic_load(&s->quoted);
    int odd = 0; /* of the quotes before `from` */
    if (quoted && (err = odd_before(s, index, &odd)) != PARAMO_OK)
        return err;
    text->len = (size_t)(last - from);
    text->first_line = index == 0;
    if (quoted)
        note_odd(s, index, text->data + (index > 0), text->len - (index > 0));
    if (index > 0)
        odd ^= text->data[0] == '"';
    size_t start = 0;
    int odd_last = quoted && (odd ^ table_quotes_odd(text->data, text->data + text->len - 1));
    if (index > 0) {
        const char *nl = line_end(s, text->data, text->data + text->len, &odd);
        start = nl ? (size_t)(nl + 1 - text->data) : text->len;
    }
    text->start = from + start;
    if (start == text->len) { /* no line starts here */
        text->len = 0;
        text_pad(text);
        return PARAMO_OK;
    }
    size_t tail = 16u << 10;
    const char *nl = line_end(s, text->data + text->len - 1, text->data + text->len, &odd_last);
    while (!nl && from + text->len < size) {
        size_t more = from + text->len + tail < size ? tail : (size_t)(size - from - text->len);
        if ((err = interrupted(s)) != PARAMO_OK ||
            (err = text_reserve(text, text->len + more)) != PARAMO_OK ||
            (err = input_read_at(s->input, from + text->len, text->data + text->len, more)) != PARAMO_OK)
            return err;
        nl = line_end(s, text->data + text->len, text->data + text->len + more, &odd_last);
        text->len = nl ? (size_t)(nl + 1 - text->data) : text->len + more;
        if (text->len - (size_t)(last - from) > STREAM_MAX_LINE) {
            const uint64_t before = stream_first_line(s, text);
            return line_too_long(
                s,
                before == 0 ? 0 : before + lines_before_last(s, text->data + start, text->len - 1 - start));
        }
        tail *= 2;
    }
    text->len -= start;
    memmove(text->data, text->data + start, text->len);
    text_pad(text);
    return PARAMO_OK;
}

paramo_err stream_part(struct stream *s, uint64_t index, struct stream_text *text, int *ended)
{
    *ended = index >= stream_parts(s);
    text->len = 0;
    if (*ended)
        return PARAMO_OK;
    if (s->plain)
        return plain_part(s, index, text);
    (void)pthread_mutex_lock(&s->lock);
    paramo_err err = s->err;
    if (err != PARAMO_OK) {
        err = paramo_error_set(err, "%s", s->err_text);
    } else if ((err = decoded_part(s, index, text, ended)) != PARAMO_OK) {
        s->err = err;
        memcpy(s->err_text, paramo_last_error(), PARAMO_ERROR_MAX);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return err;
}

uint64_t stream_first_line(struct stream *s, const struct stream_text *text)
{
    if (text->first_line != 0 || !s->plain)
        return text->first_line;
    char *buf = malloc(READ_BYTES);
    const uint64_t to = text->start;
    uint64_t lines = 0, at = 0;
    while (buf && at < to) {
        size_t n = to - at < READ_BYTES ? (size_t)(to - at) : READ_BYTES;
        if (input_read_at(s->input, at, buf, n) != PARAMO_OK)
            break;
        lines += count_lines(buf, n);
        at += n;
    }
    free(buf);
    return at == to ? lines + 1 : 0;
}
