#include "ring/place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/runs.h"

/* The number of searches for room (make_room) that may fail before a level takes the nearest shard.
 * Arbitrary: only placements whose domains leave no choice come near it. */
enum { SEARCHES_MAX = 64 };

struct share {
    double held, due; /* held: partitions of all levels above; due: its due share with this level */
    uint32_t have;    /* partitions of this level */
    uint32_t target;  /* floor or ceiling of due - held */
    bool fraction;    /* due - held is not a whole number, so target may be one more */
};

/* A placement is made level by level, from the owners down. */
struct placing {
    const struct ring_shard *shards;
    size_t n;
    const struct ring_chains *before; /* NULL: none */
    struct ring_chains *after;
    unsigned level;
    uint16_t *holder; /* of this level, by partition */
    size_t left;      /* partitions without one */
    struct share *share;
    uint16_t *domain, *server; /* by shard: numbers from 0 */
    unsigned domains, servers; /* groups with a weight */
    const uint16_t *group;     /* domain or server: the members of a chain have different ones */
    double *group_weight;      /* by group */
    double *group_held;
    /* Where runs of partitions begin that have the same chain before, and the same members of the levels above. */
    uint64_t runs[PARTITION_WORDS];
    uint16_t *queue, *rest, *from, *through; /* make_room */
    unsigned searches;
    size_t no_room; /* the partition of the last search, if it failed; otherwise RING_PARTITIONS */
};

/* ---- groups -------------------------------------------------------------------------------------------- */

struct label {
    const char *domain;
    uint32_t server;
    uint16_t shard;
};

static int by_domain(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->domain, ((const struct label *)b)->domain);
}

static int by_server(const void *a, const void *b)
{
    uint32_t x = ((const struct label *)a)->server, y = ((const struct label *)b)->server;
    return (x > y) - (x < y);
}

/* Gives equal labels the same number. Returns the number of groups with a weight. */
static unsigned number_groups(const struct placing *p, struct label *label,
                              int (*compare)(const void *, const void *), uint16_t *group)
{
    unsigned number = 0, weighty = 0;
    bool counted = false;
    qsort(label, p->n, sizeof *label, compare);
    for (size_t i = 0; i < p->n; i++) {
        if (i && compare(&label[i - 1], &label[i]) != 0) {
            number++;
            counted = false;
        }
        group[label[i].shard] = (uint16_t)number;
        if (p->shards[label[i].shard].weight && !counted) {
            counted = true;
            weighty++;
        }
    }
    return weighty;
}

/* The shard that held the partition before, or RING_NONE if that shard is gone. */
static uint16_t held_before(const struct placing *p, unsigned level, size_t partition)
{
    uint16_t shard = p->before ? p->before->level[level].owner[partition] : RING_NONE;
    return shard < p->n && p->shards[shard].weight ? shard : RING_NONE;
}

/* May the shard join the partition's chain after the members of the levels above? */
static bool fits(const struct placing *p, size_t partition, uint16_t shard)
{
    if (!p->shards[shard].weight)
        return false;
    for (unsigned l = 0; l < p->level; l++)
        if (p->group[p->after->level[l].owner[partition]] == p->group[shard])
            return false;
    return true;
}

/* Do these partitions have the same members at the levels above? Then the same shards fit both. */
static bool same_above(const struct placing *p, size_t a, size_t b)
{
    bool same = true;
    for (unsigned l = 0; l < p->level && same; l++)
        same = p->after->level[l].owner[a] == p->after->level[l].owner[b];
    return same;
}

/* May the shard join without pushing a member of the old chain out? */
static bool fits_well(const struct placing *p, size_t partition, uint16_t shard)
{
    if (!fits(p, partition, shard))
        return false;
    bool clash = false;
    for (unsigned l = 0; l <= p->after->replicas; l++) {
        uint16_t member = held_before(p, l, partition);
        if (member == shard)
            return true;
        clash |= l != p->level && member != RING_NONE && p->group[member] == p->group[shard];
    }
    return !clash;
}

/* ---- shares -------------------------------------------------------------------------------------------- */

/* The partitions of all groups when each takes lambda times its weight, but no fewer than it has and no
 * partition twice. */
