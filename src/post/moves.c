#include "post/moves.h"

#include <string.h>

#include "base/mutant.h"

/* Members of the chain; there may be empty levels between them. */
static unsigned length(const struct ring_chains *chains, size_t arc)
{
    unsigned len = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        len += chains->level[l].owner[arc] != RING_NOBODY;
    return len;
}

/* RING_LEVELS: none. */
static uint8_t level_of(const struct ring_chains *chains, size_t arc, uint16_t shard)
{
    uint8_t level = 0;
    while (level < RING_LEVELS && chains->level[level].owner[arc] != shard)
        level++;
    return level;
}

/* Where runs begin of arcs that have equal chains, now and then: what becomes of one becomes of all. */
static void runs_begin(const struct moves *m, uint64_t begins[ARCS_WORDS])
{
    memset(begins, 0, ARCS_WORDS * sizeof *begins);
    ring_begins(m->chains, begins);
    ring_begins(&m->target, begins);
}

void moves_init(struct moves *m, struct ring_chains *chains, const struct moves_ops *ops, void *arg)
{
    memset(m, 0, sizeof *m);
    m->chains = chains;
    m->ops = ops;
    m->arg = arg;
    m->next_id = 1;
}

static bool holds(const struct ring_chains *chains, size_t arc, uint16_t shard)
{
    return level_of(chains, arc, shard) < RING_LEVELS;
}

static bool is_gone(const struct moves *m, uint16_t shard)
{
    return shard < m->shards && m->shard[shard].gone;
}

/* Shards that are not known share nothing. */
static bool one_process(const struct moves *m, uint16_t a, uint16_t b)
{
    return a < m->shards && b < m->shards && m->shard[a].server == m->shard[b].server;
}

/* ---- chains -------------------------------------------------------------------------------------------- */

static void append(uint16_t list[RING_LEVELS], unsigned *len, unsigned most, uint16_t shard)
{
    if (shard == RING_NOBODY || *len >= most)
        return;
    for (unsigned i = 0; i < *len; i++)
        if (list[i] == shard)
            return;
    list[(*len)++] = shard;
}

static bool shares_process(const struct moves *m, const uint16_t *list, unsigned len, uint16_t shard)
{
    for (unsigned i = 0; i < len; i++)
        if (one_process(m, list[i], shard))
            return true;
    return false;
}

/* Who is in the best chain that full members make up; `to`, filled for `level`, counts as one. The owner
 * stays, unless `to` is to be it and has all that an owner has; then who is wanted, in that order; then, in
 * the places of those who are wanted and not there, others: first those in processes of their own. An owner
 * that is to go takes nobody's place where fewer are wanted than a chain may have (too few servers stay). */
static unsigned best_members(const struct moves *m, size_t arc, uint16_t to, uint8_t level,
                             uint16_t list[RING_LEVELS])
{
    const struct ring_chains *now = m->chains, *then = &m->target;
    unsigned len = 0, most = length(then, arc);
    bool takes_over =
        to != RING_NOBODY && then->level[0].owner[arc] == to && m->ends.before[level] == m->ends.before[0];
    if (!takes_over && !holds(then, arc, now->level[0].owner[arc]) && most <= now->replicas &&
        !MUTANT(owner_takes_place))
        most++;
    append(list, &len, most, takes_over ? to : now->level[0].owner[arc]);
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t member = then->level[l].owner[arc];
        if (member == to || holds(now, arc, member))
            append(list, &len, most, member);
    }
    for (int pass = 0; pass < 2; pass++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = now->level[l].owner[arc];
            if (pass || !shares_process(m, list, len, member))
                append(list, &len, most, member);
        }
    return len;
}

/* They at their levels. */
static void seat(const struct moves *m, size_t arc, uint16_t to, uint8_t level,
                 const uint16_t list[RING_LEVELS], unsigned len, uint16_t chain[RING_LEVELS])
{
    struct ring_seat seats[RING_LEVELS];
    for (unsigned i = 0; i < len; i++)
        seats[i] = (struct ring_seat){.shard = list[i],
                                      .level = list[i] == to ? level : level_of(m->chains, arc, list[i])};
    ring_seat(&m->ends, m->chains->replicas, seats, len, chain);
}

/* The best chain. Where they leave a level empty, whoever has what belongs there stays beside them: of no
 * table there are fewer copies than before. */
static void best_chain(const struct moves *m, size_t arc, uint16_t to, uint8_t level,
                       uint16_t chain[RING_LEVELS])
{
    uint16_t list[RING_LEVELS];
    unsigned len = best_members(m, arc, to, level, list), most = length(&m->target, arc);
    seat(m, arc, to, level, list, len, chain);
    for (unsigned l = 1; l < most; l++) {
        unsigned before = len;
        for (unsigned k = 0; k < RING_LEVELS && chain[l] == RING_NOBODY && len == before; k++)
            if (m->ends.before[k] <= m->ends.before[l])
                append(list, &len, RING_LEVELS, m->chains->level[k].owner[arc]);
        if (len > before)
            seat(m, arc, to, level, list, len, chain);
    }
}

