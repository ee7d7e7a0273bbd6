#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "ring/chains.h"

enum { SERVERS = 6, SHARDS = 2 * SERVERS };

static struct ring_chains chains, before;
static const struct ring_ends all; /* tables have as many replicas as the job */

/* Six servers of two shards, each its own domain. */
static void deal(unsigned replicas)
{
    static const char *const domain[SERVERS] = {"a", "b", "c", "d", "e", "f"};
    struct ring_shard shard[SHARDS];
    for (unsigned i = 0; i < SHARDS; i++)
        shard[i] = (struct ring_shard){.weight = 1 + i % 3, .server = i / 2, .domain = domain[i / 2]};
    assert_int_equal(ring_place(shard, SHARDS, replicas, NULL, &chains), PARAMO_OK);
}

static bool holds(const struct ring_chains *c, size_t a, uint16_t shard)
{
    bool any = false;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        any |= c->level[l].owner[a] == shard;
    return any;
}

/* The members that are left keep their order, without a hole. */
static void check_promoted(const bool *gone, uint32_t orphans)
{
    uint32_t alone = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        unsigned next = 0;
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = before.level[l].owner[a];
            if (member != RING_NONE && !gone[member])
                assert_int_equal(chains.level[next++].owner[a], member);
        }
        if (!next && before.level[0].owner[a] != RING_NONE) {
            assert_int_equal(chains.level[next++].owner[a], before.level[0].owner[a]);
            alone++;
        }
        for (; next < RING_LEVELS; next++)
            assert_int_equal(chains.level[next].owner[a], RING_NONE);
    }
    assert_int_equal(orphans, alone);
}

static void the_survivor_takes_over(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas <= RING_REPLICAS_MAX; replicas++)
        for (uint64_t seed = 0; seed < 64; seed++) { /* every set of servers that dies, one after the other */
            bool gone[SHARDS] = {false};
            unsigned dead = 0;
            uint32_t orphans = 0;
            deal(replicas);
            chains.level[0].owner[77] = chains.level[1].owner[77] = RING_NONE;
            chains.level[2].owner[77] = chains.level[3].owner[77] = RING_NONE;
            for (unsigned server = 0; server < SERVERS; server++) {
                if (!(seed >> server & 1))
                    continue;
                gone[2 * server] = gone[2 * server + 1] = true;
                before = chains;
                orphans = ring_promote(&chains, &all, gone, SHARDS, false, NULL);
                check_promoted(gone, orphans);
                dead++;
            }
            assert_true(orphans == 0 || dead > replicas);
            assert_true(orphans > 0 || dead < SERVERS);
            before = chains;
            assert_int_equal(ring_promote(&chains, &all, gone, SHARDS, false, NULL),
                             orphans); /* nothing is left to be done */
            assert_memory_equal(&before, &chains, sizeof chains);
        }
}

/* A member comes nearer to the owner only where it lacks nothing; without what belongs there its level stays
 * empty. The caller says which rows no member has any more; of tables with a replica these are an
 * orphan's. */
