#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/scheduler/migrations.h"
#include "ring/chains.h"
#include "unit.h"

enum { SHARDS_MAX = 40 };

/* The other side of the machine: shards that carry out orders late and in any order, and report more than once. It
 * records which shard has which rows. */
struct world {
    uint64_t random;
    struct ring_shard shard[SHARDS_MAX];
    bool gone[SHARDS_MAX];
    struct migrations_shard is[SHARDS_MAX];
    size_t shards;
    unsigned replicas;
    struct ring_chains chains, before; /* before: as of the last commit */
    struct migrations migrations;
    uint8_t has[SHARDS_MAX]
               [RING_PARTITIONS]; /* rows of the partition: of tables with this number of replicas or more */
    struct job {
        struct migration migration;
        bool told_pause, reads_wait, paused, full; /* as the shards know it */
    } job[MIGRATIONS_MAX];
    uint64_t begun, committed, aborted, pauses, copied;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random = mix64(w->random + 0x9e3779b97f4a7c15);
    return w->random % below;
}

static struct job *job_of(struct world *w, uint64_t id)
{
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (w->job[i].migration.state != MIGRATION_NONE && w->job[i].migration.id == id)
            return &w->job[i];
    return NULL;
}

static unsigned length(const struct ring_chains *c, size_t partition)
{
    unsigned len = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        len += c->level[l].owner[partition] != RING_NONE;
    return len;
}

static bool lacks(const struct world *w, size_t partition)
{
    bool any = false;
    for (unsigned l = 0; l < length(&w->migrations.target, partition); l++)
        any |= w->chains.level[l].owner[partition] == RING_NONE;
    return any;
}

/* All that there is for a member at this level? */
static bool suffices(const struct world *w, size_t shard, size_t partition, unsigned level)
{
    uint8_t has = w->has[shard][partition];
    return has < RING_LEVELS && w->migrations.ends.before[has] <= w->migrations.ends.before[level];
}

static bool in_process_of_a_copy(const struct world *w, size_t partition, unsigned levels, uint16_t shard)
{
    bool any = false;
    for (unsigned l = 0; l < levels; l++) {
        uint16_t member = w->chains.level[l].owner[partition];
        any |= member != RING_NONE && w->shard[member].server == w->shard[shard].server;
    }
    return any;
}

static unsigned processes(const struct world *w, const struct ring_chains *c, size_t partition)
{
    unsigned count = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t member = c->level[l].owner[partition];
        bool new = member != RING_NONE;
        for (unsigned k = 0; k < l && new; k++)
            new = c->level[k].owner[partition] == RING_NONE ||
                  w->shard[c->level[k].owner[partition]].server != w->shard[member].server;
        count += new;
    }
    return count;
}

/* Lacks a copy, or is on fewer servers than it should be. */
static bool is_urgent(const struct world *w, size_t partition)
{
    return lacks(w, partition) ||
           processes(w, &w->chains, partition) < length(&w->migrations.target, partition);
}

/* Of the wanted members that are missing the first, if possible on a server that has no copy. */
static uint16_t first_missing(const struct world *w, size_t partition)
{
    for (int pass = 0; pass < 2; pass++)
        for (unsigned l = 1; l < RING_LEVELS; l++) {
            uint16_t wanted = w->migrations.target.level[l].owner[partition];
            bool member = wanted == RING_NONE;
            for (unsigned k = 0; k < RING_LEVELS; k++)
                member |= w->chains.level[k].owner[partition] == wanted;
            if (!member && (pass || !in_process_of_a_copy(w, partition, RING_LEVELS, wanted)))
                return wanted;
        }
    return RING_NONE;
}

/* Partitions that lack a copy which the same two could make come first. */
static void check_urgency(const struct world *w, const struct migration *migration)
{
    bool migrating[RING_PARTITIONS] = {false};
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (w->migrations.migration[i].state != MIGRATION_NONE)
            memset(migrating + w->migrations.migration[i].first, 1, w->migrations.migration[i].partitions);
    for (size_t a = 0; a < RING_PARTITIONS && !is_urgent(w, migration->first); a++)
        if (!migrating[a] && is_urgent(w, a) && w->chains.level[0].owner[a] == migration->from &&
            w->migrations.target.level[0].owner[a] == migration->from)
            assert_true(first_missing(w, a) != migration->to);
}

