#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ring/place.h"

enum { SHARDS_MAX = 48, NAME = 16 };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(seed) % below;
}

/* A cluster whose history is drawn. */
struct world {
    size_t n;
    unsigned replicas;
    struct ring_shard shard[SHARDS_MAX];
    char name[SHARDS_MAX][NAME];
    struct ring_chains chains[2];
    unsigned now;
};

static void join(struct world *w, unsigned weight, unsigned server, unsigned domain)
{
    (void)snprintf(w->name[w->n], NAME, "host-%u", domain);
    w->shard[w->n] = (struct ring_shard){weight, server, w->name[w->n]};
    w->n++;
}

/* The server of this shard, with all its shards. */
static void relocate(struct world *w, size_t shard, unsigned domain)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->shard[i].server == w->shard[shard].server)
            (void)snprintf(w->name[i], NAME, "host-%u", domain);
}

static void count(const struct ring_chains *c, unsigned levels, uint32_t *held)
{
    memset(held, 0, SHARDS_MAX * sizeof *held);
    for (unsigned l = 0; l < levels; l++)
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            if (c->level[l].owner[a] < SHARDS_MAX)
                held[c->level[l].owner[a]]++;
}

static bool same_domain(const struct world *w, uint16_t a, uint16_t b)
{
    return strcmp(w->shard[a].domain, w->shard[b].domain) == 0;
}

/* Each holder may hold its partitions: it has a weight, and a process and a domain of its own where promised.
 */
static void check_chains(const struct world *w, const struct ring_chains *c)
{
    static struct ring_chains measured;
    measured = *c;
    measured.apart = measured.present = 9;
    ring_measure(w->shard, &measured);
    assert_int_equal(measured.present, c->present);
    assert_int_equal(measured.apart, c->apart);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t shard = c->level[l].owner[a];
            if (l > c->present) {
                assert_int_equal(shard, RING_NONE);
                continue;
            }
            assert_true(shard < w->n);
            assert_true(w->shard[shard].weight > 0);
            for (unsigned u = 0; u < l; u++) {
                uint16_t upper = c->level[u].owner[a];
                assert_true(w->shard[upper].server != w->shard[shard].server);
                if (l <= c->apart)
                    assert_false(same_domain(w, upper, shard));
            }
        }
}

static unsigned count_groups(const struct world *w, bool domains)
{
    unsigned groups = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool first = w->shard[i].weight > 0;
        for (size_t k = 0; k < i && first; k++)
            first = !w->shard[k].weight || !(domains ? same_domain(w, (uint16_t)i, (uint16_t)k)
                                                     : w->shard[i].server == w->shard[k].server);
        groups += first;
    }
    return groups;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Places again, checks what always holds, and returns the placement before. */
static const struct ring_chains *place(struct world *w, bool fresh)
{
    struct ring_chains *before = &w->chains[w->now], *after = &w->chains[!w->now];
    assert_int_equal(ring_place(w->shard, w->n, w->replicas, fresh ? NULL : before, after), PARAMO_OK);
    w->now = !w->now;
    check_chains(w, after);
    assert_int_equal(after->apart, least(w->replicas, count_groups(w, true) - 1));
    assert_int_equal(after->present, least(w->replicas, count_groups(w, false) - 1));
    return before;
}

/* Partitions of the first levels that a shard holds and did not hold before. */
static uint32_t moved(const struct ring_chains *before, const struct ring_chains *after, unsigned levels)
{
    uint32_t sum = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < levels; l++) {
            bool had = false;
            for (unsigned u = 0; u < levels; u++)
                had |= before->level[u].owner[a] == after->level[l].owner[a];
            sum += !had;
        }
    return sum;
}

/* The shares by weight alone; returns how near the heaviest domain is to holding every partition: above 1
 * they are not possible. */
static double due_shares(const struct world *w, unsigned levels, double *due)
{
    double total = 0, heaviest = 0;
    for (size_t i = 0; i < w->n; i++)
        total += w->shard[i].weight;
    for (size_t i = 0; i < w->n; i++) {
        double domain = 0;
        for (size_t k = 0; k < w->n; k++)
            domain += same_domain(w, (uint16_t)i, (uint16_t)k) ? w->shard[k].weight : 0;
        due[i] = levels * RING_PARTITIONS * (w->shard[i].weight / total);
        heaviest = levels * domain / total > heaviest ? levels * domain / total : heaviest;
    }
    return heaviest;
}

