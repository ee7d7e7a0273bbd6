#include "learn/data/reader.h"
#include "learn/data/cache.h"
#include "learn/data/header.h"
#include "learn/data/holdout.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/stream.h"
#include "learn/io/input.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 16
#define MAX_AHEAD   (2 * MAX_THREADS + 2)

static_assert(STREAM_PAD >= PARSE_PAD, "what streams put behind their text is what parsers read over");
static_assert(STREAM_MAX_LINE == READER_MAX_LINE, "one limit");

/* What one thread needs to turn text into a block; taken from a list and given back. */
struct workshop {
    struct workshop *next;
    struct stream_text text;
    struct parse_buffer buffer;
    uint8_t *side; /* [side_cap]: of the rows in buffer (holdout.h) */
    size_t side_cap;
};

/* Reading in order: tickets are drawn in the order of the parts, and each ticket's result goes into its slot
 * of a ring. A slot is free again when its block was delivered, so at most `slots` blocks are ahead of the
 * caller. */
struct slot {
    struct held *held; /* NULL: the stream has ended before that part, or err */
    paramo_err err;
    char text[PARAMO_ERROR_MAX];
    atomic_int full;
};

struct pass {
    int running;
    unsigned threads; /* that were started */
    unsigned slots;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock; /* of the cursor: */
    uint32_t stream;
    uint64_t index;
    uint64_t tickets; /* drawn */
    int drawn_all;
    atomic_int cancelled;
    sem_t free;    /* one per slot that may be filled, and one per thread to wake it for good */
    sem_t ready;   /* at least one per slot that was filled */
    uint64_t head; /* the caller's: ticket delivered next */
    uint64_t rows;
    struct slot slot[MAX_AHEAD];
};

struct reader {
    unsigned hash_bits, threads, hold_out;
    struct label_rule label;
    struct columns *columns;
    struct names *names_of_keys;
    int fields;
    uint64_t skip_bad;
    enum parse_format format;
    uint32_t streams;
    char **names;
    struct stream **stream;
    _Atomic int *stream_format; /* [streams], PARSE_AUTO: not told yet */
    struct table_plan **plan;   /* [streams], of files with a header; told with the format */
    struct stream_recent *recent;
    struct cache *cache[2]; /* of each side; without a held-out part the first only */
    int stop_fd;
    _Atomic int stop;  /* interrupted */
    atomic_int failed; /* err and err_text are set */
    atomic_ullong bad_lines, parts_parsed, parts_cached, rows_parsed, text_bytes;

    pthread_mutex_t lock; /* of what follows */
    struct workshop *idle;
    struct held *first; /* of a pipe: a part that was looked at and is still to be read */
    paramo_err err;
    char err_text[PARAMO_ERROR_MAX];
    char first_bad[PARAMO_ERROR_MAX];

    struct pass pass;
};

/* ---- open and close ------------------------------------------------------------------------------------ */

void reader_options_init(struct reader_options *options)
{
    memset(options, 0, sizeof *options);
}

struct telling {
    struct reader *reader;
    uint32_t stream;
    enum parse_format format;
};

/* Reads the header, if there is one, of which stream_tell's lock allows one thread at a time. */
static paramo_err tell_columns(struct reader *r, uint32_t s, enum parse_format format, const char *text,
                               size_t len, int whole)
{
    struct table_header header = {0};
    char list[TABLE_LIST_MAX];
    const int by_header = parse_format_columns(format) == COLUMNS_BY_HEADER;
    if (!by_header && r->columns)
        return PARAMO_OK;
    paramo_err err = by_header ? table_header_read(text, len, whole, format == PARSE_TSV ? '\t' : 0, &header)
                               : jsonl_keys(text, len, &header);
    if (err == PARAMO_OK && !r->columns)
        err = paramo_error_set(PARAMO_E_INVALID,
                               "%s needs --columns 'label=NAME,cat=NAME;NAME,num=NAME'; its columns: %s",
                               parse_format_name(format), table_header_list(&header, list));
    if (err == PARAMO_OK && !r->plan[s])
        err = table_plan_new(r->columns, &header, r->label.kind != LABEL_NONE, &r->plan[s]);
    if (err == PARAMO_OK)
        stream_set_quoted(r->stream[s]);
    table_header_free(&header);
    return err;
}

