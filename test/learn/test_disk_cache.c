/*
 * Parsed parts on disk: blocks are the same with and without, whatever happened to source and file. The reference is a
 * reader without the folder.
 */
#include "learn/data/reader.h"
#include "learn/support_parse.h"
#include "learn/support_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#define LINES 3000
#define PART  4096

static char folder[512];

struct seen {
    uint64_t sum, rows, parts;
    struct reader_stats stats;
};

static struct reader_options options(int cached)
{
    struct reader_options o;
    reader_options_init(&o);
    o.part_bytes = PART;
    o.threads = 2;
    o.disk_cache = cached ? folder : NULL;
    return o;
}

static uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
    return bytes ? XXH3_64bits_withSeed(bytes, len, sum) : sum + 1;
}

static uint64_t mix_block(uint64_t sum, const struct block *b)
{
    const uint64_t counts[] = {b->rows, b->features, b->stream, b->index, b->first_line};
    sum = mix(sum, counts, sizeof counts);
    sum = mix(sum, b->label, b->rows * sizeof *b->label);
    sum = mix(sum, b->weight, b->rows * sizeof *b->weight);
    sum = mix(sum, b->offset, (b->rows + 1) * sizeof *b->offset);
    sum = mix(sum, b->key, b->features * sizeof *b->key);
    sum = mix(sum, b->value, b->features * sizeof *b->value);
    return mix(sum, b->field, b->features * sizeof *b->field);
}

/* Reads the parts from, from + step, ... of stream 0, both sides, until it ends. */
static void read_parts(struct reader *r, const struct reader_options *o, uint64_t from, uint64_t step,
                       struct seen *seen)
{
    const struct block *b;
    int ended = 0;
    for (uint64_t k = from; !ended; k += step)
        for (unsigned side = 0; side < (o->hold_out > 0 ? 2u : 1u); side++) {
            if ((side ? reader_held_out : reader_part)(r, 0, k, &b, &ended) != PARAMO_OK)
                fail_msg("part %d: %s", (int)k, paramo_last_error());
            if (ended)
                break;
            seen->sum = mix_block(seen->sum, b);
            seen->rows += b->rows;
            seen->parts++;
            reader_release(r, b);
        }
}

static struct reader *open_it(const struct reader_options *o, const char *path)
{
    struct reader *r;
    if (reader_open(o, &path, 1, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    return r;
}

static struct seen read_all(const struct reader_options *o, const char *path)
{
    struct seen seen = {0};
    struct reader *r = open_it(o, path);
    read_parts(r, o, 0, 1, &seen);
    reader_get_stats(r, &seen.stats);
    reader_close(r);
    return seen;
}

/* The only file of the folder; its path is overwritten by the next call. */
static const char *kept_file(void)
{
    static char path[1024];
    DIR *d = opendir(folder);
    int files = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            files++;
        }
    (void)closedir(d);
    assert_int_equal(files, 1);
    return path;
}

/* A folder that is not there yet. */
static void new_folder(const char *name)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
    (void)rmdir(folder);
    (void)snprintf(folder, sizeof folder, "%s", text_path(name));
}

static char *lines_of(const char *format, size_t *len)
{
    char *text = malloc(LINES * 80);
    assert_non_null(text);
    *len = strcmp(format, "csv") == 0 ? (size_t)sprintf(text, "y,w,\"a\nb\",n\n") : 0;
    for (int i = 0; i < LINES; i++) {
        const char *end = i % 7 == 0 ? "\r\n" : "\n";
        if (strcmp(format, "csv") == 0)
            *len += (size_t)sprintf(text + *len, "%d,%d.5,\"x\n%d\",%d%s", i % 2, i % 3, i % 50, i, end);
        else if (strcmp(format, "ffm") == 0)
            *len += (size_t)sprintf(text + *len, "%d 0:%d:1 3:%d:1%s", i % 2, i % 50, 60 + i % 9, end);
        else
            *len += (size_t)sprintf(text + *len, "%d %d:1 %llu:0.%d%s", i % 2, i % 50, 1ull << (i % 64),
                                    i % 10, end);
    }
    return text;
}

