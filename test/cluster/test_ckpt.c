/* Checkpoint files: what is written is read, and nothing that is not whole is taken for it. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/checkpoint/ckpt.h"
#include "sim/env/simfs.h"

enum { WRITERS = 2, BLOCKS = 3, TEXT = 4096, CONTENT = 8 * TEXT };

static int padding; /* of each block */

static struct simfs *disk;
static struct fs *fs;

static void disk_new(uint64_t seed)
{
    assert_int_equal(simfs_create(seed, &disk), PARAMO_OK);
    fs = simfs_fs(disk);
    assert_int_equal(fs_make_dir(fs, "/var"), PARAMO_OK);
}

static uint64_t id_of(uint64_t number)
{
    return number * 1000 + 7;
}

static void text_of(uint64_t number, uint32_t writer, unsigned block, char text[TEXT])
{
    (void)snprintf(text, TEXT, "<%u %u %u>%*s", (unsigned)number, writer, block, padding, "");
}

/* A checkpoint of WRITERS files with BLOCKS blocks each; the first error. */
static paramo_err save(uint64_t number, uint64_t base)
{
    struct ckpt_file files[WRITERS];
    for (uint32_t writer = 0; writer < WRITERS; writer++) {
        struct ckpt_writer *w;
        paramo_err err = ckpt_begin(fs, "/var/ckpt", number, id_of(number), writer, &w);
        for (unsigned b = 0; b < BLOCKS && !err; b++) {
            char text[TEXT];
            text_of(number, writer, b, text);
            struct ckpt_block block = {.kind = CKPT_ROWS,
                                       .table = 1,
                                       .partition = 1000 * writer + b,
                                       .partitions = 1,
                                       .payload = text,
                                       .bytes = b ? strlen(text) : 0};
            err = ckpt_put(w, &block);
            if (err)
                ckpt_abort(w);
        }
        if (!err)
            err = ckpt_end(w, &files[writer]);
        if (err)
            return err;
    }
    struct view_table table = {
        .id = 1,
        .name = "weights",
        .options = {.size = sizeof table.options, .dim = 1, .placement = PARAMO_PLACE_MIXED}};
    struct ckpt_manifest m = {.number = number,
                              .id = id_of(number),
                              .base = base,
                              .base_id = base ? id_of(base) : 0,
                              .job = 5,
                              .view = 6,
                              .made_at = 1700000000,
                              .tables_count = 1,
                              .tables = &table,
                              .files_count = WRITERS,
                              .files = files,
                              .extra = (uint8_t *)"pools",
                              .extra_bytes = 5};
    return ckpt_commit(fs, "/var/ckpt", &m);
}

static paramo_err collect(void *arg, const struct ckpt_block *b)
{
    char *content = arg;
    size_t len = strlen(content);
    assert_true(len + b->bytes + 8 < CONTENT);
    (void)snprintf(content + len, 8, "%u:", b->partition);
    len = strlen(content);
    if (b->bytes)
        memcpy(content + len, b->payload, b->bytes);
    content[len + b->bytes] = '\0';
    return PARAMO_OK;
}

/* What a whole load of it gives; number 0: the last. */
static paramo_err load(uint64_t number, char content[CONTENT])
{
    struct ckpt *c;
    content[0] = '\0';
    paramo_err err = ckpt_open(fs, "/var/ckpt", number, &c);
    if (err)
        return err;
    err = ckpt_visit(c, NULL, collect, content);
    ckpt_close(c);
    return err;
}

static void expected(uint64_t number, char content[CONTENT])
{
    size_t len = 0;
    for (uint32_t writer = 0; writer < WRITERS; writer++)
        for (unsigned b = 0; b < BLOCKS; b++) {
            char text[TEXT];
            text_of(number, writer, b, text);
            len += (size_t)snprintf(content + len, CONTENT - len, "%u:%s", 1000 * writer + b, b ? text : "");
        }
}

