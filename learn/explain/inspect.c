#include "learn/explain/inspect.h"

#include <math.h>
#include <stdlib.h>

static void measure(const struct model_table *t, uint64_t rows, struct inspect_table *out)
{
    double squares = 0;
    *out = (struct inspect_table){.rows = rows, .values = rows * t->dim};
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t before = out->nonzero;
        for (uint64_t i = r * t->dim; i < (r + 1) * t->dim; i++) {
            const double x = fabs((double)t->values[i]);
            out->nonzero += x > 0;
            out->l1 += x;
            squares += x * x;
            out->most = x > out->most ? x : out->most;
        }
        out->nonzero_rows += out->nonzero > before;
    }
    out->l2 = sqrt(squares);
}

/* Is a before b? The greater magnitude is first; of equal ones, the lower key. */
static int is_before(const struct inspect_weight *a, const struct inspect_weight *b)
{
    const float x = fabsf(a->weight), y = fabsf(b->weight);
    return x != y ? x > y : a->key < b->key;
}

/* In a heap of n weights, each comes after those below it, so the root is the last in order. */
static void sink(struct inspect_weight *heap, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&heap[at], &heap[child]))
            return;
        const struct inspect_weight swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void rise(struct inspect_weight *heap, size_t at)
{
    for (size_t above; at > 0 && is_before(&heap[above = (at - 1) / 2], &heap[at]); at = above) {
        const struct inspect_weight swap = heap[at];
        heap[at] = heap[above];
        heap[above] = swap;
    }
}

static void offer(struct inspection *out, size_t most, const struct inspect_weight *w)
{
    if (out->top < most) {
        out->weight[out->top] = *w;
        rise(out->weight, out->top++);
    } else if (most > 0 && is_before(w, &out->weight[0])) {
        out->weight[0] = *w;
        sink(out->weight, most, 0);
    }
}

static int by_order(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

/* The greatest of a row's weights, one for each output. */
static struct inspect_weight greatest(const struct model_table *w, uint64_t row)
{
    struct inspect_weight out = {.key = w->keys[row], .divisor = 1};
    const float *value = w->values + row * w->dim;
    for (uint32_t c = 0; c < w->dim; c++)
        if (fabsf(value[c]) > fabsf(out.weight)) {
            out.weight = value[c];
            out.output = c;
        }
    return out;
}

static void add_rows(const struct model *m, struct inspect_weight *w)
{
    for (size_t t = 0; t < m->n; t++) {
        const float *row = model_fixed_rows(&m->info, t) > 0 ? NULL : modelio_row(&m->table[t], w->key);
        double squares = 0;
        for (uint32_t i = 0; row && i < m->table[t].dim; i++)
            squares += (double)row[i] * (double)row[i];
        w->norm[t] = sqrt(squares);
    }
    const float *scale = m->scale.file ? modelio_row(&m->scale, w->key) : NULL;
    if (scale)
        w->divisor = scale_divisor(m->info.scale, scale);
}

paramo_err inspect_model(const struct model *m, size_t most, struct inspection *out)
{
    const struct model_table *w = &m->table[0];
    const int bias = w->n > 0 && w->keys[w->n - 1] == BATCH_BIAS_KEY;
    most = most < w->n ? most : (size_t)w->n;
    *out = (struct inspection){.bias = bias ? w->values + (w->n - 1) * w->dim : NULL};
    out->weight = malloc((most + 1) * sizeof *out->weight);
    if (!out->weight)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the %zu largest weights", most);
    for (size_t t = 0; t < m->n; t++)
        measure(&m->table[t], m->table[t].n - (t == 0 && bias), &out->table[t]);
    for (uint64_t r = 0; r < out->table[0].rows; r++) {
        const struct inspect_weight one = greatest(w, r);
        if (one.weight != 0)
            offer(out, most, &one);
    }
    qsort(out->weight, out->top, sizeof *out->weight, by_order);
    for (size_t i = 0; i < out->top; i++)
        add_rows(m, &out->weight[i]);
    return PARAMO_OK;
}

void inspect_free(struct inspection *inspection)
{
    free(inspection->weight);
    *inspection = (struct inspection){0};
}
