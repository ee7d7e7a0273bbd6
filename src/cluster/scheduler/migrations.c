#include "cluster/scheduler/migrations.h"

#include <assert.h>
#include <string.h>

#include "base/assert_slow.h"
#include "base/sm.h"

/* The number of the chain's members. Levels between them may be empty. */
static unsigned length(const struct ring_chains *chains, size_t partition)
{
    unsigned len = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        len += chains->level[l].owner[partition] != RING_NONE;
    return len;
}

/* The shard's level in the chain; RING_LEVELS: none. */
static uint8_t level_of(const struct ring_chains *chains, size_t partition, uint16_t shard)
{
    uint8_t level = 0;
    while (level < RING_LEVELS && chains->level[level].owner[partition] != shard)
        level++;
    return level;
}

/* A plan has as many copies as the chains may have. */
static void migrations_check(const struct migrations *m)
{
    assert(m->chains && m->ops && m->next_id && m->chains->replicas < RING_LEVELS);
    assert(!m->wanted || m->target.replicas == m->chains->replicas);
    assert(m->shard || !m->shards);
}

/* Of one that is not over. */
static void migration_check(const struct migrations *m, const struct migration *migration)
{
    assert(migration->state != MIGRATION_NONE && migration->id < m->next_id);
    assert(migration->from != migration->to && migration->level < RING_LEVELS);
    assert(migration->partitions && migration->first + migration->partitions <= RING_PARTITIONS);
    bool agreed = migration->from_ready && migration->to_ready;
    assert(migration->handover ? migration->state >= MIGRATION_FULL && !migration->from_ready
                               : agreed == (migration->state > MIGRATION_PLANNED));
}

/* Where runs of partitions with equal present and wanted chains begin. All partitions of a run have the same
 * future. */
static void runs_begin(const struct migrations *m, uint64_t begins[PARTITION_WORDS])
{
    memset(begins, 0, PARTITION_WORDS * sizeof *begins);
    ring_begins(m->chains, begins);
    ring_begins(&m->target, begins);
}

void migrations_init(struct migrations *m, struct ring_chains *chains, const struct migrations_ops *ops,
                     void *arg)
{
    assert(chains->replicas < RING_LEVELS);
    memset(m, 0, sizeof *m);
    m->chains = chains;
    m->ops = ops;
    m->arg = arg;
    m->next_id = 1;
    m->most = MIGRATION_PARTITIONS_MAX;
    migrations_check(m);
}

static bool holds(const struct ring_chains *chains, size_t partition, uint16_t shard)
{
    return level_of(chains, partition, shard) < RING_LEVELS;
}

static bool is_gone(const struct migrations *m, uint16_t shard)
{
    return shard < m->shards && m->shard[shard].gone;
}

/* Unknown shards share no process. */
static bool one_process(const struct migrations *m, uint16_t a, uint16_t b)
{
    return a < m->shards && b < m->shards && m->shard[a].server == m->shard[b].server;
}

/* ---- chains -------------------------------------------------------------------------------------------- */

/* Those of the present chain, and a new one. */
enum { MEMBERS_MAX = RING_LEVELS + 1 };

static void append(uint16_t list[MEMBERS_MAX], unsigned *len, unsigned most, uint16_t shard)
{
    assert(*len <= MEMBERS_MAX && most <= MEMBERS_MAX);
    if (shard == RING_NONE || *len >= most)
        return;
    for (unsigned i = 0; i < *len; i++)
        if (list[i] == shard)
            return;
    list[(*len)++] = shard;
    assert(*len <= most);
}

static bool shares_process(const struct migrations *m, const uint16_t *list, unsigned len, uint16_t shard)
{
    for (unsigned i = 0; i < len; i++)
        if (one_process(m, list[i], shard))
            return true;
    return false;
}

/* The members of the best chain that can be built from full members; `to`, which is filled for `level`,
 * counts as one. In this order:
 *   1. The owner stays, unless `to` is the wanted owner and has all that an owner has.
 *   2. The wanted members, in the wanted order, in processes of their own.
 *   3. In the places of wanted members that are missing: others in processes of their own.
 *   4. The other wanted members, and the rest.
 * An owner that will leave takes no member's place where fewer are wanted than a chain may have (too few
 * servers stay). */
