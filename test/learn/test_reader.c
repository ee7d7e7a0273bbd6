/*
 * Reading in parts and in order. The reference is simple: line i of the text holds the one feature i, so the
 * keys of all blocks, one after the other, must count from 0, and part k must hold the lines that start in
 * its bytes.
 */
#include "learn/data/reader.h"
#include "learn/support_text.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LINES 6000
#define PART  4096

static char *text;
static size_t text_len;
static uint64_t line_start[LINES + 1];

/* Lines of very different lengths: some are longer than several parts. */
static int make_text(void **s)
{
    (void)s;
    text = malloc(LINES * 40 + 100 * 20000);
    assert_non_null(text);
    for (uint64_t i = 0; i < LINES; i++) {
        line_start[i] = text_len;
        text_len += (size_t)sprintf(text + text_len, "%d %llu:%s", (int)(i % 3 == 0), (unsigned long long)i,
                                    i % 2 == 0 ? "1" : "0.25");
        if (i % 97 == 5) {
            size_t n = i % 194 == 5 ? 20000 : 5000;
            text[text_len++] = '#';
            memset(text + text_len, 'c', n);
            text_len += n;
        }
        text[text_len++] = '\n';
    }
    line_start[LINES] = text_len;
    text_len--; /* the last line has no newline */
    text_write_file(text_path("plain"), text, text_len);
    text_write_gzip(text_path("gzip"), text, text_len, 3);
    text_write_zstd(text_path("zstd"), text, text_len, 3);
    return 0;
}

static int drop_text(void **s)
{
    (void)s;
    free(text);
    text_cleanup();
    return 0;
}

static const char *const kinds[] = {"plain", "gzip", "zstd"};

static struct reader *open_one(const struct reader_options *o, const char *path)
{
    struct reader *r;
    const char *paths[] = {path};
    if (reader_open(o, paths, 1, &r) != PARAMO_OK) {
        fail_msg("%s", paramo_last_error());
    }
    return r;
}

static struct reader_options options(void)
{
    struct reader_options o;
    reader_options_init(&o);
    o.part_bytes = PART;
    o.threads = 3;
    o.spill_dir = text_dir();
    return o;
}

static void check_block(const struct block *b, uint64_t first, uint64_t rows)
{
    assert_int_equal(b->rows, rows);
    assert_int_equal(b->features, rows);
    assert_null(b->field);
    for (uint64_t i = 0; i < rows; i++) {
        assert_int_equal(b->offset[i], i);
        assert_int_equal(b->key[i], first + i);
        assert_true(b->label[i] == ((first + i) % 3 == 0 ? 1.0f : 0.0f));
        assert_true((b->value == NULL ? 1.0f : b->value[i]) == ((first + i) % 2 == 0 ? 1.0f : 0.25f));
    }
}

/* Asks for part k and holds it against the lines that start in its bytes. Returns 0 at the end. */
static int check_part(struct reader *r, uint64_t k)
{
    const struct block *b;
    int ended;
    if (reader_part(r, 0, k, &b, &ended) != PARAMO_OK) {
        fail_msg("part %llu: %s", (unsigned long long)k, paramo_last_error());
    }
    assert_int_equal(ended, k * PART >= text_len);
    if (ended) {
        assert_null(b);
        return 0;
    }
    uint64_t first = 0, rows = 0;
    for (uint64_t i = 0; i < LINES; i++) {
        if (line_start[i] >= k * PART && line_start[i] < (k + 1) * PART) {
            first = rows++ == 0 ? i : first;
        }
    }
    check_block(b, first, rows);
    assert_int_equal(b->index, k);
    if (b->first_line != 0 && rows > 0) {
        assert_int_equal(b->first_line, first + 1);
    }
    reader_release(r, b);
    return 1;
}

static void parts_hold_the_lines_that_start_in_them(void **s)
{
    (void)s;
    for (int kind = 0; kind < 3; kind++) {
        struct reader_options o = options();
        struct reader *r = open_one(&o, text_path(kinds[kind]));
        uint64_t k = 0;
        while (check_part(r, k)) {
            k++;
        }
        assert_int_equal(k, (text_len + PART - 1) / PART);
        assert_int_equal(check_part(r, k + 100), 0);
        /* with gaps, a little backwards, from far behind, at the end */
        static const uint64_t order[] = {3, 2, 10, 7, 9, 60, 31, 0, 100, 101, 5};
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            (void)check_part(r, order[i]);
        }
        uint64_t done, total;
        reader_progress(r, 0, k - 1, &done, &total);
        assert_int_equal(done, total);
        reader_close(r);
    }
}

