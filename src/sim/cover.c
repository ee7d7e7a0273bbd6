#include "sim/cover.h"

#include <stdlib.h>
#include <string.h>

#include "post/member_impl.h"
#include "server/moving.h"
#include "server/saving.h"
#include "sim/cover_impl.h"
#include "worker/client_impl.h"

static const char *const state_names[] = {
#define NAME(name) #name,
    COVER_STATES(NAME)
#undef NAME
};

static const struct {
    const char *name, *machine;
} moves[] = {
#define MOVE(machine, from, to) {#machine " " #from " " #to, #machine},
    COVER_MOVES(MOVE)
#undef MOVE
};

static const struct {
    const char *name, *text;
} machines[] = {
#define TEXT(name, text) {#name, #name ": " text},
    COVER_MACHINES(TEXT)
#undef TEXT
};

/* 1 + enum cover_move; 0: there is no such transition. */
static const uint16_t table[COVER_MACHINES_COUNT][COVER_STATES_COUNT][COVER_STATES_COUNT] = {
#define CELL(machine, from, to) [COVER_##machine][IS_##from][IS_##to] = 1 + COVER_##machine##_##from##_##to,
    COVER_MOVES(CELL)
#undef CELL
};

_Static_assert(FAULT_KINDS_COUNT <= 32, "a mask has a bit for each kind");
const char *cover_move_name(enum cover_move move)
{
    return moves[move].name;
}

const char *cover_machine_text(enum cover_move move)
{
    if (move && strcmp(moves[move].machine, moves[move - 1].machine) == 0)
        return NULL;
    unsigned k = 0;
    while (strcmp(machines[k].name, moves[move].machine) != 0)
        k++;
    return machines[k].text;
}

static void moved(struct machine *m, unsigned machine, unsigned from, unsigned to, uint32_t faults)
{
    struct world *w = m->world;
    if (!table[machine][from][to] && to == IS_killed)
        return; /* a process may be killed in any state: those that are met too seldom have no line */
    if (!table[machine][from][to]) {
        judge_broken(w, "%s: a %s went from %s to %s, which is no transition of it", m->name,
                     machines[machine].name, state_names[from], state_names[to]);
        return;
    }
    unsigned move = table[machine][from][to] - 1U;
    w->coverage.moves[move]++;
    for (; faults; faults &= faults - 1)
        w->coverage.pairs[move][__builtin_ctz(faults)]++;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

/* The machine of the process of this incarnation, if it is up. */
static uint8_t peer_of(const struct world *w, uint64_t incarnation)
{
    for (uint32_t k = 0; k < w->count; k++)
        if (w->machines[k].up && w->machines[k].made->own &&
            w->machines[k].made->own->incarnation == incarnation)
            return (uint8_t)k;
    return NO_PEER;
}

static void instance_comes(struct look *l, enum cover_machine machine, uint64_t key, enum cover_state state,
                           uint64_t peer)
{
    struct cover *c = l->c;
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 32;
        c->seen = realloc(c->seen, c->room * sizeof *c->seen);
        if (!c->seen)
            abort();
    }
    c->seen[c->count++] = (struct instance){.key = key,
                                            .machine = (uint8_t)machine,
                                            .state = (uint8_t)state,
                                            .peer = peer ? peer_of(l->m->world, peer) : NO_PEER};
    moved(l->m, machine, IS_none, state, c->born[machine]);
    c->born[machine] = 0;
}

void cover_look_closely(struct look *l, enum cover_machine machine, uint64_t key, enum cover_state state,
                        uint64_t peer)
{
    struct cover *c = l->c;
    size_t i = l->at;
    while (i < c->count && (c->seen[i].key != key || c->seen[i].machine != machine))
        i++;
    if (i == c->count)
        instance_comes(l, machine, key, state, peer);
    struct instance found = c->seen[i];
    c->seen[i] = c->seen[l->at];
    if (found.state != state) {
        moved(l->m, machine, found.state, state, found.faults);
        found.state = (uint8_t)state;
        found.faults = 0;
    }
    c->seen[l->at++] = found;
}

static void look_member(struct look *l, const struct seat *seat)
{
    static const uint8_t seats[] = {[SEAT_NEW] = IS_none,
                                    [SEAT_JOINING] = IS_joining,
                                    [SEAT_JOINED] = IS_joined,
                                    [SEAT_FAILED] = IS_failed,
                                    [SEAT_ENDED] = IS_ended};
    static const uint8_t members[] = {[MEMBER_JOINING] = IS_joining,
                                      [MEMBER_JOINED] = IS_joined,
                                      [MEMBER_LEAVING] = IS_leaving,
                                      [MEMBER_ENDED] = IS_ended};
    const struct member *m = seat->member;
    enum cover_state sits = (enum cover_state)seats[atomic_load(&seat->state)];
    if (sits != IS_none)
        look_at(l, COVER_seat, 0, sits, 0);
    if (m && m->state != MEMBER_CLOSED)
        look_at(l, COVER_member, 0,
                m->state == MEMBER_JOINED && !m->registered ? IS_seeking
                                                            : (enum cover_state)members[m->state],
                0);
}