static void begun(void *arg, const struct migration *migration)
{
    struct world *w = arg;
    size_t at = 0;
    assert_int_equal(migration->state, migration->handover ? MIGRATION_FULL : MIGRATION_PLANNED);
    assert_in_range(migration->partitions, 1, MIGRATION_PARTITIONS_MAX);
    assert_true(migration->first + migration->partitions <= RING_PARTITIONS);
    assert_true(migration->from < w->shards && migration->to < w->shards);
    assert_false(w->gone[migration->from] || w->gone[migration->to]);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++) {
        const struct migration *other = &w->job[i].migration;
        if (other->state == MIGRATION_NONE) {
            at = i;
            continue;
        }
        assert_true(other->id < migration->id);
        assert_true(other->from != migration->from && other->to != migration->to);
        assert_true(other->first + other->partitions <= migration->first ||
                    migration->first + migration->partitions <= other->first);
    }
    for (size_t a = migration->first; a < (size_t)migration->first + migration->partitions; a++) {
        assert_true(suffices(w, migration->from, a, 0));
        assert_int_equal(w->chains.level[0].owner[a], migration->from);
        unsigned level = 0;
        while (level < RING_LEVELS && w->chains.level[level].owner[a] != migration->to)
            level++;
        assert_int_equal(level, migration->had);
        assert_true(migration->level < migration->had);
        assert_int_equal(level < RING_LEVELS && suffices(w, migration->to, a, migration->level),
                         migration->handover);
    }
    assert_int_equal(w->job[at].migration.state, MIGRATION_NONE);
    check_urgency(w, migration);
    w->job[at] = (struct job){.migration = *migration};
    w->begun++;
}

static void paused(void *arg, const struct migration *migration)
{
    struct world *w = arg;
    if (migration->handover)
        begun(arg, migration);
    struct job *job = job_of(w, migration->id);
    assert_non_null(job);
    assert_true((job->full || migration->handover) && !job->told_pause);
    job->told_pause = true;
    job->reads_wait = migration->takes_over;
    w->pauses++;
}

/* Each member of a chain has the rows; a new owner is full or has got the last of them; a partition has as many
 * copies as before, unless fewer are wanted. */
static void committed(void *arg, const struct migration *by)
{
    struct world *w = arg;
    assert_true(!by || migrations_find(&w->migrations, by->id) == by);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        bool same = true;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            same &= w->chains.level[l].owner[a] == w->before.level[l].owner[a];
        if (same)
            continue;
        const struct job *migrating = NULL;
        for (size_t i = 0; i < MIGRATIONS_MAX; i++) {
            const struct migration *migration = &w->job[i].migration;
            if (migration->state != MIGRATION_NONE && a >= migration->first &&
                a < (size_t)migration->first + migration->partitions)
                migrating = &w->job[i];
        }
        unsigned len = length(&w->chains, a), was = length(&w->before, a),
                 due = length(&w->migrations.target, a);
        unsigned apart = processes(w, &w->chains, a);
        assert_true(len >= 1);
        assert_true(len >= was || len >= due);
        for (unsigned replicas = 0, now = 0, then = 0; replicas <= w->replicas;
             replicas++) { /* of each table */
            now += w->chains.level[replicas].owner[a] != RING_NONE;
            then += w->before.level[replicas].owner[a] != RING_NONE;
            assert_true(now >= then || now >= due || now == replicas + 1);
        }
        assert_true(apart >= processes(w, &w->before, a) || apart >= due);
        if (w->chains.level[0].owner[a] != w->before.level[0].owner[a])
            assert_true(migrating && migrating->paused && migrating->reads_wait &&
                        migrating->migration.to == w->chains.level[0].owner[a]);
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = w->chains.level[l].owner[a];
            if (member == RING_NONE)
                continue;
            assert_true(member < w->shards);
            for (unsigned k = 0; k < l; k++)
                assert_int_not_equal(w->chains.level[k].owner[a], member);
            bool had = false;
            for (unsigned k = 0; k < RING_LEVELS; k++)
                had |= w->before.level[k].owner[a] == member;
            if (migrating && migrating->migration.to == member && migrating->full) {
                had &= suffices(w, member, a, l);
                if (w->has[member][a] > migrating->migration.level)
                    w->has[member][a] = migrating->migration.level;
            }
            if (!had) { /* only by a move, and only when it is full */
                assert_non_null(migrating);
                assert_int_equal(migrating->migration.to, member);
                assert_true(migrating->full);
                assert_true(migrating->paused);
                w->copied++;
            }
            assert_true(suffices(w, member, a, l));
            w->has[member][a] = (uint8_t)l; /* what is for others goes; of tables that come it has all */
        }
        unsigned from = 0; /* no member changes places with another except in a pause */
        for (unsigned l = 0; l < RING_LEVELS && !(migrating && migrating->paused); l++) {
            if (w->chains.level[l].owner[a] == RING_NONE)
                continue;
            while (from < RING_LEVELS && w->before.level[from].owner[a] != w->chains.level[l].owner[a])
                from++;
            assert_true(from < RING_LEVELS);
        }
        for (size_t i = 0; i < w->shards; i++) { /* a dropped member deletes it */
            bool member = false;
            for (unsigned l = 0; l < RING_LEVELS; l++)
                member |= w->chains.level[l].owner[a] == i;
            if (!member)
                w->has[i][a] = RING_LEVELS;
        }
    }
    w->before = w->chains;
}