static uint64_t read_in_order(struct reader *r, uint64_t next)
{
    for (;;) {
        const struct block *b;
        if (reader_next(r, &b) != PARAMO_OK) {
            fail_msg("%s", paramo_last_error());
        }
        if (b == NULL) {
            return next;
        }
        assert_true(b->rows > 0);
        check_block(b, next % LINES, b->rows);
        next += b->rows;
        reader_release(r, b);
    }
}

static void in_order(void **s)
{
    (void)s;
    for (int kind = 0; kind < 3; kind++) {
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            struct reader_options o = options();
            o.threads = threads;
            struct reader *r = open_one(&o, text_path(kinds[kind]));
            for (int epoch = 0; epoch < 3; epoch++) {
                assert_int_equal(read_in_order(r, 0), LINES);
                assert_int_equal(read_in_order(r, 0), 0); /* the end stays */
                assert_int_equal(reader_rewind(r), PARAMO_OK);
            }
            /* half a pass, then back */
            const struct block *b;
            assert_int_equal(reader_next(r, &b), PARAMO_OK);
            reader_release(r, b);
            assert_int_equal(reader_rewind(r), PARAMO_OK);
            assert_int_equal(read_in_order(r, 0), LINES);
            struct reader_stats stats;
            reader_get_stats(r, &stats);
            assert_int_equal(stats.parts_cached, 0);
            assert_true(stats.rows_parsed >= 4 * LINES);
            reader_close(r);
        }
    }
}

static void several_files(void **s)
{
    (void)s;
    struct reader_options o = options();
    struct reader *r;
    const char *paths[] = {text_path("plain"), text_path("[gz]*"), text_path("zstd")};
    assert_int_equal(reader_open(&o, paths, 3, &r), PARAMO_OK);
    assert_int_equal(reader_streams(r), 4);
    assert_string_equal(reader_stream_name(r, 1), text_path("gzip"));
    assert_int_equal(read_in_order(r, 0), 4 * LINES);
    reader_close(r);
}

/* A second epoch comes from memory, from the file, or from both; nothing is parsed again. */
static void the_second_epoch_parses_nothing(void **s)
{
    (void)s;
    static const uint64_t limits[] = {0, 1, 50000};
    for (int kind = 0; kind < 3; kind++) {
        for (int l = 0; l < 3; l++) {
            struct reader_options o = options();
            o.cache = 1;
            o.cache_bytes = limits[l];
            struct reader *r = open_one(&o, text_path(kinds[kind]));
            struct reader_stats first, later;
            assert_int_equal(read_in_order(r, 0), LINES);
            reader_get_stats(r, &first);
            assert_int_equal(first.rows_parsed, LINES);
            assert_int_equal(first.parts_cached, 0);
            assert_true(l == 0 ? first.spill_bytes == 0 : first.spill_bytes > 0);
            assert_true(l == 0 || first.cache_bytes <= limits[l]);
            assert_string_equal(first.spill_error, "");
            assert_int_equal(reader_rewind(r), PARAMO_OK);
            assert_int_equal(read_in_order(r, 0), LINES);
            (void)check_part(r, 7);
            reader_get_stats(r, &later);
            assert_int_equal(later.parts_parsed, first.parts_parsed);
            assert_int_equal(later.parts_cached, first.parts_parsed + 1);
            assert_int_equal(later.spill_bytes, first.spill_bytes);
            reader_close(r);
        }
    }
}

