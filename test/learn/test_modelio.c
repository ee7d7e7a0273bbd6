#include "learn/model/factors.h"
#include "learn/store/modelio.h"
#include "learn/support_learn.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *dir;

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

enum { DIM = 3 };

static const struct model_info fm = {
    .ops = &model_fm,
    .setting = {[FACTORS_DIM] = DIM, [FACTORS_INIT] = 0.01},
    .optimizer = {{"ftrl", 0.1, 1, 0.5, 0}, {"adagrad", 0.05, 1, 0, 0.001}},
    .objective = {.ops = &objective_logistic, .label_scale = 1},
    .hash_bits = 20,
    .data_format = "libffm",
    .seed = UINT64_MAX,
    .batch = 256,
    .epochs = 2,
    .rows = 1000,
};

/* Stands for the cluster: writes tables made from a seed; fails at table `fail`. */
struct writer {
    uint64_t seed;
    size_t fail;
};

static paramo_err write_one(void *arg, size_t table, const char *path)
{
    struct writer *w = arg;
    if (table == w->fail)
        return paramo_error_set(PARAMO_E_NODE_LOST, "server 0 died");
    write_table(path, w->seed, 7, table == 0 ? 1 : DIM, table == 0 ? 2 : DIM);
    return PARAMO_OK;
}

static void save_as(const struct model_info *info, uint64_t seed)
{
    struct writer w = {seed, SIZE_MAX};
    assert_int_equal(modelio_save(dir, info, &(struct modelio_writer){.table = write_one, .arg = &w}),
                     PARAMO_OK);
}

static void save(uint64_t seed)
{
    save_as(&fm, seed);
}

static size_t files(void)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(d);
    return n;
}

