/* Records that travel with partitions: each key of each chunk is applied once, wherever its partition is and
 * however often the chunk comes. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/shard/applied_window.h"

enum { SHARDS = 3, SENDERS = 3, PARTITIONS = 12, CHUNKS = 400, OPEN = 24 };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(seed) % below;
}

struct sender {
    bool known;
    struct applied_window applied_window;
};

struct shard {
    uint64_t held[PARTITION_WORDS];
    struct sender sender[SENDERS];
};

/* Chunk i of a sender has the number first + i. Its keys: one in each partition of a set of bits. */
struct chunk {
    unsigned keys; /* by partition */
    bool done;
};

struct world {
    struct shard shard[SHARDS];
    unsigned owner[PARTITIONS]; /* partition a stands for partitions a of the ring */
    struct chunk chunk[SENDERS][CHUNKS];
    unsigned applied[SENDERS][CHUNKS][PARTITIONS];
    unsigned issued[SENDERS];
    uint64_t first[SENDERS];
    unsigned merged, apart, most_notes;
};

static uint64_t floor_of(const struct world *w, unsigned sender)
{
    unsigned i = 0;
    while (i < w->issued[sender] && w->chunk[sender][i].done)
        i++;
    return w->first[sender] + i;
}

static struct applied_window *window_at(struct shard *shard, unsigned sender)
{
    struct sender *s = &shard->sender[sender];
    if (!s->known) {
        s->known = true;
        applied_window_init(&s->applied_window);
    }
    return &s->applied_window;
}

static enum dedup_state look(const struct applied_window *applied_window, unsigned partition, uint64_t number)
{
    const struct applied_note *applied_note = applied_window_note(applied_window, number);
    enum dedup_state state = applied_window_state(applied_window, number);
    assert_true(!applied_note || state == DEDUP_NEW);
    return applied_note && partition_set_has(applied_note->partitions, partition) ? DEDUP_DONE : state;
}

/* A slice as a shard handles it. */
static void arrives(struct world *w, unsigned to, unsigned sender, unsigned i, unsigned keys, uint64_t floor)
{
    struct applied_window *applied_window = window_at(&w->shard[to], sender);
    uint64_t number = w->first[sender] + i;
    applied_window_raise_floor(applied_window, floor);
    for (unsigned a = 0; a < PARTITIONS; a++) {
        if (!(keys >> a & 1))
            continue;
        enum dedup_state state = look(applied_window, a, number);
        assert_int_not_equal(state, DEDUP_BEYOND);
        w->applied[sender][i][a] += state == DEDUP_NEW;
    }
    if (number >= applied_window->own.floor)
        applied_window_record(applied_window, number);
}