/* The distinct keys of a block stay with it in memory, for all that get it, within the limit; not in the file. */
static void distinct_keys_stay_with_a_block(void **s)
{
    (void)s;
    static const uint64_t limits[] = {1u << 20, 1};
    for (int l = 0; l < 2; l++) {
        struct reader_options o = options();
        const struct block *b, *again;
        struct block_keys *keys, *more;
        struct reader_stats before, after;
        int ended, wanted;
        o.cache = 1;
        o.cache_bytes = limits[l];
        struct reader *r = open_one(&o, text_path("plain"));
        assert_int_equal(reader_part(r, 0, 2, &b, &ended), PARAMO_OK);
        reader_get_stats(r, &before);
        assert_null(reader_keys(r, b, &wanted));
        assert_int_equal(wanted, l == 0);
        if (wanted) {
            assert_int_equal(block_keys_new(b->key, b->features, b->offset, b->features, &keys), PARAMO_OK);
            assert_int_equal(block_keys_new(b->key, b->features, b->offset, b->features, &more), PARAMO_OK);
            assert_ptr_equal(reader_keep_keys(r, b, keys), keys);
            assert_ptr_equal(reader_keep_keys(r, b, more), keys); /* the first stay */
            reader_get_stats(r, &after);
            assert_int_equal(after.cache_bytes,
                             before.cache_bytes + block_keys_bytes(b->features, b->features));
            assert_int_equal(reader_part(r, 0, 2, &again, &ended), PARAMO_OK);
            assert_ptr_equal(reader_keys(r, again, &wanted), keys);
            assert_int_equal(wanted, 0);
            reader_release(r, again);
        }
        reader_release(r, b);
        reader_close(r);
    }
}

/* Blocks have fields if they are asked for, and only then; a format without fields is refused. */
static void fields_come_on_request(void **s)
{
    (void)s;
    static const char with[] = "1 3:5:1 4:6:1\n", without[] = "1 5:1 6:1\n";
    const struct block *b;
    text_write_file(text_path("with"), with, sizeof with - 1);
    text_write_file(text_path("without"), without, sizeof without - 1);
    for (int fields = 0; fields < 2; fields++) {
        struct reader_options o = options();
        o.fields = fields ? READER_FIELDS : READER_NO_FIELDS;
        struct reader *r = open_one(&o, text_path("with"));
        assert_int_equal(reader_next(r, &b), PARAMO_OK);
        if (fields)
            assert_true(b->field[0] == 3 && b->field[1] == 4);
        else
            assert_null(b->field);
        reader_release(r, b);
        reader_close(r);
    }
    struct reader_options o = options();
    struct reader *r = NULL;
    const char *path = text_path("without");
    o.fields = 1;
    assert_int_equal(reader_open(&o, &path, 1, &r), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "libsvm format, which has no fields"));
}

/* Wide keys, fields and values survive the temporary file. */
static void spilled_blocks_are_the_same(void **s)
{
    (void)s;
    char line[4000] = "";
    for (int i = 0; i < 40; i++) {
        (void)sprintf(line + strlen(line), "%d %d:%llu:%d %d:7:1\n", i % 2, i,
                      18446744073709551615ull - (unsigned)i, i + 1, 65535 - i);
    }
    text_write_file(text_path("wide"), line, strlen(line));
    struct reader_options o = options();
    o.cache = 1;
    o.cache_bytes = 1;
    o.fields = 1;
    o.part_bytes = 256;
    struct reader *r = open_one(&o, text_path("wide"));
    for (int epoch = 0; epoch < 2; epoch++) {
        const struct block *b;
        uint64_t row = 0;
        while (reader_next(r, &b) == PARAMO_OK && b != NULL) {
            for (size_t i = 0; i < b->rows; i++, row++) {
                assert_int_equal(b->offset[i + 1] - b->offset[i], 2);
                assert_true(b->label[i] == (float)(row % 2));
                assert_true(b->key[2 * i] == UINT64_MAX - row && b->key[2 * i + 1] == 7);
                assert_true((b->value == NULL ? 1.0f : b->value[2 * i]) == (float)(row + 1));
                assert_int_equal(b->field[2 * i], row);
                assert_int_equal(b->field[2 * i + 1], 65535 - row);
            }
            reader_release(r, b);
        }
        assert_int_equal(row, 40);
        assert_int_equal(reader_rewind(r), PARAMO_OK);
    }
    reader_close(r);
}

/* A full disk, played by a limit on file sizes: the cache gives up, says why, and the parts are parsed again.
 */
static void a_full_disk_costs_only_time(void **s)
{
    (void)s;
    struct reader_options o = options();
    o.cache = 1;
    o.cache_bytes = 1;
    struct reader *r = open_one(&o, text_path("zstd"));
    struct rlimit old, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 20000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct reader_stats first, stats;
    assert_int_equal(read_in_order(r, 0), LINES);
    reader_get_stats(r, &first);
    assert_int_equal(reader_rewind(r), PARAMO_OK);
    assert_int_equal(read_in_order(r, 0), LINES);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, handler);
    reader_get_stats(r, &stats);
    assert_int_equal(stats.spill_bytes, first.spill_bytes); /* it is not tried again and again */
    assert_non_null(strstr(stats.spill_error, "temporary file: cannot write"));
    assert_true(stats.parts_cached > 0);
    assert_true(stats.rows_parsed > LINES && stats.rows_parsed < 2 * LINES);
    reader_close(r);
}