/* What no placement with these shares, each rounded down, can do without. */
static uint32_t least_transfers(const struct world *w, const struct ring_chains *before, unsigned levels)
{
    uint32_t had[SHARDS_MAX];
    double due[SHARDS_MAX], sum = 0;
    count(before, levels, had);
    (void)due_shares(w, levels, due);
    for (size_t i = 0; i < w->n; i++)
        sum += (double)(uint32_t)due[i] > had[i] ? (uint32_t)due[i] - had[i] : 0;
    double lost = 0; /* partitions of the dead must be placed again */
    for (size_t i = 0; i < SHARDS_MAX; i++)
        lost += i >= w->n || !w->shard[i].weight ? had[i] : 0;
    return (uint32_t)(sum > lost ? sum : lost);
}

static void check_shares(const struct world *w, const struct ring_chains *c)
{
    for (unsigned levels = 1; levels <= c->present + 1; levels++) {
        uint32_t held[SHARDS_MAX];
        double due[SHARDS_MAX];
        count(c, levels, held);
        if (due_shares(w, levels, due) >
            0.99) /* one that must hold every partition leaves no choice at all */
            continue;
        for (size_t i = 0; i < w->n; i++)
            assert_true(held[i] < due[i] + levels && held[i] > due[i] - levels);
    }
}

/* Shards of equal weight, each on a host of its own; joins and leaves at random: of what moves at every k at
 * most a fifth is more than the least, and no share is beyond 1.15 of the mean. */
static void histories_of_equals(void **state)
{
    (void)state;
    static struct world w;
    double worst = 0;
    for (uint64_t history = 1; history <= UNIT_SEEDS(24); history++) {
        seed = history;
        w = (struct world){.replicas = (unsigned)draw(4)};
        for (size_t first = w.replicas + 2 + draw(12); w.n < first;)
            join(&w, 1, (unsigned)w.n, (unsigned)w.n);
        (void)place(&w, true);
        check_shares(&w, &w.chains[w.now]);
        for (int event = 0; event < 30; event++) {
            size_t victim = draw(w.n);
            bool leaves = draw(2) && w.shard[victim].weight && count_groups(&w, true) > w.replicas + 2;
            if (leaves)
                w.shard[victim].weight = 0;
            else if (!w.shard[victim].weight)
                w.shard[victim].weight = 1; /* its place is taken again */
            else if (w.n < SHARDS_MAX)
                join(&w, 1, (unsigned)w.n, (unsigned)w.n);
            const struct ring_chains *before = place(&w, false), *after = &w.chains[w.now];
            check_shares(&w, after);
            uint32_t held[SHARDS_MAX];
            for (unsigned levels = 1; levels <= w.replicas + 1; levels++) {
                double mean = (double)levels * RING_PARTITIONS / count_groups(&w, false);
                uint32_t transfers = moved(before, after, levels),
                         bound = least_transfers(&w, before, levels);
                count(after, levels, held);
                for (size_t i = 0; i < w.n; i++)
                    assert_true(held[i] <= 1.15 * mean);
                if (bound && (double)transfers / bound > worst)
                    worst = (double)transfers / bound;
                assert_true(transfers <= 1.2 * bound);
            }
        }
    }
    print_message("at most %.3f of the least moves\n", worst);
}

/* Any weights, several servers on a host, hosts of any size: what may not be is not, and while no host is so
 * heavy that it forbids the shares, these are kept and a change moves little: ownership always, copies while
 * no host is near that; else they do all in all. */
