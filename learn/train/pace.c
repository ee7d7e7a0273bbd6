#include "learn/train/pace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS 500    /* how soon a wait sees that the job is to end; arbitrary */
#define SLOW_MS 10000  /* a line of progress after each such wait; arbitrary */
#define WAIT_MS 600000 /* how long a living worker may make no progress; arbitrary */
/* How many workers of a --deterministic job have joined the clock. */
#define JOINED_KEY "train/together/joined"
#define BEGUN_KEY  "train/together/begun" /* put when all have */
#define FIRST_NODE PARAMO_ID_WORKER(0)    /* the next rank has 2 more */

int pace_parse(const char *text, uint32_t *bound)
{
    char *end;
    if (strcmp(text, "asp") == 0)
        *bound = PACE_FREE;
    else if (strcmp(text, "bsp") == 0)
        *bound = 1;
    else if (strncmp(text, "ssp:", 4) == 0 && text[4] >= '0' && text[4] <= '9') {
        unsigned long n = strtoul(text + 4, &end, 10);
        if (*end != '\0' || n > PACE_BOUND_MAX)
            return -1;
        *bound = (uint32_t)n + 1;
    } else
        return -1;
    return 0;
}

static paramo_clock_info clock_info(const struct pace *p)
{
    paramo_clock_info info = {.size = sizeof info};
    paramo_clock_get(p->worker, &info);
    return info;
}

/* The clock that all learners must have reached before the next batch is pulled. */
static uint64_t required_clock(const struct pace *p)
{
    return p->next >= p->bound ? p->next - p->bound + 1 : 0;
}

int pace_holds(const struct pace *p, uint64_t unfinished)
{
    if (p->bound == PACE_FREE || !p->counts || unfinished == 0)
        return 0;
    return unfinished >= p->bound || required_clock(p) > clock_info(p).minimum;
}

static void count_wait(struct pace *p, double seconds)
{
    paramo_clock_info now = clock_info(p);
    uint32_t worker = p->embedded ? now.awaited_customer : (now.awaited_node - FIRST_NODE) / 2;
    p->sum[PACE_WAITS]++;
    p->sum[PACE_SECONDS] += seconds;
    if (now.awaited_node >= FIRST_NODE)
        p->sum[PACE_AWAITED + (worker < PACE_WORKERS ? worker : PACE_WORKERS - 1)] += seconds;
}

/* Copies the error of a wait, which names the workers that are behind, without the time of that wait. */
static void copy_reason(char *why, size_t size)
{
    (void)snprintf(why, size, "%s", paramo_last_error());
    char *time = strstr(why, "; waited ");
    if (time)
        *time = '\0';
}

static paramo_err wait_for(struct pace *p, uint64_t clock, const atomic_int *stop)
{
    char why[PARAMO_ERROR_MAX] = "";
    const uint64_t before = clock_info(p).waited_ns;
    paramo_err err;
    unsigned waited = 0;
    while ((err = paramo_clock_wait(p->worker, clock, POLL_MS)) == PARAMO_E_TIMEOUT) {
        waited += POLL_MS;
        copy_reason(why, sizeof why);
        if (!atomic_load_explicit(stop, memory_order_relaxed) && waited < WAIT_MS) {
            if (waited % SLOW_MS == 0 && p->slow)
                p->slow(p->arg, waited / 1000, why);
            continue;
        }
        err = waited < WAIT_MS ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted") : err;
        break;
    }
    count_wait(p, (double)(clock_info(p).waited_ns - before) / 1e9);
    return err == PARAMO_E_TIMEOUT ? paramo_error_set(err, "no progress for %d s: %s", WAIT_MS / 1000, why)
                                   : err;
}

/* Do all workers of a --deterministic job take part? The share of a worker that is missing is learned by no other. */
static paramo_err check_together(const struct pace *p, const atomic_int *stop)
{
    uint32_t workers = clock_info(p).workers;
    if (workers == p->together)
        return PARAMO_OK;
    if (atomic_load_explicit(stop, memory_order_relaxed))
        return paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted");
    return paramo_error_set(
        PARAMO_E_NODE_LOST,
        "--deterministic: %" PRIu32 " of %" PRIu32
        " workers take part; each learns a share of each batch, so none may leave or join",
        workers, p->together);
}