/* Sends a chunk by the present owners; slices and answers are lost. */
static void attempt(struct world *w, unsigned sender, unsigned i)
{
    struct chunk *chunk = &w->chunk[sender][i];
    uint64_t floor = floor_of(w, sender);
    bool all = true;
    for (unsigned to = 0; to < SHARDS; to++) {
        unsigned keys = 0;
        for (unsigned a = 0; a < PARTITIONS; a++)
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
static void passes(const struct applied_window *from, const uint64_t partitions[PARTITION_WORDS],
                   struct applied_window *to)
{
    applied_window_init(to);
    to->own = applied_window_extract(from, partitions);
    for (const struct applied_note *applied_note = from->applied_notes; applied_note;
         applied_note = applied_note->next)
        if (applied_note_splits(applied_note, partitions))
            assert_int_equal(applied_window_note_number(to, applied_note->number, applied_note->partitions),
                             PARAMO_OK);
}

static void migration(struct world *w)
{
    unsigned first = (unsigned)draw(PARTITIONS), from = w->owner[first], to = (unsigned)draw(SHARDS),
             count = 0;
    uint64_t partitions[PARTITION_WORDS] = {0};
    if (from == to)
        return;
    struct shard *source = &w->shard[from], *target = &w->shard[to];
    while (first + count < PARTITIONS && w->owner[first + count] == from && (!count || draw(4)))
        partition_set_add(partitions, first + count++);
    for (unsigned s = 0; s < SENDERS; s++) {
        if (!source->sender[s].known && !target->sender[s].known)
            continue;
        struct applied_window theirs, *applied_window = window_at(target, s);
        size_t before = applied_window_count_notes(applied_window, &(size_t){0});
        if (source->sender[s].known)
            passes(&source->sender[s].applied_window, partitions, &theirs);
        for (unsigned again = 0; again < 1 + draw(2); again++) /* twice does no harm */
            assert_int_equal(applied_window_import(applied_window, target->held, partitions,
                                                   source->sender[s].known ? &theirs : NULL),
                             PARAMO_OK);
        if (source->sender[s].known)
            applied_window_fini(&theirs);
        size_t applied_notes = applied_window_count_notes(applied_window, &(size_t){0});
        assert_true(applied_notes <= OPEN);
        w->apart += applied_notes > before;
        w->merged += applied_notes < before;
        w->most_notes = applied_notes > w->most_notes ? (unsigned)applied_notes : w->most_notes;
    }
    for (unsigned i = 0; i < PARTITION_WORDS; i++) {
        target->held[i] |= partitions[i];
        source->held[i] &= ~partitions[i];
    }
    for (unsigned s = 0; s < SENDERS; s++)
        if (source->sender[s].known && draw(2)) /* at once, or with the next that comes or goes */
            applied_window_retain(&source->sender[s].applied_window, source->held);
    for (unsigned a = first; a < first + count; a++)
        w->owner[a] = to;
}

static void check(const struct world *w)
{
    for (unsigned s = 0; s < SENDERS; s++)
        for (unsigned i = 0; i < w->issued[s]; i++)
            for (unsigned a = 0; a < PARTITIONS; a++) {
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
        migration(w);
    } else if (w->issued[s] < CHUNKS && w->issued[s] - lowest < OPEN && draw(2)) {
        w->chunk[s][w->issued[s]].keys = 1u << draw(PARTITIONS);
        w->chunk[s][w->issued[s]].keys |= (unsigned)draw(1u << PARTITIONS) & (unsigned)draw(1u << PARTITIONS);
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

static void once_wherever_partitions_go(void **state)
{
    (void)state;
    static struct world w;
    unsigned apart = 0, merged = 0, most = 0;
    for (uint64_t history = 1; history <= 30; history++) {
        memset(&w, 0, sizeof w);
        seed = history;
        for (unsigned a = 0; a < PARTITIONS; a++) {
            w.owner[a] = a * SHARDS / PARTITIONS;
            partition_set_add(w.shard[w.owner[a]].held, a);
        }
        for (unsigned s = 0; s < SENDERS; s++)
            w.first[s] = 1 + draw(5000);
        while (!all_done(&w))
            step(&w);
        check(&w);
        /* When each sender's floor has come to all, nothing is left but that. */
        for (unsigned i = 0; i < SHARDS; i++)
            for (unsigned s = 0; s < SENDERS; s++) {
                struct applied_window *applied_window = window_at(&w.shard[i], s);
                applied_window_raise_floor(applied_window, w.first[s] + CHUNKS);
                assert_true(applied_window_is_empty(applied_window));
            }
        apart += w.apart;
        merged += w.merged;
        most = w.most_notes > most ? w.most_notes : most;
    }
    print_message("%u arrivals made parts, %u ended some; at most %u of a sender\n", apart, merged, most);
    assert_true(apart > 1000 && merged > 100 && most > 3);
}

static const uint64_t *partitions_of(unsigned first, unsigned count)
{
    static uint64_t bits[3][PARTITION_WORDS];
    static unsigned turn;
    turn = (turn + 1) % 3;
    memset(bits[turn], 0, sizeof bits[turn]);
    for (unsigned a = first; a < first + count; a++)
        partition_set_add(bits[turn], a);
    return bits[turn];
}

/* Equal records are one at once; a part lasts until the floor has passed it, or all say the same. */
static void one_again(void **state)
{
    (void)state;
    struct applied_window applied_window, theirs;
    uint64_t all[PARTITION_WORDS];
    memset(all, 0xff, sizeof all);
    applied_window_init(&applied_window);
    applied_window_init(&theirs);
    applied_window_raise_floor(&applied_window, 2000);
    applied_window_record(&applied_window, 2003);
    theirs.own = applied_window.own;
    assert_int_equal(applied_window_import(&applied_window, all, partitions_of(10, 5), &theirs), PARAMO_OK);
    assert_null(applied_window.applied_notes);

    applied_window_record(&theirs, 2900);
    assert_int_equal(applied_window_import(&applied_window, all, partitions_of(10, 5), &theirs), PARAMO_OK);
    assert_int_equal(look(&applied_window, 12, 2900), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 15, 2900), DEDUP_NEW);
    assert_int_equal(applied_window_state(&applied_window, 2900), DEDUP_NEW); /* not on all */
    assert_int_equal(look(&applied_window, 12, 2003), DEDUP_DONE);
    applied_window_record(&applied_window, 2950);
    assert_int_equal(look(&applied_window, 12, 2950), DEDUP_DONE);
    applied_window_raise_floor(&applied_window, 2900);
    assert_non_null(applied_window.applied_notes);
    applied_window_raise_floor(&applied_window, 2901);
    assert_null(applied_window.applied_notes);
    assert_int_equal(applied_window_state(&applied_window, 2950), DEDUP_DONE);

    /* The other shard did not know the sender. */
    assert_int_equal(applied_window_import(&applied_window, all, partitions_of(0, 1), NULL), PARAMO_OK);
    assert_int_equal(look(&applied_window, 0, 2950), DEDUP_NEW);
    assert_int_equal(look(&applied_window, 1, 2950), DEDUP_DONE);
    applied_window_retain(&applied_window, partitions_of(1, 9)); /* it leaves again */
    assert_null(applied_window.applied_notes);
    assert_int_equal(applied_window_state(&applied_window, 2950), DEDUP_DONE);
    /* And knows a higher floor: so do we. */
    applied_window_raise_floor(&theirs, 3000);
    assert_int_equal(
        applied_window_import(&applied_window, partitions_of(1, 9), partitions_of(0, 1), &theirs), PARAMO_OK);
    assert_int_equal(applied_window.own.floor, 3000);
    assert_true(applied_window_is_empty(&applied_window));
    /* Nothing was here before: the record is theirs. */
    applied_window_record(&theirs, 3007);
    assert_int_equal(
        applied_window_import(&applied_window, partitions_of(0, 0), partitions_of(7, 3), &theirs), PARAMO_OK);
    assert_null(applied_window.applied_notes);
    assert_int_equal(applied_window_state(&applied_window, 3007), DEDUP_DONE);
    applied_window_fini(&applied_window);
}

/* Where a chunk was done that came in slices. */
static void noted(void **state)
{
    (void)state;
    struct applied_window applied_window;
    applied_window_init(&applied_window);
    assert_int_equal(applied_window_note_number(&applied_window, 8, partitions_of(4095, 1)), PARAMO_OK);
    assert_int_equal(applied_window_note_number(&applied_window, 7, partitions_of(0, 10)), PARAMO_OK);
    assert_int_equal(applied_window_note_number(&applied_window, 7, partitions_of(100, 1)), PARAMO_OK);
    applied_window_attach(&applied_window, applied_note_make(8, partitions_of(64, 1)));
    assert_int_equal(look(&applied_window, 0, 7), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 9, 7), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 10, 7), DEDUP_NEW);
    assert_int_equal(look(&applied_window, 100, 7), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 64, 8), DEDUP_DONE);
    assert_int_equal(applied_window_state(&applied_window, 8), DEDUP_NEW);
    assert_null(applied_window_note(&applied_window, 9));
    assert_int_equal(applied_window_count_notes(&applied_window, &(size_t){0}), 2);
    assert_true(applied_note_splits(applied_window_note(&applied_window, 7), partitions_of(5, 10)));
    assert_false(applied_note_splits(applied_window_note(&applied_window, 7), partitions_of(5, 3)));
    assert_false(applied_note_splits(applied_window_note(&applied_window, 7), partitions_of(200, 3)));
    struct dedup some = applied_window_extract(&applied_window, partitions_of(5, 3));
    assert_int_equal(dedup_check(&some, 7), DEDUP_DONE);
    assert_int_equal(dedup_check(&some, 8), DEDUP_NEW);
    applied_window_record(&applied_window, 7); /* the rest of it */
    assert_int_equal(applied_window_state(&applied_window, 7), DEDUP_DONE);
    assert_int_equal(applied_window_note_number(&applied_window, 7, partitions_of(0, 1)),
                     PARAMO_OK); /* it is done everywhere */
    assert_null(applied_window_note(&applied_window, 7));
    applied_window_raise_floor(&applied_window, 8);
    assert_int_equal(applied_window_note_number(&applied_window, 7, partitions_of(0, 1)),
                     PARAMO_OK); /* and over */
    assert_int_equal(applied_window_count_notes(&applied_window, &(size_t){0}), 1);
    applied_window_retain(&applied_window, partitions_of(0, 10)); /* none of these */
    assert_true(applied_window_is_empty(&applied_window));
    applied_window_fini(&applied_window);
}

