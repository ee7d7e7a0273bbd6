#include "learn/darlin/darlin.h"
#include "learn/darlin/solver.h"
#include "learn/darlin/weights.h"
#include "learn/train/lead.h"
#include "learn/train/leader.h"
#include "learn/train/summed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_KEY     "darlin/now"    /* the newest plan */
#define BLOCKS_KEY  "darlin/blocks" /* the least key of each block, as 8 bytes each */
#define MEASURE_KEY "darlin/measured"
#define POLL_MS     500  /* how long a wait for the leader lasts before the worker checks that it lives */
#define FREED_MS    1000 /* how long a worker waits for the parts of a dead one; they come at once */

struct run {
    struct customer *c;
    struct solver *solver;
    struct plan plan;
    double began; /* the running plan, by progress_now */
};

static uint32_t place_of(const struct customer *c)
{
    return c->job->embedded ? c->id : paramo_node_rank(c->job->node);
}

static void report_slow(void *arg, unsigned seconds, const char *why)
{
    struct customer *c = arg;
    if (leads(c))
        progress_line(&c->job->progress, "waiting for %u s: %s", seconds, why);
}

static paramo_err interrupted(const struct job *job)
{
    return atomic_load(&job->stop)
               ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not ended")
               : PARAMO_OK;
}

/* The clock of all workers at the end of the plan. */
static uint64_t plan_end(const struct run *r)
{
    const struct plan *p = &r->plan;
    return p->clock + (p->kind == PLAN_PASS ? solver_ticks(p, &r->c->job->o->darlin) : 0) + 1;
}

/* ---- values at the scheduler ---- */

static void numbered(char *out, size_t cap, const char *what, uint32_t number)
{
    (void)snprintf(out, cap, "darlin/%s/%" PRIu32, what, number);
}

static paramo_err get_plan(struct job *job, const char *key, uint32_t timeout_ms, struct plan *plan)
{
    double in[PLAN_DOUBLES];
    size_t len = 0;
    paramo_err err = paramo_kv_get(job->node, key, in, sizeof in, &len, timeout_ms);
    if (err != PARAMO_OK)
        return err;
    if (len != sizeof in)
        return paramo_error_set(PARAMO_E_INTERNAL, "the value of %s has %zu bytes, which is not valid", key,
                                len);
    if (!plan_decode(in, plan))
        return paramo_error_set(PARAMO_E_INTERNAL, "the value of %s is not a plan of the solver", key);
    if (!job->embedded)
        job->leader = plan->leader;
    return PARAMO_OK;
}

/* The plan's own key wakes the workers that wait for it. The number of values is bounded: older ones are deleted. */
static paramo_err put_plan(struct run *r, const struct plan *plan)
{
    paramo_node *node = r->c->job->node;
    double out[PLAN_DOUBLES];
    char key[48];
    plan_encode(plan, out);
    paramo_err err = paramo_kv_put(node, NOW_KEY, out, sizeof out);
    numbered(key, sizeof key, "plan", plan->number);
    if (err == PARAMO_OK)
        err = paramo_kv_put(node, key, out, sizeof out);
    if (err == PARAMO_OK && plan->number > 1) {
        numbered(key, sizeof key, "plan", plan->number - 2);
        err = paramo_kv_delete(node, key);
    }
    if (err == PARAMO_OK && plan->number > 0) {
        numbered(key, sizeof key, "sums", plan->number - 1);
        err = paramo_kv_delete(node, key);
    }
    return err;
}

/* ---- the leader ---- */

static uint32_t count_dead(const struct job *job)
{
    uint32_t dead[PLAN_MEMBERS], n = 0;
    const size_t all = paramo_dead_nodes(job->node, dead, PLAN_MEMBERS);
    for (size_t i = 0; i < all && i < PLAN_MEMBERS; i++)
        n += dead[i] >= PARAMO_ID_WORKER(0) && dead[i] % 2 == PARAMO_ID_WORKER(0) % 2;
    return n;
}

static uint32_t own_node(const struct job *job)
{
    return paramo_node_id(job->node);
}

/* Is the worker of this place dead? */
static int is_dead(const struct job *job, uint32_t place)
{
    uint32_t dead[PLAN_MEMBERS];
    const size_t all = paramo_dead_nodes(job->node, dead, PLAN_MEMBERS);
    for (size_t i = 0; i < all && i < PLAN_MEMBERS; i++)
        if (dead[i] == PARAMO_ID_WORKER(place))
            return 1;
    return 0;
}