/* A barrier: an iteration without a batch, and a wait until all learners have ended it. */
static paramo_err meet(struct pace *p, const atomic_int *stop)
{
    paramo_err err = paramo_clock(p->worker, &p->next);
    return err == PARAMO_OK ? wait_for(p, p->next, stop) : err;
}

/* Waits until all workers have joined the clock: before that, no iteration may end. */
static paramo_err begin_together(struct pace *p, const atomic_int *stop)
{
    double joined = 1;
    char all = 1;
    size_t len = 0;
    paramo_err err = paramo_kv_add(p->node, JOINED_KEY, &joined, 1);
    if (err == PARAMO_OK)
        err = paramo_kv_get(p->node, JOINED_KEY, &joined, sizeof joined, &len, 0);
    if (err == PARAMO_OK && joined > p->together)
        return paramo_error_set(PARAMO_E_INVALID,
                                "--deterministic: this worker joined too late: the job has all its %" PRIu32
                                " workers",
                                p->together);
    if (err == PARAMO_OK && joined == p->together)
        err = paramo_kv_put(p->node, BEGUN_KEY, &all, sizeof all);
    if (err != PARAMO_OK)
        return err;
    while ((err = paramo_kv_get(p->node, BEGUN_KEY, &all, sizeof all, &len, POLL_MS)) == PARAMO_E_TIMEOUT)
        if (atomic_load_explicit(stop, memory_order_relaxed))
            return paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted");
    if (err == PARAMO_OK)
        err = meet(p, stop);
    return err == PARAMO_OK ? check_together(p, stop) : err;
}

paramo_err pace_pull(struct pace *p, const atomic_int *stop)
{
    if (p->bound == PACE_FREE)
        return PARAMO_OK;
    paramo_err err = p->counts ? PARAMO_OK : paramo_clock_join(p->worker, &p->next);
    if (err == PARAMO_OK && !p->counts && p->together)
        err = begin_together(p, stop);
    if (err != PARAMO_OK)
        return err;
    p->counts = 1;
    if (required_clock(p) > clock_info(p).minimum)
        err = wait_for(p, required_clock(p), stop);
    if (err == PARAMO_OK && p->together)
        err = check_together(p, stop);
    if (err != PARAMO_OK)
        return err;
    const uint64_t minimum = clock_info(p).minimum, stale = p->next > minimum ? p->next - minimum : 0;
    p->sum[PACE_STALE + (stale < PACE_STALENESS ? stale : PACE_STALENESS - 1)]++;
    p->next++;
    return PARAMO_OK;
}

paramo_err pace_pushed(struct pace *p)
{
    return p->counts ? paramo_clock(p->worker, NULL) : PARAMO_OK;
}

paramo_err pace_idle(struct pace *p)
{
    if (!p->counts || p->together)
        return PARAMO_OK;
    p->counts = 0;
    return paramo_clock_leave(p->worker);
}

paramo_err pace_round_over(struct pace *p, const atomic_int *stop, int leads)
{
    if (!p->counts || !p->together)
        return pace_idle(p);
    paramo_err err = meet(p, stop);
    return err == PARAMO_OK && leads ? check_together(p, stop) : err;
}

void pace_collect(struct pace *p)
{
    uint64_t ages[PARAMO_CLOCK_AGES];
    for (size_t t = 0; t < p->tables && t < PACE_TABLES && p->bound != PACE_FREE; t++) {
        if (paramo_table_clock_ages(p->table[t], ages) != PARAMO_OK)
            continue;
        for (size_t i = 0; i < PARAMO_CLOCK_AGES; i++) {
            p->sum[PACE_AGES + t * PARAMO_CLOCK_AGES + i] += (double)(ages[i] - p->aged[t][i]);
            p->aged[t][i] = ages[i];
        }
    }
}

paramo_err pace_report(struct pace *p)
{
    if (p->bound == PACE_FREE)
        return PARAMO_OK;
    pace_collect(p);
    paramo_err err = paramo_kv_add(p->node, PACE_SUMS_KEY, p->sum, PACE_SUMS);
    if (err == PARAMO_OK)
        memset(p->sum, 0, sizeof p->sum);
    return err;
}