static unsigned best_members(const struct migrations *m, size_t partition, uint16_t to, uint8_t level,
                             uint16_t list[MEMBERS_MAX])
{
    const struct ring_chains *now = m->chains, *then = &m->target;
    unsigned len = 0, most = length(then, partition);
    bool takes_over = to != RING_NONE && then->level[0].owner[partition] == to &&
                      m->ends.before[level] == m->ends.before[0];
    if (!takes_over && !holds(then, partition, now->level[0].owner[partition]) && most <= now->replicas)
        most++;
    append(list, &len, most, takes_over ? to : now->level[0].owner[partition]);
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = then->level[l].owner[partition];
            if ((member == to || holds(now, partition, member)) &&
                (pass || !shares_process(m, list, len, member)))
                append(list, &len, most, member);
        }
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = now->level[l].owner[partition];
            if (pass || !shares_process(m, list, len, member))
                append(list, &len, most, member);
        }
    }
    assert(len <= most && most <= MEMBERS_MAX);
    return len;
}

/* Puts these members at their levels. */
static void candidate(const struct migrations *m, size_t partition, uint16_t to, uint8_t level,
                      const uint16_t list[MEMBERS_MAX], unsigned len, uint16_t chain[RING_LEVELS])
{
    assert(len && len <= MEMBERS_MAX);
    struct ring_candidate candidates[MEMBERS_MAX];
    for (unsigned i = 0; i < len; i++)
        candidates[i] = (struct ring_candidate){
            .shard = list[i], .level = list[i] == to ? level : level_of(m->chains, partition, list[i])};
    for (unsigned i = 0; i < len; i++)
        assert(candidates[i].level < RING_LEVELS); /* it is the new one, or in the chain */
    ring_fill_chain(&m->ends, m->chains->replicas, candidates, len, chain);
}

static bool has_twice(const uint16_t chain[RING_LEVELS])
{
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (unsigned k = 0; k < l; k++)
            if (chain[l] != RING_NONE && chain[l] == chain[k])
                return true;
    return false;
}

/* The best chain. If a level is empty, the present member of that level stays beside the others, so no table
 * has fewer copies than before. */
static void best_chain(const struct migrations *m, size_t partition, uint16_t to, uint8_t level,
                       uint16_t chain[RING_LEVELS])
{
    assert(level < RING_LEVELS && partition < RING_PARTITIONS);
    uint16_t list[MEMBERS_MAX];
    unsigned len = best_members(m, partition, to, level, list), most = length(&m->target, partition);
    candidate(m, partition, to, level, list, len, chain);
    for (unsigned l = 1; l < most; l++) {
        unsigned before = len;
        for (unsigned k = 0; k < RING_LEVELS && chain[l] == RING_NONE && len == before; k++)
            if (m->ends.before[k] <= m->ends.before[l])
                append(list, &len, MEMBERS_MAX, m->chains->level[k].owner[partition]);
        if (len > before)
            candidate(m, partition, to, level, list, len, chain);
    }
    assert_slow(!has_twice(chain));
}

static bool chain_put(struct migrations *m, size_t partition, const uint16_t chain[RING_LEVELS])
{
    bool changed = false;
    assert(chain[0] != RING_NONE);  /* the partition keeps an owner */
    assert_slow(!has_twice(chain)); /* a shard has one level */
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        changed |= m->chains->level[l].owner[partition] != chain[l];
        m->chains->level[l].owner[partition] = chain[l];
    }
    return changed;
}

/* The members of the best chain without a new one, in the order that they have now: two members must not
 * change places while requests run, since one may have what the other lacks. True if a member has left, or is
 * nearer to the owner. */
static bool chain_trim(struct migrations *m, size_t partition)
{
    uint16_t best[RING_LEVELS], chain[RING_LEVELS];
    struct ring_candidate candidates[RING_LEVELS];
    unsigned len = 0;
    assert(m->wanted && partition < RING_PARTITIONS);
    if (length(m->chains, partition) == 0 || length(&m->target, partition) == 0)
        return false;
    best_chain(m, partition, RING_NONE, 0, best);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (unsigned i = 0; i < RING_LEVELS; i++)
            if (best[i] != RING_NONE && best[i] == m->chains->level[l].owner[partition])
                candidates[len++] = (struct ring_candidate){.shard = best[i], .level = (uint8_t)l};
    assert(len && len <= RING_LEVELS);
    ring_fill_chain(&m->ends, m->chains->replicas, candidates, len, chain);
    return chain_put(m, partition, chain);
}

