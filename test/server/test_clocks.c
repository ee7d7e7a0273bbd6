/* Records that travel with arcs: each key of each chunk is applied once, wherever its arc is and however
 * often the chunk comes. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/clocks.h"

enum { SHARDS = 3, SENDERS = 3, ARCS = 12, CHUNKS = 400, OPEN = 24 };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(seed) % below;
}

struct sender {
    bool known;
    struct clock clock;
};

struct shard {
    struct clocks clocks;
    struct sender sender[SENDERS];
};

/* Chunk i of a sender has the number first + i. Its keys: one in each arc of a set of bits. */
struct chunk {
    unsigned keys; /* by arc */
    bool done;
};

struct world {
    struct shard shard[SHARDS];
    unsigned owner[ARCS]; /* arc a stands for arcs a of the ring */
    struct chunk chunk[SENDERS][CHUNKS];
    unsigned applied[SENDERS][CHUNKS][ARCS];
    unsigned issued[SENDERS];
    uint64_t first[SENDERS];
    unsigned merged, apart, most_sets;
};

static uint64_t floor_of(const struct world *w, unsigned sender)
{
    unsigned i = 0;
    while (i < w->issued[sender] && w->chunk[sender][i].done)
        i++;
    return w->first[sender] + i;
}

static struct clock *clock_at(struct shard *shard, unsigned sender)
{
    struct sender *s = &shard->sender[sender];
    if (!s->known) {
        s->known = true;
        clock_init(&s->clock);
    }
    return &s->clock;
}

/* A piece as a shard handles it. */
static void arrives(struct world *w, unsigned to, unsigned sender, unsigned i, unsigned keys, uint64_t floor)
{
    struct shard *shard = &w->shard[to];
    struct clock *clock = clock_at(shard, sender);
    uint64_t number = w->first[sender] + i;
    clock_raise(&shard->clocks, clock, floor);
    for (unsigned a = 0; a < ARCS; a++) {
        if (!(keys >> a & 1))
            continue;
        enum dedup_state state = clock_look(clock, shard->clocks.set_of[a], number);
        assert_int_not_equal(state, DEDUP_BEYOND);
        w->applied[sender][i][a] += state == DEDUP_NEW;
    }
    if (number >= clock->own.floor)
        clock_record(clock, number);
}

/* Sends a chunk by the present owners; pieces and answers are lost. */
static void attempt(struct world *w, unsigned sender, unsigned i)
{
    struct chunk *chunk = &w->chunk[sender][i];
    uint64_t floor = floor_of(w, sender);
    bool all = true;
    for (unsigned to = 0; to < SHARDS; to++) {
        unsigned keys = 0;
        for (unsigned a = 0; a < ARCS; a++)
            keys |= w->owner[a] == to ? chunk->keys & 1u << a : 0;
        if (!keys)
            continue;
        bool lost = draw(3) == 0;
        if (!lost)
            arrives(w, to, sender, i, keys, draw(4) ? floor : w->first[sender]);
        all &= !lost && draw(3) != 0;
    }
    chunk->done |= all;
}

static void move(struct world *w)
{
    unsigned first = (unsigned)draw(ARCS), from = w->owner[first], to = (unsigned)draw(SHARDS), count = 0,
             set;
    if (from == to)
        return;
    struct shard *source = &w->shard[from], *target = &w->shard[to];
    unsigned from_set = source->clocks.set_of[first];
    while (first + count < ARCS && w->owner[first + count] == from &&
           source->clocks.set_of[first + count] == from_set && draw(4))
        count++;
    if (!count || clocks_arrive(&target->clocks, first, count, &set))
        return;
    for (unsigned s = 0; s < SENDERS; s++) {
        if (!source->sender[s].known && !target->sender[s].known)
            continue;
        const struct dedup *theirs =
            source->sender[s].known ? clock_of(&source->sender[s].clock, from_set) : NULL;
        assert_int_equal(clock_arrive(&target->clocks, clock_at(target, s), set, theirs), PARAMO_OK);
    }
    w->apart += target->clocks.senders[set] > 0;
    clocks_arrived(&target->clocks, set);
    w->merged += target->clocks.set_of[first] == 0;
    clocks_depart(&source->clocks, first, count);
    for (unsigned a = first; a < first + count; a++)
        w->owner[a] = to;
    unsigned sets = 0;
    for (unsigned i = 1; i < CLOCK_SETS; i++)
        sets += target->clocks.arcs[i] > 0;
    w->most_sets = sets > w->most_sets ? sets : w->most_sets;
}

