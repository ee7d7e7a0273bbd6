#include "learn/data/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a lease call waits for work. The first wait is short, so that the learner soon knows that there is no work,
 * and finishes the parts that other workers wait for. Later waits last until there is work, or until it is time to
 * check for a stop. All four are arbitrary. */
#define LEASE_POLL_MS 1
#define LEASE_WAIT_MS 200
#define THREADS_MAX   16
#define MEASURE_ROWS  4096 /* of a batch that is not learned: large, and small enough for the cache */

struct slot {
    struct loader_part part; /* first: loader_release casts */
    const struct block *block;
    const struct block *keyed; /* the block whose distinct keys `own` points to, or NULL */
    struct block own; /* the chosen, weighted or shuffled rows of block; no key and no place: there is none */
    int ready, skip, freed; /* skip: the part does not exist */
};

struct loader {
    struct loader_options o;
    size_t slots;
    struct slot *slot; /* lease number t is in slot[t % slots] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread[THREADS_MAX];
    unsigned running;
    /* under lock */
    uint32_t round;
    enum holdout_side side;
    uint64_t leased, taken, freed; /* freed <= taken <= leased <= freed + slots */
    int leasing;                   /* a thread is in a call of the pool */
    int idle, ended, stop;
    paramo_err err;
    char message[PARAMO_ERROR_MAX];
};

paramo_err loader_new(const struct loader_options *options, struct loader **loader)
{
    struct loader *l = calloc(1, sizeof *l);
    if (!l)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the loading of data");
    l->o = *options;
    l->o.threads = l->o.threads < 1 ? 1 : l->o.threads > THREADS_MAX ? THREADS_MAX : l->o.threads;
    l->slots = l->o.threads + l->o.held + 1;
    l->slot = calloc(l->slots, sizeof *l->slot);
    if (!l->slot) {
        free(l);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the list of batches");
    }
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->changed, NULL);
    *loader = l;
    return PARAMO_OK;
}