static void ended(void *arg, const struct migration *migration, bool was_committed)
{
    struct world *w = arg;
    struct job *job = job_of(w, migration->id);
    assert_non_null(job);
    for (size_t a = migration->first; a < (size_t)migration->first + migration->partitions; a++) {
        bool member = false;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            member |= w->chains.level[l].owner[a] == migration->to;
        assert_int_equal(member, was_committed || (migration->had < RING_LEVELS && !w->gone[migration->to]));
        assert_true(!was_committed || !migration->handover || w->chains.level[0].owner[a] == migration->to);
    }
    job->migration.state = MIGRATION_NONE;
    w->committed += was_committed;
    w->aborted += !was_committed;
}

static const struct migrations_ops ops = {.begin = begun, .pause = paused, .commit = committed, .end = ended};

static void tell_shards(struct world *w)
{
    for (size_t i = 0; i < w->shards; i++)
        w->is[i] = (struct migrations_shard){.server = w->shard[i].server, .gone = w->gone[i]};
    migrations_set_shards(&w->migrations, w->is, w->shards);
}

static void aim(struct world *w)
{
    static struct ring_chains target;
    struct ring_shard shard[SHARDS_MAX];
    for (size_t i = 0; i < w->shards; i++) {
        shard[i] = w->shard[i];
        shard[i].weight = w->gone[i] ? 0 : shard[i].weight;
    }
    assert_int_equal(ring_place(shard, w->shards, w->replicas, &w->chains, &target), PARAMO_OK);
    tell_shards(w);
    migrations_set_target(&w->migrations, &target);
}

static void join(struct world *w, uint32_t weight)
{
    static const char *const domain[] = {"a", "b", "c", "d", "e"};
    size_t i = w->shards++;
    w->shard[i] =
        (struct ring_shard){.weight = weight, .server = (uint32_t)i / 2, .domain = domain[i / 2 % 5]};
}

static void start(struct world *w, uint64_t seed, size_t shards, unsigned replicas)
{
    memset(w, 0, sizeof *w);
    memset(w->has, RING_LEVELS, sizeof w->has);
    w->random = seed;
    w->replicas = replicas;
    for (size_t i = 0; i < shards; i++)
        join(w, 1 + (uint32_t)(seed % 2 * draw(w, 4)));
    assert_int_equal(ring_place(w->shard, w->shards, replicas, NULL, &w->chains), PARAMO_OK);
    w->before = w->chains;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < length(&w->chains, a); l++)
            w->has[w->chains.level[l].owner[a]][a] = (uint8_t)l;
    migrations_init(&w->migrations, &w->chains, &ops, w);
}

