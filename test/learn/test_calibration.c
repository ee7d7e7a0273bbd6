/* Calibration against what it is defined by: the least loss, the best ascending steps, and sums that can be added. */
#include "learn/objective/calibration.h"
#include "learn/objective/logistic.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 20000

static float margin[ROWS], label[ROWS], weight[ROWS];
static double sums[CALIBRATION_SUMS];

/* Rows whose margins are wrong by a line: those of the truth are scale m + shift. */
static void draw_rows(double scale, double shift, uint64_t seed)
{
    for (size_t i = 0; i < ROWS; i++) {
        margin[i] = 3 * draw_float(&seed);
        const double p = link_probability((float)(scale * (double)margin[i] + shift));
        label[i] = (double)(draw(&seed) % 1000000) < 1e6 * p ? 1.0f : 0.0f;
        weight[i] = (float)(1 + draw(&seed) % 3);
    }
    memset(sums, 0, sizeof sums);
    calibration_add(sums, margin, label, weight, ROWS);
}

/* The mean log-loss of the rows themselves. */
static double loss_of(const struct calibration *c)
{
    double loss = 0, all = 0;
    for (size_t i = 0; i < ROWS; i++) {
        float m = margin[i];
        if (c)
            calibration_apply(c, &m, 1);
        loss += (double)weight[i] * link_loss(m, label[i]);
        all += (double)weight[i];
    }
    return loss / all;
}

static void platt_finds_the_line(void **s)
{
    (void)s;
    static const double lines[][2] = {{1, 0}, {0.5, -2}, {2.5, 1}, {1, -4}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct calibration c;
        draw_rows(lines[i][0], lines[i][1], i + 1);
        assert_true(calibration_fit(CALIBRATION_PLATT, sums, &c));
        assert_true(fabs(c.a - lines[i][0]) < 0.15 && fabs(c.b - lines[i][1]) < 0.15);
        const double best = loss_of(&c);
        assert_true(best <= loss_of(NULL) + 1e-6);
        for (int k = 0; k < 4; k++) { /* no line near it is better */
            struct calibration near = c;
            near.a += k == 0 ? 0.05 : k == 1 ? -0.05 : 0;
            near.b += k == 2 ? 0.05 : k == 3 ? -0.05 : 0;
            assert_true(loss_of(&near) > best);
        }
        assert_true(fabs(calibration_loss(&c, sums) - best) < 1e-3);
        assert_true(fabs(calibration_loss(NULL, sums) - loss_of(NULL)) < 1e-3);
    }
}

/* The ascending step function of the least squared error has means over runs: min over ends of max over begins. */
static void isotonic_is_the_best_ascending_one(void **s)
{
    (void)s;
    struct calibration c;
    draw_rows(0.4, -1, 7);
    assert_true(calibration_fit(CALIBRATION_ISOTONIC, sums, &c));
    assert_true(calibration_valid(&c) && c.knots > 3);
    assert_true(loss_of(&c) < loss_of(NULL) - 0.05);
    size_t steps = 0, values = 0;
    double before = -1;
    for (size_t i = 0; i < CALIBRATION_BINS; i++) {
        double value = INFINITY;
        if (!(sums[i * CALIBRATION_COLUMNS] > 0))
            continue;
        for (size_t end = i; end < CALIBRATION_BINS; end++) {
            double best = -1;
            for (size_t begin = 0; begin <= i; begin++) {
                double all = 0, positives = 0;
                for (size_t k = begin; k <= end; k++) {
                    all += sums[k * CALIBRATION_COLUMNS + CALIBRATION_ROWS];
                    positives += sums[k * CALIBRATION_COLUMNS + CALIBRATION_POSITIVES];
                }
                if (all > 0 && positives / all > best)
                    best = positives / all;
            }
            value = best < value ? best : value;
        }
        values += value > before + 1e-12;
        before = value;
        /* in the middle of a step the function is the step's value, drawn a little to 1/2 */
        for (uint32_t k = 0; k < c.knots; k++) {
            const double place =
                ((double)c.from[k] + CALIBRATION_MARGIN) * CALIBRATION_BINS / (2 * CALIBRATION_MARGIN);
            if ((size_t)place != i)
                continue;
            assert_true(fabs(link_probability(c.to[k]) - value) < 0.03);
            steps++;
        }
    }
    assert_int_equal(steps, c.knots);
    assert_int_equal(values, c.knots);
    float m[] = {-1e9f, c.from[0], 1e9f, (c.from[0] + c.from[1]) / 2};
    calibration_apply(&c, m, 4);
    assert_true(m[0] == c.to[0] && m[1] == c.to[0] && m[2] == c.to[c.knots - 1]);
    assert_true(m[3] >= c.to[0] && m[3] <= c.to[1]);
}

static void what_cannot_be_fitted(void **s)
{
    (void)s;
    struct calibration c;
    for (int kind = CALIBRATION_PLATT; kind < CALIBRATION_KINDS; kind++) {
        for (int one = 0; one < 2; one++) { /* rows of one label */
            draw_rows(1, 0, 3);
            memset(sums, 0, sizeof sums);
            for (size_t i = 0; i < ROWS; i++)
                label[i] = (float)one;
            calibration_add(sums, margin, label, NULL, ROWS);
            assert_false(calibration_fit((enum calibration_kind)kind, sums, &c));
            assert_int_equal(c.kind, CALIBRATION_NONE);
        }
        memset(sums, 0, sizeof sums);
        assert_false(calibration_fit((enum calibration_kind)kind, sums, &c));
        /* one bin, the same margin for all, and margins of any size */
        static const float same[] = {2, 2, 2, 2}, far[] = {-1e30f, 1e30f, NAN, 30}, y[] = {0, 1, 0, 1};
        calibration_add(sums, same, y, NULL, 4);
        assert_true(calibration_fit((enum calibration_kind)kind, sums, &c));
        float m = 2;
        calibration_apply(&c, &m, 1);
        assert_true(fabs((double)m) < 0.01);
        memset(sums, 0, sizeof sums);
        calibration_add(sums, far, y, NULL, 2);
        (void)calibration_fit((enum calibration_kind)kind, sums, &c);
        assert_true(calibration_valid(&c));
    }
    draw_rows(-1, 0.5, 4); /* ranked the wrong way round: worth its mean rate */
    assert_true(calibration_fit(CALIBRATION_PLATT, sums, &c));
    assert_true(c.a == 0);
}

static void sums_of_parts_add_up(void **s)
{
    (void)s;
    double parts[CALIBRATION_SUMS] = {0};
    draw_rows(1, 0, 9);
    calibration_add(parts, margin, label, weight, 777);
    calibration_add(parts, margin + 777, label + 777, weight + 777, ROWS - 777);
    assert_memory_equal(parts, sums, sizeof sums);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(platt_finds_the_line),
        cmocka_unit_test(isotonic_is_the_best_ascending_one),
        cmocka_unit_test(what_cannot_be_fitted),
        cmocka_unit_test(sums_of_parts_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