static double filled(const struct placing *p, double lambda)
{
    double sum = 0;
    for (size_t g = 0; g < p->n; g++) {
        double level = lambda * p->group_weight[g];
        level = level > p->group_held[g] ? level : p->group_held[g];
        sum += level < RING_PARTITIONS ? level : RING_PARTITIONS;
    }
    return sum;
}

/* Sets the due shares of the levels down to this one: water-filling over the groups, by bisection. */
static void set_due(struct placing *p)
{
    assert(p->level > 0); /* owners have exact shares */
    memset(p->group_weight, 0, p->n * sizeof *p->group_weight);
    memset(p->group_held, 0, p->n * sizeof *p->group_held);
    for (size_t i = 0; i < p->n; i++) {
        p->group_weight[p->group[i]] += p->shards[i].weight;
        p->group_held[p->group[i]] += p->share[i].held;
    }
    double low = 0, high = RING_PARTITIONS; /* every weight is 0 or at least 1 */
    for (int step = 0; step < 200 && low < high; step++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (filled(p, middle) < (double)RING_PARTITIONS * (p->level + 1))
            low = middle;
        else
            high = middle;
    }
    for (size_t i = 0; i < p->n; i++) {
        double weight = p->group_weight[p->group[i]], held = p->group_held[p->group[i]];
        double level = high * weight;
        level = level > held ? level : held;
        level = level < RING_PARTITIONS ? level : RING_PARTITIONS;
        p->share[i].due = weight > 0 ? level * (p->shards[i].weight / weight) : 0;
        if (p->share[i].due < p->share[i].held)
            p->share[i].due = p->share[i].held;
    }
}

/* Owners need no groups: their shares are exact by weight. */
static void set_due_owners(struct placing *p)
{
    uint64_t total = 0;
    for (size_t i = 0; i < p->n; i++)
        total += p->shards[i].weight;
    assert(total > 0);
    assert(!p->level);
    for (size_t i = 0; i < p->n; i++)
        p->share[i].due = (double)(p->shards[i].weight * (uint64_t)RING_PARTITIONS) / (double)total;
}

/* Sets targets whose sum is RING_PARTITIONS. Shards that hold more than their floor are rounded up first:
 * each saves a move. So there are as few moves as shares within one partition allow. */
static void set_targets(struct placing *p)
{
    const double noise = 1e-6; /* of the sums above; far below 1 / the number of shards */
    uint32_t assigned = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct share *share = &p->share[i];
        double due = share->due - share->held;
        share->target = (uint32_t)(due + noise);
        share->fraction = due - share->target > noise;
        assigned += share->target;
    }
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < p->n && assigned < RING_PARTITIONS; i++) {
            struct share *share = &p->share[i];
            if (pass < 2 ? share->fraction && (pass || share->have > share->target)
                         : p->shards[i].weight != 0) {
                share->target++;
                share->fraction = false;
                assigned++;
            }
        }
    assert(assigned == RING_PARTITIONS);
}

static uint32_t wants(const struct placing *p, uint16_t shard)
{
    const struct share *share = &p->share[shard];
    return share->target > share->have ? share->target - share->have : 0;
}

/* ---- taking -------------------------------------------------------------------------------------------- */

/* Would one of the candidates, shards that lack partitions, fit the partition well if its holder left it? A chain
 * excludes at most 2 * RING_LEVELS groups, so this number of candidates of different groups suffices. */
static bool is_wanted(const struct placing *p, const uint16_t *candidates, size_t count, size_t partition)
{
    for (size_t c = 0; c < count; c++)
        if (fits_well(p, partition, candidates[c]))
            return true;
    return false;
}

/* Lists up to `cap` shards that lack partitions, one of each group. */
static size_t wanting_groups(const struct placing *p, uint16_t *candidates, size_t cap)
{
    size_t count = 0;
    for (size_t i = 0; i < p->n && count < cap; i++) {
        bool known = !wants(p, (uint16_t)i);
        for (size_t c = 0; c < count && !known; c++)
            known = p->group[candidates[c]] == p->group[i];
        if (!known)
            candidates[count++] = (uint16_t)i;
    }
    return count;
}

/* Frees the partitions that shard i holds beyond its target: its shortest runs, the last one in part, and
 * partitions marked as wanted first. */