static void read_as_written(void **state)
{
    (void)state;
    char got[CONTENT], want[CONTENT];
    uint64_t number;
    struct ckpt *c;
    disk_new(1);
    assert_int_equal(ckpt_next_number(fs, "/var/ckpt", &number), PARAMO_OK);
    assert_int_equal(number, 1);
    assert_int_equal(ckpt_open(fs, "/var/ckpt", 0, &c), PARAMO_E_NOT_FOUND);
    assert_int_equal(save(1, 0), PARAMO_OK);
    assert_int_equal(load(1, got), PARAMO_OK);
    expected(1, want);
    assert_string_equal(got, want);
    assert_int_equal(ckpt_next_number(fs, "/var/ckpt", &number), PARAMO_OK);
    assert_int_equal(number, 2);

    assert_int_equal(ckpt_open(fs, "/var/ckpt", 0, &c), PARAMO_OK);
    const struct ckpt_manifest *m = ckpt_manifest(c, 0);
    assert_int_equal(ckpt_links(c), 1);
    assert_int_equal(m->number, 1);
    assert_int_equal(m->job, 5);
    assert_int_equal(m->view, 6);
    assert_int_equal(m->made_at, 1700000000);
    assert_int_equal(m->tables_count, 1);
    assert_string_equal(m->tables[0].name, "weights");
    assert_int_equal(m->extra_bytes, 5);
    assert_memory_equal(m->extra, "pools", 5);
    ckpt_close(c);
    simfs_destroy(disk);
}

/* The base first, then what was added to it, and so on. */
static void base_then_deltas(void **state)
{
    (void)state;
    char got[CONTENT], want[CONTENT];
    struct ckpt *c;
    disk_new(1);
    assert_int_equal(save(1, 0), PARAMO_OK);
    assert_int_equal(save(2, 1), PARAMO_OK);
    assert_int_equal(save(3, 0), PARAMO_OK); /* another full one */
    assert_int_equal(save(4, 2), PARAMO_OK);
    want[0] = '\0';
    static const uint64_t order[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++)
        expected(order[i], want + strlen(want));
    assert_int_equal(load(0, got), PARAMO_OK);
    assert_string_equal(got, want);
    assert_int_equal(ckpt_open(fs, "/var/ckpt", 4, &c), PARAMO_OK);
    assert_int_equal(ckpt_links(c), 3);
    assert_int_equal(ckpt_manifest(c, 2)->number, 1);
    ckpt_close(c);

    assert_int_equal(fs_unlink(fs, "/var/ckpt/00000002/manifest"), PARAMO_OK);
    assert_int_equal(load(4, got), PARAMO_E_CORRUPT);
    assert_non_null(strstr(err_text(), "checkpoint 4 is based on 2, which is missing"));
    assert_int_equal(load(3, got), PARAMO_OK);
    simfs_destroy(disk);
}

static bool of_writer_1(void *arg, const struct ckpt_block *b)
{
    (void)arg;
    assert_null(b->payload);
    return b->partition >= 1000;
}

static void skips_what_is_not_wanted(void **state)
{
    (void)state;
    char got[CONTENT] = "", want[CONTENT];
    struct ckpt *c;
    disk_new(1);
    assert_int_equal(save(1, 0), PARAMO_OK);
    assert_int_equal(ckpt_open(fs, "/var/ckpt", 1, &c), PARAMO_OK);
    assert_int_equal(ckpt_visit(c, of_writer_1, collect, got), PARAMO_OK);
    ckpt_close(c);
    expected(1, want);
    assert_string_equal(got, strstr(want, "1000:"));
    simfs_destroy(disk);
}

