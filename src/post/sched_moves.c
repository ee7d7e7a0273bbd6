/* Moves of arcs, as orders to the shards (post/moves.h): after a death, when a server comes or is to go. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "post/sched.h"
#include "wire/move_order.h"
#include "wire/order.h"

/* After a move has failed, before others begin. */
#define MOVES_PAUSE ENV_SEC
/* Before an END that could not be given is given again: requests may wait for it. */
#define ENDS_PAUSE (10 * ENV_MS)

/* An order that is not answered yet. */
struct move_note {
    struct move_note *next, **at;
    struct scheduler *sched;
    struct move move;
    uint32_t what;
};

static struct sched_node *server_of(const struct scheduler *s, uint16_t shard)
{
    return s->slots[SLOTS_SERVERS].node[(s->shards[shard].node - PARAMO_ID_SERVER(0)) / 2];
}

static bool is_there(const struct sched_node *node)
{
    return node->state == SNODE_JOINED || node->state == SNODE_ABSENT;
}

static void note_free(struct move_note *note)
{
    *note->at = note->next;
    if (note->next)
        note->next->at = note->at;
    free(note);
}

static paramo_err give(struct scheduler *s, const struct move *move, uint32_t what, bool committed);

/* Others begin only after a while: what made this one fail may last. */
static void hold(struct scheduler *s)
{
    struct lane *lane = s->config.lane;
    moves_hold(&s->moves);
    if (s->ckpt)
        return; /* its end goes on with them */
    if (lane_timer_arm(lane, &s->moves_timer, lane_now(lane) + MOVES_PAUSE))
        log_error("scheduler: %s", err_text()); /* the next change of servers goes on with it */
}

static void answered(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct move_note *note = arg;
    struct scheduler *s = note->sched;
    struct move move = note->move;
    uint32_t what = note->what;
    char label[SCHED_LABEL];
    (void)result;
    note_free(note);
    if (what == ORDER_MOVE_END || !moves_find(&s->moves, move.id))
        return;
    if (status) {
        log_warn("scheduler: arcs %u to %u are not moved: %s: %s", move.first, move.first + move.arcs - 1,
                 node_label(node, label), err_text());
        hold(s);
        moves_failed(&s->moves, move.id);
    } else if (what == ORDER_MOVE_GIVE) {
        moves_agreed(&s->moves, move.id, move.from);
        moves_agreed(&s->moves, move.id, move.to);
        if (give(s, &move, ORDER_MOVE_TAKE, false)) {
            hold(s);
            moves_failed(&s->moves, move.id);
        }
    } else if (what == ORDER_MOVE_TAKE) {
        moves_full(&s->moves, move.id);
    } else {
        moves_paused(&s->moves, move.id);
    }
}

static struct move_shard place_of(const struct scheduler *s, uint16_t shard)
{
    return (struct move_shard){.node = s->shards[shard].node, .index = s->shards[shard].index};
}

static paramo_err give_to(struct scheduler *s, uint16_t shard, const struct move *move, uint32_t what,
                          bool committed)
{
    struct move_order order = {.id = move->id,
                               .first = move->first,
                               .arcs = move->arcs,
                               .from = place_of(s, move->from),
                               .to = place_of(s, move->to),
                               .level = move->level,
                               .had = move->had,
                               .kib_per_s = s->config.move_kib_per_s,
                               .takes_over = what == ORDER_MOVE_PAUSE && move->takes_over,
                               .handover = move->handover,
                               .committed = committed};
    struct move_note *note = malloc(sizeof *note);
    struct writer w = {0};
    if (!note)
        return err_memory(sizeof *note);
    *note = (struct move_note){
        .next = s->move_notes, .at = &s->move_notes, .sched = s, .move = *move, .what = what};
    if (note->next)
        note->next->at = &note->next;
    s->move_notes = note;
    move_order_encode(&order, &w);
    paramo_err err = order_give(server_of(s, shard), what, &w, answered, note);
    if (err)
        note_free(note);
    return err;
}

static paramo_err give(struct scheduler *s, const struct move *move, uint32_t what, bool committed)
{
    uint16_t shard = what == ORDER_MOVE_TAKE ? move->to : move->from;
    return give_to(s, shard, move, what, committed);
}

/* ---- servers that are to go ---- */

static bool may_go(const struct scheduler *s, const struct sched_node *node)
{
    for (uint32_t i = 0; i < s->shards_count; i++)
        if (s->shards[i].node == node->info.id && moves_needs(&s->moves, (uint16_t)i))
            return false;
    return true;
}