/* One piece of news from some shard: true news, or old. False: there is no shard to report. */
static bool news(struct world *w, bool failures)
{
    size_t i = draw(w, MIGRATIONS_MAX), seen = 0;
    while (seen < MIGRATIONS_MAX && w->job[i].migration.state == MIGRATION_NONE) {
        i = (i + 1) % MIGRATIONS_MAX;
        seen++;
    }
    if (seen == MIGRATIONS_MAX)
        return false;
    struct job *job = &w->job[i];
    uint64_t id = job->migration.id;
    switch (draw(w, failures ? 12 : 10)) {
    case 0: /* of one that is over, or was never */
        migrations_full(&w->migrations, id > 9 ? id - 9 - draw(w, 5) + 100000 : 0);
        migrations_paused(&w->migrations, 0);
        migrations_failed(&w->migrations, w->migrations.next_id);
        break;
    case 1:
    case 2:
        migrations_agreed(&w->migrations, id, job->migration.from);
        break;
    case 3:
    case 4:
        migrations_agreed(&w->migrations, id, job->migration.to);
        break;
    case 5:
    case 6:
    case 7: {
        const struct migration *migration = migrations_find(&w->migrations, id);
        assert_non_null(migration);
        job->full |= migration->state == MIGRATION_COPYING;
        migrations_full(&w->migrations, id);
        break;
    }
    case 8:
    case 9:
        job->paused |= job->told_pause;
        if (job->paused)
            migrations_paused(&w->migrations, id);
        break;
    case 10:
        migrations_failed(&w->migrations, id);
        break;
    default:
        break;
    }
    return true;
}

static void run(struct world *w)
{
    for (uint64_t steps = 0; news(w, false); steps++)
        assert_true(steps < 1000000);
    assert_true(migrations_converged(&w->migrations));
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        assert_int_equal(w->chains.level[0].owner[a], w->migrations.target.level[0].owner[a]);
        assert_int_equal(length(&w->chains, a), length(&w->migrations.target, a));
        assert_false(lacks(w, a));
        for (unsigned l = 1; l < length(&w->chains, a); l++) {
            bool wanted = false;
            for (unsigned k = 1; k < RING_LEVELS; k++)
                wanted |= w->migrations.target.level[k].owner[a] == w->chains.level[l].owner[a];
            assert_true(wanted);
        }
    }
}

static void kill(struct world *w, size_t shard)
{
    size_t server = w->shard[shard].server;
    for (size_t i = 0; i < w->shards; i++)
        w->gone[i] |= w->shard[i].server == server;
    (void)ring_promote(&w->chains, &w->migrations.ends, w->gone, w->shards, false, NULL);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = w->chains.level[0].owner[a];
        for (size_t i = 0; i < w->shards; i++)
            w->has[i][a] = w->gone[i] ? RING_LEVELS : w->has[i][a];
        if (!w->gone[owner]) /* no shard has rows of tables without replicas now */
            w->has[owner][a] = 0;
        for (unsigned l = 1; l < RING_LEVELS; l++) {
            uint16_t member = w->chains.level[l].owner[a];
            assert_true(member == RING_NONE || suffices(w, member, a, l));
            if (member != RING_NONE)
                w->has[member][a] = (uint8_t)l;
        }
    }
    w->before = w->chains;
    tell_shards(w);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (w->job[i].migration.state != MIGRATION_NONE)
            assert_false(w->gone[w->job[i].migration.from] || w->gone[w->job[i].migration.to]);
    aim(w);
}

static struct world *w;

static void a_server_joins(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas <= 3; replicas++) {
        struct ring_transfers least;
        start(w, 2 * replicas, 10, replicas);
        struct ring_chains *first = malloc(sizeof *first);
        *first = w->chains;
        join(w, 1);
        join(w, 1);
        aim(w);
        assert_true(w->begun > 0);
        run(w);
        assert_int_equal(ring_compare(first, &w->chains, &least), PARAMO_OK);
        assert_int_equal(w->copied, least.copies); /* nothing is copied twice, or for nothing */
        assert_int_equal(w->aborted, 0);
        assert_true(w->pauses > 0 && w->pauses <= w->begun);
        uint64_t begun_before = w->begun;
        aim(w);
        assert_true(w->begun == begun_before || replicas > 1); /* the order of replicas counts a little */
        free(first);
    }
}

static void a_server_leaves(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas <= 3; replicas++) {
        start(w, 2 * replicas, 12, replicas);
        assert_true(migrations_needs(&w->migrations, 4) && migrations_needs(&w->migrations, 5));
        w->shard[4].weight = w->shard[5].weight = 0;
        aim(w);
        assert_true(migrations_needs(&w->migrations, 4));
        run(w);
        assert_false(migrations_needs(&w->migrations, 4) || migrations_needs(&w->migrations, 5));
        assert_true(migrations_needs(&w->migrations, 3));
    }
}

/* One of two processes will leave. The next owner has a copy, and keeps it until it is the owner: rows that move away
 * would be lost if the leaving process died first. */