static bool chain_put(struct moves *m, size_t arc, const uint16_t chain[RING_LEVELS])
{
    bool changed = false;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        changed |= m->chains->level[l].owner[arc] != chain[l];
        m->chains->level[l].owner[arc] = chain[l];
    }
    return changed;
}

/* The same members as the best chain without anybody new, each where it is among the others: what one has and
 * the next lacks must not be turned round while requests go on. True if somebody has gone, or come nearer to
 * the owner. */
static bool chain_trim(struct moves *m, size_t arc)
{
    uint16_t best[RING_LEVELS], chain[RING_LEVELS];
    struct ring_seat seats[RING_LEVELS];
    unsigned len = 0;
    if (length(m->chains, arc) == 0 || length(&m->target, arc) == 0)
        return false;
    best_chain(m, arc, RING_NOBODY, 0, best);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (unsigned i = 0; i < RING_LEVELS; i++)
            if (best[i] != RING_NOBODY && best[i] == m->chains->level[l].owner[arc])
                seats[len++] = (struct ring_seat){.shard = best[i], .level = (uint8_t)l};
    ring_seat(&m->ends, m->chains->replicas, seats, len, chain);
    return chain_put(m, arc, chain);
}

/* True if that changed something. */
static bool chain_set(struct moves *m, size_t arc, const struct move *move)
{
    uint16_t chain[RING_LEVELS];
    if (length(m->chains, arc) == 0 || length(&m->target, arc) == 0)
        return false;
    best_chain(m, arc, move->to, move->level, chain);
    return chain_put(m, arc, chain);
}

/* ---- planning ------------------------------------------------------------------------------------------ */

/* The lowest level that has to hold no more than this one. */
static uint8_t fill_level(const struct moves *m, unsigned level)
{
    while (level && m->ends.before[level - 1] == m->ends.before[level])
        level--;
    return (uint8_t)level;
}

static bool is_wanted(const struct moves *m, size_t arc, uint16_t shard)
{
    return shard != RING_NOBODY && holds(&m->target, arc, shard);
}

/* Where a new copy is needed: the first level that is empty, or whose member is not wanted. */
static unsigned free_level(const struct moves *m, size_t arc)
{
    unsigned level = 1;
    while (level < m->chains->replicas && is_wanted(m, arc, m->chains->level[level].owner[arc]))
        level++;
    return level;
}

/* A member that is to come nearer to the owner, where nobody is who is to stay, and lacks what belongs there.
 */
static uint16_t next_nearer(const struct moves *m, size_t arc, uint8_t *level)
{
    unsigned due = length(&m->target, arc), empty = 1;
    while (empty < due && is_wanted(m, arc, m->chains->level[empty].owner[arc]))
        empty++;
    for (unsigned l = empty + 1; l < RING_LEVELS && empty < due; l++) {
        uint16_t member = m->chains->level[l].owner[arc];
        if (is_wanted(m, arc, member) && m->ends.before[l] > m->ends.before[empty]) {
            *level = fill_level(m, empty);
            return member;
        }
    }
    return RING_NOBODY;
}

/* Who is to get the arc next, or to be its owner: a full member that is to be. Then copies, before a new
 * owner, so that there are never fewer than before; but not in the process of an owner that will go. *level:
 * for what it is filled. */
static uint16_t next_member(const struct moves *m, size_t arc, uint8_t *level)
{
    *level = 0;
    if (length(m->chains, arc) == 0 || is_gone(m, m->chains->level[0].owner[arc]))
        return RING_NOBODY; /* there is nothing to copy, or it is lost */
    uint16_t now = m->chains->level[0].owner[arc], then = m->target.level[0].owner[arc];
    if (then != now && holds(m->chains, arc, then))
        return then;
    for (unsigned l = 1; l < RING_LEVELS; l++) {
        uint16_t member = m->target.level[l].owner[arc];
        if (member != RING_NOBODY && !holds(m->chains, arc, member) &&
            (then == now || !one_process(m, member, now))) {
            *level = fill_level(m, free_level(m, arc));
            return member;
        }
    }
    uint16_t nearer = next_nearer(m, arc, level);
    if (nearer != RING_NOBODY)
        return nearer;
    *level = 0;
    return then != now ? then : RING_NOBODY;
}

