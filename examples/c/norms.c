/* Functions that run on the servers: norms of a model, its greatest weights, and a mean of two models, without moving a
 * row. Alone it runs a whole cluster in this process; "paramo run -s 3 -w 1 -- ./norms" prints the same numbers. */
#include "example.h"

#include <math.h>

enum { ROWS = 100000, BEST = 3 };

/* A model of ROWS weights, the same on every run. */
static paramo_table *model(paramo_worker *worker, const char *name, uint64_t seed)
{
    static uint64_t keys[ROWS];
    static float weights[ROWS];
    paramo_table_options options;
    paramo_table_options_init(&options); /* sparse, one float a key, a push adds */
    paramo_table *table;
    check(paramo_table_open(worker, name, &options, &table));
    for (size_t i = 0; i < ROWS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        keys[i] = 7 * i;
        weights[i] = (float)(seed >> 40) / (1 << 23) - 1;
    }
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys, kv.n = kv.vals_len = ROWS;
    kv.vals = weights;
    uint64_t ts;
    check(paramo_push(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    return table;
}

static double reduce(paramo_worker *worker, paramo_table *table, paramo_reduce_function function,
                     paramo_table *other)
{
    paramo_reduction r;
    paramo_reduction_init(&r, function);
    r.other = other;
    uint64_t ts;
    check(paramo_reduce(worker, table, &r, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    return r.value;
}

static void show(paramo_worker *worker, const char *name, paramo_table *table)
{
    printf("%s: sum %.17g, norm 1 %.17g, norm 2 %.17g\n", name,
           reduce(worker, table, PARAMO_REDUCE_SUM, NULL), reduce(worker, table, PARAMO_REDUCE_NORM1, NULL),
           sqrt(reduce(worker, table, PARAMO_REDUCE_NORM2_SQUARED, NULL)));
}

static void work(paramo_node *node, paramo_worker *worker)
{
    (void)node;
    paramo_table *a = model(worker, "a", 1), *b = model(worker, "b", 2);
    show(worker, "a", a);
    show(worker, "b", b);
    printf("a * b: %.17g\n", reduce(worker, a, PARAMO_REDUCE_DOT, b));

    paramo_entry best[BEST];
    paramo_reduction top;
    paramo_reduction_init(&top, PARAMO_REDUCE_TOP);
    top.begin = 0, top.end = 7 * 50000; /* of the first 50,000 keys */
    top.entries = best, top.most = BEST;
    uint64_t ts;
    check(paramo_reduce(worker, a, &top, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    for (size_t i = 0; i < top.n; i++)
        printf("greatest: key %llu, %.9g\n", (unsigned long long)best[i].key, best[i].value);

    paramo_transformation mean; /* a = (a + b) / 2 */
    paramo_transformation_init(&mean, PARAMO_TRANSFORM_AXPY);
    mean.a = 1, mean.other = b;
    check(paramo_transform(worker, a, &mean));
    paramo_transformation_init(&mean, PARAMO_TRANSFORM_SCALE);
    mean.a = 0.5;
    check(paramo_transform(worker, a, &mean));
    show(worker, "mean", a);

    paramo_transformation zero; /* the last half of b */
    paramo_transformation_init(&zero, PARAMO_TRANSFORM_FILL);
    zero.begin = 7 * 50000;
    check(paramo_transform(worker, b, &zero));
    show(worker, "half of b", b);
}

int main(void)
{
    return run(work);
}