/* ---- threads asking for parts -------------------------------------------------------------------------- */

static struct reader *shared;
static atomic_ullong next_part, rows_seen, key_sum;

static void *part_thread(void *arg)
{
    uint64_t step = *(const uint64_t *)arg;
    for (;;) {
        const struct block *b;
        int ended;
        uint64_t k = atomic_fetch_add(&next_part, step);
        if (reader_part(shared, 0, k, &b, &ended) != PARAMO_OK) {
            return "error";
        }
        if (ended) {
            return NULL;
        }
        (void)atomic_fetch_add(&rows_seen, b->rows);
        for (size_t i = 0; i < b->features; i++) {
            (void)atomic_fetch_add(&key_sum, b->key[i]);
        }
        reader_retain(shared, b);
        reader_release(shared, b);
        reader_release(shared, b);
    }
}

static void threads_share_a_reader(void **s)
{
    (void)s;
    for (int kind = 0; kind < 3; kind++) {
        struct reader_options o = options();
        shared = open_one(&o, text_path(kinds[kind]));
        uint64_t step = 1;
        atomic_store(&next_part, 0);
        atomic_store(&rows_seen, 0);
        atomic_store(&key_sum, 0);
        pthread_t thread[4];
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, part_thread, &step), 0);
        }
        for (int i = 0; i < 4; i++) {
            void *error;
            assert_int_equal(pthread_join(thread[i], &error), 0);
            assert_null(error);
        }
        assert_int_equal(atomic_load(&rows_seen), LINES);
        assert_int_equal(atomic_load(&key_sum), (uint64_t)LINES * (LINES - 1) / 2);
        reader_close(shared);
    }
}

/* ---- errors -------------------------------------------------------------------------------------------- */

static void bad_lines(void **s)
{
    (void)s;
    char *damaged = malloc(text_len);
    assert_non_null(damaged);
    memcpy(damaged, text, text_len);
    damaged[line_start[4000]] = 'x';
    damaged[line_start[4500]] = 'y';
    text_write_file(text_path("bad-plain"), damaged, text_len);
    text_write_gzip(text_path("bad-gzip"), damaged, text_len, 1);
    free(damaged);
    for (int kind = 0; kind < 2; kind++) {
        const char *path = text_path(kind == 0 ? "bad-plain" : "bad-gzip");
        char want[300];
        (void)snprintf(want, sizeof want, "%s:4001: expected a label", path);
        for (unsigned skip = 0; skip < 3; skip++) {
            struct reader_options o = options();
            o.skip_bad = skip;
            o.cache = skip == 2;
            o.cache_bytes = 1;
            struct reader *r = open_one(&o, path);
            struct reader_stats stats;
            const struct block *b;
            paramo_err err;
            uint64_t rows = 0;
            for (int epoch = 0; epoch < 2; epoch++) {
                while ((err = reader_next(r, &b)) == PARAMO_OK && b != NULL) {
                    rows += b->rows;
                    reader_release(r, b);
                }
                if (skip < 2) {
                    assert_int_equal(err, PARAMO_E_FORMAT);
                    break;
                }
                assert_int_equal(err, PARAMO_OK);
                assert_int_equal(reader_rewind(r), PARAMO_OK);
            }
            if (skip < 2) {
                assert_non_null(strstr(paramo_last_error(), skip == 0 ? want : "(more than 1 bad lines)"));
                assert_int_equal(reader_next(r, &b), PARAMO_E_FORMAT); /* it stays */
                int ended;
                assert_int_equal(reader_part(r, 0, 0, &b, &ended), PARAMO_E_FORMAT);
            } else {
                assert_int_equal(rows, 2 * (LINES - 2));
            }
            reader_get_stats(r, &stats);
            assert_int_equal(stats.bad_lines, skip);
            if (skip == 2) {
                assert_non_null(strstr(stats.first_bad, ": expected a label"));
            }
            reader_close(r);
        }
    }
}