static char *in_dir(const char *name)
{
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* The seed that the saved tables were made from. */
static uint64_t saved_seed(void)
{
    struct model m;
    assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
    uint64_t seed = m.table[0].keys[0];
    modelio_close(&m);
    return seed;
}

static void test_what_is_saved_is_opened(void **state)
{
    (void)state;
    save(5);
    struct model m;
    assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
    assert_int_equal(m.n, 2);
    assert_memory_equal(m.info.optimizer, fm.optimizer, sizeof fm.optimizer);
    assert_memory_equal(m.info.setting, fm.setting, sizeof fm.setting);
    assert_true(m.info.ops == fm.ops && m.info.hash_bits == 20 && m.info.seed == UINT64_MAX &&
                m.info.batch == 256 && m.info.epochs == 2 && m.info.rows == 1000);
    assert_string_equal(m.info.data_format, "libffm");
    assert_string_equal(m.table[1].name, "v");
    assert_true(m.table[1].n == 7 && m.table[1].dim == 3 && m.table[1].state == 3 &&
                m.table[1].keys[6] == 5 + 18);
    modelio_close(&m);
}

static void test_equal_models_are_equal_files(void **state)
{
    (void)state;
    size_t a, b;
    save(5);
    char *first = read_file(in_dir("manifest.json"), &a);
    save(6);
    save(5);
    char *second = read_file(in_dir("manifest.json"), &b);
    assert_string_equal(first, second); /* checksums of the tables included */
    assert_int_equal(files(), 3);       /* nothing is left of the others */
    free(first);
    free(second);
}

static void test_a_failed_save_leaves_the_old_model(void **state)
{
    (void)state;
    save(5);
    for (size_t fail = 0; fail < 2; fail++) {
        /* what another has begun and would put in place goes before anything is written */
        write_file(in_dir(".paramo-tmp-0123456789abcdef-manifest"), "x", 1);
        struct writer w = {6, fail};
        assert_int_equal(modelio_save(dir, &fm, &(struct modelio_writer){.table = write_one, .arg = &w}),
                         PARAMO_E_NODE_LOST);
        assert_int_equal(saved_seed(), 5);
        assert_int_equal(access(in_dir(".paramo-tmp-0123456789abcdef-manifest"), F_OK), -1);
    }
    /* a crash before the manifest: the new tables and temporary files lie about, and the next save clears
     * them */
    write_file(in_dir(".paramo-tmp-123-w"), "x", 1);
    write_file(in_dir("w-0123456789abcdef.safetensors"), "x", 1);
    write_file(in_dir("names.tsv"), "1\tsite\ta\n", 9); /* of the old model */
    write_file(in_dir("w-notes.txt"), "mine", 4);
    assert_int_equal(saved_seed(), 5);
    save(7);
    assert_int_equal(saved_seed(), 7);
    assert_int_equal(files(), 4); /* and no other file */
}

/* A worker is stopped while it saves, and another saves. */
struct slow_writer {
    struct writer writer;
    size_t other_saves; /* the other saves after this table; 2: when the first asks whether it may commit */
    paramo_err may;
};

static paramo_err write_slowly(void *arg, size_t table, const char *path)
{
    struct slow_writer *w = arg;
    paramo_err err = write_one(&w->writer, table, path);
    if (w->other_saves == table)
        save(7);
    return err;
}

static paramo_err commit_slowly(void *arg)
{
    struct slow_writer *w = arg;
    if (w->other_saves == 2)
        save(7);
    return w->may == PARAMO_OK ? PARAMO_OK : paramo_error_set(w->may, "declared dead");
}

static void test_of_two_that_save_the_later_stands(void **state)
{
    (void)state;
    for (size_t other_saves = 0; other_saves <= 2; other_saves++)
        for (int asked = 0; asked < 2; asked++) {
            save(5);
            /* the first was allowed to commit only if the other began after that */
            struct slow_writer w = {{6, SIZE_MAX}, other_saves, PARAMO_OK};
            if (asked || other_saves < 2)
                w.may = PARAMO_E_FENCED;
            struct modelio_writer writer = {write_slowly, commit_slowly, &w, 0};
            assert_int_not_equal(modelio_save(dir, &fm, &writer), PARAMO_OK);
            assert_int_equal(saved_seed(), 7);
            save(8);
            assert_int_equal(files(), 3); /* nothing is left of the one that was late */
        }
}

static paramo_err open_it(void)
{
    struct model m;
    paramo_err err = modelio_open(dir, &m);
    if (err == PARAMO_OK)
        modelio_close(&m);
    return err;
}

static void replace_in_manifest(const char *what, const char *with)
{
    size_t len;
    char *text = read_file(in_dir("manifest.json"), &len), *at = strstr(text, what), *out;
    assert_non_null(at);
    int n = asprintf(&out, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
    write_file(in_dir("manifest.json"), out, (size_t)n);
    free(text);
    free(out);
}

static void test_refuses_damage(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"rows\": 7", "\"rows\": 8"},
        {"\"dim\": 3", "\"dim\": 4"},
        {"\"dim\": 3,\n      \"s", "\"dim\": 2,\n      \"s"},
        {"\"state\": 2", "\"state\": 3"},
        {"\"bytes\": ", "\"bytes\": 1"},
        {"\"model\": \"fm\"", "\"model\": \"fmm\""},
        {"\"alpha\": 0.1", "\"alpha\": -0.1"},
        {"\"file\": \"", "\"file\": \"../"},
        {"\"file\": \"w", "\"file\": \"u"},
        {"\"name\": \"v\"", "\"name\": \"x\""},
        {"\"hash_bits\": 20", "\"hash_bits\": 99"},
        {"\"tables\": [", "\"tables\": [[],"},
        {"\"seed\"", "\"sad\""},
        {"{", ""},
        {"\"xxh3_128\": \"", "\"xxh3_128\": \"0"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        save(5);
        replace_in_manifest(changes[i][0], changes[i][1]);
        if (open_it() != PARAMO_E_CORRUPT)
            fail_msg("not refused: %s", changes[i][1]);
        if (strncmp(changes[i][0], "\"hash_bits", 10) == 0 || strncmp(changes[i][0], "\"seed", 5) == 0) {
            char quoted[16];
            (void)snprintf(quoted, sizeof quoted, "'%s'", changes[i][0][1] == 's' ? "seed" : "hash_bits");
            assert_non_null(strstr(paramo_last_error(), quoted));
        }
        assert_int_equal(modelio_prepare(dir), PARAMO_OK); /* but it may be replaced */
    }
    save(5);
    struct model m;
    assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
    char *path = strdup(m.table[1].path);
    modelio_close(&m);
    size_t len;
    char *bytes = read_file(path, &len);
    bytes[len - 1] ^= 1;
    write_file(path, bytes, len);
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "checksum"));
    bytes[len - 1] ^= 1;
    for (size_t at = 0; at < 24; at++) { /* in the header, which cannot be read then */
        bytes[at] ^= 16;
        write_file(path, bytes, len);
        bytes[at] ^= 16;
        assert_int_equal(open_it(), PARAMO_E_CORRUPT);
        assert_non_null(strstr(paramo_last_error(), "checksum"));
    }
    write_file(path, bytes, len - 4);
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "bytes instead of"));
    write_file(path, "some text\n", 10);
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "10 bytes instead of"));
    (void)unlink(path);
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "missing"));
    free(bytes);
    free(path);
}