static void release_excess(struct placing *p, uint16_t i, const bool *wanted)
{
    struct share *share = &p->share[i];
    for (bool any = !wanted; share->have > share->target;) {
        size_t best = 0, best_len = RING_PARTITIONS + 1;
        for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
            for (end = a; end < RING_PARTITIONS && p->holder[end] == i && (any || wanted[end]); end++)
                ;
            if (end > a && end - a < best_len) {
                best = a;
                best_len = end - a;
            }
            end = end > a ? end : a + 1;
        }
        if (best_len > RING_PARTITIONS) {
            any = true;
            continue;
        }
        size_t excess = share->have - share->target;
        size_t freed = best_len < excess ? best_len : excess;
        for (size_t a = best + best_len - freed; a < best + best_len; a++)
            p->holder[a] = RING_NONE;
        share->have -= (uint32_t)freed;
        p->left += freed;
        assert(p->left <= RING_PARTITIONS);
    }
}

static void release(struct placing *p)
{
    uint16_t candidates[2 * RING_LEVELS];
    bool wanted[RING_PARTITIONS];
    bool excess = false;
    for (size_t i = 0; i < p->n; i++)
        excess = excess || p->share[i].have > p->share[i].target;
    if (!excess)
        return;
    size_t count = wanting_groups(p, candidates, 2 * RING_LEVELS);
    for (partition_set_runs(first, end, p->runs)) {
        bool some = is_wanted(p, candidates, count, first);
        for (size_t a = first; a < end; a++)
            wanted[a] = some && p->holder[a] != RING_NONE;
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->share[i].have > p->share[i].target)
            release_excess(p, (uint16_t)i, wanted);
}

/* ---- giving -------------------------------------------------------------------------------------------- */

/* The first partition from `from` on that the shard holds. RING_PARTITIONS: none. */
static size_t next_held(const struct placing *p, size_t from, uint16_t shard)
{
    enum { STEP = sizeof(uint64_t) / sizeof *p->holder }; /* partitions that are compared at once */
    const uint64_t ones = UINT64_C(0x0001000100010001), tops = ones << 15;
    while (from < RING_PARTITIONS) {
        uint64_t differ;
        if (from % STEP == 0) {
            memcpy(&differ, p->holder + from, sizeof differ);
            differ ^= ones * shard;
            if (!((differ - ones) & ~differ & tops)) { /* none of them is 0 */
                from += STEP;
                continue;
            }
        }
        if (p->holder[from] == shard)
            return from;
        from++;
    }
    return RING_PARTITIONS;
}

/* The first partition from `from` on that no shard holds. */
static size_t next_free(const struct placing *p, size_t from)
{
    return p->left ? next_held(p, from, RING_NONE) : RING_PARTITIONS;
}

static void assign(struct placing *p, size_t partition, uint16_t shard)
{
    p->holder[partition] = shard;
    p->share[shard].have++;
    p->left--;
}

static bool may_assign(const struct placing *p, size_t partition, uint16_t shard, bool well)
{
    return shard != RING_NONE && wants(p, shard) &&
           (well ? fits_well(p, partition, shard) : fits(p, partition, shard));
}

/* Assigns the partition to a shard that has its rows already, so that no copy is made. */
static bool assign_to_member(struct placing *p, size_t partition)
{
    for (unsigned l = 0; l <= p->after->replicas; l++) {
        uint16_t member = held_before(p, l, partition);
        if (may_assign(p, partition, member, false)) {
            assign(p, partition, member);
            return true;
        }
    }
    return false;
}

/* Of the shards that lack at least half as many partitions as any, the next by number after the member
 * of the level above. So an owner's copies go to its successor, in one run. */
static uint16_t pick(const struct placing *p, size_t partition, bool well)
{
    uint32_t most = 0;
    for (size_t i = 0; i < p->n; i++)
        if (wants(p, (uint16_t)i) > most && may_assign(p, partition, (uint16_t)i, well))
            most = wants(p, (uint16_t)i);
    size_t after = p->level ? p->after->level[p->level - 1].owner[partition] : p->n - 1;
    for (size_t step = 1; most && step <= p->n; step++) {
        uint16_t i = (uint16_t)((after + step) % p->n);
        if (2 * wants(p, i) >= most && may_assign(p, partition, i, well))
            return i;
    }
    return RING_NONE;
}

