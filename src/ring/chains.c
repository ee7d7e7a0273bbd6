#include "ring/chains.h"

#include <assert.h>
#include <string.h>

#include "ring/runs.h"

void ring_ends_add(struct ring_ends *ends, unsigned replicas, unsigned most)
{
    assert(most < RING_LEVELS);
    if (replicas >= most || ends->before[replicas + 1] > ends->before[replicas])
        return;
    for (unsigned l = replicas + 1; l < RING_LEVELS; l++)
        ends->before[l]++;
    assert(ends->before[replicas + 1] == ends->before[replicas] + 1);
}

void ring_begins(const struct ring_chains *chains, uint64_t begins[PARTITION_WORDS])
{
    const uint16_t *owners[RING_LEVELS]; /* of the levels that are not the same everywhere */
    unsigned n = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        const uint16_t *owner = chains->level[l].owner;
        if (memcmp(owner + 1, owner, (RING_PARTITIONS - 1) * sizeof *owner) != 0)
            owners[n++] = owner;
    }
    ring_runs_add(owners, n, begins);
}

void ring_fill_chain(const struct ring_ends *ends, unsigned replicas, const struct ring_candidate *candidates,
                     unsigned n, uint16_t chain[RING_LEVELS])
{
    unsigned next = 1;
    assert(replicas < RING_LEVELS);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        chain[l] = RING_NONE;
    if (n)
        chain[0] = candidates[0].shard;
    for (unsigned kind = 0; kind < RING_LEVELS; kind++)
        for (unsigned i = 1; i < n; i++) {
            if (ends->before[candidates[i].level] != kind)
                continue;
            while (next <= replicas && ends->before[next] < kind)
                next++;
            if (next <= replicas)
                chain[next++] = candidates[i].shard;
        }
}

/* Is any member of the partition's chain left? With `drop` the others are dropped. */
static bool any_left(struct ring_chains *chains, size_t partition, const bool *gone, size_t n, bool drop)
{
    bool left = false;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t *member = &chains->level[l].owner[partition];
        if (*member < n && gone[*member] && drop)
            *member = RING_NONE;
        left |= *member != RING_NONE && !(*member < n && gone[*member]);
    }
    return left;
}

void ring_recall(struct ring_chains *chains, struct ring_chains *told, const bool *gone, size_t n)
{
    assert(chains != told);
    assert(chains->replicas <= RING_REPLICAS_MAX);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = chains->level[0].owner[a];
        if (!any_left(told, a, gone, n, true) || any_left(chains, a, gone, n, false))
            continue;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            chains->level[l].owner[a] = told->level[l].owner[a];
        if (chains->level[0].owner[a] == RING_NONE)
            chains->level[0].owner[a] = owner; /* it is gone; ring_promote handles that */
    }
}

uint32_t ring_promote(struct ring_chains *chains, const struct ring_ends *ends, const bool *gone, size_t n,
                      bool lose, uint8_t *lowest)
{
    assert(chains->replicas < RING_LEVELS);
    uint32_t orphans = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        struct ring_candidate candidates[RING_LEVELS];
        unsigned left = 0;
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = chains->level[l].owner[a];
            if (member != RING_NONE && !(member < n && gone[member]))
                candidates[left++] = (struct ring_candidate){.shard = member, .level = (uint8_t)l};
        }
        uint16_t chain[RING_LEVELS], owner = chains->level[0].owner[a];
        uint8_t first = left                 ? candidates[0].level
                        : owner == RING_NONE ? 0
                                             : RING_LEVELS; /* 0: nothing is lost */
        bool orphan = first == RING_LEVELS || (!lose && first && ends->before[first] > ends->before[1]);
        if (lowest)
            lowest[a] = first;
        if (orphan)
            candidates[0].shard = owner;
        ring_fill_chain(ends, chains->replicas, candidates, orphan ? 1 : left, chain);
        assert(!left || chain[0] != RING_NONE); /* a chain with members has an owner */
        orphans += orphan;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            chains->level[l].owner[a] = chain[l];
    }
    return orphans;
}

struct dues {
    const struct ring_shard *shards;
    const bool *gone;
    size_t n;
    uint64_t partitions, weight, left; /* left: shards that are not gone */
    const uint32_t *owned;
};

/* How many partitions the shard lacks to its due share. INT64_MIN: it gets none. */
static int64_t due(const struct dues *d, size_t i)
{
    uint64_t weight = d->weight ? d->shards[i].weight : 1;
    if (d->gone[i] || !weight)
        return INT64_MIN;
    return (int64_t)(d->partitions * weight / (d->weight ? d->weight : d->left)) - d->owned[i];
}

static size_t neediest(const struct dues *d)
{
    size_t most = 0;
    for (size_t i = 1; i < d->n; i++)
        if (due(d, i) > due(d, most))
            most = i;
    return most;
}

bool ring_adopt(struct ring_chains *chains, const struct ring_shard *shards, const bool *gone, size_t n,
                uint32_t *owned)
{
    uint16_t *owner = chains->level[0].owner;
    struct dues d = {.shards = shards, .gone = gone, .n = n, .owned = owned};
    for (size_t i = 0; i < n; i++) {
        d.weight += gone[i] ? 0 : shards[i].weight;
        d.left += !gone[i];
        owned[i] = 0;
    }
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (owner[a] < n) {
            owned[owner[a]]++;
            d.partitions++;
        }
    for (size_t a = 0, to = n; a < RING_PARTITIONS && d.left; a++) {
        if (owner[a] >= n || !gone[owner[a]])
            continue;
        if (to == n || due(&d, to) <= 0)
            to = neediest(&d);
        assert(to < n && !gone[to]);
        owner[a] = (uint16_t)to;
        owned[to]++;
    }
    return d.left > 0;
}

/* Do all of these 64 partitions keep their chains? Most do. */
static bool same_chains(const struct ring_chains *before, const struct ring_chains *after, size_t first)
{
    bool same = true;
    for (unsigned l = 0; l < RING_LEVELS && same; l++)
        same = memcmp(&before->level[l].owner[first], &after->level[l].owner[first],
                      64 * sizeof before->level[l].owner[first]) == 0;
    return same;
}

void ring_touched(const struct ring_chains *before, const struct ring_chains *after, uint8_t *touched,
                  size_t n)
{
    memset(touched, 0, n * sizeof *touched);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        if (a % 64 == 0 && same_chains(before, after, a)) {
            a += 63;
            continue;
        }
        unsigned what = 0;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            if (before->level[l].owner[a] != after->level[l].owner[a])
                what |= l ? RING_TOUCHED_CHAIN : RING_TOUCHED_CHAIN | RING_TOUCHED_PARTITIONS;
        for (unsigned l = 0; what && l < RING_LEVELS; l++) {
            uint8_t bits = (uint8_t)(l ? what & ~(unsigned)RING_TOUCHED_PARTITIONS : what);
            uint16_t old = before->level[l].owner[a], new = after->level[l].owner[a];
            if (old < n)
                touched[old] |= bits;
            if (new < n)
                touched[new] |= bits;
        }
    }
}