/* Does any of its arcs get another owner by the commit? */
static bool changes_owner(const struct moves *m, const struct move *move)
{
    uint16_t chain[RING_LEVELS];
    uint64_t begins[ARCS_WORDS];
    runs_begin(m, begins);
    for (unsigned a = move->first, end = a + move->arcs; a < end; a = arcs_from(begins, a + 1)) {
        best_chain(m, a, move->to, move->level, chain);
        if (chain[0] != move->from)
            return true;
    }
    return false;
}

/* The owner is told what the commit will do: if another is to be the owner, reads wait, too. */
static void pause(struct moves *m, struct move *move)
{
    move->takes_over = changes_owner(m, move);
    m->ops->pause(m->arg, move);
}

static bool shard_busy(const struct moves *m, uint16_t shard, bool out)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE && (out ? m->move[i].from : m->move[i].to) == shard)
            return true;
    return false;
}

static void mark_moving(const struct moves *m, uint64_t moving[ARCS_WORDS])
{
    memset(moving, 0, ARCS_WORDS * sizeof *moving);
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE)
            arcs_add_run(moving, m->move[i].first, m->move[i].first + m->move[i].arcs);
}

/* From the arc on, as far as the same two shards are concerned. NULL: one of them is busy, or all places are
 * taken. */
static struct move *begin_at(struct moves *m, unsigned arc, const uint64_t begins[ARCS_WORDS],
                             uint64_t moving[ARCS_WORDS])
{
    uint8_t level, other;
    uint16_t from = m->chains->level[0].owner[arc], to = next_member(m, arc, &level);
    unsigned end = arc;
    uint8_t had = level_of(m->chains, arc, to);
    bool handover = had < RING_LEVELS && m->ends.before[had] == m->ends.before[level];
    struct move *move = m->move;
    while (move < m->move + MOVES_MAX && move->state != MOVE_NONE)
        move++;
    if (move == m->move + MOVES_MAX || shard_busy(m, from, true) || shard_busy(m, to, false))
        return NULL;
    while (end < RING_ARCS && end - arc < MOVE_ARCS_MAX && !arcs_has(moving, end) &&
           (end == arc || !arcs_has(begins, end) ||
            (m->chains->level[0].owner[end] == from && next_member(m, end, &other) == to && other == level &&
             level_of(m->chains, end, to) == had)))
        arcs_add(moving, end++);
    *move = (struct move){.state = handover ? MOVE_FULL : MOVE_PLANNED,
                          .handover = handover,
                          .level = level,
                          .had = had,
                          .id = m->next_id++,
                          .first = (uint16_t)arc,
                          .arcs = (uint16_t)(end - arc),
                          .from = from,
                          .to = to};
    return move;
}

/* Members that are too many go at once. */
static void arrange(struct moves *m, const uint64_t begins[ARCS_WORDS], const uint64_t moving[ARCS_WORDS])
{
    bool changed = false;
    for (arcs_runs(first, end, begins)) {
        unsigned a = first;
        while (a < end && arcs_has(moving, a))
            a++;
        if (a == end || !chain_trim(m, a)) /* nor does it change the others */
            continue;
        changed = true;
        for (a++; a < end; a++)
            if (!arcs_has(moving, a))
                (void)chain_trim(m, a);
    }
    if (changed)
        m->ops->commit(m->arg, NULL);
}

static bool lacks(const struct moves *m, size_t arc)
{
    unsigned due = length(&m->target, arc);
    for (unsigned l = 0; l < due; l++)
        if (m->chains->level[l].owner[arc] == RING_NOBODY)
            return true;
    return false;
}

static void plan(struct moves *m)
{
    uint64_t moving[ARCS_WORDS], begins[ARCS_WORDS];
    if (!m->wanted)
        return;
    mark_moving(m, moving);
    runs_begin(m, begins);
    arrange(m, begins, moving);
    arcs_begins(moving, begins); /* those that did not move are arranged now, others not */
    for (int pass = 0; pass < 2 && !m->held; pass++)
        for (unsigned a = 0; a < RING_ARCS && !m->held;) {
            uint8_t level;
            struct move *move = NULL;
            if (!arcs_has(moving, a) && (pass || lacks(m, a)) && next_member(m, a, &level) != RING_NOBODY)
                move = begin_at(m, a, begins, moving);
            if (move)
                move->handover ? pause(m, move) : m->ops->begin(m->arg, move);
            a = move ? a + move->arcs : arcs_from(begins, a + 1);
        }
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void end(struct moves *m, struct move *move, bool committed)
{
    struct move over = *move;
    move->state = MOVE_NONE;
    m->ops->end(m->arg, &over, committed);
}

/* All of its arcs would have it by the commit, where it was to be. */
static bool still_wanted(const struct moves *m, const struct move *move)
{
    uint16_t chain[RING_LEVELS];
    uint64_t begins[ARCS_WORDS];
    runs_begin(m, begins);
    for (unsigned a = move->first, end = a + move->arcs; a < end; a = arcs_from(begins, a + 1)) {
        bool in = false;
        if (m->chains->level[0].owner[a] != move->from || level_of(m->chains, a, move->to) != move->had)
            return false;
        best_chain(m, a, move->to, move->level, chain);
        for (unsigned l = 0; l < (move->handover ? 1 : move->had); l++)
            in |= chain[l] == move->to;
        if (!in || !holds(&m->target, a, move->to))
            return false;
    }
    return true;
}

static void commit(struct moves *m, struct move *move)
{
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++)
        (void)chain_set(m, a, move);
    m->ops->commit(m->arg, move);
    end(m, move, true);
    plan(m);
}

