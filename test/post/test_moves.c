#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mutant.h"
#include "post/moves.h"
#include "ring/chains.h"
#include "unit.h"

enum { SHARDS_MAX = 40 };

/* The other side of the machine: shards that do as they are told, late and in any order, and say so more than
 * once. It knows by itself who has which rows. */
struct world {
    uint64_t random;
    struct ring_shard shard[SHARDS_MAX];
    bool gone[SHARDS_MAX];
    struct moves_shard is[SHARDS_MAX];
    size_t shards;
    unsigned replicas;
    struct ring_chains chains, before; /* before: as of the last commit */
    struct moves moves;
    uint8_t has[SHARDS_MAX][RING_ARCS]; /* rows of the arc: of tables with so many replicas or more */
    struct job {
        struct move move;
        bool told_pause, reads_wait, paused, full; /* as the shards know it */
    } job[MOVES_MAX];
    uint64_t begun, committed, aborted, pauses, copied;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random = mix64(w->random + 0x9e3779b97f4a7c15);
    return w->random % below;
}

static struct job *job_of(struct world *w, uint64_t id)
{
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (w->job[i].move.state != MOVE_NONE && w->job[i].move.id == id)
            return &w->job[i];
    return NULL;
}

static unsigned length(const struct ring_chains *c, size_t arc)
{
    unsigned len = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++)
        len += c->level[l].owner[arc] != RING_NOBODY;
    return len;
}

static bool lacks(const struct world *w, size_t arc)
{
    bool any = false;
    for (unsigned l = 0; l < length(&w->moves.target, arc); l++)
        any |= w->chains.level[l].owner[arc] == RING_NOBODY;
    return any;
}

/* All that there is for a member at this level? */
static bool suffices(const struct world *w, size_t shard, size_t arc, unsigned level)
{
    uint8_t has = w->has[shard][arc];
    return has < RING_LEVELS && w->moves.ends.before[has] <= w->moves.ends.before[level];
}

/* Arcs that lack a copy which the same two could make come first. */
static void check_urgency(const struct world *w, const struct move *move)
{
    bool moving[RING_ARCS] = {false};
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (w->moves.move[i].state != MOVE_NONE)
            memset(moving + w->moves.move[i].first, 1, w->moves.move[i].arcs);
    for (size_t a = 0; a < RING_ARCS && !lacks(w, move->first); a++) {
        if (moving[a] || !lacks(w, a) || w->chains.level[0].owner[a] != move->from ||
            w->moves.target.level[0].owner[a] != move->from)
            continue;
        bool member = true;
        for (unsigned l = 1; l < RING_LEVELS && member; l++) { /* the first that is missing */
            member = false;
            for (unsigned k = 0; k < RING_LEVELS; k++)
                member |= w->chains.level[k].owner[a] == w->moves.target.level[l].owner[a];
            assert_true(member || w->moves.target.level[l].owner[a] != move->to);
        }
    }
}

static void begun(void *arg, const struct move *move)
{
    struct world *w = arg;
    size_t at = 0;
    assert_int_equal(move->state, move->handover ? MOVE_FULL : MOVE_PLANNED);
    assert_in_range(move->arcs, 1, MOVE_ARCS_MAX);
    assert_true(move->first + move->arcs <= RING_ARCS);
    assert_true(move->from < w->shards && move->to < w->shards);
    assert_false(w->gone[move->from] || w->gone[move->to]);
    for (size_t i = 0; i < MOVES_MAX; i++) {
        const struct move *other = &w->job[i].move;
        if (other->state == MOVE_NONE) {
            at = i;
            continue;
        }
        assert_true(other->id < move->id);
        assert_true(other->from != move->from && other->to != move->to);
        assert_true(other->first + other->arcs <= move->first || move->first + move->arcs <= other->first);
    }
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++) {
        assert_true(suffices(w, move->from, a, 0));
        assert_int_equal(w->chains.level[0].owner[a], move->from);
        unsigned level = 0;
        while (level < RING_LEVELS && w->chains.level[level].owner[a] != move->to)
            level++;
        assert_int_equal(level, move->had);
        assert_true(move->level < move->had);
        assert_int_equal(level < RING_LEVELS && suffices(w, move->to, a, move->level), move->handover);
    }
    assert_int_equal(w->job[at].move.state, MOVE_NONE);
    check_urgency(w, move);
    w->job[at] = (struct job){.move = *move};
    w->begun++;
}