/* Copies of an arc that no server has (*nobody), or one that is not here: that an earlier scheduler has left,
 * or whose connection is lost, and that may be dead (*absent). */
static void copies_missing(const struct scheduler *s, unsigned *nobody, unsigned *absent)
{
    uint64_t begins[ARCS_WORDS] = {0};
    ring_begins(&s->chains, begins);
    *nobody = *absent = 0;
    for (arcs_runs(a, end, begins))
        for (unsigned l = 0; l <= s->chains.replicas; l++) {
            uint16_t member = s->chains.level[l].owner[a];
            if (member == RING_NOBODY)
                *nobody += end - a;
            else if (server_of(s, member)->state != SNODE_JOINED && !MUTANT(absent_counts))
                *absent += end - a;
        }
}

/* Nothing moves, or is about to, and the view that says so is out: the next scheduler begins with it. */
static bool rests(const struct scheduler *s)
{
    bool moves = s->moves_ends_count;
    moves |= s->moves.wanted && !moves_settled(&s->moves); /* not wanted: nothing has changed yet */
    for (size_t i = 0; i < MOVES_MAX; i++)
        moves |= s->moves.move[i].state != MOVE_NONE;
    return s->state == SCHED_RUNNING && !moves && !s->lost_at && !s->restoring && !s->view_changed &&
           s->announced == s->view_number;
}

bool sched_settled(const struct scheduler *s)
{
    unsigned nobody, absent;
    copies_missing(s, &nobody, &absent);
    return rests(s) && !nobody && !absent;
}

/* Logged once each time that it comes to be so. */
static void say_settled(struct scheduler *s)
{
    unsigned nobody, absent;
    copies_missing(s, &nobody, &absent);
    bool rest = rests(s) && !absent, settled = rest && !nobody;
    if (settled && !s->moves_settled)
        log_info("scheduler: every key is where it is to be, with all its copies");
    if (rest && !settled && !s->moves_short)
        log_info("scheduler: nothing is left to move; %u of %u copies are missing: more servers are needed",
                 nobody, (s->chains.replicas + 1) * RING_ARCS);
    s->moves_settled = settled;
    s->moves_short = rest && !settled;
}

/* The chains have changed, or who is here. A server without weight that has nothing left is told that it is
 * free, as at the end of the job. */
static void drained(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, drain_timer);
    const struct slot_list *servers = &s->slots[SLOTS_SERVERS];
    for (uint32_t rank = 0; rank < servers->count && s->state == SCHED_RUNNING; rank++) {
        struct sched_node *node = servers->node[rank];
        char label[SCHED_LABEL];
        if (node->state != SNODE_JOINED || node->info.weight || !may_go(s, node) ||
            !sched_status_goodbye(node))
            continue;
        log_info("scheduler: %s is drained", node_label(node, label));
        sched_send_end(node, PARAMO_OK, "");
        roster_left(node);
    }
    say_settled(s);
}

/* Not from inside: the machine may not be called back. */
void sched_moves_look(struct scheduler *s)
{
    s->drain_timer.fire = drained;
    if (!s->drain_timer.slot && lane_timer_arm(s->config.lane, &s->drain_timer, lane_now(s->config.lane)))
        log_error("scheduler: %s", err_text()); /* the next change finds it */
}

static paramo_err drain(struct scheduler *s, struct sched_node *node, uint32_t id)
{
    const struct slot_list *servers = &s->slots[SLOTS_SERVERS];
    char label[SCHED_LABEL];
    bool others = false;
    if (s->state != SCHED_RUNNING)
        return err_set(PARAMO_E_AGAIN, "the job is not complete, or is over");
    if (!node || node->info.role != PARAMO_ROLE_SERVER || !is_there(node))
        return err_set(PARAMO_E_NOT_FOUND, "there is no server of node id %" PRIu32 " to drain", id);
    for (uint32_t rank = 0; rank < servers->count; rank++)
        others |=
            servers->node[rank] != node && is_there(servers->node[rank]) && servers->node[rank]->info.weight;
    if (!others)
        return err_set(PARAMO_E_REFUSED, "no other server can take what %s has", node_label(node, label));
    log_info("scheduler: %s is to be drained", node_label(node, label));
    node->info.weight = 0;
    sched_view_change(s);
    sched_moves_aim(s);
    sched_moves_look(s);
    return PARAMO_OK;
}

void sched_drain_call(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    uint32_t id = read_u32(body);
    paramo_err err = call_body_end(body, "DRAIN");
    if (!err)
        err = drain(s, id ? roster_node(s, id) : call->node, id);
    if (err)
        call_fail(call, err);
    else
        call_answer(call, NULL);
}