static paramo_err detect(const char *text, size_t len, int whole, void *arg)
{
    struct telling *t = arg;
    paramo_err err = PARAMO_OK;
    if (t->format == PARSE_AUTO && t->reader->columns)
        t->format = parse_detect_columns(t->reader->names[t->stream], text, len);
    else if (t->format == PARSE_AUTO)
        err = parse_detect(text, len, whole, &t->format);
    if (err == PARAMO_OK && parse_format_columns(t->format) != COLUMNS_NONE)
        err = tell_columns(t->reader, t->stream, t->format, text, len, whole);
    return err;
}

static paramo_err tell_format(struct reader *r, uint32_t s)
{
    struct telling telling = {r, s, r->format};
    paramo_err err = stream_tell(r->stream[s], detect, &telling);
    const enum parse_format format = telling.format;
    if (err == PARAMO_OK && r->fields && !parse_format_fields(format)) {
        char list[PARSE_LIST_MAX];
        err = paramo_error_set(PARAMO_E_FORMAT,
                               "%s: is in %s format, which has no fields; csv, tsv, jsonl, %s have "
                               "them: convert the file, or take a model that needs no fields",
                               r->names[s], parse_format_name(format),
                               parse_format_list(list, PARSE_LIST_FIELDS));
    }
    if (err == PARAMO_OK)
        atomic_store(&r->stream_format[s], (int)format);
    return err;
}

static paramo_err open_streams(struct reader *r, size_t part_bytes)
{
    for (uint32_t s = 0; s < r->streams; s++) {
        paramo_err err = stream_open(r->names[s], part_bytes, r->recent, r->stop_fd, &r->stop, &r->stream[s]);
        if (err == PARAMO_OK && !stream_is_pipe(r->stream[s]))
            err = tell_format(r, s);
        if (err != PARAMO_OK)
            return err;
    }
    return PARAMO_OK;
}

paramo_err reader_open(const struct reader_options *o, const char *const *paths, size_t n,
                       struct reader **reader)
{
    if (o->hash_bits > 63)
        return paramo_error_set(PARAMO_E_INVALID, "hash bits: %u is not in 0..63", o->hash_bits);
    size_t part_bytes = o->part_bytes != 0 ? o->part_bytes : READER_PART_BYTES;
    if (part_bytes > (1u << 30))
        return paramo_error_set(PARAMO_E_INVALID, "part bytes: %zu is above 1 GiB", part_bytes);
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_mutex_init(&r->pass.lock, NULL);
    (void)sem_init(&r->pass.free, 0, 0);
    (void)sem_init(&r->pass.ready, 0, 0);
    r->stop_fd = -1;
    r->hash_bits = o->hash_bits;
    r->label = o->label;
    r->columns = o->columns;
    columns_retain(r->columns);
    r->names_of_keys = o->names;
    r->fields = o->fields;
    r->hold_out = o->hold_out;
    r->skip_bad = o->skip_bad;
    r->format = o->format;
    r->threads = o->threads != 0 ? o->threads : input_available_cpus();
    r->threads = r->threads < MAX_THREADS ? r->threads : MAX_THREADS;
    uint64_t memory = o->cache_bytes != 0 ? o->cache_bytes : input_available_memory() / 2;

    size_t count = 0;
    paramo_err err = input_expand(paths, n, &r->names, &count);
    if (err == PARAMO_OK && count > UINT32_MAX / 2) {
        input_free_names(r->names, count);
        r->names = NULL;
        err = paramo_error_set(PARAMO_E_TOO_LARGE, "%zu input files are too many", count);
    }
    if (err == PARAMO_OK) {
        r->streams = (uint32_t)count;
        r->stream = calloc(count, sizeof *r->stream);
        r->stream_format = calloc(count, sizeof *r->stream_format);
        r->plan = calloc(count, sizeof *r->plan);
        if (!r->stream || !r->stream_format || !r->plan)
            err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    }
    if (err == PARAMO_OK)
        err = input_stop_open(&r->stop_fd);
    if (err == PARAMO_OK)
        err = stream_recent_open(&r->recent);
    if (err == PARAMO_OK)
        err = cache_open(r->streams, o->cache ? memory : 0, o->spill_dir, &r->cache[HOLDOUT_LEARN]);
    if (err == PARAMO_OK && o->hold_out > 0)
        err = cache_open(r->streams, memory / 4, o->spill_dir, &r->cache[HOLDOUT_MEASURE]);
    if (err == PARAMO_OK)
        err = open_streams(r, part_bytes);
    if (err != PARAMO_OK) {
        reader_close(r);
        return err;
    }
    *reader = r;
    return PARAMO_OK;
}