static void paused(void *arg, const struct move *move)
{
    struct world *w = arg;
    if (move->handover)
        begun(arg, move);
    struct job *job = job_of(w, move->id);
    assert_non_null(job);
    assert_true((job->full || move->handover) && !job->told_pause);
    job->told_pause = true;
    job->reads_wait = move->takes_over;
    w->pauses++;
}

static unsigned processes(const struct world *w, const struct ring_chains *c, size_t arc)
{
    unsigned count = 0;
    for (unsigned l = 0; l < RING_LEVELS; l++) {
        uint16_t member = c->level[l].owner[arc];
        bool new = member != RING_NOBODY;
        for (unsigned k = 0; k < l && new; k++)
            new = c->level[k].owner[arc] == RING_NOBODY ||
                  w->shard[c->level[k].owner[arc]].server != w->shard[member].server;
        count += new;
    }
    return count;
}

/* Whoever is in a chain has the rows; who becomes owner is full or was given the last of them; an arc has as
 * many copies as before, unless fewer are wanted. */
static void committed(void *arg, const struct move *by)
{
    struct world *w = arg;
    assert_true(!by || moves_find(&w->moves, by->id) == by);
    for (size_t a = 0; a < RING_ARCS; a++) {
        bool same = true;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            same &= w->chains.level[l].owner[a] == w->before.level[l].owner[a];
        if (same)
            continue;
        const struct job *moving = NULL;
        for (size_t i = 0; i < MOVES_MAX; i++) {
            const struct move *move = &w->job[i].move;
            if (move->state != MOVE_NONE && a >= move->first && a < (size_t)move->first + move->arcs)
                moving = &w->job[i];
        }
        unsigned len = length(&w->chains, a), was = length(&w->before, a), due = length(&w->moves.target, a);
        unsigned apart = processes(w, &w->chains, a);
        assert_true(len >= 1);
        assert_true(len >= was || len >= due);
        for (unsigned replicas = 0, now = 0, then = 0; replicas <= w->replicas;
             replicas++) { /* of each table */
            now += w->chains.level[replicas].owner[a] != RING_NOBODY;
            then += w->before.level[replicas].owner[a] != RING_NOBODY;
            assert_true(now >= then || now >= due || now == replicas + 1);
        }
        assert_true(apart >= processes(w, &w->before, a) || apart >= due);
        if (w->chains.level[0].owner[a] != w->before.level[0].owner[a])
            assert_true(moving && moving->paused && moving->reads_wait &&
                        moving->move.to == w->chains.level[0].owner[a]);
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = w->chains.level[l].owner[a];
            if (member == RING_NOBODY)
                continue;
            assert_true(member < w->shards);
            for (unsigned k = 0; k < l; k++)
                assert_int_not_equal(w->chains.level[k].owner[a], member);
            bool had = false;
            for (unsigned k = 0; k < RING_LEVELS; k++)
                had |= w->before.level[k].owner[a] == member;
            if (moving && moving->move.to == member && moving->full) {
                had &= suffices(w, member, a, l);
                if (w->has[member][a] > moving->move.level)
                    w->has[member][a] = moving->move.level;
            }
            if (!had) { /* only by a move, and only when it is full */
                assert_non_null(moving);
                assert_int_equal(moving->move.to, member);
                assert_true(moving->full);
                assert_true(moving->paused);
                w->copied++;
            }
            assert_true(suffices(w, member, a, l));
            w->has[member][a] = (uint8_t)l; /* what is for others goes; of tables that come it has all */
        }
        unsigned from = 0; /* nobody passes another but in a pause */
        for (unsigned l = 0; l < RING_LEVELS && !(moving && moving->paused); l++) {
            if (w->chains.level[l].owner[a] == RING_NOBODY)
                continue;
            while (from < RING_LEVELS && w->before.level[from].owner[a] != w->chains.level[l].owner[a])
                from++;
            assert_true(from < RING_LEVELS);
        }
        for (size_t i = 0; i < w->shards; i++) { /* who is dropped deletes it */
            bool member = false;
            for (unsigned l = 0; l < RING_LEVELS; l++)
                member |= w->chains.level[l].owner[a] == i;
            if (!member)
                w->has[i][a] = RING_LEVELS;
        }
    }
    w->before = w->chains;
}

