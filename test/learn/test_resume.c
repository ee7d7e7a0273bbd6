/* Training that continues from a model with other learning rates: it begins with the model's own predictions. */
#include "learn/support_learn.h"
#include "learn/train/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *dir, first[4096], second[4096], data[4096];
static const char *const files[] = {data};

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(first, sizeof first, "%s-first", dir);
    (void)snprintf(second, sizeof second, "%s-second", dir);
    FILE *f = fopen(data, "w");
    assert_non_null(f);
    uint64_t seed = 5;
    for (unsigned i = 0; i < 20000; i++) {
        const unsigned a = (unsigned)(draw(&seed) % 50), b = (unsigned)(draw(&seed) % 50);
        (void)fprintf(f, "%d 0:%u:1 1:%u:1\n", draw(&seed) % 50 < (a + b) / 2, a, 100 + b);
    }
    (void)fclose(f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static double train(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    const double logloss = r.epoch[r.epochs - 1].loss;
    train_result_free(&r);
    return logloss;
}

static struct train_options options(const struct model_ops *ops, double l1)
{
    struct train_options o = {.data = files,
                              .data_n = 1,
                              .valid = files,
                              .valid_n = 1,
                              .epochs = 2,
                              .batch = 64,
                              .servers = 1,
                              .workers = 1,
                              .model_out = first,
                              .quiet = 1};
    reader_options_init(&o.reader);
    model_info_init(&o.model, ops);
    for (size_t t = 0; t < ops->tables; t++)
        (void)snprintf(o.model.optimizer[t].name, sizeof o.model.optimizer[t].name, "ftrl");
    o.model.optimizer[0].l1 = l1;
    return o;
}

/* The weights before are those after, but for what a pass at that rate changes. */
static void another_rate_keeps_the_weights(void **state)
{
    (void)state;
    static const struct {
        double alpha, beta, l1;
    } rates[] = {{0.001, 1, 0}, {0.02, 1, 2}, {0.5, 1, 0}, {0.1, 50, 0}, {0.001, 0.1, 0.5}};
    for (size_t i = 0; model_at(i); i++)
        for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
            struct train_options o = options(model_at(i), rates[k].l1);
            const double before = train(&o);
            o.model_in = first;
            o.model_out = second;
            o.epochs = 1;
            assert_int_equal(train_take_settings(first, &o.model), PARAMO_OK);
            o.model.optimizer[0].alpha = rates[k].alpha;
            o.model.optimizer[0].beta = rates[k].beta;
            const double after = train(&o);
            if (!(after < before + 0.003))
                fail_msg("%s, alpha %g, beta %g: %g, then %g", model_at(i)->name, rates[k].alpha,
                         rates[k].beta, before, after);
            struct model m;
            assert_int_equal(modelio_open(second, &m), PARAMO_OK);
            assert_true(m.info.optimizer[0].alpha == rates[k].alpha);
            modelio_close(&m);
            remove_dir(strdup(first));
            remove_dir(strdup(second));
        }
}

/* z of a weight that l1 holds at 0 stays. */
static void a_weight_of_zero_keeps_its_state(void **state)
{
    (void)state;
    const struct optimizer_rates old = {.alpha = 0.1, .beta = 1, .l1 = 2, .l2 = 3},
                                 now = {.alpha = 0.4, .beta = 5, .l1 = 2, .l2 = 3};
    const float w[2] = {0, -0.5f};
    float s[4] = {1.5f, 7, 9, 16}; /* z, z, n, n */
    optimizers_find("ftrl")->retune(&old, &now, w, s, 2);
    assert_true(s[0] == 1.5f && s[2] == 9 && s[3] == 16);
    const double z = (double)s[1], rest = fabs(z) - now.l1;
    assert_true(fabs(-copysign(rest, z) / ((now.beta + 4) / now.alpha + now.l2) - (double)w[1]) < 1e-6);
    assert_true(!optimizers_find("adagrad")->retune && !optimizers_find("sgd")->retune);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_rate_keeps_the_weights),
        cmocka_unit_test(a_weight_of_zero_keeps_its_state),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