/* Sets the chains of [first, end), partitions of one run: they have the same chain now, and the same wanted one. */
static void run_set(struct migrations *m, unsigned first, unsigned end, const struct migration *migration)
{
    migration_check(m, migration);
    assert(first < end && end <= RING_PARTITIONS);
    uint16_t chain[RING_LEVELS];
    if (length(m->chains, first) == 0 || length(&m->target, first) == 0)
        return;
    best_chain(m, first, migration->to, migration->level, chain);
    for (unsigned a = first; a < end; a++)
        (void)chain_put(m, a, chain);
}

/* ---- planning ------------------------------------------------------------------------------------------ */

/* The lowest level that needs no more tables than this one. */
static uint8_t fill_level(const struct migrations *m, unsigned level)
{
    assert(level < RING_LEVELS);
    while (level && m->ends.before[level - 1] == m->ends.before[level])
        level--;
    return (uint8_t)level;
}

static bool is_wanted(const struct migrations *m, size_t partition, uint16_t shard)
{
    return shard != RING_NONE && holds(&m->target, partition, shard);
}

/* The level that needs a new copy: the first that is empty, or whose member is not wanted. */
static unsigned free_level(const struct migrations *m, size_t partition)
{
    assert(m->chains->replicas < RING_LEVELS);
    unsigned level = 1;
    while (level < m->chains->replicas && is_wanted(m, partition, m->chains->level[level].owner[partition]))
        level++;
    assert(level < RING_LEVELS);
    return level;
}

/* A member that is to come nearer to the owner, to a level that no staying member has, and that lacks that
 * level's tables. */
static uint16_t next_nearer(const struct migrations *m, size_t partition, uint8_t *level)
{
    unsigned due = length(&m->target, partition), empty = 1;
    while (empty < due && is_wanted(m, partition, m->chains->level[empty].owner[partition]))
        empty++;
    for (unsigned l = empty + 1; l < RING_LEVELS && empty < due; l++) {
        uint16_t member = m->chains->level[l].owner[partition];
        if (is_wanted(m, partition, member) && m->ends.before[l] > m->ends.before[empty]) {
            *level = fill_level(m, empty);
            return member;
        }
    }
    return RING_NONE;
}

/* A wanted member that the chain has not; with apart, one in a process that has no copy yet. None in the process of an
 * owner that will leave. */
static uint16_t next_copy(const struct migrations *m, size_t partition, bool apart)
{
    uint16_t now = m->chains->level[0].owner[partition], then = m->target.level[0].owner[partition];
    for (unsigned l = 1; l < RING_LEVELS; l++) {
        uint16_t member = m->target.level[l].owner[partition];
        bool near = false;
        for (unsigned k = 0; k < RING_LEVELS; k++)
            near |= one_process(m, m->chains->level[k].owner[partition], member);
        if (member != RING_NONE && !holds(m->chains, partition, member) && !(near && apart) &&
            (then == now || !one_process(m, member, now)))
            return member;
    }
    return RING_NONE;
}

/* The shard that gets the partition next. First a full member that is the wanted owner. Then new copies,
 * before a new owner, so that there are never fewer copies than before. *level: the level it is filled for. */
static uint16_t next_member(const struct migrations *m, size_t partition, uint8_t *level)
{
    *level = 0;
    if (length(m->chains, partition) == 0 || is_gone(m, m->chains->level[0].owner[partition]))
        return RING_NONE; /* the partition has no rows, or they are lost */
    uint16_t now = m->chains->level[0].owner[partition], then = m->target.level[0].owner[partition];
    if (then != now && holds(m->chains, partition, then))
        return then;
    uint16_t copy = next_copy(m, partition, true);
    if (copy == RING_NONE)
        copy = next_copy(m, partition, false);
    if (copy != RING_NONE) {
        *level = fill_level(m, free_level(m, partition));
        return copy;
    }
    uint16_t nearer = next_nearer(m, partition, level);
    if (nearer != RING_NONE)
        return nearer;
    *level = 0;
    return then != now ? then : RING_NONE;
}

/* Does the commit give any of its partitions another owner? */
static bool changes_owner(const struct migrations *m, const struct migration *migration)
{
    uint16_t chain[RING_LEVELS];
    uint64_t begins[PARTITION_WORDS];
    migration_check(m, migration);
    runs_begin(m, begins);
    for (unsigned a = migration->first, end = a + migration->partitions; a < end;
         a = partition_set_next(begins, a + 1)) {
        best_chain(m, a, migration->to, migration->level, chain);
        if (chain[0] != migration->from)
            return true;
    }
    return false;
}