/* Every bit of every file, every length: never an OK, and never other content. */
static void damage_is_found(void **state)
{
    (void)state;
    static const char *const names[] = {"blocks-0", "blocks-1", "manifest"};
    char got[CONTENT], path[64];
    disk_new(1);
    assert_int_equal(save(1, 0), PARAMO_OK);
    for (size_t f = 0; f < 3; f++) {
        (void)snprintf(path, sizeof path, "/var/ckpt/00000001/%s", names[f]);
        uint64_t size = 0;
        for (; simfs_flip(disk, path, size, 0); size++) {
            assert_true(simfs_flip(disk, path, size, 0));
            for (unsigned bit = 0; bit < 8; bit++) {
                assert_true(simfs_flip(disk, path, size, bit));
                paramo_err err = load(0, got);
                assert_true(err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT);
                assert_non_null(strstr(err_text(), path));
                assert_true(simfs_flip(disk, path, size, bit));
            }
        }
        assert_int_equal(load(0, got), PARAMO_OK);
    }
    for (size_t f = 0; f < 3; f++) {
        (void)snprintf(path, sizeof path, "/var/ckpt/00000001/%s", names[f]);
        struct writer whole = {0};
        assert_int_equal(fs_load(fs, path, 1 << 20, &whole), PARAMO_OK);
        for (uint64_t size = whole.len; size-- > 0;) {
            assert_true(simfs_cut(disk, path, size));
            paramo_err err = load(0, got);
            assert_true(err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT);
        }
        assert_int_equal(fs_unlink(fs, path), PARAMO_OK);
        paramo_err err = load(0, got);
        assert_true(err == (f < 2 ? PARAMO_E_CORRUPT : PARAMO_E_NOT_FOUND));
        assert_int_equal(fs_replace(fs, "/var/ckpt/00000001", names[f], whole.data, whole.len), PARAMO_OK);
        assert_int_equal(load(0, got), PARAMO_OK);
        writer_fini(&whole);
    }
    simfs_destroy(disk);
}

static void copy_file(const char *from, const char *dir, const char *name)
{
    struct writer whole = {0};
    assert_int_equal(fs_load(fs, from, 1 << 20, &whole), PARAMO_OK);
    assert_int_equal(fs_replace(fs, dir, name, whole.data, whole.len), PARAMO_OK);
    writer_fini(&whole);
}

/* Files that are good, but not these. */
static void others_are_not_taken(void **state)
{
    (void)state;
    char got[CONTENT];
    disk_new(1);
    assert_int_equal(save(1, 0), PARAMO_OK);
    assert_int_equal(save(2, 1), PARAMO_OK);
    copy_file("/var/ckpt/00000002/blocks-0", "/var/ckpt/00000001", "blocks-0");
    assert_int_equal(load(1, got), PARAMO_E_CORRUPT);
    copy_file("/var/ckpt/00000002/manifest", "/var/ckpt/00000001", "manifest");
    assert_int_equal(load(1, got), PARAMO_E_CORRUPT);
    simfs_destroy(disk);
    disk_new(1);
    assert_int_equal(save(1, 0), PARAMO_OK);
    copy_file("/var/ckpt/00000001/blocks-1", "/var/ckpt/00000001",
              "blocks-0"); /* its block's partitions twice */
    assert_int_equal(load(1, got), PARAMO_E_CORRUPT);
    simfs_destroy(disk);
}

struct seen {
    unsigned whole, unfinished, damaged;
};

static void look(void *arg, uint64_t number, paramo_err status, const char *text,
                 const struct ckpt_manifest *m)
{
    struct seen *seen = arg;
    assert_true(number > 0);
    assert_int_equal(m == NULL, status != PARAMO_OK);
    assert_int_equal(text[0] == '\0', status == PARAMO_OK);
    seen->whole += !status;
    seen->unfinished += status == PARAMO_E_NOT_FOUND;
    seen->damaged += status == PARAMO_E_CORRUPT;
}

static void lists(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct ckpt_writer *w;
    char got[CONTENT];
    disk_new(1);
    assert_int_equal(ckpt_list(fs, "/var/ckpt", look, &seen), PARAMO_E_NOT_FOUND);
    for (uint64_t number = 1; number <= 3; number++)
        assert_int_equal(save(number, 0), PARAMO_OK);
    assert_int_equal(ckpt_begin(fs, "/var/ckpt", 4, 9, 0, &w), PARAMO_OK);
    ckpt_abort(w);
    assert_true(simfs_flip(disk, "/var/ckpt/00000002/manifest", 30, 3));
    assert_int_equal(fs_make_dir(fs, "/var/ckpt/lost+found"), PARAMO_OK); /* another program's */
    assert_int_equal(ckpt_list(fs, "/var/ckpt", look, &seen), PARAMO_OK);
    assert_int_equal(seen.whole, 2);
    assert_int_equal(seen.unfinished, 1);
    assert_int_equal(seen.damaged, 1);
    assert_int_equal(load(0, got), PARAMO_OK); /* the third: the fourth has not ended */
    assert_true(simfs_flip(disk, "/var/ckpt/00000003/manifest", 30, 3));
    assert_int_equal(load(0, got), PARAMO_E_CORRUPT); /* and no older one in its place */
    simfs_destroy(disk);
}

