/*
 * Allocations that fail. The linker directs all allocations of the program to these functions
 * (CMakeLists.txt). An allocation may fail while the lane of a machine runs, in its blocking jobs, or while its
 * application issues a request. Allocations of the simulator itself do not fail: it cannot continue without memory.
 */
#include "sim/memory.h"

#include <stddef.h>

#include "server/shard/shard_impl.h"
#include "server/shard/table_map.h"
#include "sim/hits.h"
#include "sim/judge.h"
#include "sim/world.h"

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

/* The machine whose allocations may fail now; a simulation has one thread. */
static _Thread_local struct machine *current;
static _Thread_local struct machine *ran; /* the machine whose lane runs */
static _Thread_local unsigned held;       /* depth of calls into the simulator */

/* A server may end when it has no memory. If it has the last copy of some rows, that would be the end of the
 * job. */
static bool spared(const struct machine *m)
{
    const struct schedule *s = m->world->schedule;
    return m->role == PARAMO_ROLE_SERVER && (s->replicas || s->restores) && judge_needs(m->world, m);
}

/* At a server: in the place that it has. One that has none yet answers no request; what it still lacks when it has
 * one is found then (memory_of). */
static void failed_now(struct machine *m)
{
    m->memory.last_at = m->world->moment;
    if (m->role == PARAMO_ROLE_SERVER && m->place >= 0)
        m->world->memory_at[m->place % SIM_SERVERS] = m->world->moment;
}

static bool fails(void)
{
    if (!current || held)
        return false;
    struct memory *mem = &current->memory;
    if (mem->next > 1) {
        mem->next--;
        return false;
    }
    if (!mem->next)
        return false;
    if (!mem->struck && spared(current)) {
        mem->next = 0;
        return false;
    }
    mem->next = --mem->row ? 1 : 0;
    mem->struck = true;
    mem->failed++;
    failed_now(current);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* A server answers MEMORY for a table that lacks memory, until it has it. */
static bool lacks(const struct machine *m)
{
    const struct shard_table *t;
    bool any = false;
    for (unsigned i = 0; i < m->made->own->shards_count && !any; i++) {
        const struct shard *s = m->made->own->shards[i].shard;
        for (size_t at = 0; s && (t = shard_table_next(s, &at));)
            any |= t->lacks;
    }
    return any;
}

void memory_of(struct machine *m)
{
    if (current && current->memory.struck) {
        current->memory.struck = false;
        hits_add(current->world, current->memory.fault);
    }
    if (ran && ran->memory.failed && ran->role == PARAMO_ROLE_SERVER && lacks(ran))
        failed_now(ran);
    ran = m && m->up && !m->dying ? m : NULL;
    current = ran && m->memory.next ? m : NULL;
}

void memory_hold(void)
{
    held++;
}

void memory_resume(void)
{
    held--;
}

void memory_strike(struct machine *m, size_t fault)
{
    uint64_t n = m->world->schedule->faults[fault].n;
    m->memory.next = n / MEMORY_ROW;
    m->memory.row = 1 + n % MEMORY_ROW;
    m->memory.fault = fault;
}

static bool failed_since(uint64_t at, uint64_t from)
{
    return at && at >= from;
}

bool memory_failed(const struct machine *m, uint32_t servers, uint64_t from)
{
    bool failed = failed_since(m->memory.last_at, from);
    for (unsigned p = 0; p < SIM_SERVERS && !failed; p++)
        failed = servers >> p & 1 && failed_since(m->world->memory_at[p], from);
    return failed;
}

bool memory_failed_call(const struct machine *m, uint32_t servers, uint64_t from)
{
    const struct world *w = m->world;
    bool failed = memory_failed(m, servers, from);
    for (uint32_t k = 0; k < w->count && !failed; k++)
        failed =
            w->machines[k].role == PARAMO_ROLE_SCHEDULER && failed_since(w->machines[k].memory.last_at, from);
    return failed;
}