/* Tells the owner what the commit will do: if the owner changes, reads wait, too. */
static void pause(struct migrations *m, struct migration *migration)
{
    migration_check(m, migration);
    assert(migration->state == MIGRATION_FULL && migration->from < m->shards && migration->to < m->shards);
    migration->takes_over = changes_owner(m, migration);
    m->ops->pause(m->arg, migration);
}

static bool shard_busy(const struct migrations *m, uint16_t shard, bool out)
{
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (m->migration[i].state != MIGRATION_NONE &&
            (out ? m->migration[i].from : m->migration[i].to) == shard)
            return true;
    return false;
}

static void mark_migrating(const struct migrations *m, uint64_t migrating[PARTITION_WORDS])
{
    memset(migrating, 0, PARTITION_WORDS * sizeof *migrating);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (m->migration[i].state != MIGRATION_NONE) {
            migration_check(m, &m->migration[i]);
            assert(!partition_set_has(migrating, m->migration[i].first)); /* it is in one only */
            partition_set_add_run(migrating, m->migration[i].first,
                                  m->migration[i].first + m->migration[i].partitions);
        }
}

/* Begins a migration of the partition and those after it, as far as they concern the same two shards. NULL:
 * one of the two is busy, MIGRATIONS_MAX are running, or the target is dead: without copies a plan counts on its
 * return. */
static struct migration *begin_at(struct migrations *m, unsigned partition,
                                  const uint64_t begins[PARTITION_WORDS], uint64_t migrating[PARTITION_WORDS])
{
    uint8_t level, other;
    uint16_t from = m->chains->level[0].owner[partition], to = next_member(m, partition, &level);
    unsigned end = partition;
    uint8_t had = level_of(m->chains, partition, to);
    bool handover = had < RING_LEVELS && m->ends.before[had] == m->ends.before[level];
    struct migration *migration = m->migration;
    while (migration < m->migration + MIGRATIONS_MAX && migration->state != MIGRATION_NONE)
        migration++;
    if (migration == m->migration + MIGRATIONS_MAX || shard_busy(m, from, true) || shard_busy(m, to, false) ||
        is_gone(m, to))
        return NULL;
    while (end < RING_PARTITIONS && end - partition < m->most && !partition_set_has(migrating, end) &&
           (end == partition || !partition_set_has(begins, end) ||
            (m->chains->level[0].owner[end] == from && next_member(m, end, &other) == to && other == level &&
             level_of(m->chains, end, to) == had)))
        partition_set_add(migrating, end++);
    assert(end > partition && from != to && from != RING_NONE && to != RING_NONE);
    assert(had > level || (handover && had)); /* it gets tables, or only the partitions */
    assert(end - partition <= m->most && !is_gone(m, from) && !is_gone(m, to));
    *migration = (struct migration){.state = handover ? MIGRATION_FULL : MIGRATION_PLANNED,
                                    .handover = handover,
                                    .level = level,
                                    .had = had,
                                    .id = m->next_id++,
                                    .first = (uint16_t)partition,
                                    .partitions = (uint16_t)(end - partition),
                                    .from = from,
                                    .to = to};
    return migration;
}

/* Superfluous members leave at once. */
static void arrange(struct migrations *m, const uint64_t begins[PARTITION_WORDS],
                    const uint64_t migrating[PARTITION_WORDS])
{
    assert(m->wanted);
    bool changed = false;
    for (partition_set_runs(first, end, begins)) {
        unsigned a = first;
        while (a < end && partition_set_has(migrating, a))
            a++;
        if (a == end || !chain_trim(m, a)) /* then the others of the run would not change either */
            continue;
        changed = true;
        for (a++; a < end; a++)
            if (!partition_set_has(migrating, a))
                (void)chain_trim(m, a);
    }
    if (changed)
        m->ops->commit(m->arg, NULL);
}

static bool lacks(const struct migrations *m, size_t partition)
{
    unsigned due = length(&m->target, partition);
    for (unsigned l = 0; l < due; l++)
        if (m->chains->level[l].owner[partition] == RING_NONE)
            return true;
    return false;
}