/* Every fault at every step of a second checkpoint, then a crash: the first is still there, and the second is
 * whole or not there; there once it was said to be. */
static void crashes_leave_whole_ones(void **state)
{
    (void)state;
    char got[CONTENT], first[CONTENT], second[CONTENT];
    unsigned crashes = 0, came = 0;
    expected(1, first);
    expected(2, second);
    for (enum simfs_fault fault = 0; fault < SIMFS_FAULTS; fault++)
        for (uint64_t step = 0, end = 1; step < end; step++)
            for (uint64_t seed = 0; seed < 10; seed++) {
                disk_new(seed);
                assert_int_equal(save(1, 0), PARAMO_OK);
                uint64_t begin = simfs_steps(disk);
                simfs_plan(disk, fault, begin + step);
                paramo_err err = save(2, 0);
                end = simfs_steps(disk) - begin > step ? step + 2 : step;
                crashes += simfs_crashed(disk);
                simfs_restart(disk);
                assert_int_equal(load(1, got), PARAMO_OK);
                assert_string_equal(got, first);
                paramo_err found = load(2, got);
                if (!found) {
                    assert_string_equal(got, second);
                    came += err != PARAMO_OK;
                } else {
                    assert_int_equal(found, PARAMO_E_NOT_FOUND);
                    assert_int_not_equal(err, PARAMO_OK);
                }
                assert_int_equal(load(0, got), PARAMO_OK);
                assert_string_equal(got, found ? first : second);
                uint64_t number;
                assert_int_equal(ckpt_next_number(fs, "/var/ckpt", &number), PARAMO_OK);
                assert_int_equal(save(number, 0), PARAMO_OK); /* and on it goes */
                simfs_destroy(disk);
            }
    assert_true(crashes > 200 && came > 0);
}

enum { BY_HAND = 4 };

static bool by_clock(void *arg, const struct ckpt_manifest *m)
{
    (void)arg;
    return m->number != BY_HAND;
}

struct there {
    uint64_t whole, other; /* a bit for each number */
};

static void see(void *arg, uint64_t number, paramo_err status, const char *text,
                const struct ckpt_manifest *m)
{
    struct there *there = arg;
    (void)status, (void)text;
    *(m ? &there->whole : &there->other) |= UINT64_C(1) << number;
}

static struct there what_is_there(void)
{
    struct there there = {0};
    assert_int_equal(ckpt_list(fs, "/var/ckpt", see, &there), PARAMO_OK);
    return there;
}

#define N(number) (UINT64_C(1) << (number))

/* A server died, say. */
static void attempt(uint64_t number)
{
    struct ckpt_writer *w;
    struct ckpt_file file;
    assert_int_equal(ckpt_begin(fs, "/var/ckpt", number, 9, 0, &w), PARAMO_OK);
    assert_int_equal(ckpt_end(w, &file), PARAMO_OK);
}

