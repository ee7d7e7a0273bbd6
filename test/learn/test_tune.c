#include "learn/support_learn.h"
#include "learn/train/train.h"
#include "learn/tune/journal.h"
#include "learn/tune/trial.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the space ---- */

static struct tune_space space_of(const struct model_ops *ops)
{
    struct model_info info;
    struct tune_space space;
    model_info_init(&info, ops);
    tune_space_init(&space, &info);
    return space;
}

static void check_point(const struct tune_space *s, const double *point)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct tune_option *o = &s->option[i];
        char text[32];
        (void)snprintf(text, sizeof text, "%.12g", point[i]);
        assert_true(strtod(text, NULL) == point[i]); /* the command line gives the same number */
        if (point[i] == 0)
            assert_true(o->zero > 0);
        else
            assert_true(point[i] >= o->low * 0.99 && point[i] <= o->high * 1.01);
        assert_true(!o->doubles || point[i] == 0 ||
                    point[i] / o->low == exp2(round(log2(point[i] / o->low))));
    }
}

static void points_are_within_the_ranges(void **state)
{
    (void)state;
    for (size_t k = 0; model_at(k); k++) {
        const struct tune_space s = space_of(model_at(k));
        double point[TUNE_OPTIONS_MAX], same[TUNE_OPTIONS_MAX], next[TUNE_OPTIONS_MAX];
        size_t zeros = 0, changes = 0;
        assert_true(s.n > 4);
        for (uint64_t i = 0; i < 300; i++) {
            tune_draw(&s, 7, i, point);
            check_point(&s, point);
            tune_draw(&s, 7, i, same);
            assert_memory_equal(point, same, s.n * sizeof *point);
            tune_near(&s, point, 7, i, next);
            check_point(&s, next);
            for (size_t o = 0; o < s.n; o++) {
                zeros += point[o] == 0;
                changes += point[o] != next[o];
            }
        }
        assert_true(zeros > 100);
        assert_in_range(changes, 300 * s.n / 4, 300 * s.n * 3 / 4);
    }
}

/* Of long rows the first trial has the rates of a job, and these are within the ranges. */
static void usual_rates_follow_the_rows(void **state)
{
    (void)state;
    for (size_t k = 0; model_at(k); k++) {
        struct model_info info;
        model_info_init(&info, model_at(k));
        struct tune_space s = space_of(model_at(k)), same = s;
        tune_space_rows(&same, &info); /* not known: nothing changes */
        for (size_t i = 0; i < s.n; i++)
            assert_true(same.option[i].usual == s.option[i].usual && same.option[i].low == s.option[i].low);
        assert_null(tune_space_range(&s, "alpha=0.5:1"));
        info.row_features = 38;
        tune_space_rows(&s, &info);
        for (size_t i = 0; i < s.n; i++) {
            const struct tune_option *o = &s.option[i];
            if (o->kind != TUNE_ALPHA)
                continue;
            const double want = model_alpha(&info, o->place, 2);
            assert_true(fabs(o->usual - want) < 1e-9 * want);
            assert_true(o->place == 0 ? o->low == 0.5 : o->usual > o->low && o->usual < o->high);
        }
    }
}