static void write_log(const char *name, const char *format, int gzip)
{
    size_t len;
    char *text = lines_of(format, &len);
    if (gzip)
        text_write_gzip(text_path(name), text, len, 2);
    else
        text_write_file(text_path(name), text, len);
    free(text);
}

static void same(const struct seen *a, const struct seen *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->parts, b->parts);
    assert_true(a->sum == b->sum);
}

static void blocks_are_the_same(void **s)
{
    (void)s;
    static const struct {
        const char *name, *format;
        int gzip;
        enum reader_fields fields;
        unsigned hold_out, hash_bits;
    } logs[] = {{"a.svm", "svm", 0, 0, 0, 0},   {"b.svm.gz", "svm", 1, 0, 0, 0},
                {"c.svm", "svm", 0, 0, 20, 22}, {"d.ffm", "ffm", 0, 1, 0, 0},
                {"e.ffm", "ffm", 0, 0, 10, 0},  {"f.ffm.gz", "ffm", 1, 1, 30, 0},
                {"g.csv", "csv", 0, 1, 10, 0},  {"h.csv.gz", "csv", 1, 1, 0, 18}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct columns *columns =
            strcmp(logs[i].format, "csv") == 0 ? columns_of("label=y,weight=w,cat=a\nb,num=n") : NULL;
        const char *path = text_path(logs[i].name);
        new_folder("kept");
        write_log(logs[i].name, logs[i].format, logs[i].gzip);
        struct seen seen[4];
        for (int k = 0; k < 4; k++) { /* without, parsed, kept, and kept with the cache of later epochs */
            struct reader_options o = options(k > 0);
            o.fields = logs[i].fields;
            o.hold_out = logs[i].hold_out;
            o.hash_bits = logs[i].hash_bits;
            o.columns = columns;
            o.cache = k == 3;
            seen[k] = read_all(&o, path);
            same(&seen[0], &seen[k]);
            assert_int_equal(seen[k].rows, LINES);
            assert_string_equal(seen[k].stats.disk_cache_note, "");
            assert_true(k < 2 ? seen[k].stats.parts_parsed > 5 : seen[k].stats.parts_parsed == 0);
            assert_true(k < 2 ? seen[k].stats.parts_kept == 0 || logs[i].hold_out > 0
                              : seen[k].stats.parts_kept > 0);
        }
        (void)kept_file();
        columns_release(columns);
    }
}

static void in_order_too(void **s)
{
    (void)s;
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *path = text_path(gzip ? "o.svm.gz" : "o.svm");
        uint64_t sum[3];
        new_folder("kept");
        write_log(gzip ? "o.svm.gz" : "o.svm", "svm", gzip);
        for (int k = 0; k < 3; k++) {
            const struct reader_options o = options(k > 0);
            struct reader *r = open_it(&o, path);
            const struct block *b;
            struct reader_stats stats;
            sum[k] = 0;
            for (int epoch = 0; epoch < 2; epoch++) {
                while (reader_next(r, &b) == PARAMO_OK && b) {
                    sum[k] = mix_block(sum[k], b);
                    reader_release(r, b);
                }
                assert_int_equal(reader_rewind(r), PARAMO_OK);
            }
            reader_get_stats(r, &stats);
            assert_true(sum[k] == sum[0]);
            assert_true((k == 2) == (stats.parts_parsed == 0));
            reader_close(r);
        }
    }
}

