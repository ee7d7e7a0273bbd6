#include "post/moves.h"

#include <string.h>

#include "base/mutant.h"

static bool holds(const struct ring_chains *chains, size_t arc, uint16_t shard)
{
    for (unsigned l = 0; l < RING_LEVELS; l++)
        if (chains->level[l].owner[arc] == shard)
            return true;
    return false;
}

static unsigned length(const struct ring_chains *chains, size_t arc)
{
    unsigned len = 0;
    while (len < RING_LEVELS && chains->level[len].owner[arc] != RING_NOBODY)
        len++;
    return len;
}

void moves_init(struct moves *m, struct ring_chains *chains, const struct moves_ops *ops, void *arg)
{
    memset(m, 0, sizeof *m);
    m->chains = chains;
    m->ops = ops;
    m->arg = arg;
    m->next_id = 1;
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

static void append(uint16_t chain[RING_LEVELS], unsigned *len, unsigned most, uint16_t shard)
{
    if (shard == RING_NOBODY || *len >= most)
        return;
    for (unsigned i = 0; i < *len; i++)
        if (chain[i] == shard)
            return;
    chain[(*len)++] = shard;
}

static bool shares_process(const struct moves *m, const uint16_t *chain, unsigned len, uint16_t shard)
{
    for (unsigned i = 0; i < len; i++)
        if (one_process(m, chain[i], shard))
            return true;
    return false;
}

/* The best chain that full members make up; `to` counts as one. The owner stays, unless `to` is to be it;
 * then who is wanted, in that order; then, in the places of those who are wanted and not there, others: first
 * those in processes of their own. */
static void best_chain(const struct moves *m, size_t arc, uint16_t to, uint16_t chain[RING_LEVELS])
{
    const struct ring_chains *now = m->chains, *then = &m->target;
    unsigned len = 0, most = length(then, arc);
    bool takes_over = to != RING_NOBODY && then->level[0].owner[arc] == to;
    append(chain, &len, most, takes_over ? to : now->level[0].owner[arc]);
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t member = then->level[l].owner[arc];
        if (member == to || holds(now, arc, member))
            append(chain, &len, most, member);
    }
    for (int pass = 0; pass < 2; pass++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = now->level[l].owner[arc];
            if (pass || !shares_process(m, chain, len, member))
                append(chain, &len, most, member);
        }
    while (len < RING_LEVELS)
        chain[len++] = RING_NOBODY;
}

/* The same members as the best chain without anybody new, each where it is among the others: what one has and
 * the next lacks must not be turned round while requests go on. True if somebody has gone. */
static bool chain_trim(struct moves *m, size_t arc)
{
    uint16_t best[RING_LEVELS], chain[RING_LEVELS];
    unsigned len = 0, before = length(m->chains, arc);
    if (before == 0 || length(&m->target, arc) == 0)
        return false;
    best_chain(m, arc, RING_NOBODY, best);
    for (unsigned l = 0; l < before; l++)
        for (unsigned i = 0; i < RING_LEVELS; i++)
            if (best[i] == m->chains->level[l].owner[arc])
                chain[len++] = best[i];
    for (unsigned l = 0; l < RING_LEVELS; l++)
        m->chains->level[l].owner[arc] = l < len ? chain[l] : RING_NOBODY;
    return len < before;
}

/* True if that changed something. */
static bool chain_set(struct moves *m, size_t arc, uint16_t to)
{
    uint16_t chain[RING_LEVELS];
    bool changed = false;
    if (length(m->chains, arc) == 0 || length(&m->target, arc) == 0)
        return false;
    best_chain(m, arc, to, chain);
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        changed |= m->chains->level[l].owner[arc] != chain[l];
        m->chains->level[l].owner[arc] = chain[l];
    }
    return changed;
}

/* ---- planning ------------------------------------------------------------------------------------------ */

/* Who is to get the arc next, or to be its owner: a full member that is to be. Then copies, before a new
 * owner, so that there are never fewer than before; but not in the process of an owner that will go. */
static uint16_t next_member(const struct moves *m, size_t arc)
{
    if (length(m->chains, arc) == 0 || is_gone(m, m->chains->level[0].owner[arc]))
        return RING_NOBODY; /* there is nothing to copy, or it is lost */
    uint16_t now = m->chains->level[0].owner[arc], then = m->target.level[0].owner[arc];
    if (then != now && holds(m->chains, arc, then))
        return then;
    for (unsigned l = 1; l < RING_LEVELS; l++) {
        uint16_t member = m->target.level[l].owner[arc];
        if (member != RING_NOBODY && !holds(m->chains, arc, member) &&
            (then == now || !one_process(m, member, now)))
            return member;
    }
    return then != now ? then : RING_NOBODY;
}