static void histories_of_unequals(void **state)
{
    (void)state;
    static struct world w;
    double most = 0, owners = 0, sum = 0, bound_sum = 0;
    for (uint64_t history = 1; history <= UNIT_SEEDS(40); history++) {
        seed = history * 1000;
        w = (struct world){.replicas = (unsigned)draw(4)};
        unsigned hosts = w.replicas + 1 + (unsigned)draw(8), servers = 0;
        for (unsigned h = 0; h < hosts; h++)
            join(&w, 1 + (unsigned)draw(4), servers++, h);
        (void)place(&w, true);
        check_shares(&w, &w.chains[w.now]);
        for (int event = 0; event < 25; event++) {
            size_t some = draw(w.n);
            bool elsewhere = draw(8) == 0; /* a server is on another host now: its chains must be, too */
            bool join_event = draw(3) && w.n < SHARDS_MAX, host_event = draw(2);
            uint32_t weight = (uint32_t)draw(5);
            if (elsewhere)
                relocate(&w, some, (unsigned)draw(hosts + 2));
            else if (join_event) /* a new host, a new server of a host, or another shard of a server */
                join(&w, 1 + weight, host_event ? servers++ : w.shard[some].server,
                     host_event ? (unsigned)draw(hosts + 2)
                                : (unsigned)strtoul(w.shard[some].domain + 5, NULL, 10));
            else if (count_groups(&w, true) > w.replicas + 1 || weight)
                w.shard[some].weight = weight;
            const struct ring_chains *before = place(&w, false), *after = &w.chains[w.now];
            check_shares(&w, after);
            double due[SHARDS_MAX];
            for (unsigned levels = 1; levels <= after->present + 1; levels++) {
                double heaviest = due_shares(&w, levels, due);
                if (after->apart < w.replicas || heaviest > 1 || elsewhere)
                    continue;
                uint32_t transfers = moved(before, after, levels),
                         bound = least_transfers(&w, before, levels);
                uint32_t slack = levels * (uint32_t)w.n; /* shares are within one partition, not exact */
                double ratio = bound ? (double)transfers / bound : 0;
                if (levels == 1 || heaviest <= 0.5)
                    assert_true(transfers <= 1.2 * bound + slack);
                if (levels == 1)
                    owners = bound > 200 && ratio > owners ? ratio : owners;
                most = bound > 200 && ratio > most ? ratio : most;
                sum += transfers;
                bound_sum += bound;
            }
        }
    }
    print_message("owners: at most %.3f of the least; copies: at most %.3f, all in all %.3f\n", owners, most,
                  sum / bound_sum);
    assert_true(sum <= 1.2 * bound_sum);
}

/* The first j levels of a placement for k replicas are the placement for j. */
static void chains_are_nested(void **state)
{
    (void)state;
    static struct world w;
    static struct ring_chains fewer;
    w = (struct world){.replicas = 3};
    for (unsigned i = 0; i < 12; i++)
        join(&w, 1 + i % 3, i, i / 2);
    (void)place(&w, true);
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(ring_place(w.shard, w.n, k, NULL, &fewer), PARAMO_OK);
        for (unsigned l = 0; l <= k; l++)
            assert_memory_equal(&fewer.level[l], &w.chains[w.now].level[l], sizeof(struct ring));
    }
}

static unsigned count_runs(const struct ring_chains *c)
{
    unsigned runs = 1;
    for (size_t a = 1; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++)
            if (c->level[l].owner[a] != c->level[l].owner[a - 1]) {
                runs++;
                break;
            }
    return runs;
}

/* As many servers as copies, some heavier than a copy of everything: the others take what is left, in runs. */
static void full_servers_take_runs(void **state)
{
    (void)state;
    static const uint32_t weights[][4] = {{3, 8, 9, 3}, {8, 12, 11, 5}, {100, 1, 1, 1}, {1, 1, 1, 1}};
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
        static struct world w;
        w = (struct world){.replicas = 3};
        for (unsigned i = 0; i < 4; i++)
            join(&w, weights[k][i], i, i);
        (void)place(&w, true);
        assert_in_range(count_runs(&w.chains[w.now]), 1, 16);
        for (unsigned i = 0; i < 4; i++)
            w.shard[i].weight = i == 1 ? weights[k][i] : 0;
        (void)place(&w, false);
        for (unsigned i = 2; i < 5; i++) { /* they come back one by one */
            w.shard[i % 4].weight = weights[k][i % 4];
            (void)place(&w, false);
        }
        assert_in_range(count_runs(&w.chains[w.now]), 1, 64);
    }
}

/* First one run for each shard, with one successor; and a long history does not grind them to dust. */
static void runs_stay_long(void **state)
{
    (void)state;
    static struct world w;
    seed = 7;
    w = (struct world){.replicas = 2};
    for (unsigned i = 0; i < 8; i++)
        join(&w, 1, i, i);
    (void)place(&w, true);
    assert_int_equal(count_runs(&w.chains[w.now]), 8);
    for (int event = 0; event < 200; event++) {
        size_t i = draw(w.n);
        if (!w.shard[i].weight)
            w.shard[i].weight = 1;
        else if (count_groups(&w, false) > 5)
            w.shard[i].weight = 0;
        (void)place(&w, false);
    }
    print_message("%u runs of chains after 200 changes among 8 servers\n", count_runs(&w.chains[w.now]));
    assert_true(count_runs(&w.chains[w.now]) < 400);
}

/* The dead shard's partitions go to shards that hold copies of them, as far as the shares let them: an owner that was
 * no replica is the exception. The remaining shards keep what they own. */
