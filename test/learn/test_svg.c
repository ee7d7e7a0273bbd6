#include "learn/plot/chart.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The document as text, which the caller frees. */
static char *written(struct svg *svg)
{
    char *dir = new_dir(), path[4096], *text;
    size_t len;
    (void)snprintf(path, sizeof path, "%s/plot.svg", dir);
    assert_int_equal(svg_write(svg, path), PARAMO_OK);
    svg_free(svg);
    text = read_file(path, &len);
    remove_dir(dir);
    return text;
}

static void texts_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"a<b>&\"c'", ">a&lt;b&gt;&amp;\"c'<"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", ">caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80<"},
        {"a\x01\x1b\tb\x7f", ">a?? b\x7f<"},
        {"\xff\xc3", "?\?<"},
        {"\xc0\xaf", "?\?<"},
        {"\xed\xa0\x80", "?\?\?<"},
        {"\xef\xbf\xbf", "?\?\?<"},
        {"\xf4\x90\x80\x80", "?\?\?\?<"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct svg *svg;
        assert_int_equal(svg_new(100, 100, cases[i].text, &svg), PARAMO_OK);
        svg_text(svg, 1, 2, SVG_START, 10, 0, cases[i].text);
        char *text = written(svg);
        const char *first = strstr(text, cases[i].wanted);
        assert_non_null(first); /* the title */
        assert_non_null(strstr(first + 1, cases[i].wanted));
        free(text);
    }
}

static void nothing_is_written_where_it_cannot_be(void **state)
{
    (void)state;
    struct svg *svg;
    assert_int_equal(svg_new(100, 100, "x", &svg), PARAMO_OK);
    assert_int_equal(svg_write(svg, "/nowhere/plot.svg"), PARAMO_E_IO);
    svg_free(svg);
}

/* Ticks lie within the axis, ascend, and their labels differ and say the number. */
static void check_axis(struct chart_axis axis)
{
    double tick[CHART_TICKS_MAX];
    chart_range(&axis);
    assert_true(axis.low < axis.high);
    for (size_t most = 2; most <= 12; most++) {
        const size_t n = chart_ticks(&axis, most, tick);
        char before[32] = "", label[32];
        assert_in_range(n, 2, most);
        for (size_t i = 0; i < n; i++) {
            const double span = axis.high - axis.low;
            assert_true(tick[i] >= axis.low - span * 1e-3 && tick[i] <= axis.high + span * 1e-3);
            assert_true(i == 0 || tick[i] > tick[i - 1]);
            chart_label(&axis, tick[i], tick[1] - tick[0], label, sizeof label);
            assert_string_not_equal(label, before);
            assert_true(fabs(strtod(label, NULL) - tick[i]) <= fabs(tick[i]) * 5e-3 + span * 1e-6);
            assert_true(!axis.whole || tick[i] == floor(tick[i]));
            (void)snprintf(before, sizeof before, "%s", label);
        }
    }
}

static void ticks_are_few_and_round(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int t = 0; t < 3000; t++) {
        const double size = pow(10, 6 * (double)draw_float(&seed)), at = 3 * size * (double)draw_float(&seed);
        struct chart_axis axis = {.low = at, .high = at + size * (1 + (double)draw_float(&seed))};
        check_axis(axis);
        axis = (struct chart_axis){
            .log = 1, .low = size, .high = size * pow(10, 0.3 + 4 * fabs((double)draw_float(&seed)))};
        check_axis(axis);
        axis = (struct chart_axis){.whole = 1, .low = 1, .high = 1 + (double)(draw(&seed) % 200)};
        check_axis(axis);
    }
    check_axis((struct chart_axis){.low = 0, .high = 0});
    check_axis((struct chart_axis){.low = 5, .high = 5});
    check_axis((struct chart_axis){.low = 1, .high = 0});
    check_axis((struct chart_axis){.log = 1, .low = 1, .high = 0});
    check_axis((struct chart_axis){.log = 1, .low = 7, .high = 7});
}

struct box {
    double left, right, top, bottom;
    char text[64];
};