static void pass_end(struct reader *r);

void reader_close(struct reader *r)
{
    if (!r)
        return;
    pass_end(r);
    for (uint32_t s = 0; r->stream && s < r->streams; s++)
        stream_close(r->stream[s]);
    for (struct workshop *w = r->idle, *next; w; w = next) {
        next = w->next;
        stream_text_free(&w->text);
        parse_buffer_free(&w->buffer);
        free(w->side);
        free(w);
    }
    if (r->first)
        held_release(r->first);
    cache_close(r->cache[HOLDOUT_LEARN]);
    cache_close(r->cache[HOLDOUT_MEASURE]);
    stream_recent_close(r->recent);
    input_temp_close(r->stop_fd);
    input_free_names(r->names, r->streams);
    for (uint32_t s = 0; r->plan && s < r->streams; s++)
        free(r->plan[s]);
    free(r->plan);
    columns_release(r->columns);
    free(r->stream);
    free(r->stream_format);
    (void)sem_destroy(&r->pass.free);
    (void)sem_destroy(&r->pass.ready);
    (void)pthread_mutex_destroy(&r->pass.lock);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

uint32_t reader_streams(const struct reader *r)
{
    return r->streams;
}

const char *reader_stream_name(const struct reader *r, uint32_t stream)
{
    return stream_name(r->stream[stream]);
}

/* ---- errors -------------------------------------------------------------------------------------------- */

/* The first error stays for good; later calls return it too. */
static paramo_err reader_fail(struct reader *r, paramo_err err)
{
    (void)pthread_mutex_lock(&r->lock);
    if (r->err == PARAMO_OK) {
        r->err = err;
        (void)snprintf(r->err_text, sizeof r->err_text, "%s", paramo_last_error());
        atomic_store(&r->failed, 1);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return err;
}

static paramo_err reader_state(struct reader *r)
{
    if (atomic_load(&r->failed))
        return paramo_error_set(r->err, "%s", r->err_text);
    return atomic_load(&r->stop)
               ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the data has not been read to its end")
               : PARAMO_OK;
}

void reader_interrupt(struct reader *r)
{
    int e = errno;
    atomic_store(&r->stop, 1);
    input_stop_raise(r->stop_fd);
    (void)sem_post(&r->pass.ready);
    for (unsigned i = 0; i < MAX_THREADS; i++)
        (void)sem_post(&r->pass.free);
    errno = e;
}

/* ---- one part ------------------------------------------------------------------------------------------ */

struct bad_lines {
    struct reader *reader;
    uint32_t stream;
    uint64_t index;
    const struct stream_text *text;
    int seen; /* counted in an earlier epoch */
};

static paramo_err on_bad_line(void *arg, uint64_t line, const char *what)
{
    struct bad_lines *bad = arg;
    struct reader *r = bad->reader;
    if (bad->seen)
        return PARAMO_OK;
    uint64_t count = atomic_fetch_add(&r->bad_lines, 1) + 1;
    if (count > 1 && count <= r->skip_bad)
        return PARAMO_OK;
    char message[PARAMO_ERROR_MAX];
    const char *name = reader_stream_name(r, bad->stream);
    uint64_t first = stream_first_line(r->stream[bad->stream], bad->text);
    if (first != 0)
        (void)snprintf(message, sizeof message, "%s:%llu: %s", name, (unsigned long long)first + line, what);
    else
        (void)snprintf(message, sizeof message, "%s: %s", name, what);
    if (count <= r->skip_bad) {
        (void)pthread_mutex_lock(&r->lock);
        (void)snprintf(r->first_bad, sizeof r->first_bad, "%s", message);
        (void)pthread_mutex_unlock(&r->lock);
        return PARAMO_OK;
    }
    (void)atomic_fetch_sub(&r->bad_lines, 1); /* it was not skipped */
    if (r->skip_bad > 0) {
        return paramo_error_set(PARAMO_E_FORMAT, "%s (more than %llu bad lines)", message,
                                (unsigned long long)r->skip_bad);
    }
    return paramo_error_set(PARAMO_E_FORMAT, "%s", message);
}

static paramo_err workshop_get(struct reader *r, struct workshop **shop)
{
    (void)pthread_mutex_lock(&r->lock);
    *shop = r->idle;
    if (*shop)
        r->idle = (*shop)->next;
    (void)pthread_mutex_unlock(&r->lock);
    if (!*shop && !(*shop = calloc(1, sizeof **shop)))
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    return PARAMO_OK;
}

static void workshop_put(struct reader *r, struct workshop *shop)
{
    (void)pthread_mutex_lock(&r->lock);
    shop->next = r->idle;
    r->idle = shop;
    (void)pthread_mutex_unlock(&r->lock);
}

/* A block of the parsed rows of one side. */
static paramo_err make_block(struct reader *r, const struct workshop *shop, const struct bad_lines *bad,
                             enum holdout_side side, struct held **held)
{
    struct held *h = calloc(1, sizeof *h);
    if (!h)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of rows");
    paramo_err err = r->hold_out == 0
                         ? parse_block(&shop->buffer, r->fields, &h->block)
                         : parse_block_side(&shop->buffer, r->fields, shop->side, (uint8_t)side, &h->block);
    if (err != PARAMO_OK) {
        free(h);
        return err;
    }
    const struct block_shape shape = block_shape(&h->block);
    h->bytes = block_bytes(&shape) + sizeof *h;
    h->block.stream = bad->stream;
    h->block.index = bad->index;
    h->block.first_line = shop->text.first_line;
    atomic_init(&h->owners, 1);
    *held = h;
    return PARAMO_OK;
}

/* Decides the side of each parsed row. */
static paramo_err draw_sides(struct reader *r, struct workshop *shop, const struct bad_lines *bad)
{
    const size_t rows = shop->buffer.rows;
    if (rows > shop->side_cap) {
        free(shop->side);
        shop->side = malloc(rows);
        shop->side_cap = shop->side ? rows : 0;
        if (!shop->side)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    }
    holdout_sides(bad->stream, bad->index, r->hold_out, rows, shop->side);
    return PARAMO_OK;
}

/* Fills held[] for each side that there is. */
static paramo_err parse_part(struct reader *r, struct workshop *shop, struct bad_lines *bad,
                             struct held *held[2])
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
    const size_t mark = bad->index == 0 ? parse_mark(shop->text.data, shop->text.len) : 0;
    paramo_err err =
        parse_text(&settings, shop->text.data + mark, shop->text.len - mark, &shop->buffer, on_bad_line, bad);
    if (err == PARAMO_OK && r->hold_out > 0)
        err = draw_sides(r, shop, bad);
    if (err == PARAMO_OK)
        err = make_block(r, shop, bad, HOLDOUT_LEARN, &held[HOLDOUT_LEARN]);
    if (err == PARAMO_OK && r->hold_out > 0)
        err = make_block(r, shop, bad, HOLDOUT_MEASURE, &held[HOLDOUT_MEASURE]);
    if (err != PARAMO_OK)
        return err;
    (void)atomic_fetch_add(&r->parts_parsed, 1);
    (void)atomic_fetch_add(&r->rows_parsed, shop->buffer.rows);
    (void)atomic_fetch_add(&r->text_bytes, shop->text.len);
    return PARAMO_OK;
}

/* The part that was looked at, once; NULL if it is another. */
static struct held *take_first(struct reader *r, uint32_t stream, uint64_t index)
{
    struct held *first = NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->first && r->first->block.stream == stream && r->first->block.index == index) {
        first = r->first;
        r->first = NULL;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return first;
}

/* One side of a part, from its cache or from the text; *held NULL: the stream ends before it. */
static paramo_err part_get(struct reader *r, uint32_t stream, uint64_t index, enum holdout_side side,
                           struct held **held)
{
    struct bad_lines bad = {r, stream, index, NULL, 0};
    if (side == HOLDOUT_LEARN && (*held = take_first(r, stream, index)))
        return PARAMO_OK;
    paramo_err err = cache_get(r->cache[side], stream, index, held, &bad.seen);
    if (err != PARAMO_OK || *held) {
        (void)atomic_fetch_add(&r->parts_cached, err == PARAMO_OK);
        return err;
    }
    struct workshop *shop;
    struct held *both[2] = {NULL, NULL};
    if ((err = workshop_get(r, &shop)) != PARAMO_OK)
        return err;
    bad.text = &shop->text;
    int ended = 0;
    if (atomic_load(&r->stream_format[stream]) == PARSE_AUTO)
        err = tell_format(r, stream); /* a pipe: not looked at before */
    if (err == PARAMO_OK)
        err = stream_part(r->stream[stream], index, &shop->text, &ended);
    if (err == PARAMO_OK && !ended)
        err = parse_part(r, shop, &bad, both);
    workshop_put(r, shop);
    for (unsigned i = 0; i < 2; i++) {
        if (err == PARAMO_OK && both[i])
            err = cache_put(r->cache[i], both[i]);
        if (both[i] && (err != PARAMO_OK || i != side)) {
            held_release(both[i]);
            both[i] = NULL;
        }
    }
    if (err != PARAMO_OK && both[side]) { /* the other one cannot be kept */
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
    err = part_get(r, stream, index, side, &held);
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
    before = r->first;
    r->first = peeked;
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

/* ---- in order ------------------------------------------------------------------------------------------ */

static void sem_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert(errno == EINTR);
}

/* The next part that may exist; 0: there is none. */
static int draw_ticket(struct reader *r, uint64_t *ticket, uint32_t *stream, uint64_t *index)
{
    struct pass *p = &r->pass;
    (void)pthread_mutex_lock(&p->lock);
    while (p->stream < r->streams && p->index >= stream_parts(r->stream[p->stream])) {
        p->stream++;
        p->index = 0;
    }
    int found = p->stream < r->streams;
    if (found) {
        *ticket = p->tickets++;
        *stream = p->stream;
        *index = p->index++;
    } else {
        p->drawn_all = 1;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

static void *pass_thread(void *arg)
{
    struct reader *r = arg;
    struct pass *p = &r->pass;
    for (;;) {
        uint64_t ticket, index;
        uint32_t stream;
        sem_take(&p->free);
        if (atomic_load(&p->cancelled) || atomic_load(&r->stop) || !draw_ticket(r, &ticket, &stream, &index))
            break;
        struct slot *slot = &p->slot[ticket % p->slots];
        slot->held = NULL;
        slot->err = part_get(r, stream, index, HOLDOUT_LEARN, &slot->held);
        if (slot->err != PARAMO_OK)
            (void)snprintf(slot->text, sizeof slot->text, "%s", paramo_last_error());
        atomic_store(&slot->full, 1);
        (void)sem_post(&p->ready);
    }
    (void)sem_post(&p->free); /* the next one finds the same */
    (void)sem_post(&p->ready);
    return NULL;
}

static paramo_err pass_start(struct reader *r)
{
    struct pass *p = &r->pass;
    sigset_t all, old;
    p->slots = 2 * r->threads + 2;
    p->stream = 0;
    p->index = p->tickets = p->head = p->rows = 0;
    p->drawn_all = 0;
    p->threads = 0;
    atomic_store(&p->cancelled, 0);
    /* what the last pass left */
    while (sem_trywait(&p->free) == 0 || sem_trywait(&p->ready) == 0) {
    }
    for (unsigned i = 0; i < p->slots; i++) {
        atomic_store(&p->slot[i].full, 0);
        (void)sem_post(&p->free);
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = 0;
    while (p->threads < r->threads &&
           (rc = pthread_create(&p->thread[p->threads], NULL, pass_thread, r)) == 0)
        p->threads++;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (p->threads == 0)
        return paramo_error_set(PARAMO_E_SYSTEM, "cannot start a thread: %s", strerror(rc));
    p->running = 1;
    return PARAMO_OK;
}

static void pass_end(struct reader *r)
{
    struct pass *p = &r->pass;
    if (!p->running)
        return;
    atomic_store(&p->cancelled, 1);
    for (unsigned i = 0; i < p->threads; i++)
        (void)sem_post(&p->free);
    for (unsigned i = 0; i < p->threads; i++)
        (void)pthread_join(p->thread[i], NULL);
    for (unsigned i = 0; i < p->slots; i++)
        if (atomic_load(&p->slot[i].full) && p->slot[i].held)
            held_release(p->slot[i].held);
    p->running = 0;
}

static paramo_err no_rows(const struct reader *r)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s%s: no rows, only empty, comment or bad lines",
                            reader_stream_name(r, 0), r->streams > 1 ? " and the other files" : "");
}

paramo_err reader_next(struct reader *r, const struct block **block)
{
    struct pass *p = &r->pass;
    paramo_err err = reader_state(r);
    if (err == PARAMO_OK && !p->running)
        err = pass_start(r);
    while (err == PARAMO_OK) {
        struct slot *slot = &p->slot[p->head % p->slots];
        if (!atomic_load(&slot->full)) {
            (void)pthread_mutex_lock(&p->lock);
            int done = p->drawn_all && p->head == p->tickets;
            (void)pthread_mutex_unlock(&p->lock);
            if (done) {
                *block = NULL;
                return p->rows > 0 ? PARAMO_OK : reader_fail(r, no_rows(r));
            }
            sem_take(&p->ready);
            if (atomic_load(&r->stop))
                return paramo_error_set(PARAMO_E_INTERRUPTED,
                                        "interrupted: the data has not been read to its end");
            continue;
        }
        if (slot->err != PARAMO_OK)
            return reader_fail(r, paramo_error_set(slot->err, "%s", slot->text));
        struct held *held = slot->held;
        atomic_store(&slot->full, 0);
        p->head++;
        (void)sem_post(&p->free);
        if (held && held->block.rows > 0) {
            p->rows += held->block.rows;
            *block = &held->block;
            return PARAMO_OK;
        }
        if (held)
            held_release(held);
    }
    return err;
}

paramo_err reader_rewind(struct reader *r)
{
    pass_end(r);
    return reader_state(r);
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

uint64_t reader_size(const struct reader *r)
{
    uint64_t size = 0;
    for (uint32_t s = 0; s < r->streams; s++) {
        if (stream_is_pipe(r->stream[s]))
            return 0;
        size += stream_size(r->stream[s]);
    }
    return size;
}

uint64_t reader_parts(const struct reader *r)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < r->streams; s++) {
        const uint64_t parts = stream_parts(r->stream[s]);
        if (stream_is_pipe(r->stream[s]) || parts == UINT64_MAX)
            return 0;
        sum += parts;
    }
    return sum;
}

void reader_place(const struct reader *r, uint64_t part, uint32_t *stream, uint64_t *index)
{
    uint32_t s = 0;
    while (s + 1 < r->streams && part >= stream_parts(r->stream[s]))
        part -= stream_parts(r->stream[s++]);
    *stream = s;
    *index = part;
}

void reader_progress(struct reader *r, uint32_t stream, uint64_t index, uint64_t *done, uint64_t *total)
{
    *done = *total = 0;
    for (uint32_t s = 0; s < r->streams; s++) {
        if (stream_is_pipe(r->stream[s])) {
            *done = *total = 0;
            return;
        }
        *total += stream_size(r->stream[s]);
        if (s < stream)
            *done += stream_size(r->stream[s]);
        else if (s == stream)
            *done += stream_position(r->stream[s], index);
    }
}

void reader_get_stats(struct reader *r, struct reader_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->bad_lines = atomic_load(&r->bad_lines);
    stats->parts_parsed = atomic_load(&r->parts_parsed);
    stats->parts_cached = atomic_load(&r->parts_cached);
    stats->rows_parsed = atomic_load(&r->rows_parsed);
    stats->text_bytes = atomic_load(&r->text_bytes);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t memory, spilled;
        char why[sizeof stats->spill_error];
        if (!r->cache[i])
            continue;
        cache_stats(r->cache[i], &memory, &spilled, why, sizeof why);
        stats->cache_bytes += memory;
        stats->spill_bytes += spilled;
        if (stats->spill_error[0] == '\0')
            memcpy(stats->spill_error, why, sizeof why);
    }
    (void)pthread_mutex_lock(&r->lock);
    (void)snprintf(stats->first_bad, sizeof stats->first_bad, "%s", r->first_bad);
    (void)pthread_mutex_unlock(&r->lock);
}