static void ranges_and_options_that_are_given(void **state)
{
    (void)state;
    struct tune_space s = space_of(&model_fm);
    const size_t n = s.n;
    double point[TUNE_OPTIONS_MAX];
    static const char *const wrong[] = {
        "alpha",     "alpha=",       "alpha=1",     "alpha=1:",    "alpha=:1",  "alpha=0:1",
        "alpha=2:1", "alpha=1:2x",   "alpha=1:inf", "alpha=nan:1", "color=1:2", "=1:2",
        "dim=0.5:2", "dim=1:100000", "batch=1.5:4", "alpha=1:2:3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(tune_space_range(&s, wrong[i]));
    assert_null(tune_space_range(&s, "alpha=0.5:0.5"));
    assert_null(tune_space_range(&s, "dim=3:24"));
    assert_null(tune_space_range(&s, "l2=1:2"));
    tune_space_drop(&s, "beta");
    tune_space_drop(&s, "color");
    assert_int_equal(s.n, n - 1);
    for (uint64_t i = 0; i < 100; i++) {
        char text[1000];
        tune_draw(&s, 1, i, point);
        check_point(&s, point);
        (void)tune_text(&s, point, text, sizeof text);
        assert_non_null(strstr(text, " --alpha 0.5 "));
        assert_null(strstr(text, " --beta "));
        assert_null(strstr(text, " --l2 0 "));
        assert_true(strstr(text, " --dim 3 ") || strstr(text, " --dim 6 ") || strstr(text, " --dim 12 ") ||
                    strstr(text, " --dim 24 "));
    }
}

static void a_point_becomes_settings(void **state)
{
    (void)state;
    const struct tune_space s = space_of(&model_mvm);
    struct train_options o = {0};
    double point[TUNE_OPTIONS_MAX];
    model_info_init(&o.model, &model_mvm);
    for (size_t i = 0; i < s.n; i++)
        point[i] = (double)(i + 1);
    tune_apply(&s, point, &o);
    for (size_t i = 0; i < s.n; i++) {
        const struct tune_option *p = &s.option[i];
        const struct model_optimizer *x = &o.model.optimizer[p->kind == TUNE_SETTING ? 0 : p->place];
        const double got = p->kind == TUNE_SETTING ? o.model.setting[p->place]
                           : p->kind == TUNE_ALPHA ? x->alpha
                           : p->kind == TUNE_BETA  ? x->beta
                           : p->kind == TUNE_L1    ? x->l1
                           : p->kind == TUNE_L2    ? x->l2
                                                   : (double)o.batch;
        assert_true(got == point[i]);
    }
}

/* ---- the search ---- */

struct played {
    const struct tune_space *space;
    size_t calls, end; /* end: INTERRUPTED after this many */
    uint64_t epochs;
    uint64_t first; /* epochs of the first rung, at most; 0: a ninth of 20 */
    struct journal *journal;
    size_t standing[TUNE_KEPT + 1], stand; /* trials that were trained and not dropped */
};

static void stands(struct played *p, size_t trial, uint64_t epochs)
{
    size_t at = 0;
    while (at < p->stand && p->standing[at] != trial)
        at++;
    if (at == p->stand) {
        assert_true(p->stand <= TUNE_KEPT);
        assert_true(p->first > 0 ? epochs <= p->first
                                 : epochs * 9 <= 20 + 9); /* of the first rung: others go on */
        p->standing[p->stand++] = trial;
    }
}

static void falls(void *arg, size_t trial)
{
    struct played *p = arg;
    for (size_t i = 0; i < p->stand; i++)
        if (p->standing[i] == trial) {
            p->standing[i] = p->standing[--p->stand];
            return;
        }
}

/* A bowl with its bottom at alpha 0.05 and beta 3, that is known better after more epochs; trials with alpha above 1
 * end by themselves. */
static paramo_err play(void *arg, size_t trial, const double *point, uint64_t epochs,
                       struct tune_outcome *outcome)
{
    struct played *p = arg;
    char settings[1000];
    int found = 0;
    (void)tune_text(p->space, point, settings, sizeof settings);
    if (p->journal) {
        assert_int_equal(journal_find(p->journal, trial, epochs, settings, outcome, &found), PARAMO_OK);
        if (found)
            return PARAMO_OK;
    }
    if (p->calls == p->end)
        return PARAMO_E_INTERRUPTED;
    p->calls++;
    p->epochs += epochs;
    if (!p->journal)
        stands(p, trial, epochs);
    const double a = log(point[0] / 0.05), b = log(point[1] / 3);
    *outcome = (struct tune_outcome){.loss = 0.4 + 0.01 * (a * a + b * b) + 0.05 / (double)epochs,
                                     .epochs = epochs,
                                     .ended = point[0] > 1,
                                     .seconds = 0.1};
    if (point[0] > 1.5)
        outcome->loss = (double)NAN;
    return !p->journal ? PARAMO_OK : journal_add(p->journal, trial, epochs, settings, outcome);
}

static struct tune_search search_of(struct played *p, size_t trials, uint64_t epochs)
{
    return (struct tune_search){.space = p->space,
                                .seed = 3,
                                .epochs = epochs,
                                .most = trials,
                                .train = play,
                                .drop = falls,
                                .arg = p};
}

static void the_best_is_found(void **state)
{
    (void)state;
    const struct tune_space s = space_of(&model_lr);
    struct played p = {.space = &s, .end = SIZE_MAX};
    struct tune_search few = search_of(&p, 9, 20), many = search_of(&p, 63, 20);
    assert_int_equal(tune_search_run(&few), PARAMO_OK);
    /* 9 trials of 3 epochs, 3 of 7, 1 of 20; those that have ended are not repeated */
    assert_in_range(p.epochs, 9 * 3, 9 * 3 + 3 * 7 + 20);
    assert_int_equal(few.trained, 9);
    assert_true(few.trial[0].point[0] == s.option[0].usual);
    p.epochs = 0;
    assert_int_equal(tune_search_run(&many), PARAMO_OK);
    assert_true(p.epochs <= 7 * (9 * 3 + 3 * 7 + 20));
    for (size_t i = 0; i < 9; i++) /* begins in the same way */
        assert_memory_equal(few.trial[i].point, many.trial[i].point, s.n * sizeof(double));
    double best = (double)INFINITY;
    for (size_t i = 0; i < many.n; i++) {
        best = fmin(best, many.trial[i].outcome.loss);
        assert_true(!isnan(many.trial[i].outcome.loss));
        assert_true(many.trial[i].budget == 3 || many.trial[i].budget == 7 || many.trial[i].budget == 20);
    }
    assert_true(many.trial[many.best].outcome.loss == best);
    assert_true(best < few.trial[few.best].outcome.loss && best < 0.41);
    assert_int_equal(p.stand, 0);
    tune_search_free(&few);
    tune_search_free(&many);
}

/* Of growing epochs, a rung has a third of the passes of the next one, or about. */
static void rungs_of_growing_epochs(void **state)
{
    (void)state;
    const struct tune_space s = space_of(&model_lr);
    struct played p = {.space = &s, .end = SIZE_MAX, .first = 14};
    struct tune_search many = search_of(&p, 18, 20), short_one = search_of(&p, 9, 4);
    many.growing = short_one.growing = 1;
    assert_int_equal(tune_search_run(&many), PARAMO_OK);
    size_t of[21] = {0};
    for (size_t i = 0; i < many.n; i++)
        of[many.trial[i].budget]++;
    assert_int_equal(of[14] + of[17] + of[20], 18);
    assert_true(of[14] >= 12 && of[20] <= 2);
    uint64_t passes[3] = {0};
    for (uint32_t e = 0; e < 20; e++)
        for (size_t rung = 0; rung < 3; rung++)
            passes[rung] += e < 14 + 3 * rung ? train_passes(e) : 0;
    for (size_t rung = 0; rung < 2; rung++)
        assert_in_range(passes[rung + 1], 3 * passes[rung], 4 * passes[rung]);
    assert_int_equal(tune_search_run(&short_one), PARAMO_OK); /* at least one epoch */
    for (size_t i = 0; i < short_one.n; i++)
        assert_in_range(short_one.trial[i].budget, 1, 4);
    tune_search_free(&many);
    tune_search_free(&short_one);
}

static void small_searches_end(void **state)
{
    (void)state;
    const struct tune_space s = space_of(&model_lr);
    for (size_t trials = 1; trials < 12; trials++)
        for (uint64_t epochs = 1; epochs < 12; epochs++) {
            struct played p = {.space = &s, .end = SIZE_MAX};
            struct tune_search search = search_of(&p, trials, epochs);
            assert_int_equal(tune_search_run(&search), PARAMO_OK);
            assert_int_equal(search.trained, trials);
            assert_true(search.trial[search.best].budget == epochs ||
                        search.trial[search.best].outcome.ended);
            tune_search_free(&search);
        }
}

/* A search that ends after any number of trainings and continues from its file is the one that did not end. */
static void a_search_continues_from_its_file(void **state)
{
    (void)state;
    const struct tune_space s = space_of(&model_lr);
    struct played whole = {.space = &s, .end = SIZE_MAX};
    struct tune_search once = search_of(&whole, 20, 9);
    assert_int_equal(tune_search_run(&once), PARAMO_OK);
    char *dir = new_dir(), path[4096];
    (void)snprintf(path, sizeof path, "%s/tune.jsonl", dir);
    for (size_t step = 1; step < 40; step += 6) {
        size_t calls = 0;
        paramo_err err;
        (void)unlink(path);
        do {
            struct played p = {.space = &s, .end = step};
            struct tune_search search = search_of(&p, 20, 9);
            assert_int_equal(journal_open(path, " a search", &p.journal), PARAMO_OK);
            assert_int_equal(journal_count(p.journal), calls);
            err = tune_search_run(&search);
            calls += p.calls;
            journal_close(p.journal);
            if (err == PARAMO_OK) {
                assert_int_equal(search.best, once.best);
                for (size_t i = 0; i < search.n; i++) {
                    assert_memory_equal(search.trial[i].point, once.trial[i].point, s.n * sizeof(double));
                    assert_true(search.trial[i].outcome.loss == once.trial[i].outcome.loss);
                    assert_int_equal(search.trial[i].budget, once.trial[i].budget);
                }
            }
            tune_search_free(&search);
        } while (err == PARAMO_E_INTERRUPTED);
        assert_int_equal(err, PARAMO_OK);
        assert_int_equal(calls, whole.calls);
    }
    tune_search_free(&once);
    remove_dir(dir);
}

/* ---- the file ---- */

static void a_torn_file_is_mended_and_a_foreign_one_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "{\"trial\": 1}\n", "hello\n", "[1]\n",
        "{\"trial\":0,\"epochs\":0,\"settings\":\"\",\"loss\":1,\"best_epoch\":1,"
        "\"ended\":true,\"seconds\":1}\n",
        "{\"trial\":-1,\"epochs\":1,\"settings\":\"\",\"loss\":1,\"best_epoch\":1,"
        "\"ended\":true,\"seconds\":1}\n"};
    char *dir = new_dir(), path[4096], text[1000];
    struct journal *j;
    const struct tune_outcome outcome = {.loss = 0.1 + 0.2, .epochs = 2, .ended = 1, .seconds = 3};
    struct tune_outcome got;
    int found;
    (void)snprintf(path, sizeof path, "%s/tune.jsonl", dir);
    assert_int_equal(journal_open(path, " a", &j), PARAMO_OK);
    assert_int_equal(journal_add(j, 4, 7, " --alpha 1", &outcome), PARAMO_OK);
    struct journal *second;
    assert_int_equal(journal_open(path, " a", &second), PARAMO_E_IO); /* in use */
    journal_close(j);
    size_t len;
    char *whole = read_file(path, &len);
    for (size_t torn = 1; torn < 40; torn += 7) { /* a line that was being written */
        (void)snprintf(text, sizeof text, "%s%.*s", whole, (int)torn,
                       "{\"trial\":5,\"epochs\":7,\"settings\":\"x\"");
        write_file(path, text, strlen(text));
        assert_int_equal(journal_open(path, " a", &j), PARAMO_OK);
        assert_int_equal(journal_count(j), 1);
        assert_int_equal(journal_find(j, 4, 7, " --alpha 1", &got, &found), PARAMO_OK);
        assert_true(found && got.loss == outcome.loss && got.epochs == 2 && got.ended);
        assert_int_equal(journal_find(j, 4, 8, " --alpha 1", &got, &found), PARAMO_OK);
        assert_false(found);
        assert_int_equal(journal_find(j, 4, 7, " --alpha 2", &got, &found), PARAMO_E_INVALID);
        journal_close(j);
        char *after = read_file(path, &len);
        assert_string_equal(after, whole);
        free(after);
    }
    write_file(path, whole, 12); /* its head was being written */
    assert_int_equal(journal_open(path, " a", &j), PARAMO_OK);
    journal_close(j);
    assert_int_equal(journal_open(path, " b", &j), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "is the file of another search: a; this one is: b"));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        (void)snprintf(text, sizeof text, "%s%s", whole, broken[i]);
        write_file(path, text, strlen(text));
        assert_int_equal(journal_open(path, " a", &j), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), "tune.jsonl:3: "));
        write_file(path, broken[i], strlen(broken[i]));
        assert_int_equal(journal_open(path, " a", &j), PARAMO_E_FORMAT);
        char *after = read_file(path, &len);
        assert_string_equal(after, broken[i]); /* a foreign file is left as it was */
        free(after);
    }
    free(whole);
    remove_dir(dir);
}

