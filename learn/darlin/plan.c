#include "learn/darlin/plan.h"

#include "learn/data/holdout.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define NOISE 1e-12 /* relative; more than the error of rounding */

enum { FIXED = PLAN_DOUBLES - PLAN_MEMBERS };

void plan_encode(const struct plan *p, double out[PLAN_DOUBLES])
{
    const double fixed[] = {
        p->number,    p->kind,      p->leader,    p->dead,   p->blocks,  (double)p->clock, p->passes,
        p->full,      p->fresh,     p->converged, p->margin, p->damping, p->rows,          p->keys,
        p->objective, p->violation, p->owners,    p->guess,  p->way,     p->tolerance,
    };
    static_assert(sizeof fixed == FIXED * sizeof *fixed, "every number has its place");
    memset(out, 0, PLAN_DOUBLES * sizeof *out);
    memcpy(out, fixed, sizeof fixed);
    for (uint32_t i = 0; i < p->owners; i++)
        out[FIXED + i] = p->owner[i];
}

static int is_whole(double x, double most)
{
    return x >= 0 && x <= most && x == floor(x);
}

int plan_decode(const double in[PLAN_DOUBLES], struct plan *p)
{
    static const double most[] = {UINT32_MAX, PLAN_DONE, UINT32_MAX, UINT32_MAX,
                                  UINT32_MAX, 0x1p53,    UINT32_MAX};
    int valid = is_whole(in[16], PLAN_MEMBERS);
    for (size_t i = 0; i < sizeof most / sizeof *most; i++)
        valid = valid && is_whole(in[i], most[i]);
    for (size_t i = 0; valid && i < (size_t)in[16]; i++)
        valid = is_whole(in[FIXED + i], PLAN_MEMBERS - 1);
    if (!valid)
        return 0;
    *p = (struct plan){.number = (uint32_t)in[0],
                       .kind = (enum plan_kind)in[1],
                       .leader = (uint32_t)in[2],
                       .dead = (uint32_t)in[3],
                       .blocks = (uint32_t)in[4],
                       .clock = (uint64_t)in[5],
                       .passes = (uint32_t)in[6],
                       .full = in[7] != 0,
                       .fresh = in[8] != 0,
                       .converged = in[9] != 0,
                       .margin = in[10],
                       .damping = in[11],
                       .rows = in[12],
                       .keys = in[13],
                       .objective = in[14],
                       .violation = in[15],
                       .owners = (uint32_t)in[16],
                       .guess = in[17],
                       .way = in[18],
                       .tolerance = in[19]};
    assert(p->owners <= PLAN_MEMBERS);
    for (uint32_t i = 0; i < p->owners; i++)
        p->owner[i] = (uint16_t)in[FIXED + i];
    return 1;
}

/* Makes the workers that have added to the sums the owners. Returns 1 if they are not those of the last plan. */
static int take_owners(const struct plan *before, const double *sums, struct plan *next)
{
    next->owners = 0;
    for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
        if (sums[PLAN_MEMBER + i] > 0)
            next->owner[next->owners++] = (uint16_t)i;
    return next->owners != before->owners ||
           memcmp(next->owner, before->owner, next->owners * sizeof *next->owner) != 0;
}

double plan_most(const double sums[PLAN_SUMS], enum plan_sum first)
{
    double most = 0;
    for (int i = 0; i < PLAN_MAXIMA; i++)
        most = sums[(int)first + i] > most ? sums[(int)first + i] : most;
    return most;
}

/* Decides what follows a pass whose sums cover all rows and keys. */
static void after_pass(const struct plan *p, const double *sums, const struct darlin_options *o, double l1,
                       struct plan *next)
{
    const double decrease = p->objective - next->objective, most = plan_most(sums, PLAN_MOST);
    next->passes = p->passes + 1;
    if (next->passes == 1)
        next->violation = sums[PLAN_VIOLATION];
    const int worse = decrease < -NOISE * next->objective,
              small = !worse && decrease <= p->tolerance * next->objective,
              solved = sums[PLAN_VIOLATION] <= DARLIN_VIOLATION * next->violation ||
                       decrease <= o->epsilon / 10 * next->objective,
              converged = small && p->tolerance <= o->epsilon && solved;
    /* worse: the steps together were too long, so the next ones are half as long */
    next->damping = worse ? 2 * p->damping : p->damping > 1.4 ? p->damping / 1.4 : 1;
    next->margin = most < l1 / 2 ? most : l1 / 2;
    next->full = o->unfiltered || (small && !p->full);
    if (small && p->full)
        next->tolerance = p->tolerance / 10 > o->epsilon ? p->tolerance / 10 : o->epsilon;
    if ((converged && p->full) || next->passes >= o->passes) {
        next->kind = PLAN_END;
        next->converged = converged && p->full;
    }
}

double plan_way(int i)
{
    return i == 0 ? 0 : ldexp(0.5, i - 1);
}

static double objective_at_way(const double *sums, int i)
{
    return sums[PLAN_LOSS + i] + sums[PLAN_PENALTY + i];
}

/* The number of the way with the least objective. 0: no further than the pass went. */
static int best_way(const double *sums)
{
    int best = 0;
    for (int i = 1; i < PLAN_WAYS; i++)
        if (objective_at_way(sums, i) < objective_at_way(sums, best))
            best = i;
    return best;
}

void plan_decide(const struct plan *p, const double sums[PLAN_SUMS], uint32_t dead,
                 const struct darlin_options *o, double l1, struct plan *next)
{
    assert(p->kind == PLAN_LOAD || p->kind == PLAN_PASS || p->kind == PLAN_AGAIN);
    const int loads = p->kind == PLAN_LOAD || p->keys == 0;
    *next = *p;
    next->number = p->number + 1;
    next->dead = dead;
    next->fresh = take_owners(p, sums, next) || loads;
    next->kind = PLAN_PASS;
    next->full = 1;
    if (loads || (p->kind == PLAN_AGAIN && dead == p->dead)) /* each remaining worker has asked for parts */
        next->rows = sums[PLAN_ROWS];
    if (dead != p->dead || sums[PLAN_ROWS] != next->rows || (!loads && sums[PLAN_KEYS] != p->keys)) {
        next->kind = PLAN_AGAIN;
        next->fresh = 1;
        return;
    }
    next->objective = objective_at_way(sums, 0);
    next->way = 0;
    if (loads || p->kind == PLAN_AGAIN)
        return;
    after_pass(p, sums, o, l1, next);
    if (next->fresh)
        next->full = 1; /* a worker that has joined owns blocks from now on */
    if (next->kind == PLAN_PASS && !next->fresh) {
        const int best = best_way(sums);
        next->way = plan_way(best);
        next->objective = objective_at_way(sums, best);
    }
}

void plan_order(const struct plan *p, const struct darlin_options *o, uint64_t seed, uint32_t *order)
{
    const uint64_t pass = holdout_mix(seed) + p->passes;
    for (uint32_t b = 0; b < p->blocks; b++) {
        /* "inside out": block b takes the place of one before it, or its own */
        const uint32_t other = o->fixed ? b : (uint32_t)(holdout_mix(holdout_mix(pass) + b) % (b + 1));
        if (other != b)
            order[b] = order[other];
        order[other] = b;
    }
}