/* What a checkpoint says is done comes on top. */
static void joined(void **state)
{
    (void)state;
    struct applied_window applied_window;
    struct dedup saved;
    uint64_t all[PARTITION_WORDS];
    memset(all, 0xff, sizeof all);
    applied_window_init(&applied_window);
    dedup_init(&saved);
    applied_window_record(&applied_window, 3);
    dedup_record(&saved, 4);
    assert_int_equal(applied_window_merge(&applied_window, all, partitions_of(0, 2000), &saved), PARAMO_OK);
    assert_int_equal(look(&applied_window, 0, 3), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 0, 4), DEDUP_DONE);
    assert_int_equal(look(&applied_window, 2000, 4), DEDUP_NEW);
    assert_int_equal(applied_window_merge(&applied_window, all, partitions_of(2000, 2096), &saved),
                     PARAMO_OK);
    assert_null(applied_window.applied_notes);
    assert_int_equal(applied_window_state(&applied_window, 4), DEDUP_DONE);
    applied_window_fini(&applied_window);
}

/* A sender that says nothing: however many arrivals there are, they have no more parts than its window
 * numbers. */
static void bounded(void **state)
{
    (void)state;
    struct applied_window applied_window, theirs;
    size_t bytes = 3;
    applied_window_init(&applied_window);
    applied_window_init(&theirs);
    applied_window_record(&applied_window, 5);
    applied_window_record(&theirs, 6);
    uint64_t held[PARTITION_WORDS] = {0};
    for (unsigned a = 1000; a < RING_PARTITIONS; a++)
        partition_set_add(held, a);
    for (unsigned a = 0; a < 1000; a++) {
        assert_int_equal(
            applied_window_import(&applied_window, held, partitions_of(a, 1), a % 2 ? &theirs : NULL),
            PARAMO_OK);
        partition_set_add(held, a);
    }
    assert_int_equal(applied_window_count_notes(&applied_window, &bytes), 2);
    assert_int_equal(bytes, 3 + 2 * sizeof(struct applied_note));
    for (unsigned a = 0; a < 1000; a++) {
        assert_int_equal(look(&applied_window, a, 5), DEDUP_NEW);
        assert_int_equal(look(&applied_window, a, 6), a % 2 ? DEDUP_DONE : DEDUP_NEW);
    }
    assert_int_equal(look(&applied_window, 1000, 5), DEDUP_DONE);
    /* At worst: each number of the window another way. */
    for (uint64_t n = 1; n <= DATA_WINDOW; n++)
        applied_window_record(n % 2 ? &applied_window : &theirs, n);
    assert_int_equal(applied_window_import(&applied_window, partitions_of(0, RING_PARTITIONS),
                                           partitions_of(7, 1), &theirs),
                     PARAMO_OK);
    assert_true(applied_window_count_notes(&applied_window, &bytes) <= DATA_WINDOW);
    applied_window_raise_floor(&applied_window, DATA_WINDOW + 1);
    assert_true(applied_window_is_empty(&applied_window));
    applied_window_fini(&applied_window);
    applied_window_fini(&theirs);
}