/* This thread's message says why not. */
static void observer_answer(struct peer *peer, uint64_t number, paramo_err status)
{
    struct writer w = {0};
    if (status)
        call_text_encode(err_text(), &w);
    paramo_err err = peer_reply(peer, CALL_DRAIN, number, status, &w);
    writer_fini(&w);
    if (err)
        log_debug("scheduler: an answer to DRAIN was not sent: %s", err_text()); /* its deadline ends it */
}

paramo_err sched_drain_observer(struct peer *peer, const struct wire_head *head, struct reader *body)
{
    struct scheduler *s = peer->sched;
    uint32_t id = read_u32(body);
    paramo_err err = call_body_end(body, "DRAIN");
    if (err)
        return err;
    err = drain(s, s->state == SCHED_RUNNING ? roster_node(s, id) : NULL, id);
    peer->drain_number = head->number;
    peer->drain_save = err ? 0 : sched_save_due(s);
    if (!peer->drain_save || MUTANT(answer_before_durable))
        observer_answer(peer, head->number, err);
    return PARAMO_OK;
}

void sched_drain_saved(struct scheduler *s, uint64_t save)
{
    for (struct peer *peer = s->peers; peer; peer = peer->next)
        if (peer->drain_save && peer->drain_save <= save) {
            peer->drain_save = 0;
            observer_answer(peer, peer->drain_number, PARAMO_OK);
        }
}

/* ---- what the machine says ---- */

static void order_failed(struct scheduler *s, const struct move *move)
{
    log_warn("scheduler: arcs %u to %u are not moved: %s", move->first, move->first + move->arcs - 1,
             err_text());
    s->moves_unsaid = true;
    hold(s);
}

static void begin(void *arg, const struct move *move)
{
    struct scheduler *s = arg;
    sched_ring_untold(s, move->to, move->first, move->arcs); /* its order says that it has nothing there */
    if (give(s, move, ORDER_MOVE_GIVE, false))
        order_failed(s, move);
}

static void pause(void *arg, const struct move *move)
{
    struct scheduler *s = arg;
    if (give(s, move, ORDER_MOVE_PAUSE, false))
        order_failed(s, move);
}

static void commit(void *arg, const struct move *move)
{
    struct scheduler *s = arg;
    if (move && !move->handover)
        s->shards[move->to].moved = move->id;
    if (move) /* its end tells both sides who has them */
        sched_ring_told(s, move->first, move->arcs);
    sched_ring_changed(s);
    sched_view_change(s);
    sched_moves_look(s);
}

/* True: nobody is left who is to be told. */
static bool end_told(struct scheduler *s, struct move_end *e)
{
    const uint16_t side[] = {e->move.from, e->move.to};
    for (size_t i = 0; i < 2; i++)
        e->untold[i] = e->untold[i] && is_there(server_of(s, side[i])) &&
                       give_to(s, side[i], &e->move, ORDER_MOVE_END, e->committed);
    return !e->untold[0] && !e->untold[1];
}

static void ends_soon(struct scheduler *s)
{
    struct lane *lane = s->config.lane;
    if (!s->moves_ends_timer.slot && lane_timer_arm(lane, &s->moves_ends_timer, lane_now(lane) + ENDS_PAUSE))
        log_error("scheduler: %s", err_text()); /* whatever goes on with moves tries it, too */
}

/* A side that has paused waits for it without a deadline, so it is told, whatever it takes: there may be no
 * memory, or too many orders that it has not answered. */
static void end(void *arg, const struct move *move, bool committed)
{
    struct scheduler *s = arg;
    struct move_end e = {.move = *move, .committed = committed, .untold = {true, true}};
    if (end_told(s, &e))
        return;
    log_warn("scheduler: the end of a move is told later: %s", err_text());
    if (MUTANT(end_of_move_untold))
        return;
    moves_hold(&s->moves);
    assert(s->moves_ends_count < MOVES_MAX);
    s->moves_ends[s->moves_ends_count++] = e;
    ends_soon(s);
}

static const struct moves_ops ops = {.begin = begin, .pause = pause, .commit = commit, .end = end};

/* ---- what it is told ---- */

/* True: all have been. */
static bool ends_told(struct scheduler *s)
{
    unsigned left = 0;
    for (unsigned i = 0; i < s->moves_ends_count; i++)
        if (!end_told(s, &s->moves_ends[i]))
            s->moves_ends[left++] = s->moves_ends[i];
    s->moves_ends_count = left;
    if (left)
        ends_soon(s);
    return !left;
}

