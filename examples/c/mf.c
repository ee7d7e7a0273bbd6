/*
 * Matrix factorisation of ratings: SVD++ (Koren, KDD 2008, section 4), by stochastic gradient descent. The rating of
 * item i by user u is predicted as
 *
 *     mean + b_u + b_i + q_i . (p_u + |N(u)|^-1/2 sum of y_j over N(u)),      N(u): the items that u has rated
 *
 * An item's row (q, y and b) is in a table. Each worker has the users whose number modulo the number of workers is
 * its rank, and keeps their p and b: no other worker needs them. It takes its users in blocks, in a new order in each
 * pass: it pulls the items of a block, goes through the ratings, measures the error on TEST, and pushes the changes.
 *
 *     ./mf TRAIN TEST                             lines "user item rating ...", as MovieLens has them
 *     paramo run -s 2 -w 2 -- ./mf TRAIN TEST     worker 0 prints the error after each pass
 */
#include <math.h>
#include <string.h>

#include "example.h"

enum { K = 16, ROW = 2 * K + 1, PASSES = 50, BLOCK = 16, IDS_MAX = 1 << 24 };
#define STEP  0.005f /* learning rate, of the first pass; each pass has DECAY times that of the one before */
#define DECAY 0.98f
#define L2    0.08f
#define INIT  0.05f /* standard deviation of the factors at the start */

struct rating {
    uint32_t user, item;
    float value;
};
static struct ratings { /* by user: those of user u are at[begins[u]] to at[begins[u + 1] - 1] */
    struct rating *at;
    size_t n, *begins;
} train, test;
static size_t users, items; /* ids are below */
static float (*p)[K], *b, mean;
static struct { /* the rows of some users' items, as they were pulled, and as they are now */
    uint64_t *keys;
    size_t n, *place; /* of an item, from 1; 0: it is not among them */
    float (*old)[ROW], (*row)[ROW];
} part;

static int by_user(const void *x, const void *y)
{
    const struct rating *l = x, *r = y;
    return (l->user > r->user) - (l->user < r->user);
}

static void read_ratings(const char *path, struct ratings *r)
{
    char line[256];
    struct rating x;
    FILE *in = fopen(path, "r");
    if (!in)
        fail("%s: it cannot be read", path);
    for (size_t number = 1, cap = 0; fgets(line, sizeof line, in); number++) {
        if (sscanf(line, "%u %u %f", &x.user, &x.item, &x.value) != 3 || (x.user | x.item) >= IDS_MAX)
            fail("%s:%zu: it is not: user item rating (ids below %d)", path, number, IDS_MAX);
        if (r->n == cap)
            r->at = grow(r->at, cap = 2 * cap + 1024, sizeof *r->at);
        r->at[r->n++] = x;
        users = x.user < users ? users : x.user + 1;
        items = x.item < items ? items : x.item + 1;
    }
    fclose(in);
    if (!r->n)
        fail("%s: it has no ratings", path);
    qsort(r->at, r->n, sizeof *r->at, by_user);
}

static size_t *begins_of(const struct ratings *r)
{
    size_t *begins = memory(users + 1, sizeof *begins), i = 0;
    for (size_t u = 0; u <= users; begins[u++] = i)
        while (i < r->n && r->at[i].user < u)
            i++;
    return begins;
}

/* Pulls the rows of all items that n users have rated. */
static void part_pull(paramo_worker *worker, paramo_table *table, const size_t *user, size_t n)
{
    for (; part.n > 0; part.n--)
        part.place[part.keys[part.n - 1]] = 0;
    for (size_t i = 0; i < 2 * n; i++) {
        const struct ratings *r = i % 2 ? &test : &train;
        for (size_t k = r->begins[user[i / 2]]; k < r->begins[user[i / 2] + 1]; k++)
            if (!part.place[r->at[k].item]++)
                part.keys[part.n++] = r->at[k].item;
    }
    sort_keys(part.keys, part.n);
    for (size_t i = 0; i < part.n; i++)
        part.place[part.keys[i]] = i + 1;
    pull(worker, table, part.keys, part.n, part.row, part.n * ROW);
    memcpy(part.old, part.row, part.n * sizeof *part.row);
}

static float *row_of(const struct rating *r)
{
    return part.row[part.place[r->item] - 1];
}