/* Puts the first plan when all workers that the job begins with have a clock, so that the data is divided among all. */
static paramo_err first_plan(struct run *r)
{
    struct job *job = r->c->job;
    const struct plan first = {
        .kind = PLAN_LOAD, .leader = own_node(job), .damping = 1, .full = 1, .tolerance = DARLIN_TOLERANCE};
    for (uint32_t place = 0; place < job->result->num_workers;) {
        char key[48];
        size_t len;
        numbered(key, sizeof key, "joined", place);
        paramo_err err = paramo_kv_get(job->node, key, NULL, 0, &len, POLL_MS);
        if (err == PARAMO_OK || (err == PARAMO_E_TIMEOUT && !job->embedded && is_dead(job, place))) {
            place++;
            continue;
        }
        if (err == PARAMO_E_TIMEOUT)
            err = interrupted(job);
        if (err != PARAMO_OK)
            return err;
    }
    return put_plan(r, &first);
}

static paramo_err get_sums(struct run *r, double sums[PLAN_SUMS])
{
    char key[48];
    numbered(key, sizeof key, "sums", r->plan.number);
    return summed_get(r->c->job->node, key, sums, PLAN_SUMS);
}

/* All keys are registered: cuts them into blocks. */
static paramo_err cut_blocks(struct run *r, const double *sums, struct plan *next)
{
    struct job *job = r->c->job;
    const struct darlin_options *o = &job->o->darlin;
    uint64_t *first = NULL;
    paramo_err err = weights_cut(r->c->worker, solver_sums(r->solver), o,
                                 sums[PLAN_ENTRIES] / sums[PLAN_ROWS], &first, &next->blocks, &next->keys);
    if (err == PARAMO_OK)
        err = paramo_kv_put(job->node, BLOCKS_KEY, first, next->blocks * sizeof *first);
    free(first);
    return err;
}

static paramo_err no_rows(const struct job *job)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s%s: no rows, only empty, comment or bad lines",
                            job->o->data[0], job->o->data_n > 1 ? " and the other files" : "");
}

/* Adds the figures of a pass that is over to the result. */
static paramo_err add_epoch(struct run *r, const double *sums, const struct plan *next)
{
    struct train_result *result = r->c->job->result;
    struct train_epoch *epochs = realloc(result->epoch, next->passes * sizeof *epochs);
    if (!epochs)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the results of %" PRIu32 " passes",
                                next->passes);
    result->epoch = epochs;
    if (result->epochs == 0)
        result->first_epoch = next->passes - 1;
    struct train_epoch *e = &epochs[next->passes - 1];
    memset(epochs + result->epochs, 0, (next->passes - result->epochs) * sizeof *epochs);
    double loss = sums[PLAN_LOSS];
    for (int i = 0; i < PLAN_WAYS; i++)
        loss = plan_way(i) == next->way ? sums[PLAN_LOSS + i] : loss;
    const struct label_sums labels = {sums[PLAN_WEIGHT], sums[PLAN_TALLY], sums[PLAN_TALLY]};
    *e = (struct train_epoch){.rows = (uint64_t)sums[PLAN_ROWS],
                              .positives = (uint64_t)sums[PLAN_POSITIVES],
                              .mean_label = sums[PLAN_TALLY] / sums[PLAN_WEIGHT],
                              .loss = loss / sums[PLAN_WEIGHT],
                              .guess_loss = objective_spread(&r->c->job->info.objective, &labels),
                              .seconds = progress_now() - r->began,
                              .sent = sums[PLAN_SENT],
                              .received = sums[PLAN_RECEIVED],
                              .keys = (uint64_t)next->keys,
                              .nonzero = (uint64_t)sums[PLAN_NONZERO],
                              .objective = next->objective,
                              .violation = sums[PLAN_VIOLATION],
                              .violated = (uint64_t)sums[PLAN_VIOLATED],
                              .active = (uint64_t)sums[PLAN_ACTIVE]};
    result->epochs = next->passes;
    result->rows = next->passes * e->rows;
    result->seconds = progress_now() - r->c->job->started;
    r->c->job->info.epochs = r->c->job->o->model.epochs + next->passes;
    r->c->job->info.rows = r->c->job->o->model.rows + result->rows;
    return PARAMO_OK;
}

