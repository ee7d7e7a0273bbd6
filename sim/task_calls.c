#include "sim/task_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/world.h"

enum { SHARE = 9 }; /* one schedule in this many has tasks */

void task_calls_make(struct world *w)
{
    if (mix64(w->schedule->seed + 43) % SHARE)
        return;
    w->tasks = calloc(1, sizeof *w->tasks);
    if (!w->tasks)
        abort();
    w->tasks->dice = dice_of(w->schedule->seed, 43);
}

void task_calls_forget(struct world *w)
{
    for (uint32_t i = 0; w->tasks && i < w->tasks->count; i++)
        free(w->tasks->calls[i]);
    if (w->tasks)
        w->tasks->count = 0;
}

void task_calls_free(struct world *w)
{
    task_calls_forget(w);
    free(w->tasks);
    w->tasks = NULL;
}

struct task_call *task_calls_add(struct machine *m, unsigned customer, struct task_run *parent)
{
    struct world *w = m->world;
    if (w->tasks->count == TASK_CALLS)
        return NULL;
    struct task_call *call = calloc(1, sizeof *call);
    if (!call)
        abort();
    call->index = w->tasks->count;
    w->tasks->calls[w->tasks->count++] = call;
    call->machine = m;
    call->caller = m->made->own->incarnation;
    call->customer = customer;
    call->parent = parent;
    return call;
}

uint64_t task_calls_word(const struct task_call *call, unsigned i)
{
    return i ? mix64((uint64_t)call->index << 8 | i) : call->index;
}

struct task_call *task_calls_find(const struct world *w, const paramo_task_info *info)
{
    uint64_t words[TASK_WORDS] = {0};
    if (info->payload_bytes && info->payload_bytes <= sizeof words)
        memcpy(words, info->payload, info->payload_bytes);
    struct task_call *call = words[0] < w->tasks->count ? w->tasks->calls[words[0]] : NULL;
    bool same = call && call->words * sizeof *words == info->payload_bytes;
    for (unsigned i = 0; same && i < call->words; i++)
        same = words[i] == task_calls_word(call, i);
    return same ? call : NULL;
}