static void too_few_stay(void **state)
{
    (void)state;
    size_t kept = 0;
    start(w, 4, 4, 1);
    w->shard[0].weight = w->shard[1].weight = 0;
    aim(w);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = w->chains.level[0].owner[a], copy = w->chains.level[1].owner[a];
        assert_int_equal(length(&w->migrations.target, a), 1);
        assert_true(owner >= 2 || copy >= 2);
        kept += owner < 2;
    }
    assert_in_range(kept, RING_PARTITIONS / 4, RING_PARTITIONS * 3 / 4);
    assert_int_equal(w->begun, w->pauses); /* nothing is copied to a shard that has it */
    run(w);
    assert_int_equal(w->copied, 0);
    assert_false(migrations_needs(&w->migrations, 0) || migrations_needs(&w->migrations, 1));
}

static void a_server_dies(void **state)
{
    (void)state;
    for (unsigned replicas = 1; replicas <= 3; replicas++) {
        start(w, 2 * replicas, 14, replicas);
        kill(w, 6);
        run(w);
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            assert_int_equal(length(&w->chains, a), 1 + replicas);
        assert_int_equal(w->aborted, 0);
    }
}

/* Without a copy the partitions stay with the dead server, and no shard is ordered to copy them. */
static void what_is_lost_stays(void **state)
{
    (void)state;
    start(w, 0, 6, 0);
    struct ring owners = w->chains.level[0];
    kill(w, 0);
    while (news(w, false))
        ;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (owners.owner[a] <= 1)
            assert_int_equal(w->chains.level[0].owner[a], owners.owner[a]);
}

/* The plan changes: a migration that no longer serves it is aborted. */
static void plans_change(void **state)
{
    (void)state;
    start(w, 4, 10, 1);
    w->shard[2].weight = w->shard[3].weight = 0;
    aim(w);
    uint64_t before = w->begun;
    assert_true(before > 0);
    w->shard[2].weight = w->shard[3].weight = 1;
    aim(w);
    run(w);
    assert_true(w->aborted > 0);
    migrations_hold(&w->migrations);
    w->shard[4].weight = 0;
    before = w->begun;
    aim(w);
    assert_int_equal(w->begun, before);
    assert_false(migrations_converged(&w->migrations));
    migrations_resume(&w->migrations);
    assert_true(w->begun > before);
    run(w);
}

/* Of two shards the second is to have copies, and, once it has them and the pause has been ordered, the
 * partitions themselves: the owner was told that reads go on, so that commit does not come. */
static void a_copy_that_is_to_be_the_owner(void **state)
{
    (void)state;
    static struct ring_chains target;
    start(w, 4, 4, 1); /* two processes with two shards each */
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        w->chains.level[0].owner[a] = 0;
        w->chains.level[1].owner[a] = RING_NONE;
    }
    w->before = target = w->chains;
    memset(w->has, RING_LEVELS, sizeof w->has);
    memset(w->has[0], 0, sizeof w->has[0]);
    memset(target.level[1].owner, 0, sizeof target.level[1].owner);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        target.level[1].owner[a] = 2;
    tell_shards(w);
    migrations_set_target(&w->migrations, &target);
    uint64_t id = w->migrations.migration[0].id;
    struct job *job = job_of(w, id);
    assert_int_equal(w->begun, 1);
    migrations_agreed(&w->migrations, id, 0);
    migrations_agreed(&w->migrations, id, 2);
    job->full = true;
    migrations_full(&w->migrations, id);
    assert_true(job->told_pause && !job->reads_wait);
    target.level[1] = target.level[0];
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        target.level[0].owner[a] = 2;
    migrations_set_target(&w->migrations, &target);
    job->paused = true;
    migrations_paused(&w->migrations, id);
    assert_int_equal(w->committed, 0);
    run(w);
    assert_int_equal(w->chains.level[0].owner[0], 2);
}

struct events {
    uint64_t begun, aborted;
};

