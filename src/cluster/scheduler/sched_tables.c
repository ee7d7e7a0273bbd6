#include "cluster/scheduler/sched_tables.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/table_spec.h"

/* As in views: a table with as many replicas as the job has follows the job's number. */
static paramo_err options_resolved(const struct scheduler *s, const char *table,
                                   const paramo_table_options *options, paramo_table_options *resolved)
{
    *resolved = table_spec_resolved(options);
    if (resolved->replicas != PARAMO_REPLICAS_OF_JOB && resolved->replicas > s->config.replicas)
        return err_set(PARAMO_E_INVALID,
                       "table %s: replicas is %" PRIu32 ", but the job has %" PRIu32 " (--replicas)", table,
                       resolved->replicas, s->config.replicas);
    if (resolved->replicas == s->config.replicas)
        resolved->replicas = PARAMO_REPLICAS_OF_JOB;
    return PARAMO_OK;
}

static paramo_err table_add(struct scheduler *s, const struct table_open *m, const struct view_table **out)
{
    paramo_table_options options;
    paramo_err err = options_resolved(s, m->name, &m->options, &options);
    if (!err)
        err = sched_view_table_add(s, m->name, &options, out);
    if (err)
        return err;
    sched_migrations_table(s, options.replicas);
    sched_view_change(s);
    return PARAMO_OK;
}

paramo_err sched_tables_make(struct scheduler *s, const struct view_table *table)
{
    const struct view_table *have = sched_view_table_find(s, table->name);
    struct table_open m = {.options = table->options};
    if (have) {
        paramo_err err = options_resolved(s, table->name, &table->options, &m.options);
        return err ? err : table_spec_same(table->name, &have->options, &m.options);
    }
    memcpy(m.name, table->name, sizeof m.name);
    return table_add(s, &m, &have);
}

/* a restore may take that long; the caller's deadline ends the wait earlier */
enum { OPEN_WAIT_MS = 3600 * 1000 };

static void table_timed_out(struct sched_call *call)
{
    assert(call->u.table);
    assert(!call->answered && call->queue);
    sched_call_fail(call,
                    err_set(PARAMO_E_TIMEOUT, "table %s: lost rows of other tables are still being restored",
                            call->u.table->name));
}

static void table_withdrawn(struct sched_call *call)
{
    assert(call->u.table);
    assert(!call->queue); /* it has left */
    free(call->u.table);
    call->u.table = NULL;
}

static void table_defer(struct sched_call *call, const struct table_open *m)
{
    assert(sched_lost_since(call->node->sched) && !call->u.table);
    assert(!call->answered && !call->queue);
    struct table_open *kept = malloc(sizeof *kept);
    if (!kept) {
        sched_call_fail(call, err_memory(sizeof *kept));
        return;
    }
    *kept = *m;
    call->u.table = kept;
    call->withdrawn = table_withdrawn;
    (void)sched_call_defer(call, &call->node->sched->tables->deferred, OPEN_WAIT_MS, table_timed_out);
}

static void table_opens(struct sched_call *call, const struct table_open *m)
{
    struct scheduler *s = call->node->sched;
    paramo_err err = PARAMO_OK;
    const struct view_table *table = sched_view_table_find(s, m->name);
    if (table && m->create) {
        paramo_table_options want;
        err = options_resolved(s, m->name, &m->options, &want);
        if (!err)
            err = table_spec_same(m->name, &table->options, &want);
    } else if (!table && m->create) {
        if (sched_lost_since(s)) {
            table_defer(call, m);
            return;
        }
        err = table_add(s, m, &table);
    } else if (!table) {
        err = err_set(PARAMO_E_NO_TABLE, "there is no table %s", m->name);
    }
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    struct table_open_result result = {.table = table->id, .view = sched_view_number(s)};
    struct writer w = sched_call_result(call);
    table_open_result_encode(&result, &w);
    sched_call_answer(call, &w);
}

void sched_tables_open_call(struct sched_call *call, struct reader *body)
{
    struct table_open m;
    paramo_err err = table_open_decode(body, &m);
    if (err)
        sched_call_fail(call, err);
    else
        table_opens(call, &m);
}

void sched_tables_resume(struct scheduler *s)
{
    for (struct sched_call *call; !sched_lost_since(s) && (call = s->tables->deferred.first);) {
        assert(call->u.table && !call->answered);
        struct table_open m = *call->u.table;
        table_opens(call, &m);
        assert(s->tables->deferred.first != call); /* it is answered */
    }
}