static void look_chain(struct look *l, const struct chain *c, uint64_t shard)
{
    static const uint8_t gives[] = {[GIVE_COPYING] = IS_copying,
                                    [GIVE_FULL] = IS_full,
                                    [GIVE_PAUSING] = IS_pausing,
                                    [GIVE_PAUSED] = IS_paused};
    static const uint8_t takes[] = {
        [TAKE_FILLING] = IS_filling, [TAKE_FULL] = IS_full, [TAKE_LAST] = IS_last};
    uint64_t id;
    for (const struct chain_stream *st = c->streams; st; st = st->next)
        look_at(l, COVER_stream, shard ^ (uint64_t)st->generation << 16,
                st->conn   ? IS_up
                : st->dial ? IS_dialing
                           : IS_idle,
                st->incarnation);
    for (const struct chain_source *so = c->sources; so; so = so->next)
        look_at(l, COVER_source,
                (shard | (uint64_t)so->from.shard << 8 | (uint64_t)so->moves << 7) ^ so->incarnation,
                so->conn ? IS_up : IS_lost, so->incarnation);
    if (c->give) {
        enum give_state state = giving_state(c->give, &id);
        look_at(l, COVER_give, shard | id << 8, (enum cover_state)gives[state], 0);
    }
    if (c->take) {
        enum take_state state = taking_state(c->take, &id);
        look_at(l, COVER_take, shard | id << 8, (enum cover_state)takes[state], 0);
    }
}

static void look_shard(struct look *l, const struct shard *s, uint64_t number)
{
    static const uint8_t loads[] = {
        [HOLDING] = IS_holding, [HELD] = IS_held, [LOADING] = IS_loading, [LOADED] = IS_loaded};
    if (s->chain)
        look_chain(l, s->chain, number);
    if (s->saving)
        look_at(l, COVER_saving, number | saving_number(s->saving) << 8, IS_running, 0);
    if (s->loading) {
        uint64_t load;
        enum loading_phase phase;
        bool restores = loading_state(s->loading, &phase, &load);
        look_at(l, COVER_loading, number ^ load << 8,
                restores ? IS_restoring : (enum cover_state)loads[phase], 0);
    }
}

static void look_links(struct look *l)
{
    static const uint8_t links[] = {
        [LINK_IDLE] = IS_idle, [LINK_DIALING] = IS_dialing, [LINK_PAUSE] = IS_pause, [LINK_UP] = IS_up};
    for (const paramo_worker *w = l->m->made->workers; w; w = w->next)
        for (size_t i = 0; i < w->client->links_count; i++) {
            const struct link *x = w->client->links[i];
            look_at(l, COVER_link, x->incarnation ^ (uint64_t)w->customer << 32 ^ x->index,
                    (enum cover_state)links[x->state], x->incarnation);
        }
}

void cover_look(struct machine *m)
{
    struct look l = {.m = m, .c = m->cover};
    if (!m->up)
        return;
    const struct paramo_node *node = m->made;
    if (node->own) {
        look_member(&l, node->own);
        for (unsigned i = 0; i < node->own->shards_count; i++)
            if (node->own->shards[i].shard)
                look_shard(&l, node->own->shards[i].shard, i);
    }
    if (node->workers)
        look_links(&l);
    if (node->scheduler || node->store)
        cover_look_scheduler(&l);
    for (size_t i = l.at; i < l.c->count; i++) /* of whatever is left there is nothing any more */
        moved(m, l.c->seen[i].machine, l.c->seen[i].state, IS_gone, l.c->seen[i].faults);
    l.c->count = l.at;
}

/* ---- faults and deaths --------------------------------------------------------------------------------- */

void cover_fault(struct world *w, enum fault_kind kind, uint32_t a, uint32_t b)
{
    uint32_t bit = UINT32_C(1) << kind;
    for (uint32_t k = 0; k < w->count; k++) {
        struct cover *c = w->machines[k].cover;
        bool struck = k == a || k == b;
        for (unsigned i = 0; i < COVER_MACHINES_COUNT && struck; i++)
            c->born[i] |= bit;
        for (size_t i = 0; i < c->count; i++)
            if (struck || c->seen[i].peer == a || c->seen[i].peer == b)
                c->seen[i].faults |= bit;
    }
}

void cover_dies(struct machine *m, bool killed)
{
    struct cover *c = m->cover;
    for (size_t i = 0; i < c->count && killed; i++)
        moved(m, c->seen[i].machine, c->seen[i].state, IS_killed, c->seen[i].faults);
    c->count = 0;
}

void cover_make(struct machine *m)
{
    m->cover = calloc(1, sizeof *m->cover);
    if (!m->cover)
        abort();
}

void cover_free(struct machine *m)
{
    free(m->cover->seen);
    free(m->cover);
    m->cover = NULL;
}