static void history(uint64_t seed, struct events *events)
{
    unsigned replicas = (unsigned)(seed % 4), dead = 0;
    w->random = seed;
    start(w, seed, 8 + 2 * draw(w, 4), replicas);
    if (seed % 3 == 0) /* tables that have fewer; others come later */
        migrations_table(&w->migrations, (unsigned)draw(w, 4));
    aim(w);
    for (unsigned event = 0; event < 8; event++) {
        size_t shard = draw(w, w->shards);
        if (seed % 3 && draw(w, 4) == 0)
            migrations_table(&w->migrations, (unsigned)draw(w, 4));
        switch (draw(w, 4)) {
        case 0:
            if (w->shards + 2 <= SHARDS_MAX) {
                join(w, 1 + (uint32_t)draw(w, 3));
                join(w, 1 + (uint32_t)draw(w, 3));
            }
            break;
        case 1:
            w->shard[shard].weight = (uint32_t)draw(w, 4);
            w->shard[0].weight = w->shard[2].weight = 1;
            break;
        case 2:
            if (replicas && dead < 3 && w->shard[shard].server > 1 && !w->gone[shard]) {
                /* not more at a time than there are copies of */
                bool safe = true;
                for (size_t a = 0; a < RING_PARTITIONS; a++)
                    safe &= length(&w->chains, a) > 1 && !lacks(w, a);
                if (!safe)
                    break;
                kill(w, shard);
                dead++;
            }
            break;
        default:
            w->shard[shard].weight = 0;
            w->shard[0].weight = w->shard[2].weight = 1;
        }
        aim(w);
        for (uint64_t steps = draw(w, 400); steps--;)
            (void)news(w, true);
    }
    aim(w);
    run(w);
    assert_int_equal(w->begun, w->committed + w->aborted);
    events->begun += w->begun;
    events->aborted += w->aborted;
}

/* Histories of joins, drains, deaths, failures and changed weights, with news in any order. */
static void histories(void **state)
{
    (void)state;
    struct events events = {0};
    for (uint64_t seed = 1; seed <= UNIT_SEEDS(32); seed++)
        history(seed, &events);
    assert_true(events.begun > 400 && events.aborted > 20);
}

/* Each partition has these members, and their rows. */
static void set_chains(const uint16_t members[RING_LEVELS])
{
    memset(w->has, RING_LEVELS, sizeof w->has);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            w->chains.level[l].owner[a] = members[l];
            w->has[members[l]][a] = (uint8_t)l;
        }
    w->before = w->chains;
    tell_shards(w);
}

static void want(const uint16_t members[RING_LEVELS])
{
    static struct ring_chains target;
    target = w->chains;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++)
            target.level[l].owner[a] = members[l];
    migrations_set_target(&w->migrations, &target);
}

/* The plan changes while a copy is made. The copy is then in the process of an owner that will leave, or is for other
 * tables than it should have. Its commit must not cost another copy. */
static void copies_for_an_old_plan(void **state)
{
    (void)state;
    start(w, 2, 12, 3); /* shards 2 i and 2 i + 1 are in one process */
    set_chains((uint16_t[]){7, 2, 5, 0});
    want((uint16_t[]){6, 2, 5, 0});
    assert_true(w->begun > 0);
    want((uint16_t[]){11, 2, 5, 6});
    run(w);
    start(w, 2, 12, 3);
    migrations_table(&w->migrations, 2);
    set_chains((uint16_t[]){3, 6, 8, 0});
    want((uint16_t[]){3, 6, 8, 5});
    assert_true(w->begun > 0);
    want((uint16_t[]){3, 5, 8, 0});
    run(w);
}

/* Without copies a plan counts on the return of a dead server. Nothing migrates to it before. */
static void nothing_goes_to_the_dead(void **state)
{
    static struct ring_chains target;
    (void)state;
    start(w, 2, 8, 0);
    w->gone[6] = w->gone[7] = true;
    w->shard[6].weight = w->shard[7].weight = 3;
    assert_int_equal(ring_place(w->shard, w->shards, 0, &w->chains, &target), PARAMO_OK);
    tell_shards(w);
    migrations_set_target(&w->migrations, &target); /* begun() checks it, too */
    assert_int_equal(w->begun, 0);
    assert_false(migrations_converged(&w->migrations));
    w->gone[6] = w->gone[7] = false;
    tell_shards(w);
    migrations_set_target(&w->migrations, &target);
    assert_true(w->begun > 0);
    run(w);
}

static int setup(void **state)
{
    (void)state;
    w = malloc(sizeof *w);
    return w ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_joins), cmocka_unit_test(a_server_leaves),
        cmocka_unit_test(a_server_dies),  cmocka_unit_test(what_is_lost_stays),
        cmocka_unit_test(plans_change),   cmocka_unit_test(a_copy_that_is_to_be_the_owner),
        cmocka_unit_test(histories),      cmocka_unit_test(copies_for_an_old_plan),
        cmocka_unit_test(too_few_stay),   cmocka_unit_test(nothing_goes_to_the_dead),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