static void a_member_without_rows_stays_behind(void **state)
{
    (void)state;
    struct ring_ends ends = {0};
    struct ring_chains c = {.replicas = 3};
    static const struct {
        const char *fewer, *gone; /* replicas of tables; levels */
        uint16_t after[RING_LEVELS];
        uint8_t lowest;
    } cases[] = {
        {"", "0", {1, 2, 3, 9}, 1},    {"", "012", {3, 9, 9, 9}, 3},  {"3", "1", {0, 2, 3, 9}, 0},
        {"0", "0", {1, 2, 3, 9}, 1},   {"0", "1", {0, 2, 3, 9}, 0},   {"1", "0", {1, 9, 2, 3}, 1},
        {"1", "1", {0, 9, 2, 3}, 0},   {"1", "2", {0, 1, 3, 9}, 0},   {"2", "1", {0, 2, 9, 3}, 0},
        {"2", "01", {2, 9, 9, 3}, 2},  {"12", "1", {0, 9, 2, 3}, 0},  {"12", "12", {0, 9, 9, 3}, 0},
        {"1", "01", {0, 9, 9, 9}, 2},  {"0", "012", {3, 9, 9, 9}, 3}, {"02", "012", {0, 9, 9, 9}, 3},
        {"11", "01", {0, 9, 9, 9}, 2}, {"", "0123", {0, 9, 9, 9}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint8_t lowest[RING_PARTITIONS];
        bool gone[4] = {false};
        ends = (struct ring_ends){0};
        for (const char *r = cases[i].fewer; *r; r++)
            ring_ends_add(&ends, (unsigned)(*r - '0'), 3);
        for (const char *g = cases[i].gone; *g; g++)
            gone[*g - '0'] = true;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            for (size_t a = 0; a < RING_PARTITIONS; a++)
                c.level[l].owner[a] = (uint16_t)l;
        uint32_t orphans = ring_promote(&c, &ends, gone, 4, false, lowest);
        assert_int_equal(orphans, gone[c.level[0].owner[0]] ? RING_PARTITIONS : 0);
        assert_int_equal(lowest[77], cases[i].lowest);
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t is = c.level[l].owner[77];
            if (is != (cases[i].after[l] == 9 ? RING_NONE : cases[i].after[l]))
                fail_msg("case %zu: level %u is %u", i, l, is);
        }
    }
}

/* With `lose` the first member that is left is the owner, however many died before it. Partitions without a member
 * are given to the shards that are left, by weight. */
static void those_left_have_all(void **state)
{
    (void)state;
    struct ring_ends ends = {0};
    struct ring_chains c = {.replicas = 3};
    bool gone[4] = {true, true, false, false};
    static uint8_t lowest[RING_PARTITIONS];
    struct ring_shard shards[4] = {{.weight = 1}, {.weight = 1}, {.weight = 1}, {.weight = 3}};
    uint32_t owned[4];
    ring_ends_add(&ends, 1, 3);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            c.level[l].owner[a] = (uint16_t)l;
    assert_int_equal(ring_promote(&c, &ends, gone, 4, true, lowest), 0);
    assert_int_equal(lowest[77], 2);
    assert_int_equal(c.level[0].owner[77], 2);
    assert_int_equal(c.level[1].owner[77],
                     RING_NONE); /* the member that is left behind lacks tables of that level */
    assert_int_equal(c.level[2].owner[77], 3);
    memset(&c, 0xff, sizeof c);
    for (size_t a = 0; a < RING_PARTITIONS; a++) /* a quarter each, the last partition without an owner */
        c.level[0].owner[a] = a == RING_PARTITIONS - 1 ? RING_NONE : (uint16_t)(a / (RING_PARTITIONS / 4));
    assert_true(ring_adopt(&c, shards, gone, 4, owned));
    unsigned runs = 0, has[4] = {0};
    for (size_t a = 0; a < RING_PARTITIONS - 1; a++) {
        has[c.level[0].owner[a]]++;
        runs += a > 0 && c.level[0].owner[a] != c.level[0].owner[a - 1];
    }
    assert_int_equal(has[0] + has[1], 0);
    assert_in_range(has[2], RING_PARTITIONS / 4 - 2, RING_PARTITIONS / 4 + 2);
    assert_true(runs <= 8);
    assert_int_equal(c.level[0].owner[RING_PARTITIONS - 1], RING_NONE);
    shards[2].weight = shards[3].weight = 0; /* both will leave, and there is no other */
    gone[2] = true;
    assert_true(ring_adopt(&c, shards, gone, 4, owned));
    assert_int_equal(owned[3], RING_PARTITIONS - 1);
    gone[3] = true;
    assert_false(ring_adopt(&c, shards, gone, 4, owned));
    assert_int_equal(c.level[0].owner[77], 3);
}