static void bad_lines_count_once_without_a_cache(void **s)
{
    (void)s;
    struct reader_options o = options();
    o.skip_bad = 2;
    struct reader *r = open_one(&o, text_path("bad-plain"));
    for (int epoch = 0; epoch < 3; epoch++) {
        const struct block *b;
        uint64_t rows = 0;
        while (reader_next(r, &b) == PARAMO_OK && b != NULL) {
            rows += b->rows;
            reader_release(r, b);
        }
        assert_int_equal(rows, LINES - 2);
        assert_int_equal(reader_rewind(r), PARAMO_OK);
    }
    struct reader_stats stats;
    reader_get_stats(r, &stats);
    assert_int_equal(stats.bad_lines, 2);
    reader_close(r);
}

static void expect_open_error(const char *path, paramo_err want, const char *message)
{
    struct reader_options o = options();
    struct reader *r;
    const char *paths[] = {path};
    assert_int_equal(reader_open(&o, paths, 1, &r), want);
    if (strstr(paramo_last_error(), message) == NULL || strstr(paramo_last_error(), path) == NULL) {
        fail_msg("\"%s\", not \"%s\" and \"%s\"", paramo_last_error(), path, message);
    }
}

static void files_that_are_no_data(void **s)
{
    (void)s;
    expect_open_error(text_path("missing"), PARAMO_E_NOT_FOUND, "No such file");
    expect_open_error(text_dir(), PARAMO_E_IO, "is a directory");
    text_write_file(text_path("none"), "", 0);
    expect_open_error(text_path("none"), PARAMO_E_FORMAT, "is empty");
    text_write_file(text_path("binary"),
                    "\x7f"
                    "ELF\2\1\1\0\0\0",
                    10);
    expect_open_error(text_path("binary"), PARAMO_E_FORMAT, "binary data");
    text_write_file(text_path("csv"), "a,b,c\n1,2,3\n", 12);
    expect_open_error(text_path("csv"), PARAMO_E_FORMAT, "looks like CSV with a header");
    expect_open_error("", PARAMO_E_INVALID, "name is empty");
    struct reader_options o = options();
    text_write_file(text_path("comments"), "# nothing\n\n\n", 12);
    struct reader *r = open_one(&o, text_path("comments"));
    const struct block *b;
    assert_int_equal(reader_next(r, &b), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "no rows"));
    reader_close(r);
}

/* As Windows editors save text. In the middle of a file it is a bad line like any other. */
static void a_byte_order_mark(void **s)
{
    (void)s;
    static const char marked[] = "\xef\xbb\xbf"
                                 "1 3:1\n0 4:1\n";
    static const char twice[] = "1 3:1\n\xef\xbb\xbf"
                                "0 4:1\n";
    struct reader_options o = options();
    const struct block *b;
    for (int packed = 0; packed < 2; packed++) {
        const char *path = text_path(packed ? "bom-zstd" : "bom");
        if (packed)
            text_write_zstd(path, marked, sizeof marked - 1, 1);
        else
            text_write_file(path, marked, sizeof marked - 1);
        struct reader *r = open_one(&o, path);
        assert_int_equal(reader_next(r, &b), PARAMO_OK);
        assert_int_equal(b->rows, 2);
        assert_true(b->label[0] == 1 && b->key[0] == 3 && b->key[1] == 4);
        reader_release(r, b);
        reader_close(r);
    }
    text_write_file(text_path("bom-2"), twice, sizeof twice - 1);
    struct reader *r = open_one(&o, text_path("bom-2"));
    assert_int_equal(reader_next(r, &b), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "bom-2:2: expected a label"));
    assert_non_null(strstr(paramo_last_error(), "\\xef\\xbb\\xbf0"));
    reader_close(r);
}

static void a_line_without_end(void **s)
{
    (void)s;
    size_t len = READER_MAX_LINE + (8u << 20);
    char *line = malloc(len);
    assert_non_null(line);
    memset(line, 'z', len);
    memcpy(line, "1 1:1\n1 2:1 #", 13);
    text_write_file(text_path("long-plain"), line, len);
    text_write_zstd(text_path("long-zstd"), line, len, 1);
    for (int kind = 0; kind < 2; kind++) {
        struct reader_options o = options();
        struct reader *r = open_one(&o, text_path(kind == 0 ? "long-plain" : "long-zstd"));
        const struct block *b;
        int ended;
        assert_int_equal(reader_part(r, 0, 0, &b, &ended), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), ":2: a line longer than 16 MiB"));
        reader_close(r);
    }
    free(line);
}