static void old_ones_go(void **state)
{
    (void)state;
    static const uint64_t base[] = {0, 0, 1, 2, 0, 4, 0, 6, 0, 7, 0};
    char got[CONTENT];
    size_t removed;
    disk_new(1);
    assert_int_equal(ckpt_prune(fs, "/var/ckpt", 1, by_clock, NULL, &removed), PARAMO_E_NOT_FOUND);
    for (uint64_t number = 1; number <= 10; number++)
        if (number == 8)
            attempt(number);
        else
            assert_int_equal(save(number, base[number]), PARAMO_OK);
    attempt(11); /* it may still be in progress */
    assert_int_equal(fs_make_dir(fs, "/var/ckpt/notes"), PARAMO_OK);

    /* One of a later format may be based on any. */
    assert_true(simfs_flip(disk, "/var/ckpt/00000003/manifest", 8, 4));
    assert_int_equal(ckpt_prune(fs, "/var/ckpt", 3, by_clock, NULL, &removed), PARAMO_E_FORMAT);
    assert_int_equal(removed, 0);
    assert_true(simfs_flip(disk, "/var/ckpt/00000003/manifest", 8, 4));

    assert_int_equal(ckpt_prune(fs, "/var/ckpt", 4, by_clock, NULL, &removed), PARAMO_OK);
    assert_int_equal(removed, 5);
    struct there there = what_is_there(); /* 10, 9, 7, 6; and what was taken by hand */
    assert_int_equal(there.whole, N(10) | N(9) | N(7) | N(6) | N(4));
    assert_int_equal(there.other, N(11));
    assert_int_equal(ckpt_prune(fs, "/var/ckpt", 2, by_clock, NULL, &removed), PARAMO_OK);
    assert_int_equal(removed, 0); /* 9 is based on 7, and so on */
    assert_int_equal(load(9, got), PARAMO_OK);

    assert_true(simfs_flip(disk, "/var/ckpt/00000009/manifest", 30, 1));
    assert_int_equal(ckpt_prune(fs, "/var/ckpt", 1, by_clock, NULL, &removed), PARAMO_OK);
    there = what_is_there(); /* nothing is based on 7 any more; a request for 9 finds it damaged */
    assert_int_equal(there.whole, N(10) | N(4));
    assert_int_equal(there.other, N(11) | N(9));
    uint64_t number;
    assert_int_equal(ckpt_next_number(fs, "/var/ckpt", &number), PARAMO_OK);
    assert_int_equal(number, 12);
    simfs_destroy(disk);
}

/* Every fault at every step, then a crash: each manifest that is there is that of a whole one, those that
 * stay do, and the next time all is as it should be. */
static void crashes_while_they_go(void **state)
{
    (void)state;
    static const uint64_t base[] = {0, 0, 1, 1, 0, 3, 0, 6};
    char got[CONTENT];
    unsigned crashes = 0;
    size_t removed;
    for (enum simfs_fault fault = 0; fault < SIMFS_FAULTS; fault++)
        for (uint64_t step = 0, end = 1; step < end; step++)
            for (uint64_t seed = 0; seed < 5; seed++) {
                disk_new(seed);
                for (uint64_t number = 1; number <= 7; number++)
                    assert_int_equal(save(number, base[number]), PARAMO_OK);
                uint64_t begin = simfs_steps(disk);
                simfs_plan(disk, fault, begin + step);
                paramo_err err = ckpt_prune(fs, "/var/ckpt", 1, by_clock, NULL, &removed);
                end = simfs_steps(disk) - begin > step ? step + 2 : step;
                if (simfs_crashed(disk))
                    assert_int_not_equal(err, PARAMO_OK);
                crashes += simfs_crashed(disk);
                simfs_restart(disk);
                struct there there = what_is_there();
                for (uint64_t number = 1; number <= 7; number++)
                    if (there.whole & N(number))
                        assert_int_equal(load(number, got), PARAMO_OK);
                assert_int_equal(there.whole & (N(7) | N(6) | N(4)), N(7) | N(6) | N(4));
                assert_int_equal(ckpt_prune(fs, "/var/ckpt", 1, by_clock, NULL, &removed), PARAMO_OK);
                there = what_is_there();
                assert_int_equal(there.whole, N(7) | N(6) | N(4));
                assert_int_equal(there.other, 0);
                simfs_destroy(disk);
            }
    assert_true(crashes > 50);
}

/* A number that one scheduler has had is no other's, though nothing was written under it. */
static void numbers_are_claimed(void **state)
{
    (void)state;
    uint64_t number;
    struct ckpt_writer *w;
    disk_new(1);
    assert_int_equal(ckpt_claim(fs, "/var/ckpt", &number), PARAMO_OK);
    assert_int_equal(number, 1);
    simfs_restart(disk);
    assert_int_equal(ckpt_claim(fs, "/var/ckpt", &number), PARAMO_OK);
    assert_int_equal(number, 2);
    assert_int_equal(ckpt_begin(fs, "/var/ckpt", 1, 5, 0, &w), PARAMO_OK); /* an order that comes late */
    ckpt_abort(w);
    assert_int_equal(save(2, 0), PARAMO_OK);
    assert_int_equal(fs_make_dir(fs, "/var/ckpt/999999999999999999"), PARAMO_OK);
    assert_int_equal(ckpt_claim(fs, "/var/ckpt", &number), PARAMO_E_FULL);
    simfs_destroy(disk);
    for (enum simfs_fault fault = 0; fault < SIMFS_FAULTS; fault++) /* ... or it is not claimed */
        for (uint64_t step = 0, end = 1; step < end; step++) {
            disk_new(step);
            uint64_t begin = simfs_steps(disk), first, second;
            simfs_plan(disk, fault, begin + step);
            paramo_err err = ckpt_claim(fs, "/var/ckpt", &first);
            end = simfs_steps(disk) - begin > step ? step + 2 : step;
            simfs_restart(disk);
            assert_int_equal(ckpt_claim(fs, "/var/ckpt", &second), PARAMO_OK);
            assert_true(err || second > first);
            simfs_destroy(disk);
        }
}

