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
    uint64_t held[ARCS_WORDS];
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
    unsigned merged, apart, most_parts;
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

static enum dedup_state look(const struct clock *clock, unsigned arc, uint64_t number)
{
    const struct part *part = clock_part(clock, number);
    enum dedup_state state = clock_look(clock, number);
    assert_true(!part || state == DEDUP_NEW);
    return part && arcs_has(part->arcs, arc) ? DEDUP_DONE : state;
}

/* A piece as a shard handles it. */
static void arrives(struct world *w, unsigned to, unsigned sender, unsigned i, unsigned keys, uint64_t floor)
{
    struct clock *clock = clock_at(&w->shard[to], sender);
    uint64_t number = w->first[sender] + i;
    clock_raise(clock, floor);
    for (unsigned a = 0; a < ARCS; a++) {
        if (!(keys >> a & 1))
            continue;
        enum dedup_state state = look(clock, a, number);
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

/* As RECORDS and PARTS take it along. */
static void passes(const struct clock *from, const uint64_t arcs[ARCS_WORDS], struct clock *to)
{
    clock_init(to);
    to->own = clock_of(from, arcs);
    for (const struct part *part = from->parts; part; part = part->next)
        if (part_splits(part, arcs))
            assert_int_equal(clock_note(to, part->number, part->arcs), PARAMO_OK);
}

static void move(struct world *w)
{
    unsigned first = (unsigned)draw(ARCS), from = w->owner[first], to = (unsigned)draw(SHARDS), count = 0;
    uint64_t arcs[ARCS_WORDS] = {0};
    if (from == to)
        return;
    struct shard *source = &w->shard[from], *target = &w->shard[to];
    while (first + count < ARCS && w->owner[first + count] == from && (!count || draw(4)))
        arcs_add(arcs, first + count++);
    for (unsigned s = 0; s < SENDERS; s++) {
        if (!source->sender[s].known && !target->sender[s].known)
            continue;
        struct clock theirs, *clock = clock_at(target, s);
        size_t before = clock_count(clock, &(size_t){0});
        if (source->sender[s].known)
            passes(&source->sender[s].clock, arcs, &theirs);
        for (unsigned again = 0; again < 1 + draw(2); again++) /* twice does no harm */
            assert_int_equal(
                clock_arrive(clock, target->held, arcs, source->sender[s].known ? &theirs : NULL), PARAMO_OK);
        if (source->sender[s].known)
            clock_fini(&theirs);
        size_t parts = clock_count(clock, &(size_t){0});
        assert_true(parts <= OPEN);
        w->apart += parts > before;
        w->merged += parts < before;
        w->most_parts = parts > w->most_parts ? (unsigned)parts : w->most_parts;
    }
    for (unsigned i = 0; i < ARCS_WORDS; i++) {
        target->held[i] |= arcs[i];
        source->held[i] &= ~arcs[i];
    }
    for (unsigned s = 0; s < SENDERS; s++)
        if (source->sender[s].known && draw(2)) /* at once, or with the next that comes or goes */
            clock_keep(&source->sender[s].clock, source->held);
    for (unsigned a = first; a < first + count; a++)
        w->owner[a] = to;
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
        for (unsigned a = 0; a < ARCS; a++) {
            w.owner[a] = a * SHARDS / ARCS;
            arcs_add(w.shard[w.owner[a]].held, a);
        }
        for (unsigned s = 0; s < SENDERS; s++)
            w.first[s] = 1 + draw(5000);
        while (!all_done(&w))
            step(&w);
        check(&w);
        /* When each sender's floor has come to all, nothing is left but that. */
        for (unsigned i = 0; i < SHARDS; i++)
            for (unsigned s = 0; s < SENDERS; s++) {
                struct clock *clock = clock_at(&w.shard[i], s);
                clock_raise(clock, w.first[s] + CHUNKS);
                assert_true(clock_empty(clock));
            }
        apart += w.apart;
        merged += w.merged;
        most = w.most_parts > most ? w.most_parts : most;
    }
    print_message("%u arrivals made parts, %u ended some; at most %u of a sender\n", apart, merged, most);
    assert_true(apart > 1000 && merged > 100 && most > 3);
}

static const uint64_t *arcs_of(unsigned first, unsigned count)
{
    static uint64_t bits[3][ARCS_WORDS];
    static unsigned turn;
    turn = (turn + 1) % 3;
    memset(bits[turn], 0, sizeof bits[turn]);
    for (unsigned a = first; a < first + count; a++)
        arcs_add(bits[turn], a);
    return bits[turn];
}

/* Equal records are one at once; a part lasts until the floor has passed it, or all say the same. */
static void one_again(void **state)
{
    (void)state;
    struct clock clock, theirs;
    uint64_t all[ARCS_WORDS];
    memset(all, 0xff, sizeof all);
    clock_init(&clock);
    clock_init(&theirs);
    clock_raise(&clock, 2000);
    clock_record(&clock, 2003);
    theirs.own = clock.own;
    assert_int_equal(clock_arrive(&clock, all, arcs_of(10, 5), &theirs), PARAMO_OK);
    assert_null(clock.parts);

    clock_record(&theirs, 2900);
    assert_int_equal(clock_arrive(&clock, all, arcs_of(10, 5), &theirs), PARAMO_OK);
    assert_int_equal(look(&clock, 12, 2900), DEDUP_DONE);
    assert_int_equal(look(&clock, 15, 2900), DEDUP_NEW);
    assert_int_equal(clock_look(&clock, 2900), DEDUP_NEW); /* not on all */
    assert_int_equal(look(&clock, 12, 2003), DEDUP_DONE);
    clock_record(&clock, 2950);
    assert_int_equal(look(&clock, 12, 2950), DEDUP_DONE);
    clock_raise(&clock, 2900);
    assert_non_null(clock.parts);
    clock_raise(&clock, 2901);
    assert_null(clock.parts);
    assert_int_equal(clock_look(&clock, 2950), DEDUP_DONE);

    /* The other shard did not know the sender. */
    assert_int_equal(clock_arrive(&clock, all, arcs_of(0, 1), NULL), PARAMO_OK);
    assert_int_equal(look(&clock, 0, 2950), DEDUP_NEW);
    assert_int_equal(look(&clock, 1, 2950), DEDUP_DONE);
    clock_keep(&clock, arcs_of(1, 9)); /* it leaves again */
    assert_null(clock.parts);
    assert_int_equal(clock_look(&clock, 2950), DEDUP_DONE);
    /* And knows a higher floor: so do we. */
    clock_raise(&theirs, 3000);
    assert_int_equal(clock_arrive(&clock, arcs_of(1, 9), arcs_of(0, 1), &theirs), PARAMO_OK);
    assert_int_equal(clock.own.floor, 3000);
    assert_true(clock_empty(&clock));
    /* Nothing was here before: the record is theirs. */
    clock_record(&theirs, 3007);
    assert_int_equal(clock_arrive(&clock, arcs_of(0, 0), arcs_of(7, 3), &theirs), PARAMO_OK);
    assert_null(clock.parts);
    assert_int_equal(clock_look(&clock, 3007), DEDUP_DONE);
    clock_fini(&clock);
}

/* Where a chunk was done that came in pieces. */
static void noted(void **state)
{
    (void)state;
    struct clock clock;
    clock_init(&clock);
    assert_int_equal(clock_note(&clock, 8, arcs_of(4095, 1)), PARAMO_OK);
    assert_int_equal(clock_note(&clock, 7, arcs_of(0, 10)), PARAMO_OK);
    assert_int_equal(clock_note(&clock, 7, arcs_of(100, 1)), PARAMO_OK);
    clock_add(&clock, part_make(8, arcs_of(64, 1)));
    assert_int_equal(look(&clock, 0, 7), DEDUP_DONE);
    assert_int_equal(look(&clock, 9, 7), DEDUP_DONE);
    assert_int_equal(look(&clock, 10, 7), DEDUP_NEW);
    assert_int_equal(look(&clock, 100, 7), DEDUP_DONE);
    assert_int_equal(look(&clock, 64, 8), DEDUP_DONE);
    assert_int_equal(clock_look(&clock, 8), DEDUP_NEW);
    assert_null(clock_part(&clock, 9));
    assert_int_equal(clock_count(&clock, &(size_t){0}), 2);
    assert_true(part_splits(clock_part(&clock, 7), arcs_of(5, 10)));
    assert_false(part_splits(clock_part(&clock, 7), arcs_of(5, 3)));
    assert_false(part_splits(clock_part(&clock, 7), arcs_of(200, 3)));
    struct dedup some = clock_of(&clock, arcs_of(5, 3));
    assert_int_equal(dedup_look(&some, 7), DEDUP_DONE);
    assert_int_equal(dedup_look(&some, 8), DEDUP_NEW);
    clock_record(&clock, 7); /* the rest of it */
    assert_int_equal(clock_look(&clock, 7), DEDUP_DONE);
    assert_int_equal(clock_note(&clock, 7, arcs_of(0, 1)), PARAMO_OK); /* it is done everywhere */
    assert_null(clock_part(&clock, 7));
    clock_raise(&clock, 8);
    assert_int_equal(clock_note(&clock, 7, arcs_of(0, 1)), PARAMO_OK); /* and over */
    assert_int_equal(clock_count(&clock, &(size_t){0}), 1);
    clock_keep(&clock, arcs_of(0, 10)); /* none of these */
    assert_true(clock_empty(&clock));
    clock_fini(&clock);
}

/* What a checkpoint says is done comes on top. */
static void joined(void **state)
{
    (void)state;
    struct clock clock;
    struct dedup saved;
    uint64_t all[ARCS_WORDS];
    memset(all, 0xff, sizeof all);
    clock_init(&clock);
    dedup_init(&saved);
    clock_record(&clock, 3);
    dedup_record(&saved, 4);
    assert_int_equal(clock_join(&clock, all, arcs_of(0, 2000), &saved), PARAMO_OK);
    assert_int_equal(look(&clock, 0, 3), DEDUP_DONE);
    assert_int_equal(look(&clock, 0, 4), DEDUP_DONE);
    assert_int_equal(look(&clock, 2000, 4), DEDUP_NEW);
    assert_int_equal(clock_join(&clock, all, arcs_of(2000, 2096), &saved), PARAMO_OK);
    assert_null(clock.parts);
    assert_int_equal(clock_look(&clock, 4), DEDUP_DONE);
    clock_fini(&clock);
}

/* A sender that says nothing: however many arrivals there are, they have no more parts than its window
 * numbers. */
static void bounded(void **state)
{
    (void)state;
    struct clock clock, theirs;
    size_t bytes = 3;
    clock_init(&clock);
    clock_init(&theirs);
    clock_record(&clock, 5);
    clock_record(&theirs, 6);
    uint64_t held[ARCS_WORDS] = {0};
    for (unsigned a = 1000; a < RING_ARCS; a++)
        arcs_add(held, a);
    for (unsigned a = 0; a < 1000; a++) {
        assert_int_equal(clock_arrive(&clock, held, arcs_of(a, 1), a % 2 ? &theirs : NULL), PARAMO_OK);
        arcs_add(held, a);
    }
    assert_int_equal(clock_count(&clock, &bytes), 2);
    assert_int_equal(bytes, 3 + 2 * sizeof(struct part));
    for (unsigned a = 0; a < 1000; a++) {
        assert_int_equal(look(&clock, a, 5), DEDUP_NEW);
        assert_int_equal(look(&clock, a, 6), a % 2 ? DEDUP_DONE : DEDUP_NEW);
    }
    assert_int_equal(look(&clock, 1000, 5), DEDUP_DONE);
    /* At worst: each number of the window another way. */
    for (uint64_t n = 1; n <= DATA_WINDOW; n++)
        clock_record(n % 2 ? &clock : &theirs, n);
    assert_int_equal(clock_arrive(&clock, arcs_of(0, RING_ARCS), arcs_of(7, 1), &theirs), PARAMO_OK);
    assert_true(clock_count(&clock, &bytes) <= DATA_WINDOW);
    clock_raise(&clock, DATA_WINDOW + 1);
    assert_true(clock_empty(&clock));
    clock_fini(&clock);
    clock_fini(&theirs);
}

/* A record that has just been made: its floor is not known yet, as when FORGET has ended the one before. A
 * sender is never a window ahead of its floor. */
static void noted_first(void **state)
{
    (void)state;
    enum { NUMBER = 100000 };
    const uint64_t arcs[ARCS_WORDS] = {0x0f};
    struct clock clock;
    clock_init(&clock);
    assert_int_equal(clock_note(&clock, NUMBER, arcs), PARAMO_OK);
    const struct part *part = clock_part(&clock, NUMBER);
    assert_non_null(part);
    assert_true(part->arcs[0] == 0x0f);
    assert_int_equal(clock_look(&clock, NUMBER), DEDUP_NEW);
    assert_int_equal(clock_look(&clock, NUMBER - DATA_WINDOW + 1), DEDUP_NEW); /* may not be answered yet */
    assert_int_equal(clock_look(&clock, NUMBER - DATA_WINDOW), DEDUP_OLD);
    clock_fini(&clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_wherever_arcs_go), cmocka_unit_test(one_again), cmocka_unit_test(noted),
        cmocka_unit_test(noted_first),           cmocka_unit_test(joined),    cmocka_unit_test(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