static void truncated(void **s)
{
    (void)s;
    char *packed = malloc(text_len);
    FILE *f = fopen(text_path("zstd"), "rb");
    assert_non_null(f);
    size_t n = fread(packed, 1, text_len, f);
    (void)fclose(f);
    text_write_file(text_path("cut"), packed, n - 20);
    free(packed);
    struct reader_options o = options();
    struct reader *r = open_one(&o, text_path("cut"));
    const struct block *b;
    paramo_err err;
    while ((err = reader_next(r, &b)) == PARAMO_OK && b != NULL) {
        reader_release(r, b);
    }
    assert_int_equal(err, PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "cut: truncated zstd data"));
    reader_close(r);
}

/* ---- pipes and interruption ---------------------------------------------------------------------------- */

struct feed {
    int fd;
    size_t len;
    int keep_open;
};

static void *feeder(void *arg)
{
    struct feed *feed = arg;
    for (size_t at = 0; at < feed->len;) {
        ssize_t n = write(feed->fd, text + at, feed->len - at);
        if (n <= 0) {
            break;
        }
        at += (size_t)n;
    }
    if (!feed->keep_open) {
        (void)close(feed->fd);
    }
    return NULL;
}

static struct reader *open_pipe(struct feed *feed, pthread_t *thread, int cache)
{
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    (void)close(ends[0]);
    struct reader_options o = options();
    o.cache = cache;
    struct reader *r = open_one(&o, "-");
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    (void)close(saved);
    feed->fd = ends[1];
    assert_int_equal(pthread_create(thread, NULL, feeder, feed), 0);
    return r;
}

static void standard_input(void **s)
{
    (void)s;
    for (int cache = 0; cache < 2; cache++) {
        struct feed feed = {.len = text_len};
        pthread_t thread;
        struct reader *r = open_pipe(&feed, &thread, cache);
        assert_int_equal(read_in_order(r, 0), LINES);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(reader_rewind(r), PARAMO_OK);
        if (cache) {
            assert_int_equal(read_in_order(r, 0), LINES);
        } else {
            const struct block *b;
            assert_int_equal(reader_next(r, &b), PARAMO_E_UNSUPPORTED);
            assert_non_null(strstr(paramo_last_error(), "<stdin>: cannot be read a second time"));
        }
        reader_close(r);
    }
}

static int pipe_end;

/* Interrupts when the reader has taken all there is in the pipe, so that it can only be waiting for more. */
static void *interrupter(void *arg)
{
    int left = 1;
    while (ioctl(pipe_end, FIONREAD, &left) == 0 && left > 0) {
        (void)sched_yield();
    }
    reader_interrupt(arg);
    return NULL;
}

static void interruption_ends_waits(void **s)
{
    (void)s;
    struct feed feed = {.len = 1000, .keep_open = 1};
    pthread_t thread, other;
    struct reader *r = open_pipe(&feed, &thread, 0);
    assert_int_equal(pthread_join(thread, NULL), 0); /* all is in the pipe */
    pipe_end = feed.fd;
    assert_int_equal(pthread_create(&other, NULL, interrupter, r), 0);
    const struct block *b;
    /* the pipe stays open: without the interruption this would wait forever */
    assert_int_equal(reader_next(r, &b), PARAMO_E_INTERRUPTED);
    int ended;
    assert_int_equal(reader_part(r, 0, 0, &b, &ended), PARAMO_E_INTERRUPTED);
    assert_int_equal(pthread_join(other, NULL), 0);
    reader_close(r); /* waits for the threads: the pipe is still open */
    (void)close(feed.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_hold_the_lines_that_start_in_them),
        cmocka_unit_test(in_order),
        cmocka_unit_test(several_files),
        cmocka_unit_test(the_second_epoch_parses_nothing),
        cmocka_unit_test(distinct_keys_stay_with_a_block),
        cmocka_unit_test(fields_come_on_request),
        cmocka_unit_test(spilled_blocks_are_the_same),
        cmocka_unit_test(a_full_disk_costs_only_time),
        cmocka_unit_test(threads_share_a_reader),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(bad_lines_count_once_without_a_cache),
        cmocka_unit_test(files_that_are_no_data),
        cmocka_unit_test(a_byte_order_mark),
        cmocka_unit_test(a_line_without_end),
        cmocka_unit_test(truncated),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(interruption_ends_waits),
    };
    return cmocka_run_group_tests(tests, make_text, drop_text);
}