/* Fills the free partitions [begin, end). The neighbouring shards grow first. */
static void fill_gap(struct placing *p, size_t begin, size_t end, bool well)
{
    assert(begin < end);
    assert(end <= RING_PARTITIONS);
    uint16_t left = begin > 0 ? p->holder[begin - 1] : RING_NONE;
    uint16_t right = end < RING_PARTITIONS ? p->holder[end] : RING_NONE;
    while (begin < end && may_assign(p, begin, left, well))
        assign(p, begin++, left);
    while (begin < end && may_assign(p, end - 1, right, well))
        assign(p, --end, right);
    for (uint16_t shard = RING_NONE; begin < end; begin++) {
        if (!may_assign(p, begin, shard, well) ||
            (p->level &&
             p->after->level[p->level - 1].owner[begin] != p->after->level[p->level - 1].owner[begin - 1]))
            shard = pick(p, begin, well);
        if (shard != RING_NONE)
            assign(p, begin, shard);
    }
}

static void fill(struct placing *p, bool well)
{
    for (size_t a = 0, end; (a = next_free(p, a)) < RING_PARTITIONS; a = end) {
        for (end = a; end < RING_PARTITIONS && p->holder[end] == RING_NONE; end++)
            ;
        fill_gap(p, a, end, well);
    }
}

/* All shards that fit the partition are full. One of them takes it and passes another partition on, and
 * so on, to a shard that is not full. The search is breadth first, so that as few partitions as possible
 * move. */
static bool make_room(struct placing *p, size_t partition)
{
    size_t head = 0, tail = 0, rest = 0;
    if (p->no_room < RING_PARTITIONS && same_above(p, partition, p->no_room))
        return false; /* since then shards have only gained partitions */
    for (size_t i = 0; i < p->n; i++) {
        if (fits(p, partition, (uint16_t)i)) {
            p->from[i] = RING_NONE;
            p->queue[tail++] = (uint16_t)i;
        } else if (p->shards[i].weight) {
            p->rest[rest++] = (uint16_t)i;
        }
    }
    while (head < tail && rest) {
        uint16_t via = p->queue[head++];
        size_t seen = RING_PARTITIONS; /* the last partition that was tried: none of the rest fits it */
        /* One partition of each run: the others have the same members above. */
        for (size_t a = next_held(p, 0, via); a < RING_PARTITIONS;
             a = next_held(p, partition_set_next(p->runs, (unsigned)a + 1), via)) {
            if (seen < RING_PARTITIONS && same_above(p, a, seen))
                continue;
            seen = a;
            for (size_t r = 0; r < rest;) {
                uint16_t shard = p->rest[r];
                if (!fits(p, a, shard)) {
                    r++;
                    continue;
                }
                p->from[shard] = via;
                p->through[shard] = (uint16_t)a;
                p->rest[r] = p->rest[--rest];
                if (!wants(p, shard)) {
                    p->queue[tail++] = shard;
                    continue;
                }
                p->share[shard].have++;
                for (; p->from[shard] != RING_NONE; shard = p->from[shard])
                    p->holder[p->through[shard]] = shard;
                p->holder[partition] = shard;
                assert(p->left > 0 && p->holder[partition] == shard);
                assert(tail + rest <= p->n);
                p->left--;
                p->no_room = RING_PARTITIONS;
                return true;
            }
        }
    }
    p->no_room = partition;
    return false;
}

/* Of the shards that fit the partition, the one whose target is least beyond its due share, by weight. */
static uint16_t least_beyond(const struct placing *p, size_t partition)
{
    uint16_t best = RING_NONE;
    double least = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!fits(p, partition, (uint16_t)i))
            continue;
        double load = (p->share[i].held + p->share[i].target + 1) / p->shards[i].weight;
        if (best == RING_NONE || load < least) {
            best = (uint16_t)i;
            least = load;
        }
    }
    assert(best != RING_NONE); /* there are more groups than levels above */
    return best;
}

/* All shards that fit the free partitions are full. Raises their targets as if each partition went to the shard that
 * is least beyond its share, and then assigns in runs: one by one, equal shards would alternate. */
static void assign_beyond(struct placing *p)
{
    for (size_t a = 0; (a = next_free(p, a)) < RING_PARTITIONS; a++)
        p->share[least_beyond(p, a)].target++;
    fill(p, true);
    fill(p, false);
    for (size_t a = 0; (a = next_free(p, a)) < RING_PARTITIONS; a++) {
        uint16_t shard = least_beyond(p, a);
        p->share[shard].target++;
        assign(p, a, shard);
    }
    assert(!p->left);
}