static void show_pass(struct run *r, const struct train_epoch *e)
{
    char active[16], nonzero[16], sent[16], received[16];
    progress_line(
        &r->c->job->progress,
        "pass %" PRIu32 "%s  objective %.6g  violated %" PRIu64 " of %s keys  %s weights  %.2f s  pushed %s"
        "  pulled %s",
        r->plan.passes + 1, r->plan.full ? " (all keys)" : "", e->objective, e->violated,
        progress_count(active, sizeof active, (double)e->active),
        progress_count(nonzero, sizeof nonzero, (double)e->nonzero), e->seconds,
        progress_bytes(sent, sizeof sent, e->sent), progress_bytes(received, sizeof received, e->received));
}

/* The margin of the best guess for all rows. */
static double guess_of(const struct job *job, const double *sums)
{
    float margin;
    job->info.objective.ops->constant(&job->info.objective, sums[PLAN_WEIGHT], sums + PLAN_TALLY, &margin);
    return (double)margin;
}

/* Makes and puts the plan after LOAD, AGAIN or PASS. All workers have added their sums, and wait for the next plan. */
static paramo_err decide(struct run *r)
{
    struct customer *c = r->c;
    double sums[PLAN_SUMS];
    struct plan next;
    paramo_err err = get_sums(r, sums);
    if (err != PARAMO_OK)
        return err;
    plan_decide(&r->plan, sums, count_dead(c->job), &c->job->o->darlin, c->job->info.optimizer[0].l1, &next);
    next.leader = own_node(c->job);
    next.clock = plan_end(r);
    next.guess = guess_of(c->job, sums);
    if (next.kind != PLAN_AGAIN && sums[PLAN_ROWS] == 0)
        return no_rows(c->job);
    if (next.kind != PLAN_AGAIN && next.blocks == 0)
        err = cut_blocks(r, sums, &next);
    c->job->result->blocks = next.blocks;
    c->job->result->delayed = (uint32_t)plan_most(sums, PLAN_DELAY);
    if (err == PARAMO_OK && next.passes > r->plan.passes) {
        err = add_epoch(r, sums, &next);
        if (err == PARAMO_OK)
            show_pass(r, &c->job->result->epoch[next.passes - 1]);
    }
    if (err == PARAMO_OK && next.fresh) /* a worker may have died between two requests of a step */
        err = paramo_table_clear(c->worker, solver_sums(r->solver));
    if (err == PARAMO_OK && next.kind == PLAN_END)
        err = weights_finish(c, solver_weights(r->solver));
    return err == PARAMO_OK ? put_plan(r, &next) : err;
}

/* After END: measures and saves the model, and puts DONE. */
static paramo_err finish(struct run *r)
{
    struct plan next = r->plan;
    r->c->job->result->converged = r->plan.converged;
    paramo_err err = weights_measured(r->c, r->plan.guess, MEASURE_KEY);
    next.number++;
    next.kind = PLAN_DONE;
    next.clock++;
    return err == PARAMO_OK ? put_plan(r, &next) : err;
}

/* ---- one worker ---- */

/* Reads the blocks, and finds the keys that this worker owns. */
static paramo_err find_owned(struct run *r)
{
    const uint32_t blocks = r->plan.blocks;
    uint64_t *first = malloc((blocks + 1) * sizeof *first);
    size_t len;
    if (!first)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %" PRIu32 " blocks", blocks);
    paramo_err err = paramo_kv_get(r->c->job->node, BLOCKS_KEY, first, (blocks + 1) * sizeof *first, &len, 0);
    if (err == PARAMO_OK && len != blocks * sizeof *first)
        err = paramo_error_set(PARAMO_E_INTERNAL,
                               "the value of " BLOCKS_KEY " has %zu bytes, which is not valid", len);
    if (err == PARAMO_OK)
        err = solver_own(r->solver, &r->plan, first);
    free(first);
    return err;
}

static paramo_err add_sums(struct run *r)
{
    double sums[PLAN_SUMS];
    char key[48];
    paramo_err err = filter_sums_add(&r->c->filtered, r->c->job->node, r->c->worker);
    if (err != PARAMO_OK)
        return err;
    solver_sum(r->solver, sums);
    numbered(key, sizeof key, "sums", r->plan.number);
    return paramo_kv_add(r->c->job->node, key, sums, PLAN_SUMS);
}