static void check(const struct world *w)
{
    for (unsigned s = 0; s < SENDERS; s++)
        for (unsigned i = 0; i < w->issued[s]; i++)
            for (unsigned a = 0; a < ARCS; a++) {
                unsigned want = w->chunk[s][i].keys >> a & 1;
                assert_true(w->applied[s][i][a] <= want);
                if (w->chunk[s][i].done)
                    assert_int_equal(w->applied[s][i][a], want);
            }
}

static void step(struct world *w)
{
    unsigned s = (unsigned)draw(SENDERS), lowest = (unsigned)(floor_of(w, s) - w->first[s]);
    if (draw(12) == 0) {
        move(w);
    } else if (w->issued[s] < CHUNKS && w->issued[s] - lowest < OPEN && draw(2)) {
        w->chunk[s][w->issued[s]].keys = 1u << draw(ARCS);
        w->chunk[s][w->issued[s]].keys |= (unsigned)draw(1u << ARCS) & (unsigned)draw(1u << ARCS);
        attempt(w, s, w->issued[s]++);
    } else if (lowest < w->issued[s]) {
        unsigned i = lowest + (unsigned)draw(w->issued[s] - lowest);
        attempt(w, s, i); /* again, even if it is answered: a late copy */
    }
}

static bool all_done(const struct world *w)
{
    for (unsigned s = 0; s < SENDERS; s++)
        if (w->issued[s] < CHUNKS || floor_of(w, s) < w->first[s] + CHUNKS)
            return false;
    return true;
}

static void once_wherever_arcs_go(void **state)
{
    (void)state;
    static struct world w;
    unsigned apart = 0, merged = 0, most = 0;
    for (uint64_t history = 1; history <= 30; history++) {
        memset(&w, 0, sizeof w);
        seed = history;
        for (unsigned i = 0; i < SHARDS; i++)
            clocks_init(&w.shard[i].clocks);
        for (unsigned a = 0; a < ARCS; a++)
            w.owner[a] = a * SHARDS / ARCS;
        for (unsigned s = 0; s < SENDERS; s++)
            w.first[s] = 1 + draw(5000);
        while (!all_done(&w))
            step(&w);
        check(&w);
        /* When each sender's floor has come to all, nothing is apart any more. */
        for (unsigned i = 0; i < SHARDS; i++)
            for (unsigned s = 0; s < SENDERS; s++)
                clock_raise(&w.shard[i].clocks, clock_at(&w.shard[i], s), w.first[s] + CHUNKS);
        for (unsigned i = 0; i < SHARDS; i++) {
            assert_int_equal(w.shard[i].clocks.arcs[0], RING_ARCS);
            for (unsigned set = 1; set < CLOCK_SETS; set++)
                assert_int_equal(w.shard[i].clocks.senders[set] + w.shard[i].clocks.arcs[set], 0);
            for (unsigned s = 0; s < SENDERS; s++) {
                assert_null(w.shard[i].sender[s].clock.apart);
                clock_fini(&w.shard[i].clocks, &w.shard[i].sender[s].clock);
            }
        }
        apart += w.apart;
        merged += w.merged;
        most = w.most_sets > most ? w.most_sets : most;
    }
    print_message("%u arrivals with records apart, %u without; at most %u sets\n", apart, merged, most);
    assert_true(apart > 1000 && merged > 10 && most > 3);
}