/* ---- jobs that share rows ---- */

static void write_rows(const char *path)
{
    FILE *f = fopen(path, "w");
    uint64_t seed = 8;
    for (int i = 0; i < 3000; i++) {
        const uint64_t key = draw(&seed) % 50;
        (void)fprintf(f, "%d %d:1 %d:1\n", draw(&seed) % 100 < key * 2, (int)key,
                      100 + (int)(draw(&seed) % 9));
    }
    (void)fclose(f);
}

static void jobs_share_one_parse(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096];
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    write_rows(path);
    const char *paths[] = {path};
    struct train_options o = {.data = paths,
                              .data_n = 1,
                              .hold_out = 10,
                              .epochs = 3,
                              .servers = 1,
                              .workers = 1,
                              .ahead = 1,
                              .quiet = 2};
    struct train_rows rows;
    struct train_result alone, shared;
    reader_options_init(&o.reader);
    model_info_init(&o.model, &model_lr);
    assert_int_equal(train_rows_open(&o, &rows), PARAMO_OK);
    assert_int_equal(rows.hold_out, 10);
    for (int k = 0; k < 3; k++) {
        struct reader_stats stats;
        o.model.optimizer[0].alpha = 0.1 * (k + 1);
        o.rows = NULL;
        assert_int_equal(train_run(&o, &alone), PARAMO_OK);
        o.rows = &rows;
        assert_int_equal(train_run(&o, &shared), PARAMO_OK);
        assert_true(alone.best_loss == shared.best_loss && alone.best_loss > 0);
        assert_int_equal(alone.best_epoch, shared.best_epoch);
        reader_get_stats(rows.reader, &stats);
        assert_int_equal(stats.parts_parsed, reader_parts(rows.reader));
        train_result_free(&alone);
        train_result_free(&shared);
    }
    o.deadline = 1e-9; /* long over */
    assert_int_equal(train_run(&o, &shared), PARAMO_E_INTERRUPTED);
    assert_true(shared.epochs == 0 && shared.best_epoch == 0);
    train_result_free(&shared);
    train_rows_close(&rows);
    remove_dir(dir);
}