/* ---- a level ------------------------------------------------------------------------------------------- */

/* The first owners: the ring is cut in order, by cumulative weight. */
static void cut_in_order(struct placing *p)
{
    uint64_t sum = 0, total = 0;
    size_t partition = 0;
    for (size_t i = 0; i < p->n; i++)
        total += p->shards[i].weight;
    for (size_t i = 0; i < p->n; i++) {
        sum += p->shards[i].weight;
        size_t end = (size_t)((sum * RING_PARTITIONS + total / 2) / total);
        while (partition < end)
            assign(p, partition++, (uint16_t)i);
    }
}

static void place_level(struct placing *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->share[i].have = 0;
    p->left = RING_PARTITIONS;
    for (partition_set_runs(a, end, p->runs)) {
        uint16_t shard = held_before(p, p->level, a);
        if (shard != RING_NONE && !fits(p, a, shard))
            shard = RING_NONE;
        for (unsigned b = a; b < end; b++)
            p->holder[b] = shard;
        if (shard == RING_NONE)
            continue;
        assert(p->left >= end - a);
        assert(shard < p->n);
        p->share[shard].have += end - a;
        p->left -= end - a;
    }
    if (p->level)
        set_due(p);
    else
        set_due_owners(p);
    if (!p->level && !p->before) {
        cut_in_order(p);
    } else {
        set_targets(p);
        release(p);
        for (size_t a = 0; (a = next_free(p, a)) < RING_PARTITIONS; a++)
            (void)assign_to_member(p, a);
        fill(p, true);
        fill(p, false);
        p->searches = 0;
        p->no_room = RING_PARTITIONS;
        for (size_t a = 0; p->searches < SEARCHES_MAX && (a = next_free(p, a)) < RING_PARTITIONS; a++)
            p->searches += !make_room(p, a);
        assign_beyond(p);
    }
    for (size_t i = 0; i < p->n; i++)
        p->share[i].held = p->share[i].due;
    ring_runs_add((const uint16_t *const[]){p->holder}, 1, p->runs);
}

static paramo_err placing_init(struct placing *p)
{
    size_t n = p->n;
    p->share = calloc(n, sizeof *p->share);
    p->group_weight = malloc(2 * n * sizeof *p->group_weight);
    p->domain = malloc(6 * n * sizeof *p->domain);
    struct label *label = malloc(n * sizeof *label);
    if (!p->share || !p->group_weight || !p->domain || !label) {
        free(label);
        return err_memory(n * (sizeof *p->share + sizeof *label));
    }
    p->group_held = p->group_weight + n;
    p->server = p->domain + n;
    p->queue = p->domain + 2 * n;
    p->rest = p->domain + 3 * n;
    p->from = p->domain + 4 * n;
    p->through = p->domain + 5 * n;
    for (size_t i = 0; i < n; i++)
        label[i] = (struct label){p->shards[i].domain, p->shards[i].server, (uint16_t)i};
    p->domains = number_groups(p, label, by_domain, p->domain);
    p->servers = number_groups(p, label, by_server, p->server);
    free(label);
    assert(p->domains > 0 && p->domains <= n);
    assert(p->servers > 0 && p->servers <= n);
    return PARAMO_OK;
}

paramo_err ring_place(const struct ring_shard *shards, size_t n, unsigned replicas,
                      const struct ring_chains *before, struct ring_chains *after)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += shards[i].weight;
    if (n >= RING_NONE || total == 0)
        return err_set(PARAMO_E_INVALID,
                       "a ring needs 1 to %d shards, and one with a weight above 0; there are %zu",
                       RING_NONE - 1, n);
    if (replicas > RING_REPLICAS_MAX)
        return err_set(PARAMO_E_INVALID, "there are at most %d replicas, not %u", RING_REPLICAS_MAX,
                       replicas);
    assert(before != after);
    struct placing p = {.shards = shards, .n = n, .before = before, .after = after};
    paramo_err err = placing_init(&p);
    if (!err) {
        after->replicas = replicas;
        after->apart = after->present = 0;
        for (unsigned l = 0; before && l <= replicas; l++)
            ring_runs_add((const uint16_t *const[]){before->level[l].owner}, 1, p.runs);
        partition_set_add(p.runs, 0);
        for (p.level = 0; p.level < RING_LEVELS; p.level++) {
            p.holder = after->level[p.level].owner;
            if (p.level > replicas || p.level >= p.servers) {
                memset(p.holder, 0xff, RING_PARTITIONS * sizeof *p.holder); /* RING_NONE */
                continue;
            }
            p.group = p.level < p.domains ? p.domain : p.server;
            after->apart = p.level < p.domains ? p.level : after->apart;
            after->present = p.level;
            place_level(&p);
        }
    }
    assert(err || (after->apart <= after->present && after->present <= replicas));
    free(p.share);
    free(p.group_weight);
    free(p.domain);
    return err;
}