/* The boxes of all texts of a document, by the width that the font has at most. */
static size_t boxes(char *text, struct box *box, size_t most)
{
    size_t n = 0;
    for (char *at = text; (at = strstr(at, "<text ")); at++) {
        double x, y, size;
        char anchor[16];
        assert_int_equal(sscanf(at, "<text x=\"%lf\" y=\"%lf\" text-anchor=\"%15[a-z]\" font-size=\"%lf\"",
                                &x, &y, anchor, &size),
                         4);
        const char *end = strchr(at, '>'), *turned = strstr(at, "rotate(");
        struct box *b = &box[n++];
        assert_true(n < most);
        assert_int_equal(sscanf(end, ">%63[^<]", b->text), 1);
        const double wide = svg_text_width(b->text, size), from = anchor[0] == 's'   ? 0
                                                                  : anchor[0] == 'm' ? -wide / 2
                                                                                     : -wide;
        if (turned && turned < end)
            *b = (struct box){
                .left = x - size, .right = x + size / 4, .top = y - wide / 2, .bottom = y + wide / 2};
        else
            *b = (struct box){
                .left = x + from, .right = x + from + wide, .top = y - size, .bottom = y + size / 4};
        (void)sscanf(end, ">%63[^<]", b->text);
    }
    return n;
}

static void no_text_lies_on_another(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int t = 0; t < 600; t++) {
        struct svg *svg;
        struct box box[100];
        const double width = 260 + (double)(draw(&seed) % 600), height = 260 + (double)(draw(&seed) % 300);
        const double size = pow(10, 7 * (double)draw_float(&seed));
        const struct chart_series series[] = {{.name = "a series"},
                                              {.name = "another one of them", .style = CHART_POINTS},
                                              {.name = "the third"}};
        struct chart chart = {.title = "a title",
                              .x = {.title = "what is along", .low = size, .high = size * 3},
                              .y = {.title = "what is up", .low = -size, .high = size * 2},
                              .series = series,
                              .n = 3};
        chart.x.log = t % 3 == 0;
        chart.y.log = t % 4 == 0;
        chart.y.low = chart.y.log ? size : -size;
        chart_range(&chart.x);
        chart_range(&chart.y);
        assert_int_equal(svg_new(width, height, "t", &svg), PARAMO_OK);
        chart_draw(svg, 0, 0, width, height, &chart);
        char *text = written(svg);
        const size_t n = boxes(text, box, 100);
        for (size_t i = 0; i < n; i++) {
            if (box[i].left < 0 || box[i].top < 0 || box[i].bottom > height || box[i].right > width)
                fail_msg("'%s' is not in the chart", box[i].text);
            for (size_t k = 0; k < i; k++)
                if (box[i].left < box[k].right && box[k].left < box[i].right && box[i].top < box[k].bottom &&
                    box[k].top < box[i].bottom)
                    fail_msg("'%s' and '%s' overlap in %g x %g", box[i].text, box[k].text, width, height);
        }
        free(text);
    }
}

static void points_that_are_not_finite_are_left_out(void **state)
{
    (void)state;
    struct svg *svg;
    const double x[] = {1, 2, 3, 4}, y[] = {1, (double)NAN, (double)INFINITY, 2};
    const struct chart_series series = {.style = CHART_LINE_POINTS, .n = 4, .x = x, .y = y};
    struct chart chart = {.title = "t",
                          .x = {.title = "x", .low = 1, .high = 0},
                          .y = {.title = "y", .low = 1, .high = 0},
                          .series = &series,
                          .n = 1};
    chart_include(&chart.x, x, 4);
    chart_include(&chart.y, y, 4);
    assert_true(chart.y.low == 1 && chart.y.high == 2 && chart.x.high == 4);
    assert_int_equal(svg_new(300, 300, "t", &svg), PARAMO_OK);
    chart_draw(svg, 0, 0, 300, 300, &chart);
    char *text = written(svg);
    size_t circles = 0;
    for (const char *at = text; (at = strstr(at, "<circle")); at++)
        circles++;
    assert_int_equal(circles, 2);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(nothing_is_written_where_it_cannot_be),
        cmocka_unit_test(ticks_are_few_and_round),
        cmocka_unit_test(no_text_lies_on_another),
        cmocka_unit_test(points_that_are_not_finite_are_left_out),
    };
    return cmocka_run_group_tests_name("svg", tests, NULL, NULL);
}