/* The copies lie in fewer processes than they should. */
static bool lacks_processes(const struct migrations *m, size_t partition)
{
    uint16_t apart[MEMBERS_MAX];
    unsigned len = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t member = m->chains->level[l].owner[partition];
        if (!shares_process(m, apart, len, member))
            append(apart, &len, MEMBERS_MAX, member);
    }
    return len < length(&m->target, partition);
}

static void plan(struct migrations *m)
{
    uint64_t migrating[PARTITION_WORDS], begins[PARTITION_WORDS];
    if (!m->wanted)
        return;
    migrations_check(m);
    mark_migrating(m, migrating);
    runs_begin(m, begins);
    arrange(m, begins, migrating);
    /* partitions that do not move are arranged now, others later */
    partition_set_run_starts(migrating, begins);
    for (int pass = 0; pass < 2 && !m->held; pass++)
        for (unsigned a = 0; a < RING_PARTITIONS && !m->held;) {
            uint8_t level;
            struct migration *migration = NULL;
            if (!partition_set_has(migrating, a) && (pass || lacks(m, a) || lacks_processes(m, a)) &&
                next_member(m, a, &level) != RING_NONE)
                migration = begin_at(m, a, begins, migrating);
            if (migration)
                migration->handover ? pause(m, migration) : m->ops->begin(m->arg, migration);
            a = migration ? a + migration->partitions : partition_set_next(begins, a + 1);
        }
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static const struct sm machine = {
    "migration",
    {[MIGRATION_PLANNED] = {"planned", SM_TO(MIGRATION_COPYING) | SM_TO(MIGRATION_NONE)},
     [MIGRATION_COPYING] = {"copying", SM_TO(MIGRATION_FULL) | SM_TO(MIGRATION_NONE)},
     [MIGRATION_FULL] = {"full", SM_TO(MIGRATION_PAUSED) | SM_TO(MIGRATION_NONE)},
     [MIGRATION_PAUSED] = {"paused", SM_TO(MIGRATION_NONE)}}};

static void move(struct migration *migration, enum migration_state to)
{
    sm_check(&machine, migration->state, to);
    migration->state = to;
}

static void end(struct migrations *m, struct migration *migration, bool committed)
{
    assert(migration >= m->migration && migration < m->migration + MIGRATIONS_MAX);
    struct migration over = *migration;
    migration_check(m, migration);
    assert(!committed || over.state == MIGRATION_PAUSED);
    move(migration, MIGRATION_NONE);
    m->ops->end(m->arg, &over, committed);
}

/* Would the commit bring all of its partitions to the place where the plan wants them? */
static bool still_wanted(const struct migrations *m, const struct migration *migration)
{
    uint16_t chain[RING_LEVELS];
    uint64_t begins[PARTITION_WORDS];
    migration_check(m, migration);
    assert(m->wanted);
    runs_begin(m, begins);
    for (unsigned a = migration->first, end = a + migration->partitions; a < end;
         a = partition_set_next(begins, a + 1)) {
        bool in = false;
        if (m->chains->level[0].owner[a] != migration->from ||
            level_of(m->chains, a, migration->to) != migration->had)
            return false;
        best_chain(m, a, migration->to, migration->level, chain);
        for (unsigned l = 0; l < (migration->handover ? 1 : migration->had); l++)
            in |= chain[l] == migration->to;
        if (!in || !holds(&m->target, a, migration->to))
            return false;
    }
    return true;
}

/* The target is a member of each of its chains. */
static bool all_have(const struct migrations *m, const struct migration *migration)
{
    for (size_t a = migration->first; a < (size_t)migration->first + migration->partitions; a++)
        if (!holds(m->chains, a, migration->to))
            return false;
    return true;
}

static void commit(struct migrations *m, struct migration *migration)
{
    migration_check(m, migration);
    assert(migration->state == MIGRATION_PAUSED);
    uint64_t begins[PARTITION_WORDS];
    runs_begin(m, begins);
    for (unsigned a = migration->first, last = a + migration->partitions, end; a < last; a = end) {
        end = partition_set_next(begins, a + 1);
        end = end < last ? end : last;
        run_set(m, a, end, migration);
    }
    assert_slow(all_have(m, migration));
    m->ops->commit(m->arg, migration);
    end(m, migration, true);
    plan(m);
}

void migrations_set_target(struct migrations *m, const struct ring_chains *target)
{
    migrations_check(m);
    assert(target->replicas == m->chains->replicas);
    m->target = *target;
    m->wanted = true;
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (m->migration[i].state != MIGRATION_NONE && !still_wanted(m, &m->migration[i]))
            end(m, &m->migration[i], false);
    plan(m);
}

void migrations_set_shards(struct migrations *m, const struct migrations_shard *shard, size_t n)
{
    m->wanted = false; /* the plan may name shards that are gone */
    m->shard = shard;
    m->shards = n;
    migrations_check(m);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++) {
        struct migration *migration = &m->migration[i];
        if (migration->state != MIGRATION_NONE && (is_gone(m, migration->from) || is_gone(m, migration->to)))
            end(m, migration, false);
    }
}

