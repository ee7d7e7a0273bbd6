#include "learn/data/reader.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/reader_state.h"
#include "learn/io/input.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Changes whenever a parser gives other rows, keys or values for the same text, so that parts kept on disk by older
 * programs are not used. */
#define READER_VERSION 1

static_assert(STREAM_PAD >= PARSE_PAD, "what streams put behind their text is what parsers read over");
static_assert(STREAM_MAX_LINE == READER_MAX_LINE, "one limit");

/* ---- open and close ------------------------------------------------------------------------------------ */

void reader_options_init(struct reader_options *options)
{
    memset(options, 0, sizeof *options);
}

struct detection {
    struct reader *reader;
    uint32_t stream;
    enum parse_format format;
};

/* Reads the header of a table, and matches it with the columns. The lock of stream_detect allows one thread at a
 * time. */
static paramo_err match_header(struct reader *r, uint32_t s, enum parse_format format, const char *text,
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
        err = paramo_error_set(
            PARAMO_E_INVALID,
            "%s needs --columns 'label=NAME,cat=NAME;NAME,num=NAME' of train, tune or data (a "
            "model keeps them); its columns: %s",
            parse_format_name(format), table_header_list(&header, list));
    if (err == PARAMO_OK && !r->plan[s])
        err = table_plan_new(r->columns, &header, r->label.kind != LABEL_NONE, &r->plan[s]);
    if (err == PARAMO_OK)
        stream_set_quoted(r->stream[s]);
    table_header_free(&header);
    return err;
}

static paramo_err detect_format(const char *text, size_t len, int whole, void *arg)
{
    struct detection *t = arg;
    paramo_err err = PARAMO_OK;
    if (t->format == PARSE_AUTO && t->reader->columns)
        t->format = parse_detect_columns(t->reader->names[t->stream], text, len);
    else if (t->format == PARSE_AUTO)
        err = parse_detect(text, len, whole, &t->format);
    if (err == PARAMO_OK && parse_format_columns(t->format) != COLUMNS_NONE)
        err = match_header(t->reader, t->stream, t->format, text, len, whole);
    return err;
}

paramo_err reader_detect_format(struct reader *r, uint32_t s)
{
    struct detection detection = {r, s, r->format};
    paramo_err err = stream_detect(r->stream[s], detect_format, &detection);
    const enum parse_format format = detection.format;
    if (err == PARAMO_OK && r->fields == READER_FIELDS && !parse_format_fields(format)) {
        char list[PARSE_LIST_MAX];
        err = paramo_error_set(
            PARAMO_E_FORMAT,
            "%s: is in %s format, which has no fields; csv, tsv, jsonl, %s have "
            "them: give a file that has fields, or %s",
            r->names[s], parse_format_name(format), parse_format_list(list, PARSE_LIST_FIELDS),
            r->interactions.n > 0 ? "leave out --interactions" : "use a model or a --to that needs none");
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
            err = reader_detect_format(r, s);
        if (err != PARAMO_OK)
            return err;
    }
    return PARAMO_OK;
}

/* Writes all settings that decide how the parts of stream s are parsed. */
static paramo_err write_settings(const struct reader *r, uint32_t s, size_t part_bytes, char **text,
                                 size_t *len)
{
    FILE *f = open_memstream(text, len);
    if (!f)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
    (void)fprintf(f, "%d %zu %s %u %d %d %u", READER_VERSION, part_bytes,
                  parse_format_name((enum parse_format)atomic_load(&r->stream_format[s])), r->hash_bits,
                  (int)r->fields, (int)r->label.kind, r->label.classes);
    for (size_t i = 0; r->columns && i < columns_count(r->columns); i++) {
        const struct column *c = columns_at(r->columns, i);
        (void)fprintf(f, " %s %zu ", column_role_name(c->role), c->len);
        (void)fwrite(c->name, 1, c->len, f);
    }
    const int bad = ferror(f);
    return fclose(f) == 0 && !bad ? PARAMO_OK
                                  : paramo_error_set(PARAMO_E_MEMORY, "out of memory for a reader");
}

static paramo_err open_disk_cache(struct reader *r, const char *dir, size_t part_bytes)
{
    paramo_err err = disk_cache_open(dir, r->streams, &r->kept);
    for (uint32_t s = 0; err == PARAMO_OK && s < r->streams; s++) {
        char *text = NULL;
        size_t len = 0;
        if (stream_is_pipe(r->stream[s]) || stream_is_kept(r->stream[s]))
            continue;
        err = write_settings(r, s, part_bytes, &text, &len);
        if (err == PARAMO_OK)
            disk_cache_source(r->kept, s, r->names[s], text, len);
        if (err == PARAMO_OK && stream_parts(r->stream[s]) != UINT64_MAX)
            disk_cache_end(r->kept, s, stream_parts(r->stream[s]));
        free(text);
    }
    return err;
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
    if (o->interactions)
        r->interactions = *o->interactions;
    r->fields = r->interactions.n > 0 ? READER_FIELDS : o->fields;
    r->hold_out = o->hold_out;
    r->folds = o->folds;
    r->fold = o->fold;
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
        err = paramo_error_set(PARAMO_E_TOO_LARGE, "%zu input files are too many: join some of them", count);
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
    if (err == PARAMO_OK && o->disk_cache && !o->names)
        err = open_disk_cache(r, o->disk_cache, part_bytes);
    if (err != PARAMO_OK) {
        reader_close(r);
        return err;
    }
    *reader = r;
    return PARAMO_OK;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    reader_pass_end(r);
    for (uint32_t s = 0; r->stream && s < r->streams; s++)
        stream_close(r->stream[s]);
    for (struct parse_scratch *w = r->idle, *next; w; w = next) {
        next = w->next;
        stream_text_free(&w->text);
        parse_buffer_free(&w->buffer);
        free(w->side);
        free(w);
    }
    if (r->peeked)
        held_release(r->peeked);
    disk_cache_close(r->kept);
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

paramo_err reader_fail(struct reader *r, paramo_err err)
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

paramo_err reader_state(struct reader *r)
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

uint64_t reader_number(const struct reader *r, uint32_t stream, uint64_t index)
{
    for (uint32_t s = 0; s < stream; s++)
        index += stream_parts(r->stream[s]);
    return index;
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
        else if (s == stream && stream_parts(r->stream[s]) == UINT64_MAX &&
                 reader_known_parts(r, s) != UINT64_MAX)
            *done += (uint64_t)((double)stream_size(r->stream[s]) * (double)(index + 1) /
                                (double)reader_known_parts(r, s));
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
    stats->parts_kept = atomic_load(&r->parts_kept);
    if (r->kept)
        disk_cache_note(r->kept, stats->disk_cache_note, sizeof stats->disk_cache_note,
                        &stats->disk_cache_bytes);
    stats->rows_parsed = atomic_load(&r->rows_parsed);
    stats->no_pairs = r->interactions.n > 0 && stats->rows_parsed > 0 && stats->parts_kept == 0 &&
                      atomic_load(&r->pairs_made) == 0;
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