static void ended(void *arg, const struct move *move, bool was_committed)
{
    struct world *w = arg;
    struct job *job = job_of(w, move->id);
    assert_non_null(job);
    for (size_t a = move->first; a < (size_t)move->first + move->arcs; a++) {
        bool member = false;
        for (unsigned l = 0; l < RING_LEVELS; l++)
            member |= w->chains.level[l].owner[a] == move->to;
        assert_int_equal(member, was_committed || (move->had < RING_LEVELS && !w->gone[move->to]));
        assert_true(!was_committed || !move->handover || w->chains.level[0].owner[a] == move->to);
    }
    job->move.state = MOVE_NONE;
    w->committed += was_committed;
    w->aborted += !was_committed;
}

static const struct moves_ops ops = {.begin = begun, .pause = paused, .commit = committed, .end = ended};

static void tell_shards(struct world *w)
{
    for (size_t i = 0; i < w->shards; i++)
        w->is[i] = (struct moves_shard){.server = w->shard[i].server, .gone = w->gone[i]};
    moves_set_shards(&w->moves, w->is, w->shards);
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
    moves_set_target(&w->moves, &target);
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
    for (size_t a = 0; a < RING_ARCS; a++)
        for (unsigned l = 0; l < length(&w->chains, a); l++)
            w->has[w->chains.level[l].owner[a]][a] = (uint8_t)l;
    moves_init(&w->moves, &w->chains, &ops, w);
}