void moves_set_target(struct moves *m, const struct ring_chains *target)
{
    m->target = *target;
    m->wanted = true;
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE && !still_wanted(m, &m->move[i]))
            end(m, &m->move[i], false);
    plan(m);
}

void moves_set_shards(struct moves *m, const struct moves_shard *shard, size_t n)
{
    m->wanted = false; /* it may name the gone */
    m->shard = shard;
    m->shards = n;
    for (size_t i = 0; i < MOVES_MAX; i++) {
        struct move *move = &m->move[i];
        if (move->state != MOVE_NONE && (is_gone(m, move->from) || is_gone(m, move->to)))
            end(m, move, false);
    }
}

void moves_table(struct moves *m, unsigned replicas)
{
    struct ring_ends before = m->ends;
    ring_ends_add(&m->ends, replicas, m->chains->replicas);
    if (memcmp(&before, &m->ends, sizeof before) == 0)
        return;
    for (size_t i = 0; i < MOVES_MAX; i++) /* they bring no rows, and perhaps there will be some to bring */
        if (m->move[i].state != MOVE_NONE && m->move[i].handover)
            end(m, &m->move[i], false);
    plan(m);
}

void moves_hold(struct moves *m)
{
    m->held = true;
}

void moves_resume(struct moves *m)
{
    m->held = false;
    plan(m);
}

/* ---- news ---------------------------------------------------------------------------------------------- */

static struct move *find(struct moves *m, uint64_t id)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE && m->move[i].id == id)
            return &m->move[i];
    return NULL;
}

const struct move *moves_find(const struct moves *m, uint64_t id)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE && m->move[i].id == id)
            return &m->move[i];
    return NULL;
}

void moves_agreed(struct moves *m, uint64_t id, uint16_t shard)
{
    struct move *move = find(m, id);
    if (!move || move->state != MOVE_PLANNED)
        return;
    move->from_ready |= shard == move->from;
    move->to_ready |= shard == move->to;
    if (move->from_ready && move->to_ready)
        move->state = MOVE_COPYING;
}

void moves_full(struct moves *m, uint64_t id)
{
    struct move *move = find(m, id);
    if (!move || move->state != MOVE_COPYING)
        return;
    move->state = MOVE_FULL;
    if (MUTANT(commit_before_handover))
        commit(m, move);
    else
        pause(m, move);
}

void moves_paused(struct moves *m, uint64_t id)
{
    struct move *move = find(m, id);
    if (!move || move->state != MOVE_FULL)
        return;
    if (!move->takes_over && changes_owner(m, move)) { /* the target has changed since, and reads go on */
        moves_failed(m, id);
        return;
    }
    move->state = MOVE_PAUSED;
    commit(m, move);
}

void moves_failed(struct moves *m, uint64_t id)
{
    struct move *move = find(m, id);
    if (!move)
        return;
    end(m, move, false);
    plan(m);
}

/* The same owner, and the same others in whatever order. */
static bool as_wanted(const struct moves *m, size_t arc)
{
    if (m->chains->level[0].owner[arc] != m->target.level[0].owner[arc] ||
        length(m->chains, arc) != length(&m->target, arc))
        return false;
    for (unsigned l = 1; l < length(&m->target, arc); l++)
        if (!holds(m->chains, arc, m->target.level[l].owner[arc]))
            return false;
    return !lacks(m, arc);
}

bool moves_settled(const struct moves *m)
{
    uint64_t begins[ARCS_WORDS];
    if (!m->wanted)
        return false;
    runs_begin(m, begins);
    for (arcs_runs(a, end, begins))
        if (!as_wanted(m, a))
            return false;
    return true;
}

bool moves_needs(const struct moves *m, uint16_t shard)
{
    if (shard_busy(m, shard, false) || shard_busy(m, shard, true))
        return true;
    uint64_t begins[ARCS_WORDS] = {0};
    ring_begins(m->chains, begins);
    for (arcs_runs(a, end, begins))
        if (holds(m->chains, a, shard))
            return true;
    return false;
}