static void recalled(void **state)
{
    (void)state;
    static struct ring_chains now, told;
    const struct ring_ends ends = {{0}};
    bool gone[4] = {true, true, false, false};
    uint8_t lowest[RING_PARTITIONS];
    memset(&now, 0xff, sizeof now);
    now.replicas = 1;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        now.level[0].owner[a] = 1;
    told = now;
    for (unsigned i = 0; i < 2; i++) {
        told.level[0].owner[10 + i] = 1, told.level[1].owner[10 + i] = 2; /* 2 was dropped after the owner */
        told.level[0].owner[20 + i] = 2, told.level[1].owner[20 + i] = 1; /* before it */
        told.level[0].owner[30 + i] = 1, told.level[1].owner[30 + i] = 2; /* another one is left, too */
        now.level[1].owner[30 + i] = 3;
    }
    ring_recall(&now, &told, gone, 4);
    assert_int_equal(ring_promote(&now, &ends, gone, 4, false, lowest), RING_PARTITIONS - 6);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(now.level[0].owner[10 + i], 2);
        assert_int_equal(lowest[10 + i], 1);
        assert_int_equal(now.level[0].owner[20 + i], 2);
        assert_int_equal(lowest[20 + i], 0);
        assert_int_equal(now.level[0].owner[30 + i], 3);
    }
    assert_int_equal(now.level[0].owner[40], 1); /* which is gone: no member is left */
    assert_int_equal(lowest[40], RING_LEVELS);
    gone[1] = false; /* another has come in its place, without rows */
    gone[2] = true;
    ring_recall(&now, &told, gone, 4);
    assert_int_equal(ring_promote(&now, &ends, gone, 4, false, lowest), 4);
    assert_int_equal(now.level[0].owner[10], 2);
    assert_int_equal(lowest[10], RING_LEVELS);
}

static void those_concerned(void **state)
{
    (void)state;
    uint8_t touched[SHARDS], expected[SHARDS];
    deal(2);
    before = chains;
    ring_touched(&before, &chains, touched, SHARDS);
    for (unsigned i = 0; i < SHARDS; i++)
        assert_int_equal(touched[i], 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        chains = before;
        memset(expected, 0, sizeof expected);
        for (unsigned change = 0; change < 1 + seed % 4; change++) {
            uint64_t random = mix64(seed * 8 + change);
            size_t a = random % RING_PARTITIONS;
            unsigned level = (unsigned)(random >> 20) % 3;
            uint16_t to = (uint16_t)((random >> 32) % (SHARDS + 1));
            to = to == SHARDS ? RING_NONE : to;
            if (!holds(&chains, a, to) || to == RING_NONE)
                chains.level[level].owner[a] = to;
        }
        for (size_t a = 0; a < RING_PARTITIONS; a++) {
            uint16_t old = before.level[0].owner[a], new = chains.level[0].owner[a];
            bool same = true;
            for (unsigned l = 0; l < RING_LEVELS; l++)
                same &= before.level[l].owner[a] == chains.level[l].owner[a];
            for (uint16_t i = 0; i < SHARDS && !same; i++) {
                if (holds(&before, a, i) || holds(&chains, a, i))
                    expected[i] |= RING_TOUCHED_CHAIN;
                if (old != new && (old == i || new == i))
                    expected[i] |= RING_TOUCHED_PARTITIONS;
            }
        }
        ring_touched(&before, &chains, touched, SHARDS);
        assert_memory_equal(touched, expected, sizeof touched);
    }
}

/* A run begins where some level has another member than in the partition before, wherever that is in a word.
 */
static void runs_begin_where_chains_change(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t begins[PARTITION_WORDS] = {0}, draw = mix64(seed);
        deal((unsigned)(seed % 4));
        for (unsigned i = 0; i < seed % 50; i++, draw = mix64(draw))
            chains.level[draw % RING_LEVELS].owner[draw / RING_LEVELS % RING_PARTITIONS] =
                (uint16_t)(draw >> 48);
        ring_begins(&chains, begins);
        for (unsigned a = 0; a < RING_PARTITIONS; a++) {
            bool other = a == 0;
            for (unsigned l = 0; l < RING_LEVELS && a; l++)
                other |= chains.level[l].owner[a] != chains.level[l].owner[a - 1];
            assert_int_equal(partition_set_has(begins, a), other);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_begin_where_chains_change),
        cmocka_unit_test(the_survivor_takes_over),
        cmocka_unit_test(a_member_without_rows_stays_behind),
        cmocka_unit_test(those_left_have_all),
        cmocka_unit_test(recalled),
        cmocka_unit_test(those_concerned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