/* Equal records are one at once; different ones until the floor has passed the last difference. */
static void one_again(void **state)
{
    (void)state;
    static struct clocks c;
    struct clock clock;
    struct dedup theirs;
    unsigned set;
    clocks_init(&c);
    clock_init(&clock);
    clock_raise(&c, &clock, 2000);
    clock_record(&clock, 2003);
    theirs = clock.own;
    assert_int_equal(clocks_arrive(&c, 10, 5, &set), PARAMO_OK);
    assert_int_equal(c.set_of[12], set);
    assert_int_equal(clock_arrive(&c, &clock, set, &theirs), PARAMO_OK);
    clocks_arrived(&c, set);
    assert_int_equal(c.set_of[12], 0);

    dedup_record(&theirs, 2900);
    assert_int_equal(clocks_arrive(&c, 10, 5, &set), PARAMO_OK);
    assert_int_equal(clock_arrive(&c, &clock, set, &theirs), PARAMO_OK);
    clocks_arrived(&c, set);
    assert_int_equal(c.set_of[12], set);
    assert_int_equal(clock_look(&clock, set, 2900), DEDUP_DONE);
    assert_int_equal(clock_look(&clock, 0, 2900), DEDUP_NEW);
    assert_int_equal(clock_look(&clock, set, 2003), DEDUP_DONE);
    clock_record(&clock, 2950); /* new ones are in both */
    assert_int_equal(clock_look(&clock, set, 2950), DEDUP_DONE);
    clock_raise(&c, &clock, 2900);
    assert_int_equal(c.set_of[12], set);
    clock_raise(&c, &clock, 2901);
    assert_int_equal(c.set_of[12], 0);
    assert_null(clock.apart);
    assert_int_equal(clock_look(&clock, 0, 2950), DEDUP_DONE);

    /* The other shard did not know the sender, or knows a higher floor. */
    assert_int_equal(clocks_arrive(&c, 0, 1, &set), PARAMO_OK);
    assert_int_equal(clock_arrive(&c, &clock, set, NULL), PARAMO_OK);
    assert_int_equal(clock_look(&clock, set, 2950), DEDUP_NEW);
    dedup_raise(&theirs, 3000);
    assert_int_equal(clocks_arrive(&c, 1, 1, &set), PARAMO_OK);
    assert_int_equal(clock_arrive(&c, &clock, set, &theirs), PARAMO_OK);
    clocks_arrived(&c, set);
    assert_int_equal(clock.own.floor, 3000);
    assert_int_equal(c.arcs[0], RING_ARCS);
    clock_fini(&c, &clock);
}

static void bounded(void **state)
{
    (void)state;
    static struct clocks c;
    struct clock clock;
    unsigned set;
    clocks_init(&c);
    clock_init(&clock);
    clock_record(&clock, 5);
    for (unsigned i = 1; i < CLOCK_SETS; i++) {
        assert_int_equal(clocks_arrive(&c, i, 1, &set), PARAMO_OK);
        assert_int_equal(clock_arrive(&c, &clock, set, NULL), PARAMO_OK);
        clocks_arrived(&c, set);
    }
    assert_int_equal(clocks_arrive(&c, 100, 1, &set), PARAMO_E_FULL);
    size_t bytes = 3;
    assert_int_equal(clocks_sets(&c), CLOCK_SETS - 1);
    assert_int_equal(clock_count(&clock, &bytes), CLOCK_SETS - 1);
    assert_true(bytes > 3 + (CLOCK_SETS - 1) * sizeof(struct dedup));
    clocks_depart(&c, 3, 1); /* what has left needs no record: it goes with the next word of the sender */
    clock_raise(&c, &clock, 2);
    assert_int_equal(clocks_arrive(&c, 100, 1, &set), PARAMO_OK);
    clocks_arrived(&c, set);
    clock_fini(&c, &clock);
    assert_int_equal(c.arcs[0], RING_ARCS);
    assert_int_equal(clocks_sets(&c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_wherever_arcs_go),
        cmocka_unit_test(one_again),
        cmocka_unit_test(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