/* A record that has just been made: its floor is not known yet, as when FORGET has ended the one before. A
 * sender is never a window ahead of its floor. */
static void noted_first(void **state)
{
    (void)state;
    enum { NUMBER = 100000 };
    const uint64_t partitions[PARTITION_WORDS] = {0x0f};
    struct applied_window applied_window;
    applied_window_init(&applied_window);
    assert_int_equal(applied_window_note_number(&applied_window, NUMBER, partitions), PARAMO_OK);
    const struct applied_note *applied_note = applied_window_note(&applied_window, NUMBER);
    assert_non_null(applied_note);
    assert_true(applied_note->partitions[0] == 0x0f);
    assert_int_equal(applied_window_state(&applied_window, NUMBER), DEDUP_NEW);
    assert_int_equal(applied_window_state(&applied_window, NUMBER - DATA_WINDOW + 1),
                     DEDUP_NEW); /* may not be answered yet */
    assert_int_equal(applied_window_state(&applied_window, NUMBER - DATA_WINDOW), DEDUP_OLD);
    applied_window_fini(&applied_window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_wherever_partitions_go),
        cmocka_unit_test(one_again),
        cmocka_unit_test(noted),
        cmocka_unit_test(noted_first),
        cmocka_unit_test(joined),
        cmocka_unit_test(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