void loader_free(struct loader *l)
{
    if (!l)
        return;
    loader_stop(l);
    for (size_t i = 0; i < l->slots; i++)
        batch_list_free(&l->slot[i].part.list);
    free(l->slot);
    (void)pthread_cond_destroy(&l->changed);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Keeps the first error; lock held. */
static void fail(struct loader *l, paramo_err err, const char *message)
{
    if (l->err == PARAMO_OK) {
        l->err = err;
        (void)snprintf(l->message, sizeof l->message, "%s", message);
    }
    l->stop = 1;
}

/* Takes the next lease, in turn; lock held on entry and return. NULL: this thread has no more work. */
static struct slot *lease(struct loader *l)
{
    while (!l->stop && !l->ended) {
        if (l->leasing || l->leased == l->freed + l->slots) {
            (void)pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        l->leasing = 1;
        uint32_t wait_ms = l->idle ? LEASE_WAIT_MS : LEASE_POLL_MS;
        (void)pthread_mutex_unlock(&l->lock);
        paramo_work_unit part;
        int state = 0;
        paramo_err err =
            paramo_pool_next(l->o.node, l->o.pool, l->o.customer, l->round, wait_ms, &part, &state);
        (void)pthread_mutex_lock(&l->lock);
        l->leasing = 0;
        (void)pthread_cond_broadcast(&l->changed);
        if (atomic_load(l->o.stop))
            l->stop = 1; /* a lease of this call goes back to the pool when the worker leaves */
        if (err != PARAMO_OK) {
            fail(l, err, paramo_last_error());
        } else if (state == 2) {
            l->ended = 1;
        } else if (state == 1) {
            l->idle = 1;
        } else {
            l->idle = 0;
            struct slot *s = &l->slot[l->leased++ % l->slots];
            s->part.lease = part;
            s->ready = s->skip = s->freed = 0;
            return s;
        }
    }
    return NULL;
}

void loader_leases_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/leases/%u", round);
}

/* Adds to the value of loader_leases_key. Writes the message of an error to message. */
static paramo_err count_lease(struct loader *l, const paramo_work_unit *lease, char message[PARAMO_ERROR_MAX])
{
    char key[48];
    double one = 1;
    if (l->o.alone || l->side != HOLDOUT_LEARN)
        return PARAMO_OK;
    loader_leases_key(key, sizeof key, lease->round);
    paramo_err err = paramo_kv_add(l->o.node, key, &one, 1);
    if (err != PARAMO_OK)
        (void)snprintf(message, PARAMO_ERROR_MAX, "%s", paramo_last_error());
    return err;
}

size_t loader_batch_rows(size_t first, size_t most, uint32_t stream, uint64_t index)
{
    size_t rows = first < most ? first : most;
    for (uint64_t before = index + stream; before > 0 && rows < most; before /= 2)
        rows = rows > most / 2 ? most : 2 * rows;
    return rows;
}

/* Makes `own` the rows of a slot, which takes it over; *rows points at them. */
static void take_rows(struct loader *l, struct slot *s, const struct block *own, const struct block **rows)
{
    if (s->block && own->place)
        s->keyed = s->block;
    else if (s->block)
        reader_release(l->o.reader, s->block);
    s->block = NULL;
    block_free(&s->own);
    s->own = *own;
    *rows = &s->own;
}

/* The distinct keys of a slot's block, if they are kept. They are found in the second round, because a job of one round
 * does not need them. */
static paramo_err keys_of(const struct loader *l, struct batcher *batcher, const struct slot *s,
                          const struct block_keys **keys)
{
    int wanted;
    struct block_keys *found;
    *keys = reader_keys(l->o.reader, s->block, &wanted);
    if (!wanted || l->round <= (uint32_t)l->side)
        return PARAMO_OK;
    paramo_err err = batcher_keys(batcher, s->block, &found);
    if (err == PARAMO_OK)
        *keys = reader_keep_keys(l->o.reader, s->block, found);
    return err;
}

/* Gives the rows of a slot the weights of their classes. */
static paramo_err weigh_rows(struct loader *l, struct slot *s, const struct block **rows)
{
    struct block own;
    paramo_err err = block_weigh(*rows, l->o.class_weight, l->o.classes, &own);
    if (err == PARAMO_OK)
        take_rows(l, s, &own, rows);
    return err;
}

/* Chooses and shuffles the rows of a slot to learn in this round. */
static paramo_err choose_rows(struct loader *l, struct slot *s, const struct block **rows)
{
    const paramo_work_unit *at = &s->part.lease;
    const uint64_t seed =
        holdout_mix(holdout_mix(holdout_mix(l->o.seed + at->round) + at->stream) + at->index);
    struct block own;
    paramo_err err = PARAMO_OK;
    if (l->o.negatives > 0) {
        err = block_thin(*rows, l->o.negatives, ~seed, &own);
        if (err == PARAMO_OK)
            take_rows(l, s, &own, rows);
    }
    if (err == PARAMO_OK && (l->round > 0 || l->o.shuffle_first) && l->o.shuffle > 0) {
        err = block_shuffle(*rows, l->o.shuffle, seed, &own);
        if (err == PARAMO_OK)
            take_rows(l, s, &own, rows);
    }
    return err;
}

/* Fills a slot, without the lock. Writes the message of an error to message. */
static paramo_err fill(struct loader *l, struct batcher *batcher, struct slot *s,
                       char message[PARAMO_ERROR_MAX])
{
    int ended = 0;
    const int learn = l->side == HOLDOUT_LEARN;
    paramo_err err = (learn ? reader_part : reader_held_out)(l->o.reader, s->part.lease.stream,
                                                             s->part.lease.index, &s->block, &ended);
    if (err == PARAMO_OK && ended) {
        s->skip = 1;
        s->block = NULL;
        err = paramo_pool_end(l->o.node, l->o.pool, &s->part.lease);
        if (err != PARAMO_OK)
            (void)snprintf(message, PARAMO_ERROR_MAX, "%s", paramo_last_error());
        return err;
    }
    const struct block_keys *keys = NULL;
    const struct block *rows = s->block;
    struct block keyed;
    if (err == PARAMO_OK)
        err = keys_of(l, batcher, s, &keys);
    if (err == PARAMO_OK && keys) {
        keyed = block_with_keys(s->block, keys);
        rows = &keyed;
    }
    if (err == PARAMO_OK && learn)
        err = choose_rows(l, s, &rows);
    if (err == PARAMO_OK && l->o.classes > 0)
        err = weigh_rows(l, s, &rows);
    if (err == PARAMO_OK)
        err = batcher_cut_share(batcher, rows,
                                learn ? loader_batch_rows(l->o.first_rows, l->o.batch_rows,
                                                          s->part.lease.stream, s->part.lease.index)
                                      : MEASURE_ROWS,
                                learn && l->o.shares ? l->o.share : 0, learn && l->o.shares ? l->o.shares : 1,
                                &s->part.list);
    if (err != PARAMO_OK)
        (void)snprintf(message, PARAMO_ERROR_MAX, "%s", paramo_last_error());
    return err == PARAMO_OK ? count_lease(l, &s->part.lease, message) : err;
}

static void *load(void *arg)
{
    struct loader *l = arg;
    struct batcher *batcher = NULL;
    char message[PARAMO_ERROR_MAX];
    paramo_err err = batcher_new(&batcher);
    (void)pthread_mutex_lock(&l->lock);
    if (err != PARAMO_OK)
        fail(l, err, paramo_last_error());
    for (struct slot *s; (s = lease(l));) {
        (void)pthread_mutex_unlock(&l->lock);
        err = fill(l, batcher, s, message);
        (void)pthread_mutex_lock(&l->lock);
        s->ready = 1;
        if (err != PARAMO_OK)
            fail(l, err, message);
        (void)pthread_cond_broadcast(&l->changed);
    }
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    batcher_free(batcher);
    return NULL;
}

paramo_err loader_start(struct loader *l, uint32_t round, enum holdout_side side)
{
    loader_stop(l);
    l->round = round;
    l->side = side;
    l->leased = l->taken = l->freed = 0;
    l->leasing = l->idle = l->ended = 0;
    l->stop = 0;
    l->err = PARAMO_OK;
    while (l->running < l->o.threads) {
        int failed = pthread_create(&l->thread[l->running], NULL, load, l);
        if (failed != 0) {
            loader_stop(l);
            return paramo_error_set(PARAMO_E_SYSTEM, "thread %u of the parser cannot be started: %s",
                                    l->running, strerror(failed));
        }
        l->running++;
    }
    return PARAMO_OK;
}

static void release_block(struct loader *l, struct slot *s)
{
    if (s->block)
        reader_release(l->o.reader, s->block);
    if (s->keyed)
        reader_release(l->o.reader, s->keyed);
    s->block = s->keyed = NULL;
    block_free(&s->own);
}

void loader_stop(struct loader *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->stop = 1;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    while (l->running > 0)
        (void)pthread_join(l->thread[--l->running], NULL);
    for (size_t i = 0; i < l->slots; i++) {
        release_block(l, &l->slot[i]);
    }
}

/* Slots become free in lease order; lock held. */
static void put_back(struct loader *l, struct slot *s)
{
    release_block(l, s);
    s->freed = 1;
    while (l->freed < l->taken && l->slot[l->freed % l->slots].freed) {
        l->slot[l->freed % l->slots].freed = 0;
        l->freed++;
    }
    (void)pthread_cond_broadcast(&l->changed);
}

paramo_err loader_next(struct loader *l, int may_wait, enum loader_state *state, struct loader_part **part)
{
    paramo_err err = PARAMO_OK;
    (void)pthread_mutex_lock(&l->lock);
    for (;;) {
        struct slot *s = &l->slot[l->taken % l->slots];
        if (l->err != PARAMO_OK) {
            err = paramo_error_set(l->err, "%s", l->message);
            break;
        }
        if (l->stop || atomic_load(l->o.stop)) {
            err =
                paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the data has not been read to its end");
            break;
        }
        if (l->taken < l->leased && s->ready) {
            l->taken++;
            if (s->skip) {
                put_back(l, s);
                continue;
            }
            *state = LOADER_PART;
            *part = &s->part;
            break;
        }
        if (l->taken == l->leased && l->ended) {
            *state = LOADER_END;
            break;
        }
        /* with a full ring, and all its parts taken, no part comes before the caller releases one */
        if (!may_wait && l->taken == l->leased && (l->idle || l->leased == l->freed + l->slots)) {
            *state = LOADER_IDLE;
            break;
        }
        (void)pthread_cond_wait(&l->changed, &l->lock);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return err;
}

int loader_holds_more(struct loader *l, const struct loader_part *part)
{
    int more = 0;
    (void)pthread_mutex_lock(&l->lock);
    for (uint64_t t = l->freed; t < l->leased; t++) {
        const struct slot *s = &l->slot[t % l->slots];
        more |= s->ready && !s->skip && !s->freed && &s->part != part;
    }
    (void)pthread_mutex_unlock(&l->lock);
    return more;
}

void loader_release(struct loader *l, struct loader_part *part)
{
    (void)pthread_mutex_lock(&l->lock);
    put_back(l, (struct slot *)part);
    (void)pthread_mutex_unlock(&l->lock);
}