/* One piece of news from some shard: true news, or old. False: there is nobody to have any. */
static bool news(struct world *w, bool failures)
{
    size_t i = draw(w, MOVES_MAX), seen = 0;
    while (seen < MOVES_MAX && w->job[i].move.state == MOVE_NONE) {
        i = (i + 1) % MOVES_MAX;
        seen++;
    }
    if (seen == MOVES_MAX)
        return false;
    struct job *job = &w->job[i];
    uint64_t id = job->move.id;
    switch (draw(w, failures ? 12 : 10)) {
    case 0: /* of one that is over, or was never */
        moves_full(&w->moves, id > 9 ? id - 9 - draw(w, 5) + 100000 : 0);
        moves_paused(&w->moves, 0);
        moves_failed(&w->moves, w->moves.next_id);
        break;
    case 1:
    case 2:
        moves_agreed(&w->moves, id, job->move.from);
        break;
    case 3:
    case 4:
        moves_agreed(&w->moves, id, job->move.to);
        break;
    case 5:
    case 6:
    case 7: {
        const struct move *move = moves_find(&w->moves, id);
        assert_non_null(move);
        job->full |= move->state == MOVE_COPYING;
        moves_full(&w->moves, id);
        break;
    }
    case 8:
    case 9:
        job->paused |= job->told_pause;
        if (job->paused)
            moves_paused(&w->moves, id);
        break;
    case 10:
        moves_failed(&w->moves, id);
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
    assert_true(moves_settled(&w->moves));
    for (size_t a = 0; a < RING_ARCS; a++) {
        assert_int_equal(w->chains.level[0].owner[a], w->moves.target.level[0].owner[a]);
        assert_int_equal(length(&w->chains, a), length(&w->moves.target, a));
        assert_false(lacks(w, a));
        for (unsigned l = 1; l < length(&w->chains, a); l++) {
            bool wanted = false;
            for (unsigned k = 1; k < RING_LEVELS; k++)
                wanted |= w->moves.target.level[k].owner[a] == w->chains.level[l].owner[a];
            assert_true(wanted);
        }
    }
}

static void kill(struct world *w, size_t shard)
{
    size_t server = w->shard[shard].server;
    for (size_t i = 0; i < w->shards; i++)
        w->gone[i] |= w->shard[i].server == server;
    (void)ring_promote(&w->chains, &w->moves.ends, w->gone, w->shards, false, NULL);
    for (size_t a = 0; a < RING_ARCS; a++) {
        uint16_t owner = w->chains.level[0].owner[a];
        for (size_t i = 0; i < w->shards; i++)
            w->has[i][a] = w->gone[i] ? RING_LEVELS : w->has[i][a];
        if (!w->gone[owner]) /* of tables without replicas nobody has anything now */
            w->has[owner][a] = 0;
        for (unsigned l = 1; l < RING_LEVELS; l++) {
            uint16_t member = w->chains.level[l].owner[a];
            assert_true(member == RING_NOBODY || suffices(w, member, a, l));
            if (member != RING_NOBODY)
                w->has[member][a] = (uint8_t)l;
        }
    }
    w->before = w->chains;
    tell_shards(w);
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (w->job[i].move.state != MOVE_NONE)
            assert_false(w->gone[w->job[i].move.from] || w->gone[w->job[i].move.to]);
    aim(w);
}

static struct world *w;

static void a_server_joins(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas <= 3; replicas++) {
        struct ring_moves least;
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
        assert_true(moves_needs(&w->moves, 4) && moves_needs(&w->moves, 5));
        w->shard[4].weight = w->shard[5].weight = 0;
        aim(w);
        assert_true(moves_needs(&w->moves, 4));
        run(w);
        assert_false(moves_needs(&w->moves, 4) || moves_needs(&w->moves, 5));
        assert_true(moves_needs(&w->moves, 3));
    }
}

/* Of two processes one is to go. Who is to be the owner has a copy, and keeps it until it is: what is given
 * away would be lost with the one that goes, if that died first. */
static void too_few_stay(void **state)
{
    (void)state;
    size_t kept = 0;
    start(w, 4, 4, 1);
    w->shard[0].weight = w->shard[1].weight = 0;
    aim(w);
    for (size_t a = 0; a < RING_ARCS; a++) {
        uint16_t owner = w->chains.level[0].owner[a], copy = w->chains.level[1].owner[a];
        assert_int_equal(length(&w->moves.target, a), 1);
        assert_true(owner >= 2 || copy >= 2);
        kept += owner < 2;
    }
    assert_in_range(kept, RING_ARCS / 4, RING_ARCS * 3 / 4);
    assert_int_equal(w->begun, w->pauses); /* nothing is copied to who has it */
    run(w);
    assert_int_equal(w->copied, 0);
    assert_false(moves_needs(&w->moves, 0) || moves_needs(&w->moves, 1));
}

static void a_server_dies(void **state)
{
    (void)state;
    for (unsigned replicas = 1; replicas <= 3; replicas++) {
        start(w, 2 * replicas, 14, replicas);
        kill(w, 6);
        run(w);
        for (size_t a = 0; a < RING_ARCS; a++)
            assert_int_equal(length(&w->chains, a), 1 + replicas);
        assert_int_equal(w->aborted, 0);
    }
}