/* ---- trials that go on ---- */

static void same_files(const char *dir, const char *other)
{
    char command[20000];
    (void)snprintf(command, sizeof command, "diff -r '%s' '%s' >&2", dir, other);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

/* Two trials, of which one learns while the other stands still, are the trainings that ran through: their loss after
 * each number of epochs, and their models. */
static void a_trial_goes_on(void **state)
{
    (void)state;
    char *dir = new_dir(), path[4096], out[4][4100];
    (void)snprintf(path, sizeof path, "%s/rows.libsvm", dir);
    write_rows(path);
    for (size_t i = 0; i < 4; i++)
        (void)snprintf(out[i], sizeof out[i], "%s/model%zu", dir, i);
    const char *paths[] = {path};
    struct train_options o[2];
    struct train_rows rows;
    struct train_result whole[2];
    struct trial *trial[2];
    struct tune_outcome outcome;
    double guess = 0;
    for (size_t k = 0; k < 2; k++) {
        o[k] = (struct train_options){.data = paths,
                                      .data_n = 1,
                                      .hold_out = 10,
                                      .epochs = 6,
                                      .servers = 1,
                                      .workers = 1,
                                      .ahead = 1,
                                      .shuffle = 1000,
                                      .quiet = 2};
        reader_options_init(&o[k].reader);
        model_info_init(&o[k].model, k == 0 ? &model_fm : &model_lr);
    }
    o[0].model.factor_after = 3; /* sightings and a schedule are state of the job, and in no model */
    assert_int_equal(rate_schedule_parse("cosine", &o[0].schedule), 0);
    o[1].model.optimizer[0].alpha = 0.5;
    assert_int_equal(admission_parse("count:2", &o[1].admission), 0);
    o[1].admission.bytes = 1 << 20;
    assert_int_equal(train_rows_open(&o[0], &rows), PARAMO_OK);
    for (size_t k = 0; k < 2; k++) {
        o[k].rows = &rows;
        o[k].model_out = out[k];
        assert_int_equal(train_run(&o[k], &whole[k]), PARAMO_OK);
        assert_int_equal(whole[k].epochs, 6);
        o[k].model_out = out[2 + k];
        assert_int_equal(trial_new(&o[k], &trial[k]), PARAMO_OK);
    }
    static const uint64_t until[][2] = {{0, 1}, {1, 2}, {0, 3}, {1, 3}, {1, 6}, {0, 6}, {0, 2}};
    for (size_t i = 0; i < sizeof until / sizeof *until; i++) {
        const size_t k = until[i][0];
        double best = (double)INFINITY;
        assert_int_equal(trial_run(trial[k], until[i][1], &outcome, &guess), PARAMO_OK);
        if (i == 6) /* it has learned more already */
            break;
        for (uint64_t e = 0; e < until[i][1]; e++)
            best = fmin(best, whole[k].epoch[e].valid.loss);
        assert_true(outcome.loss == best);
        assert_true(whole[k].epoch[outcome.epochs - 1].valid.loss == best);
        assert_true(guess == whole[k].base_loss && !outcome.ended);
    }
    for (size_t k = 0; k < 2; k++) {
        same_files(out[k], out[2 + k]);
        train_result_free(&whole[k]);
        trial_free(trial[k]);
    }
    o[1].patience = 1; /* one that ends by itself, and one that the time ends */
    o[1].model.optimizer[0].alpha = 5;
    o[1].model_out = NULL;
    assert_int_equal(trial_new(&o[1], &trial[0]), PARAMO_OK);
    assert_int_equal(trial_run(trial[0], 6, &outcome, &guess), PARAMO_OK);
    assert_true(outcome.ended && outcome.epochs < 5);
    trial_free(trial[0]);
    o[1].deadline = 1e-9;
    assert_int_equal(trial_new(&o[1], &trial[0]), PARAMO_OK);
    assert_int_equal(trial_run(trial[0], 1, &outcome, &guess), PARAMO_E_INTERRUPTED);
    assert_non_null(strstr(paramo_last_error(), "the training has not ended"));
    trial_free(trial[0]);
    o[1].deadline = 0;
    assert_int_equal(trial_new(&o[1], &trial[0]),
                     PARAMO_OK); /* one that never begins, one that stands still */
    assert_int_equal(trial_new(&o[0], &trial[1]), PARAMO_OK);
    assert_int_equal(trial_run(trial[1], 1, &outcome, &guess), PARAMO_OK);
    trial_free(trial[0]);
    trial_free(trial[1]);
    trial_free(NULL);
    train_rows_close(&rows);
    remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_within_the_ranges),
        cmocka_unit_test(usual_rates_follow_the_rows),
        cmocka_unit_test(ranges_and_options_that_are_given),
        cmocka_unit_test(a_point_becomes_settings),
        cmocka_unit_test(the_best_is_found),
        cmocka_unit_test(rungs_of_growing_epochs),
        cmocka_unit_test(small_searches_end),
        cmocka_unit_test(a_search_continues_from_its_file),
        cmocka_unit_test(a_torn_file_is_mended_and_a_foreign_one_refused),
        cmocka_unit_test(jobs_share_one_parse),
        cmocka_unit_test(a_trial_goes_on),
    };
    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