static void copies_are_promoted(void **state)
{
    (void)state;
    static struct world w;
    w = (struct world){.replicas = 2};
    for (unsigned i = 0; i < 6; i++)
        join(&w, 1, i, i);
    (void)place(&w, true);
    w.shard[3].weight = 0;
    const struct ring_chains *before = place(&w, false), *after = &w.chains[w.now];
    unsigned promoted = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = after->level[0].owner[a];
        if (before->level[0].owner[a] != 3)
            assert_int_equal(owner, before->level[0].owner[a]);
        else
            promoted += owner == before->level[1].owner[a] || owner == before->level[2].owner[a];
    }
    assert_true(promoted >=
                2 * (RING_PARTITIONS / 5 - RING_PARTITIONS / 6)); /* all that its two successors may take */
}

static void too_few_domains(void **state)
{
    (void)state;
    static struct world w;
    char text[200];
    w = (struct world){.replicas = 2};
    for (unsigned i = 0; i < 6; i++)
        join(&w, 1, i, i / 3);
    (void)place(&w, true);
    const struct ring_chains *c = &w.chains[w.now];
    assert_int_equal(c->apart, 1);
    assert_int_equal(c->present, 2);
    assert_true(ring_warning(c, text, sizeof text));
    assert_non_null(strstr(text, "failure domains: there are 2"));
    check_shares(&w, c);

    w = (struct world){.replicas = 3};
    for (unsigned i = 0; i < 6; i++)
        join(&w, 1, i / 3, 0); /* two processes of three shards */
    (void)place(&w, true);
    c = &w.chains[w.now];
    assert_int_equal(c->apart, 0);
    assert_int_equal(c->present, 1);
    assert_true(ring_warning(c, text, sizeof text));
    assert_non_null(strstr(text, "there will be 1"));

    w.replicas = 1;
    for (size_t i = 0; i < w.n; i++)
        w.shard[i].domain = i < 3 ? "a" : "b";
    (void)place(&w, false);
    assert_false(ring_warning(&w.chains[w.now], text, sizeof text));
}

/* A host that is too heavy: it holds each partition once, the light ones hold the rest by weight. */
static void heavy_domain(void **state)
{
    (void)state;
    static struct world w;
    uint32_t held[SHARDS_MAX];
    w = (struct world){.replicas = 1};
    join(&w, 10, 0, 0);
    join(&w, 3, 1, 1);
    join(&w, 1, 2, 2);
    (void)place(&w, true);
    count(&w.chains[w.now], 2, held);
    assert_int_equal(held[0], RING_PARTITIONS);
    assert_in_range(held[1], 3 * RING_PARTITIONS / 4 - 2, 3 * RING_PARTITIONS / 4 + 2);
    assert_in_range(held[2], RING_PARTITIONS / 4 - 2, RING_PARTITIONS / 4 + 2);
}

static void compares(void **state)
{
    (void)state;
    static struct world w;
    struct ring_transfers transfers;
    w = (struct world){.replicas = 1};
    for (unsigned i = 0; i < 4; i++)
        join(&w, 1, i, i);
    (void)place(&w, true);
    assert_int_equal(ring_compare(&w.chains[w.now], &w.chains[w.now], &transfers), PARAMO_OK);
    assert_int_equal(transfers.owners + transfers.copies + transfers.owners_least + transfers.copies_least,
                     0);
    join(&w, 4, 4, 4);
    const struct ring_chains *before = place(&w, false);
    assert_int_equal(ring_compare(before, &w.chains[w.now], &transfers), PARAMO_OK);
    assert_int_equal(transfers.owners, RING_PARTITIONS / 2);
    assert_int_equal(transfers.owners_least, RING_PARTITIONS / 2);
    assert_int_equal(transfers.copies, moved(before, &w.chains[w.now], 2));
    assert_int_equal(transfers.copies_least, RING_PARTITIONS);
}

static void refuses(void **state)
{
    (void)state;
    static struct world w;
    w = (struct world){0};
    join(&w, 1, 0, 0);
    assert_int_equal(ring_place(w.shard, 1, 4, NULL, &w.chains[0]), PARAMO_E_INVALID);
    w.shard[0].weight = 0;
    assert_int_equal(ring_place(w.shard, 1, 0, NULL, &w.chains[0]), PARAMO_E_INVALID);
    assert_int_equal(ring_place(w.shard, 0, 0, NULL, &w.chains[0]), PARAMO_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_of_equals),
        cmocka_unit_test(histories_of_unequals),
        cmocka_unit_test(chains_are_nested),
        cmocka_unit_test(runs_stay_long),
        cmocka_unit_test(full_servers_take_runs),
        cmocka_unit_test(copies_are_promoted),
        cmocka_unit_test(too_few_domains),
        cmocka_unit_test(heavy_domain),
        cmocka_unit_test(compares),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