/* Without a copy the arcs stay with the dead, and nobody is asked to copy them. */
static void what_is_lost_stays(void **state)
{
    (void)state;
    start(w, 0, 6, 0);
    struct ring owners = w->chains.level[0];
    kill(w, 0);
    while (news(w, false))
        ;
    for (size_t a = 0; a < RING_ARCS; a++)
        if (owners.owner[a] <= 1)
            assert_int_equal(w->chains.level[0].owner[a], owners.owner[a]);
}

/* A change of mind: what is under way and not wanted is given up. */
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
    moves_hold(&w->moves);
    w->shard[4].weight = 0;
    before = w->begun;
    aim(w);
    assert_int_equal(w->begun, before);
    assert_false(moves_settled(&w->moves));
    moves_resume(&w->moves);
    assert_true(w->begun > before);
    run(w);
}

/* Of two shards the second is to have copies, and, once it has them and the pause has been ordered, the arcs
 * themselves: the owner was told that reads go on, so that commit does not come. */
static void a_copy_that_is_to_be_the_owner(void **state)
{
    (void)state;
    static struct ring_chains target;
    start(w, 4, 4, 1); /* two processes with two shards each */
    for (size_t a = 0; a < RING_ARCS; a++) {
        w->chains.level[0].owner[a] = 0;
        w->chains.level[1].owner[a] = RING_NOBODY;
    }
    w->before = target = w->chains;
    memset(w->has, RING_LEVELS, sizeof w->has);
    memset(w->has[0], 0, sizeof w->has[0]);
    memset(target.level[1].owner, 0, sizeof target.level[1].owner);
    for (size_t a = 0; a < RING_ARCS; a++)
        target.level[1].owner[a] = 2;
    tell_shards(w);
    moves_set_target(&w->moves, &target);
    uint64_t id = w->moves.move[0].id;
    struct job *job = job_of(w, id);
    assert_int_equal(w->begun, 1);
    moves_agreed(&w->moves, id, 0);
    moves_agreed(&w->moves, id, 2);
    job->full = true;
    moves_full(&w->moves, id);
    assert_true(job->told_pause && !job->reads_wait);
    target.level[1] = target.level[0];
    for (size_t a = 0; a < RING_ARCS; a++)
        target.level[0].owner[a] = 2;
    moves_set_target(&w->moves, &target);
    job->paused = true;
    moves_paused(&w->moves, id);
    assert_int_equal(w->committed, 0);
    run(w);
    assert_int_equal(w->chains.level[0].owner[0], 2);
}

/* Histories of joins, drains, deaths, failures and changed weights, with news in any order. */
static void histories(void **state)
{
    (void)state;
    uint64_t all = 0, given_up = 0;
    for (uint64_t seed = 1; seed <= UNIT_SEEDS(24); seed++) {
        unsigned replicas = (unsigned)(seed % 4), dead = 0;
        start(w, seed, 8 + 2 * draw(w, 4), replicas);
        if (seed % 3 == 0) /* tables that have fewer; others come later */
            moves_table(&w->moves, (unsigned)draw(w, 4));
        aim(w);
        for (unsigned event = 0; event < 8; event++) {
            size_t shard = draw(w, w->shards);
            if (seed % 3 && draw(w, 4) == 0)
                moves_table(&w->moves, (unsigned)draw(w, 4));
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
                    for (size_t a = 0; a < RING_ARCS; a++)
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
        all += w->begun;
        given_up += w->aborted;
        assert_int_equal(w->begun, w->committed + w->aborted);
    }
    assert_true(all > 400 && given_up > 20);
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

int main(int argc, char **argv)
{
    if (argc > 1 && !mutant_choose(argv[1]))
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_joins), cmocka_unit_test(a_server_leaves),
        cmocka_unit_test(a_server_dies),  cmocka_unit_test(what_is_lost_stays),
        cmocka_unit_test(plans_change),   cmocka_unit_test(a_copy_that_is_to_be_the_owner),
        cmocka_unit_test(histories),      cmocka_unit_test(too_few_stay),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