paramo_err ring_assign(const uint32_t *weights, size_t n, const struct ring *before, struct ring *ring)
{
    struct ring_shard *shards = calloc(n + 1, sizeof *shards);
    struct ring_chains *chains = malloc(2 * sizeof *chains);
    paramo_err err;
    if (!shards || !chains) {
        err = err_memory(n * sizeof *shards + 2 * sizeof *chains);
        goto free_both;
    }
    for (size_t i = 0; i < n; i++)
        shards[i] = (struct ring_shard){weights ? weights[i] : 1, (uint32_t)i, ""};
    if (before)
        chains[0].level[0] = *before;
    err = ring_place(shards, n, 0, before ? &chains[0] : NULL, &chains[1]);
    if (!err)
        *ring = chains[1].level[0];
free_both:
    free(shards);
    free(chains);
    return err;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

void ring_measure(const struct ring_shard *shards, struct ring_chains *chains)
{
    chains->present = chains->apart = chains->replicas;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        for (unsigned l = 1; l <= chains->replicas && chains->level[0].owner[a] != RING_NONE; l++) {
            uint16_t member = chains->level[l].owner[a];
            if (member == RING_NONE) {
                chains->present = chains->present < l ? chains->present : l - 1;
                chains->apart = chains->apart < l ? chains->apart : l - 1;
                break;
            }
            for (unsigned k = 0; k < l && chains->apart >= l; k++)
                if (strcmp(shards[chains->level[k].owner[a]].domain, shards[member].domain) == 0)
                    chains->apart = l - 1;
        }
    }
    assert(chains->apart <= chains->present);
    assert(chains->present <= chains->replicas);
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static bool holds(const struct ring_chains *chains, size_t partition, uint16_t shard)
{
    for (unsigned l = 0; l < RING_LEVELS; l++)
        if (chains->level[l].owner[partition] == shard)
            return true;
    return false;
}

paramo_err ring_compare(const struct ring_chains *before, const struct ring_chains *after,
                        struct ring_transfers *transfers)
{
    int32_t *grown = calloc(2 * RING_NONE, sizeof *grown); /* by shard: owned, held */
    if (!grown)
        return err_memory(2 * RING_NONE * sizeof *grown);
    *transfers = (struct ring_transfers){0};
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (size_t a = 0; a < RING_PARTITIONS; a++) {
            uint16_t old = before->level[l].owner[a], new = after->level[l].owner[a];
            if (!l && new != RING_NONE) {
                transfers->owners += old != new;
                grown[2 * new]++;
            }
            if (!l && old != RING_NONE)
                grown[2 * old]--;
            if (old != RING_NONE)
                grown[2 * old + 1]--;
            if (new != RING_NONE) {
                grown[2 * new + 1]++;
                transfers->copies += !holds(before, a, new);
            }
        }
    for (size_t i = 0; i < RING_NONE; i++) {
        transfers->owners_least += grown[2 * i] > 0 ? (uint32_t)grown[2 * i] : 0;
        transfers->copies_least += grown[2 * i + 1] > 0 ? (uint32_t)grown[2 * i + 1] : 0;
    }
    free(grown);
    return PARAMO_OK;
}

bool ring_warning(const struct ring_chains *chains, char *text, size_t capacity)
{
    if (chains->present < chains->replicas)
        (void)snprintf(text, capacity,
                       "there are too few servers for %u replicas of each key: there will be %u",
                       chains->replicas, chains->present);
    else if (chains->apart < chains->replicas)
        (void)snprintf(text, capacity,
                       "the %u copies of a key are not in different failure domains: there %s %u (--domain)",
                       chains->replicas + 1, chains->apart ? "are" : "is", chains->apart + 1);
    else
        return false;
    return true;
}