/* Does this worker's part of the plan. */
static paramo_err work(struct run *r)
{
    const struct plan *p = &r->plan;
    paramo_err err = PARAMO_OK;
    if (p->kind == PLAN_END)
        return weights_measure(r->c, r->solver, p->guess, MEASURE_KEY);
    if (p->kind != PLAN_PASS || p->fresh) {
        err = solver_take(r->solver, p->kind == PLAN_AGAIN ? FREED_MS : 0);
        if (err == PARAMO_OK)
            err = solver_refresh(r->solver, p->blocks == 0);
        if (err == PARAMO_OK && p->blocks > 0)
            err = find_owned(r);
    }
    if (err == PARAMO_OK && p->kind == PLAN_PASS)
        err = solver_pass(r->solver, p);
    return err == PARAMO_OK ? add_sums(r) : err;
}

/* Is the leader alive and at work? If not, this process takes the lead, or the job is interrupted. */
static paramo_err check_leader(struct job *job)
{
    struct words words;
    paramo_err err = lead_now(job, &words);
    if (err == PARAMO_OK && words.go_on == INTERRUPTED)
        return paramo_error_set(PARAMO_E_INTERRUPTED,
                                "interrupted: the worker that leads the job ended the training");
    return err == PARAMO_OK || err == PARAMO_E_TIMEOUT ? lead_try(job) : err;
}

/* This process leads from now on, and says so: only the leader that NOW names may save (lead_still). */
static paramo_err take_over(struct job *job)
{
    struct words words;
    job->result->leader = 1;
    job->progress.quiet = job->o->quiet;
    paramo_err err = lead_place(job, &words);
    if (err != PARAMO_OK)
        return err;
    leader_announce(job);
    return lead_put_now(job, &words);
}

/* Waits for plan `number`, the next one. If the leader dies before it puts the plan, this process may lead, and makes
 * it. */
static paramo_err wait_for_plan(struct run *r, uint32_t number, struct plan *next)
{
    struct job *job = r->c->job;
    char key[48];
    numbered(key, sizeof key, "plan", number);
    for (int led = leads(r->c);;) {
        paramo_err err = led ? PARAMO_OK : get_plan(job, key, POLL_MS, next);
        if (!led && err != PARAMO_E_TIMEOUT)
            return err;
        err = interrupted(job);
        if (err == PARAMO_OK && !led && !job->embedded)
            err = check_leader(job);
        if (err != PARAMO_OK)
            return err;
        if (!leads(r->c))
            continue;
        if (!led && (err = take_over(job)) != PARAMO_OK)
            return err;
        if (!led && get_plan(job, key, 1, next) == PARAMO_OK)
            return PARAMO_OK; /* the former leader put it before it died */
        led = 1;
        err = solver_wait(r->solver, plan_end(r));
        if (err == PARAMO_OK)
            err = r->plan.kind == PLAN_END ? finish(r) : decide(r);
        return err == PARAMO_OK ? get_plan(job, key, 0, next) : err;
    }
}

/* The leader begins the job: the weights to continue from, the word that it is ready, the first plan. */
static paramo_err begin(struct run *r)
{
    struct job *job = r->c->job;
    struct words words;
    paramo_err err = weights_begin(r->c, solver_weights(r->solver));
    job->started = progress_now();
    leader_words(job, 0, GOES_ON, &words);
    if (err == PARAMO_OK)
        err = lead_put_ready(job, &words);
    return err == PARAMO_OK ? first_plan(r) : err;
}

/* Waits for the running plan when the worker begins. */
static paramo_err first_wait(struct run *r)
{
    struct job *job = r->c->job;
    for (;;) {
        paramo_err err = get_plan(job, NOW_KEY, POLL_MS, &r->plan);
        if (err == PARAMO_E_TIMEOUT)
            err = interrupted(job);
        else
            return err;
        if (err == PARAMO_OK && !job->embedded)
            err = lead_try(job);
        if (err == PARAMO_OK && leads(r->c) && !job->result->leader) {
            job->result->leader = 1;
            job->progress.quiet = job->o->quiet;
            err = begin(r);
        }
        if (err != PARAMO_OK)
            return err;
    }
}

