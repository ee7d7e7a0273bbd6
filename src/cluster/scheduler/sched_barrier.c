#include "cluster/scheduler/sched_barrier.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "wire/barrier_call.h"

/* The barrier of one group and customer. It lives as long as the scheduler, so its numbers continue. It waits for the
 * founders: workers that come during the job may enter, and are released with the others, but no barrier waits for
 * them, because no program knows of them beforehand. */
struct barrier {
    uint32_t group, customer;
    uint64_t number;             /* of the one that is being entered, from 1 */
    struct barrier_round *round; /* NULL: no call is in it */
};

/* One number of a barrier. */
struct barrier_round {
    struct sched_call_group calls;
    struct barrier *barrier; /* whose present round it is; NULL: it is released */
    struct map nodes;        /* id -> how many of its calls are in the queue, so that a node counts once */
    uint64_t number;         /* released */
    paramo_err status;       /* ... and how, with the text */
    char *text;              /* until then: of the calls that time out before the next one enters; or NULL */
};

/* The next number is entered; the calls that are there have not been released. */
static void barrier_check(const struct barrier *barrier)
{
    assert(barrier->number);
    assert(!barrier->round || (barrier->round->barrier == barrier && !barrier->round->calls.released));
}

/* A round is the present one of its barrier until it is released. */
static void round_check(const struct barrier_round *round)
{
    assert(!round->barrier == round->calls.released);
    assert(!round->barrier || round->barrier->round == round);
}

static uint32_t group_size(const struct scheduler *s, uint32_t group)
{
    uint32_t size = 0;
    for (size_t i = 0; i < SLOTS; i++)
        if (sched_roster_slots(s, i)->role & group)
            size += sched_roster_slots(s, i)->founders;
    return size;
}

static bool group_broken(const struct scheduler *s, uint32_t group)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (sched_roster_slots(s, i)->role & group && sched_roster_slots(s, i)->founders_gone)
            return true;
    return false;
}

static paramo_err broken(const struct scheduler *s, uint32_t group)
{
    char names[200];
    size_t count = sched_roster_gone(s, group, true, names, sizeof names);
    return err_set(PARAMO_E_BARRIER, "%s gone: %s", count == 1 ? "a node is" : "nodes are", names);
}

static void round_free(struct sched_call_group *calls)
{
    struct barrier_round *round = container_of(calls, struct barrier_round, calls);
    assert(!calls->queue.first && !round->barrier);
    map_fini(&round->nodes);
    free(round->text);
    free(round);
}

/* No call is in it. */
static void round_end(struct barrier_round *round)
{
    round_check(round);
    assert(!round->calls.queue.first);
    round->barrier->round = NULL;
    round->barrier = NULL;
    round_free(&round->calls);
}

static void node_out(struct sched_call *call)
{
    struct barrier_round *round = call->object;
    uint64_t id = call->node->info.id;
    round_check(round);
    assert(!call->queue);                              /* it has left */
    if (round->barrier && !round->calls.queue.first) { /* it was the last one */
        round_end(round);
        return;
    }
    if (round->calls.released || !sched_roster_founder(call->node))
        return;
    uintptr_t count = (uintptr_t)map_get(&round->nodes, id);
    assert(count); /* the call was counted when it came */
    if (count <= 1)
        map_remove(&round->nodes, id);
    else if (map_put(&round->nodes, id, (void *)(count - 1)))
        return; /* cannot fail: the key is there already */
}

static paramo_err node_in(struct barrier_round *round, const struct sched_node *node)
{
    uint64_t id = node->info.id;
    assert(round->barrier->group & node->info.role);
    round_check(round);
    free(round->text);
    round->text = NULL;
    if (!sched_roster_founder(node))
        return PARAMO_OK;
    return map_put(&round->nodes, id, (void *)((uintptr_t)map_get(&round->nodes, id) + 1));
}

static void round_answer(struct sched_call *call)
{
    const struct barrier_round *round = call->object;
    assert(round->calls.released && !round->barrier);
    assert(round->number);
    struct barrier_result result = {.number = round->number};
    struct writer w = sched_call_result(call);
    if (round->status) {
        sched_call_fail(call, err_set(round->status, "%s", round->text ? round->text : "a node is gone"));
        return;
    }
    barrier_result_encode(&result, &w);
    sched_call_answer(call, &w);
}

/* The round that is being entered: the present one, or a new one. */
static paramo_err round_find(struct barrier *barrier, struct barrier_round **out)
{
    barrier_check(barrier);
    struct barrier_round *round = barrier->round ? barrier->round : calloc(1, sizeof *round);
    if (!round)
        return err_memory(sizeof *round);
    assert(!barrier->round == !round->calls.queue.first); /* only calls keep it */
    round->calls.answer = round_answer;
    round->calls.free = round_free;
    round->barrier = barrier;
    barrier->round = round;
    *out = round;
    return PARAMO_OK;
}

/* Which nodes have not entered. */
static paramo_err missing(const struct scheduler *s, const struct barrier_round *round)
{
    char names[200], label[SCHED_LABEL];
    size_t len = 0, count = 0, cursor = 0;
    names[0] = '\0';
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        if (node->info.role & round->barrier->group && sched_roster_founder(node) &&
            !map_get(&round->nodes, node->info.id)) {
            sched_roster_label(node, label);
            count++;
            if (len + strlen(label) + 3 < sizeof names)
                len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", label);
        }
    return err_set(PARAMO_E_TIMEOUT, "not all nodes entered the barrier in time; %zu are missing: %s", count,
                   names);
}

/* Thousands of calls may time out one after the other. The nodes are looked at for the first of them, and the others
 * get the same text: a node whose call has timed out counts as entered. */