/* The source becomes another one, or is read in another way. */
static void a_source_that_changed_is_parsed(void **s)
{
    (void)s;
    const struct reader_options plain = options(0), o = options(1);
    const char *path = text_path("s.svm");
    struct stat st;
    size_t len;
    new_folder("kept");
    write_log("s.svm", "svm", 0);
    char *text = lines_of("svm", &len);
    struct seen first = read_all(&o, path), again = read_all(&o, path);
    assert_true(first.stats.parts_parsed > 5 && again.stats.parts_parsed == 0);
    assert_int_equal(stat(path, &st), 0);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    for (int change = 0; change < 4; change++) {
        FILE *f = fopen(path, "r+e"); /* the same inode */
        assert_non_null(f);
        if (change == 0)
            times[1].tv_nsec ^= 1;
        else if (change == 1) /* only the content tells */
            text[len / 2] = text[len / 2] == '1' ? '2' : text[len / 2] == ' ' ? ' ' : '1';
        else if (change == 2)
            text[len++] = '\n';
        if (change == 1 && text[len / 2] == ' ')
            text[len / 2 + 1] ^= 1;
        assert_int_equal(fwrite(text, 1, len, f), len);
        assert_int_equal(fclose(f), 0);
        if (change == 3) { /* another file of that name */
            text_write_file(text_path("new"), text, len);
            assert_int_equal(rename(text_path("new"), path), 0);
        }
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        const struct seen want = read_all(&plain, path), got = read_all(&o, path), later = read_all(&o, path);
        same(&want, &got);
        same(&want, &later);
        assert_int_equal(got.stats.parts_parsed, want.stats.parts_parsed);
        assert_int_equal(later.stats.parts_parsed, 0);
        assert_string_equal(got.stats.disk_cache_note, "");
        (void)kept_file(); /* the new one stands in place of the old one */
    }
    free(text);
    struct reader_options other = o;
    for (int i = 0; i < 4; i++) {
        other.hash_bits = i == 0 ? 10 : 0;
        other.label.kind = i == 1 ? LABEL_REAL : LABEL_BINARY;
        other.part_bytes = i == 2 ? 2 * PART : PART;
        const struct seen got = read_all(&other, path);
        assert_true(i < 3 ? got.stats.parts_parsed > 0 : got.stats.parts_parsed == 0);
    }
}

static void damage_is_found(void **s)
{
    (void)s;
    const struct reader_options plain = options(0), o = options(1);
    const char *path = text_path("d.svm");
    new_folder("kept");
    write_log("d.svm", "svm", 0);
    const struct seen want = read_all(&plain, path);
    (void)read_all(&o, path);
    struct stat st;
    const char *file = kept_file();
    assert_int_equal(stat(file, &st), 0);
    const size_t len = (size_t)st.st_size;
    char *bytes = malloc(len);
    FILE *f = fopen(file, "re");
    assert_non_null(bytes);
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, len, f), len);
    (void)fclose(f);
    static const char *const others[] = {"", "some text of another program\n"};
    for (size_t i = 0; i < 60; i++) {
        const size_t at = i < 40 ? i * (len - 1) / 39 : 0;
        bytes[at] ^= 64;
        if (i < 40)
            text_write_file(file, bytes, len);
        bytes[at] ^= 64;
        if (i >= 40 && i < 58) /* cut off, or longer */
            text_write_file(file, bytes, len * (i - 40) / 18);
        else if (i >= 58)
            text_write_file(file, others[i - 58], strlen(others[i - 58]));
        const struct seen got = read_all(&o, path), later = read_all(&o, path);
        same(&want, &got);
        same(&want, &later);
        if (strstr(got.stats.disk_cache_note, "; it is made again") == NULL)
            fail_msg("damage %d at %d: '%s'", (int)i, (int)at, got.stats.disk_cache_note);
        assert_string_equal(later.stats.disk_cache_note, "");
        assert_int_equal(later.stats.parts_parsed, 0);
    }
    free(bytes);
}