/* This worker has joined while the others run the plan: advances its clock to the end of the plan. */
static paramo_err skip_plan(struct run *r, uint64_t clock)
{
    paramo_err err = PARAMO_OK;
    assert(clock > r->plan.clock);
    while (err == PARAMO_OK && clock < plan_end(r)) {
        struct plan ignored;
        char key[48];
        err = paramo_clock(r->c->worker, NULL);
        clock += err == PARAMO_OK;
        if (err != PARAMO_E_AGAIN)
            continue;
        /* AGAIN: too many ticks are in flight. The next plan does not exist yet, so this waits 10 ms */
        numbered(key, sizeof key, "plan", r->plan.number + 1);
        err = get_plan(r->c->job, key, 10, &ignored);
        err = err == PARAMO_E_TIMEOUT ? PARAMO_OK : err;
    }
    return err;
}

/* Runs plan after plan, until DONE. */
static paramo_err run_plans(struct run *r, uint64_t clock)
{
    paramo_err err = PARAMO_OK;
    while (err == PARAMO_OK && r->plan.kind != PLAN_DONE) {
        struct plan next;
        r->began = progress_now();
        if (clock == r->plan.clock) {
            err = work(r);
            if (err == PARAMO_OK)
                err = paramo_clock(r->c->worker, NULL);
        } else {
            err = skip_plan(r, clock);
        }
        clock = plan_end(r);
        if (err == PARAMO_OK)
            err = wait_for_plan(r, r->plan.number + 1, &next);
        if (err == PARAMO_OK)
            r->plan = next;
    }
    return err;
}

/* Refuses a job that begins with a checkpoint: the leases and clocks of the old job are gone, so its plan cannot
 * continue. */
static paramo_err refuse_restored(struct job *job)
{
    struct plan old;
    paramo_err err = get_plan(job, NOW_KEY, 1, &old);
    if (err == PARAMO_E_TIMEOUT)
        return PARAMO_OK;
    return err != PARAMO_OK
               ? err
               : paramo_error_set(PARAMO_E_UNSUPPORTED,
                                  "a job of --solver darlin cannot continue from a checkpoint: begin "
                                  "it again, perhaps with --model-in");
}

paramo_err darlin_save_interrupted(struct job *job)
{
    struct customer *c = &job->customer[0];
    struct train_result *r = job->result;
    struct words words;
    paramo_table *weights = NULL;
    leader_words(job, (uint32_t)r->epochs, INTERRUPTED, &words);
    paramo_err err = lead_put_interrupted(job, &words);
    if (err == PARAMO_OK && r->rows > 0) {
        err = paramo_table_open(c->worker, SOLVER_WEIGHTS, NULL, &weights);
        if (err == PARAMO_OK)
            err = weights_finish(c, weights);
        if (err == PARAMO_OK)
            err = leader_save(c);
    }
    return err == PARAMO_OK && !job->embedded ? lead_put_saved(job) : err;
}

paramo_err darlin_run(struct customer *c)
{
    struct job *job = c->job;
    struct run r = {.c = c};
    uint64_t clock = 0;
    char key[48];
    if (place_of(c) >= PLAN_MEMBERS)
        return paramo_error_set(PARAMO_E_INVALID,
                                "--solver darlin works with at most %d workers; start fewer", PLAN_MEMBERS);
    const struct solver_options options = {.node = job->node,
                                           .worker = c->worker,
                                           .reader = job->reader,
                                           .darlin = job->o->darlin,
                                           .l1 = job->info.optimizer[0].l1,
                                           .seed = job->info.seed,
                                           .customer = c->id,
                                           .place = place_of(c),
                                           .stop = &job->stop,
                                           .slow = report_slow,
                                           .arg = c};
    paramo_err err = solver_new(&options, &r.solver);
    if (err == PARAMO_OK)
        err = paramo_pool_open(job->node, SOLVER_POOL, reader_streams(job->reader), 1);
    if (err == PARAMO_OK)
        err = paramo_clock_join(c->worker, &clock);
    numbered(key, sizeof key, "joined", place_of(c));
    if (err == PARAMO_OK)
        err = paramo_kv_put(job->node, key, NULL, 0);
    if (err == PARAMO_OK && leads(c))
        err = refuse_restored(job);
    if (err == PARAMO_OK && leads(c))
        err = begin(&r);
    if (err == PARAMO_OK)
        err = first_wait(&r);
    if (err == PARAMO_OK)
        err = run_plans(&r, clock);
    if (err == PARAMO_OK && c->id == 0)
        job->finished = 1;
    solver_free(r.solver);
    return err;
}