/* No manifest names a file that is not there, or not as it was said to be. */
static void files_are_looked_for(void **state)
{
    (void)state;
    struct ckpt_writer *w;
    struct ckpt_file file;
    struct writer manifest = {0};
    for (unsigned wrong = 0; wrong < 3; wrong++) {
        disk_new(1);
        assert_int_equal(save(1, 0), PARAMO_OK);
        assert_int_equal(ckpt_begin(fs, "/var/ckpt", 2, 9, 0, &w), PARAMO_OK);
        assert_int_equal(ckpt_end(w, &file), PARAMO_OK);
        if (wrong == 1)
            file.bytes++;
        if (wrong == 2)
            assert_int_equal(fs_unlink(fs, "/var/ckpt/00000002/blocks-0"), PARAMO_OK);
        struct ckpt_manifest m = {.number = 2, .id = 9, .files_count = 1, .files = &file};
        assert_int_equal(ckpt_commit(fs, "/var/ckpt", &m), wrong ? PARAMO_E_CORRUPT : PARAMO_OK);
        assert_int_equal(fs_load(fs, "/var/ckpt/00000002/manifest", 1 << 20, &manifest),
                         wrong ? PARAMO_E_NOT_FOUND : PARAMO_OK);
        writer_fini(&manifest);
        struct ckpt *c;
        assert_int_equal(ckpt_open(fs, "/var/ckpt", 0, &c), PARAMO_OK);
        assert_int_equal(ckpt_manifest(c, 0)->number, wrong ? 1 : 2);
        ckpt_close(c);
        simfs_destroy(disk);
    }
}

/* Syncs of a checkpoint lie, and the power fails: it is as it was, or an error says that it is not; the
 * one before it is whole. Each way of damage occurs. */
static void a_disk_that_lies(void **state)
{
    (void)state;
    char got[CONTENT], want[CONTENT];
    unsigned whole = 0, gone = 0, damaged = 0;
    padding = TEXT / 2;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        disk_new(seed);
        assert_int_equal(save(1, 0), PARAMO_OK);
        simfs_lie(disk, 1 + (unsigned)(seed % 8));
        assert_int_equal(save(2, 0), PARAMO_OK);
        simfs_restart(disk);
        paramo_err err = load(2, got);
        expected(2, want);
        if (!err)
            assert_string_equal(got, want);
        whole += err == PARAMO_OK;
        gone += err == PARAMO_E_NOT_FOUND;
        damaged += err == PARAMO_E_CORRUPT && strstr(err_text(), "checksum");
        assert_true(!err || err == PARAMO_E_NOT_FOUND || err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT);
        expected(1, want);
        assert_int_equal(load(1, got), PARAMO_OK);
        assert_string_equal(got, want);
        simfs_destroy(disk);
    }
    assert_true(whole > 50 && gone > 10 && damaged > 10);
    padding = 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_written),          cmocka_unit_test(base_then_deltas),
        cmocka_unit_test(skips_what_is_not_wanted), cmocka_unit_test(damage_is_found),
        cmocka_unit_test(others_are_not_taken),     cmocka_unit_test(lists),
        cmocka_unit_test(crashes_leave_whole_ones), cmocka_unit_test(old_ones_go),
        cmocka_unit_test(crashes_while_they_go),    cmocka_unit_test(numbers_are_claimed),
        cmocka_unit_test(files_are_looked_for),     cmocka_unit_test(a_disk_that_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