/* Readers that read other parts, at the same time, fill one file. */
static void readers_add_to_each_other(void **s)
{
    (void)s;
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *name = gzip ? "t.svm.gz" : "t.svm", *path = text_path(name);
        const struct reader_options o = options(1), plain = options(0);
        struct seen seen = {0};
        new_folder("kept");
        write_log(name, "svm", gzip);
        struct reader *even = open_it(&o, path), *odd = open_it(&o, path), *third = open_it(&o, path);
        read_parts(even, &o, 0, 2, &seen);
        read_parts(odd, &o, 1, 2, &seen);
        read_parts(third, &o, 0, 3, &seen);
        reader_close(odd);
        reader_close(even);
        reader_close(third); /* it has nothing new */
        const struct seen want = read_all(&plain, path), got = read_all(&o, path);
        same(&want, &got);
        assert_int_equal(got.stats.parts_parsed, 0);
    }
}

/* A folder that cannot be written, and no room for the file: the rows are the same, and a note says it. */
static void what_cannot_be_kept_is_no_error(void **s)
{
    (void)s;
    const struct reader_options plain = options(0);
    const char *path = text_path("w.svm");
    struct rlimit old, none;
    write_log("w.svm", "svm", 0);
    const struct seen want = read_all(&plain, path);
    for (int i = 0; i < 3; i++) {
        new_folder("kept");
        struct reader_options o = options(1);
        o.cache = i == 2;
        if (i == 0)
            o.disk_cache = "/dev/null/kept";
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        none = old;
        none.rlim_cur = 6000;
        if (i > 0) { /* as a full disk */
            (void)signal(SIGXFSZ, SIG_IGN);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        }
        const struct seen got = read_all(&o, path);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        same(&want, &got);
        assert_int_equal(got.stats.parts_parsed, want.stats.parts_parsed);
        if (strstr(got.stats.disk_cache_note, i == 0 ? "Not a directory; " : "File too large; ") == NULL)
            fail_msg("'%s'", got.stats.disk_cache_note);
        if (i > 0) {
            const struct seen later = read_all(&o, path);
            same(&want, &later);
            assert_string_equal(later.stats.disk_cache_note, "");
        }
    }
}

static void bad_lines_are_counted_the_same(void **s)
{
    (void)s;
    const char *path = text_path("x.svm"), *paths[] = {path};
    size_t len;
    new_folder("kept");
    char *text = lines_of("svm", &len), *at = text;
    for (int line = 1; line < 2000; line++) {
        at = strchr(at, '\n') + 1;
        if (line == 700 || line == 701 || line == 1900)
            *at = 'x';
    }
    text_write_file(path, text, len);
    free(text);
    struct seen seen[3];
    for (int k = 0; k < 3; k++) {
        struct reader_options o = options(k > 0);
        o.skip_bad = 3;
        seen[k] = read_all(&o, path);
        same(&seen[0], &seen[k]);
        assert_int_equal(seen[k].rows, LINES - 3);
        assert_int_equal(seen[k].stats.bad_lines, 3);
        assert_non_null(strstr(seen[k].stats.first_bad, "x.svm:701: expected a label"));
    }
    assert_int_equal(seen[2].stats.parts_parsed, 0);
    struct reader_options o = options(1);
    struct reader *r;
    const struct block *b;
    paramo_err err;
    o.skip_bad = 2;
    assert_int_equal(reader_open(&o, paths, 1, &r), PARAMO_OK);
    while ((err = reader_next(r, &b)) == PARAMO_OK && b)
        reader_release(r, b);
    assert_int_equal(err, PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "x.svm:1901: expected a label"));
    reader_close(r);
}

static int clean(void **s)
{
    new_folder("none");
    return parse_teardown(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_same),
        cmocka_unit_test(in_order_too),
        cmocka_unit_test(a_source_that_changed_is_parsed),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(readers_add_to_each_other),
        cmocka_unit_test(what_cannot_be_kept_is_no_error),
        cmocka_unit_test(bad_lines_are_counted_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