static void go_on(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, moves_timer);
    if (s->state != SCHED_RUNNING || !ends_told(s))
        return;
    if (s->moves_unsaid) { /* whose order could not be given: none of them goes on by itself */
        s->moves_unsaid = false;
        for (size_t i = 0; i < MOVES_MAX; i++)
            if (s->moves.move[i].state == MOVE_PLANNED || s->moves.move[i].state == MOVE_FULL)
                moves_failed(&s->moves, s->moves.move[i].id);
    }
    if (!s->moves_ends_count)
        moves_resume(&s->moves);
}

static void ends_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, moves_ends_timer);
    if (s->state == SCHED_RUNNING && ends_told(s) && !s->ckpt && !s->lost_at && !s->moves_timer.slot)
        go_on(&s->moves_timer);
}

/* Who holds what when all is done: by weight, among those who are there. */
void sched_moves_aim(struct scheduler *s)
{
    uint64_t weight = 0;
    if (s->state != SCHED_RUNNING)
        return;
    for (uint32_t i = 0; i < s->shards_count; i++) {
        const struct sched_node *node = server_of(s, (uint16_t)i);
        bool there = is_there(node);
        /* Without copies a dead server's arcs wait for the one that takes its place. */
        bool counts = there || (!s->chains.replicas && !sched_lost_restores(s) && node->state == SNODE_DEAD);
        s->ring_shards[i] = (struct ring_shard){
            .weight = counts ? node->info.weight : 0, .server = node->rank, .domain = node->info.domain};
        s->moves_shards[i] = (struct moves_shard){.server = node->rank, .gone = !there};
        weight += s->ring_shards[i].weight;
    }
    moves_set_shards(&s->moves, s->moves_shards, s->shards_count);
    if (!weight)
        return;
    struct ring_chains *target = malloc(sizeof *target);
    paramo_err err = target
                         ? ring_place(s->ring_shards, s->shards_count, s->config.replicas, &s->chains, target)
                         : err_memory(sizeof *target);
    if (err) {
        log_error("scheduler: no plan is made: %s", err_text());
    } else {
        sched_ring_warn(s, target);
        moves_set_target(&s->moves, target);
        s->moves_settled = false;
        if (!s->ckpt && !s->lost_at && !s->moves_timer.slot)
            go_on(&s->moves_timer); /* those held without a timer, too */
        sched_moves_look(s);
    }
    free(target);
}

void sched_moves_suspend(struct scheduler *s)
{
    moves_hold(&s->moves);
    lane_timer_cancel(s->config.lane, &s->moves_timer);
    for (size_t i = 0; i < MOVES_MAX; i++)
        if (s->moves.move[i].state != MOVE_NONE)
            moves_failed(&s->moves, s->moves.move[i].id);
}

void sched_moves_resume(struct scheduler *s)
{
    if (s->state == SCHED_RUNNING)
        go_on(&s->moves_timer);
}

void sched_moves_anew(struct scheduler *s, uint64_t term)
{
    if (s->moves.next_id >> 32 >= term)
        return;
    sched_moves_suspend(s);
    s->moves.next_id = (term << 32) + 1;
    if (!s->ckpt && !s->lost_at)
        sched_moves_resume(s); /* a checkpoint's end goes on with them */
}

paramo_err sched_moves_init(struct scheduler *s)
{
    s->moves_timer.fire = go_on;
    s->moves_ends_timer.fire = ends_due;
    moves_init(&s->moves, &s->chains, &ops, s);
    s->moves.next_id = (s->view_number >> 32 << 32) + 1; /* above all of an earlier scheduler of this job */
    s->moves_shards = calloc(s->shards_count + 1, sizeof *s->moves_shards);
    return s->moves_shards ? PARAMO_OK : err_memory(s->shards_count * sizeof *s->moves_shards);
}

paramo_err sched_moves_reserve(struct scheduler *s, size_t shards)
{
    struct moves_shard *longer = realloc(s->moves_shards, shards * sizeof *longer);
    if (!longer)
        return err_memory(shards * sizeof *longer);
    if (s->moves.shard)
        s->moves.shard = longer; /* the machine has it */
    s->moves_shards = longer;
    return PARAMO_OK;
}

void sched_moves_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->drain_timer);
    lane_timer_cancel(s->config.lane, &s->moves_timer);
    lane_timer_cancel(s->config.lane, &s->moves_ends_timer);
    while (s->move_notes)
        note_free(s->move_notes);
    free(s->moves_shards);
}