static void barrier_timed_out(struct sched_call *call)
{
    struct barrier_round *round = call->object;
    char text[ERR_TEXT_MAX];
    round_check(round);
    assert(!call->answered);
    if (round->calls.released) { /* its turn was about to come */
        round_answer(call);
        return;
    }
    if (!round->text) {
        (void)missing(call->node->sched, round);
        err_text_copy(text);
        round->text = strdup(text);
        if (!round->text) {
            sched_call_fail(call, err_set(PARAMO_E_TIMEOUT, "%s", text));
            return;
        }
    }
    sched_call_fail(call, err_set(PARAMO_E_TIMEOUT, "%s", round->text));
}

static uint64_t barrier_key(uint32_t group, uint32_t customer)
{
    return (uint64_t)customer << 3 | group;
}

/* All calls of the present round end: with its number, or with a status and its text. */
static void release(struct scheduler *s, struct barrier *barrier, paramo_err status, const char *text)
{
    struct barrier_round *round = barrier->round;
    barrier_check(barrier);
    assert(round->calls.queue.first && !round->number);
    round->status = status;
    free(round->text);
    round->text = text ? strdup(text) : NULL;
    round->number = barrier->number;
    if (!status) {
        barrier->number++;
        sched_save_record_changed(s, RECORD_BARRIER, barrier_key(barrier->group, barrier->customer));
    }
    round->barrier = NULL;
    barrier->round = NULL;
    round->calls.together = !status;
    sched_calls_release(s, &round->calls);
}

static paramo_err barrier_find(struct scheduler *s, uint32_t group, uint32_t customer, struct barrier **out)
{
    uint64_t key = barrier_key(group, customer);
    struct barrier *barrier = map_get(&s->barriers->by_key, key);
    if (barrier) {
        barrier_check(barrier);
        assert(barrier->group == group && barrier->customer == customer);
        *out = barrier;
        return PARAMO_OK;
    }
    if (s->barriers->by_key.count == SCHED_BARRIERS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d barriers is reached", SCHED_BARRIERS_MAX);
    barrier = calloc(1, sizeof *barrier);
    if (!barrier || map_put(&s->barriers->by_key, key, barrier)) {
        free(barrier);
        return err_memory(sizeof *barrier);
    }
    barrier->group = group;
    barrier->customer = customer;
    barrier->number = 1;
    *out = barrier;
    return PARAMO_OK;
}

void sched_barrier_enter(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct barrier_call m;
    paramo_err err = barrier_call_decode(body, &m);
    if (!err && !(m.group & call->node->info.role))
        err = err_set(PARAMO_E_INVALID, "the node is not in group %" PRIu32, m.group);
    if (!err && group_broken(s, m.group))
        err = broken(s, m.group);
    struct barrier *barrier = NULL;
    if (!err)
        err = barrier_find(s, m.group, m.customer, &barrier);
    struct barrier_round *round = NULL;
    if (!err)
        err = round_find(barrier, &round);
    call->object = round;
    if (!err)
        err = node_in(round, call->node);
    if (err) {
        if (round && !round->calls.queue.first)
            round_end(round);
        sched_call_fail(call, err);
        return;
    }
    barrier_check(barrier);
    assert(round->nodes.count <= group_size(s, m.group));
    call->withdrawn = node_out;
    if (sched_call_defer(call, &round->calls.queue, m.timeout_ms, barrier_timed_out) &&
        round->nodes.count >= group_size(s, m.group))
        release(s, barrier, PARAMO_OK, NULL);
}

void sched_barrier_node_gone(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    char text[ERR_TEXT_MAX];
    uint32_t named = 0; /* the group that the text is for */
    uint64_t key;
    void *value;
    if (!sched_roster_founder(node))
        return;
    for (size_t i = 0; map_next(&s->barriers->by_key, &i, &key, &value);) {
        struct barrier *barrier = value;
        if (!(barrier->group & node->info.role) || !barrier->round)
            continue;
        if (barrier->group != named) {
            (void)broken(s, barrier->group);
            err_text_copy(text);
        }
        named = barrier->group;
        release(s, barrier, PARAMO_E_BARRIER, text);
    }
}

void sched_barrier_record(const struct scheduler *s, uint64_t key, struct writer *w)
{
    const struct barrier *barrier = map_get(&s->barriers->by_key, key);
    if (barrier)
        write_u64(w, barrier->number);
}

static void one_record(void *arg, uint64_t key, void *value)
{
    const struct barrier *barrier = value;
    struct writer *w = arg;
    size_t mark;
    barrier_check(barrier);
    sched_save_record_begin(w, RECORD_BARRIER, key, &mark);
    write_u64(w, barrier->number);
    store_record_end(w, mark);
}

bool sched_barrier_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w)
{
    return map_scan(&s->barriers->by_key, &cursor->map, 1, one_record, w);
}

paramo_err sched_barrier_restore(struct scheduler *s, uint64_t key, struct reader *record)
{
    uint64_t number = read_u64(record);
    if (!reader_done(record) || !number || key >> 35)
        return err_set(PARAMO_E_CORRUPT, "the durable record of a barrier is malformed");
    struct barrier *barrier;
    paramo_err err = barrier_find(s, key & 7, (uint32_t)(key >> 3), &barrier);
    if (!err)
        barrier->number = number;
    assert(s->state == SCHED_GATHERING);
    assert(err || !barrier->round); /* no call comes before the state is restored */
    return err;
}

void sched_barrier_fini(struct scheduler *s)
{
    uint64_t key;
    void *value;
    for (size_t i = 0; map_next(&s->barriers->by_key, &i, &key, &value);) {
        struct barrier *barrier = value;
        assert(!barrier->round); /* the calls are gone */
        assert(barrier->number);
        free(barrier);
    }
    map_fini(&s->barriers->by_key);
}