static bool shard_busy(const struct moves *m, uint16_t shard, bool out)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE && (out ? m->move[i].from : m->move[i].to) == shard)
            return true;
    return false;
}

static void mark_moving(const struct moves *m, bool moving[RING_ARCS])
{
    memset(moving, 0, RING_ARCS * sizeof *moving);
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (m->move[i].state != MOVE_NONE)
            memset(moving + m->move[i].first, 1, m->move[i].arcs * sizeof *moving);
}

/* From the arc on, as far as the same two shards are concerned. NULL: one of them is busy, or all places are
 * taken. */
static struct move *begin_at(struct moves *m, size_t arc, bool moving[RING_ARCS])
{
    uint16_t from = m->chains->level[0].owner[arc], to = next_member(m, arc);
    size_t end = arc;
    bool handover = holds(m->chains, arc, to);
    struct move *move = m->move;
    while (move < m->move + MOVES_MAX && move->state != MOVE_NONE)
        move++;
    if (move == m->move + MOVES_MAX || shard_busy(m, from, true) || shard_busy(m, to, false))
        return NULL;
    while (end < RING_ARCS && end - arc < MOVE_ARCS_MAX && !moving[end] &&
           m->chains->level[0].owner[end] == from && next_member(m, end) == to &&
           holds(m->chains, end, to) == handover)
        moving[end++] = true;
    *move = (struct move){.state = handover ? MOVE_FULL : MOVE_PLANNED,
                          .handover = handover,
                          .id = m->next_id++,
                          .first = (uint16_t)arc,
                          .arcs = (uint16_t)(end - arc),
                          .from = from,
                          .to = to};
    return move;
}

/* Members that are too many go at once. */
static void arrange(struct moves *m, const bool moving[RING_ARCS])
{
    bool changed = false;
    for (size_t a = 0; a < RING_ARCS; a++)
        if (!moving[a])
            changed |= chain_trim(m, a);
    if (changed)
        m->ops->commit(m->arg);
}

static void plan(struct moves *m)
{
    bool moving[RING_ARCS];
    if (!m->wanted)
        return;
    mark_moving(m, moving);
    arrange(m, moving);
    for (int pass = 0; pass < 2 && !m->held; pass++)
        for (size_t a = 0; a < RING_ARCS; a++) {
            bool lacks = length(m->chains, a) < length(&m->target, a);
            if (moving[a] || (pass == 0 && !lacks) || next_member(m, a) == RING_NOBODY)
                continue;
            struct move *move = begin_at(m, a, moving);
            if (move)
                (move->handover ? m->ops->pause : m->ops->begin)(m->arg, move);
        }
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void end(struct moves *m, struct move *move, bool committed)
{
    struct move over = *move;
    move->state = MOVE_NONE;
    m->ops->end(m->arg, &over, committed);
}

/* All of its arcs would have it by the commit. */
static bool still_wanted(const struct moves *m, const struct move *move)
{
    uint16_t chain[RING_LEVELS];
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++) {
        bool in = false;
        if (m->chains->level[0].owner[a] != move->from || holds(m->chains, a, move->to) != move->handover)
            return false;
        best_chain(m, a, move->to, chain);
        for (unsigned l = 0; l < (move->handover ? 1 : RING_LEVELS); l++)
            in |= chain[l] == move->to;
        if (!in || !holds(&m->target, a, move->to))
            return false;
    }
    return true;
}

static void commit(struct moves *m, struct move *move)
{
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++)
        (void)chain_set(m, a, move->to);
    m->ops->commit(m->arg);
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

bool moves_takes_over(const struct moves *m, const struct move *move)
{
    uint16_t chain[RING_LEVELS];
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++) {
        best_chain(m, a, move->to, chain);
        if (chain[0] != move->from)
            return true;
    }
    return false;
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
        m->ops->pause(m->arg, move);
}

void moves_paused(struct moves *m, uint64_t id)
{
    struct move *move = find(m, id);
    if (!move || move->state != MOVE_FULL)
        return;
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
    return true;
}

bool moves_settled(const struct moves *m)
{
    for (size_t a = 0; a < RING_ARCS; a++)
        if (!as_wanted(m, a))
            return false;
    return m->wanted;
}

bool moves_needs(const struct moves *m, uint16_t shard)
{
    if (shard_busy(m, shard, false) || shard_busy(m, shard, true))
        return true;
    for (size_t a = 0; a < RING_ARCS; a++)
        if (holds(m->chains, a, shard))
            return true;
    return false;
}