/* v = p_u plus the sum over N(u). Returns the factor of the sum (infinite and not used if N(u) is empty). */
static float user_vector(size_t u, float v[K])
{
    float factor = 1 / sqrtf((float)(train.begins[u + 1] - train.begins[u]));
    memcpy(v, p[u], sizeof p[u]);
    for (size_t i = train.begins[u]; i < train.begins[u + 1]; i++)
        for (int k = 0; k < K; k++)
            v[k] += factor * row_of(&train.at[i])[K + k];
    return factor;
}

static float predict(const struct rating *r, const float v[K])
{
    const float *q = row_of(r);
    float guess = mean + b[r->user] + q[2 * K];
    for (int k = 0; k < K; k++)
        guess += v[k] * q[k];
    return guess;
}

/* One pass over the ratings of a user. */
static void learn(size_t u, float step)
{
    float v[K], y_step[K] = {0}, factor = user_vector(u, v);
    for (size_t i = train.begins[u]; i < train.begins[u + 1]; i++) {
        float *q = row_of(&train.at[i]), error = train.at[i].value - predict(&train.at[i], v);
        b[u] += step * (error - L2 * b[u]);
        q[2 * K] += step * (error - L2 * q[2 * K]);
        for (int k = 0; k < K; k++) {
            float p_step = step * (error * q[k] - L2 * p[u][k]);
            y_step[k] += factor * error * q[k];
            q[k] += step * (error * v[k] - L2 * q[k]);
            p[u][k] += p_step;
            v[k] += p_step;
        }
    }
    for (size_t i = train.begins[u]; i < train.begins[u + 1]; i++)
        for (int k = 0; k < K; k++)
            row_of(&train.at[i])[K + k] += step * (y_step[k] - L2 * row_of(&train.at[i])[K + k]);
}

static double squared_errors(size_t u)
{
    double sum = 0;
    float v[K];
    user_vector(u, v);
    for (size_t i = test.begins[u]; i < test.begins[u + 1]; i++)
        sum += pow((double)(test.at[i].value - predict(&test.at[i], v)), 2);
    return sum;
}

static void work(paramo_node *node, paramo_worker *worker)
{
    paramo_table *table = adding_table(worker, "items", PARAMO_F32, ROW, INIT);
    uint32_t rank = paramo_node_rank(node), workers = paramo_num_workers(node);
    uint64_t state = rank;
    size_t own = 0, *mine = memory(users, sizeof *mine);
    for (size_t u = rank; u < users; mine[own++] = u, u += workers)
        for (int k = 0; k < K; k++)
            p[u][k] = 3.46f * INIT * ((float)draw(&state) - 0.5f);
    for (int pass = 1; pass <= PASSES; pass++) {
        float step = STEP * powf(DECAY, (float)pass);
        double errors = 0;
        shuffle(mine, own, &state);
        for (size_t i = 0, n; i < own; i += n) {
            n = own - i < BLOCK ? own - i : BLOCK;
            part_pull(worker, table, mine + i, n);
            for (size_t j = i; j < i + n; j++)
                learn(mine[j], step);
            for (size_t j = i; j < i + n; j++)
                errors += squared_errors(mine[j]);
            float *now = *part.row, *then = *part.old;
            for (size_t j = 0; j < part.n * ROW; j++)
                now[j] -= then[j];
            push(worker, table, part.keys, part.n, part.row, part.n * ROW);
        }
        sum_over_workers(node, "errors of pass", pass, &errors, 1);
        if (rank == 0)
            printf("pass %d: RMSE %.4f\n", pass, sqrt(errors / (double)test.n));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        fail("usage: mf TRAIN TEST (lines: user item rating ...)");
    read_ratings(argv[1], &train);
    read_ratings(argv[2], &test);
    train.begins = begins_of(&train);
    test.begins = begins_of(&test);
    for (size_t i = 0; i < train.n; i++)
        mean += train.at[i].value / (float)train.n;
    p = memory(users, sizeof *p);
    b = memory(users, sizeof *b);
    part.keys = memory(items, sizeof *part.keys);
    part.place = memory(items, sizeof *part.place);
    part.row = memory(items, sizeof *part.row);
    part.old = memory(items, sizeof *part.old);
    return run(work);
}