static void test_refuses_foreign_models(void **state)
{
    (void)state;
    assert_int_equal(open_it(), PARAMO_E_NOT_FOUND);
    assert_int_equal(modelio_prepare(dir), PARAMO_OK);
    static const char other[] = "{\"format\": \"someone-else\", \"version\": 1}";
    write_file(in_dir("manifest.json"), other, sizeof other - 1);
    assert_int_equal(open_it(), PARAMO_E_FORMAT);
    assert_int_equal(modelio_prepare(dir), PARAMO_E_FORMAT);
    (void)unlink(in_dir("manifest.json"));
    save(5);
    replace_in_manifest("\"version\": 1", "\"version\": 5");
    assert_int_equal(open_it(), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "newer"));
    assert_int_equal(modelio_prepare(dir), PARAMO_E_FORMAT);
}

/* The calibration and the weights of classes come back to the last bit; what none could be is refused. */
static void test_calibrations_are_kept(void **state)
{
    (void)state;
    struct model_info info = fm;
    struct model m;
    double sums[CALIBRATION_SUMS] = {0};
    uint64_t seed = 3;
    for (int i = 0; i < 3000; i++) {
        const float margin = 4 * draw_float(&seed), label = draw_float(&seed) < margin / 4 ? 1 : 0;
        calibration_add(sums, &margin, &label, NULL, 1);
    }
    info.class_weight = (struct class_weights){.n = 2, .weight = {0.1f, 7.3f}};
    for (int kind = CALIBRATION_PLATT; kind < CALIBRATION_KINDS; kind++) {
        assert_true(calibration_fit((enum calibration_kind)kind, sums, &info.calibration));
        save_as(&info, 5);
        assert_int_equal(modelio_open(dir, &m), PARAMO_OK);
        assert_memory_equal(&m.info.calibration, &info.calibration, sizeof info.calibration);
        assert_memory_equal(&m.info.class_weight, &info.class_weight, sizeof info.class_weight);
        modelio_close(&m);
    }
    replace_in_manifest("\"isotonic\"", "\"platt\"");
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "'calibration'"));
    save_as(&info, 5);
    replace_in_manifest("7.3", "-7.");
    assert_int_equal(open_it(), PARAMO_E_CORRUPT);
    assert_non_null(strstr(paramo_last_error(), "'class_weight'"));
}

/* By its name, another name, or a link: a file of the model is no output. Other files of the folder are. */
static void test_refuses_outputs_over_the_model(void **state)
{
    (void)state;
    char path[600], link_path[600];
    save(1);
    size_t refused = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/./%s", dir, e->d_name);
        assert_int_equal(modelio_refuse_output(dir, path), PARAMO_E_INVALID);
        assert_non_null(strstr(paramo_last_error(), e->d_name));
        refused++;
    }
    (void)closedir(d);
    assert_int_equal(refused, 3);
    (void)snprintf(path, sizeof path, "%s/manifest.json", dir);
    (void)snprintf(link_path, sizeof link_path, "%s/link", dir);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(modelio_refuse_output(dir, link_path), PARAMO_E_INVALID);
    (void)snprintf(path, sizeof path, "%s/predictions", dir);
    assert_int_equal(modelio_refuse_output(dir, path), PARAMO_OK);
    FILE *other = fopen(path, "w");
    assert_non_null(other);
    assert_int_equal(fclose(other), 0);
    assert_int_equal(modelio_refuse_output(dir, path), PARAMO_OK);
    assert_int_equal(modelio_refuse_output("nonesuch", path), PARAMO_OK);
}

static void test_prepare(void **state)
{
    (void)state;
    char *sub = strdup(in_dir("model")), seen[256];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0 && inotify_add_watch(watch, dir, IN_CREATE) >= 0);
    assert_int_equal(modelio_prepare(sub), PARAMO_OK);
    assert_int_equal(read(watch, seen, sizeof seen), -1); /* nothing was there, not even for a moment */
    assert_int_equal(access(sub, F_OK), -1);
    (void)close(watch);
    assert_int_equal(mkdir(sub, 0777), 0);
    assert_int_equal(modelio_prepare(sub), PARAMO_OK);
    assert_int_equal(access(sub, F_OK), 0);
    assert_int_equal(rmdir(sub), 0);
    write_file(sub, "x", 1);
    assert_int_equal(modelio_prepare(sub), PARAMO_E_IO);
    assert_int_equal(unlink(sub), 0);
    assert_int_equal(symlink("nowhere", sub), 0);
    assert_int_equal(modelio_prepare(sub), PARAMO_E_IO);
    free(sub);
    assert_int_equal(modelio_prepare(in_dir("none/model")), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), "none/model: cannot be created: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_saved_is_opened, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_models_are_equal_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_save_leaves_the_old_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_of_two_that_save_the_later_stands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_foreign_models, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calibrations_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_outputs_over_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prepare, setup, teardown),
    };
    return cmocka_run_group_tests_name("modelio", tests, NULL, NULL);
}