void migrations_table(struct migrations *m, unsigned replicas)
{
    struct ring_ends before = m->ends;
    migrations_check(m);
    ring_ends_add(&m->ends, replicas, m->chains->replicas);
    if (memcmp(&before, &m->ends, sizeof before) == 0)
        return;
    for (size_t i = 0; i < MIGRATIONS_MAX;
         i++) /* a handover brings no rows, and there may be rows to bring later */
        if (m->migration[i].state != MIGRATION_NONE && m->migration[i].handover)
            end(m, &m->migration[i], false);
    plan(m);
}

void migrations_hold(struct migrations *m)
{
    m->held = true;
}

void migrations_resume(struct migrations *m)
{
    m->held = false;
    plan(m);
}

/* ---- news ---------------------------------------------------------------------------------------------- */

static struct migration *find(struct migrations *m, uint64_t id)
{
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (m->migration[i].state != MIGRATION_NONE && m->migration[i].id == id)
            return &m->migration[i];
    return NULL;
}

const struct migration *migrations_find(const struct migrations *m, uint64_t id)
{
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (m->migration[i].state != MIGRATION_NONE && m->migration[i].id == id)
            return &m->migration[i];
    return NULL;
}

void migrations_agreed(struct migrations *m, uint64_t id, uint16_t shard)
{
    struct migration *migration = find(m, id);
    if (!migration || migration->state != MIGRATION_PLANNED)
        return;
    migration->from_ready |= shard == migration->from;
    migration->to_ready |= shard == migration->to;
    if (migration->from_ready && migration->to_ready)
        move(migration, MIGRATION_COPYING);
    migration_check(m, migration);
}

void migrations_full(struct migrations *m, uint64_t id)
{
    struct migration *migration = find(m, id);
    if (!migration || migration->state != MIGRATION_COPYING)
        return;
    migration_check(m, migration);
    move(migration, MIGRATION_FULL);
    pause(m, migration);
}

void migrations_paused(struct migrations *m, uint64_t id)
{
    struct migration *migration = find(m, id);
    if (!migration || migration->state != MIGRATION_FULL)
        return;
    if (!migration->takes_over &&
        changes_owner(m, migration)) { /* the plan has changed, and the source still answers reads */
        migrations_failed(m, id);
        return;
    }
    migration_check(m, migration);
    move(migration, MIGRATION_PAUSED);
    commit(m, migration);
}

void migrations_failed(struct migrations *m, uint64_t id)
{
    struct migration *migration = find(m, id);
    if (!migration)
        return;
    end(m, migration, false);
    plan(m);
}

/* The same owner, and the same other members in any order. */
static bool as_wanted(const struct migrations *m, size_t partition)
{
    if (m->chains->level[0].owner[partition] != m->target.level[0].owner[partition] ||
        length(m->chains, partition) != length(&m->target, partition))
        return false;
    for (unsigned l = 1; l < length(&m->target, partition); l++)
        if (!holds(m->chains, partition, m->target.level[l].owner[partition]))
            return false;
    return !lacks(m, partition);
}

bool migrations_converged(const struct migrations *m)
{
    uint64_t begins[PARTITION_WORDS];
    if (!m->wanted)
        return false;
    runs_begin(m, begins);
    for (partition_set_runs(a, end, begins))
        if (!as_wanted(m, a))
            return false;
    return true;
}

bool migrations_needs(const struct migrations *m, uint16_t shard)
{
    if (shard_busy(m, shard, false) || shard_busy(m, shard, true))
        return true;
    uint64_t begins[PARTITION_WORDS] = {0};
    ring_begins(m->chains, begins);
    for (partition_set_runs(a, end, begins))
        if (holds(m->chains, a, shard))
            return true;
    return false;
}
