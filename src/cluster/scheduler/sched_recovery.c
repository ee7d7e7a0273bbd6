#include "cluster/scheduler/sched_recovery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_tables.h"
#include "cluster/scheduler/sched_view.h"

enum { AGAIN_MS = 500, TRIES = 120 }; /* arbitrary */

static void state_check(const struct scheduler *s)
{
    assert(s->recovery->tries <= TRIES && (!s->recovery->said || sched_lost_since(s)));
    assert(!s->recovery->back[0] || sched_ckpt_busy(s)); /* the load that makes it true */
}

/* ---- the job ends, or continues without these rows ----------------------------------------------------- */

/* The rows are restored, or will not be: views no longer say that they return. */
static void lost_over(struct scheduler *s)
{
    state_check(s);
    sched_lost_over(s);
    s->recovery->tries = 0;
    s->recovery->said = false;
    s->recovery->back[0] = '\0'; /* a load that failed may still wait for other servers' answers */
    sched_view_change(s);
    sched_tables_resume(s);
}

/* Can the job continue without the lost rows? It can if it has copies and these are rows of tables without. Requests
 * for them end with DATA_LOST. */
static bool goes_on(const struct scheduler *s)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (sched_lost_levels(s)[a] == RING_LEVELS)
            return false;
    for (uint32_t i = 0; i < sched_view_tables_count(s); i++)
        if (sched_view_table(s, i)->options.replicas && sched_lost_partitions(s, sched_view_table(s, i)))
            return false;
    return sched_lost_since(s) && sched_ring_chains(s)->replicas;
}

/* Ends the job: what is lost, and why it cannot be restored (or NULL). The job continues with a warning if it
 * would do so with nothing to restore. Does nothing if no table has lost any. */
static void lost_end(struct scheduler *s, const char *why)
{
    char text[CALL_TEXT_MAX];
    if (!sched_lost_describe(s, text))
        return;
    size_t len = strlen(text);
    if (why)
        (void)snprintf(text + len, sizeof text - len, "; they cannot be restored: %s", why);
    if (!goes_on(s)) {
        sched_end_begin(s, PARAMO_E_DATA_LOST, text);
        return;
    }
    log_warn("scheduler: %s", text);
    lost_over(s);
}

static void warn_of_tables(const struct scheduler *s)
{
    char text[CALL_TEXT_MAX];
    for (uint32_t i = 0; i < sched_view_tables_count(s); i++) {
        if (!sched_lost_partitions(s, sched_view_table(s, i)))
            continue;
        sched_lost_describe_keys(s, sched_view_table(s, i), text);
        log_warn("scheduler: lost, because the table has no copies: %s", text);
    }
}

/* ---- the rows return to a checkpoint ------------------------------------------------------------------- */

static void lost_soon(struct scheduler *s, uint64_t ms)
{
    assert(sched_lost_since(s));
    struct lane *lane = s->config.lane;
    lane_timer_cancel(lane, &s->recovery->timer);
    if (lane_timer_arm(lane, &s->recovery->timer, lane_now(lane) + ms * ENV_MS))
        lost_end(s, err_text());
}

/* Ends it with this thread's message, or tries again. */
static void lost_failed(struct scheduler *s, paramo_err err)
{
    state_check(s);
    assert(err);
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    bool again = sched_ckpt_may_pass(err) && s->recovery->tries < TRIES;
    s->recovery->tries += again;
    if (again)
        lost_soon(s, AGAIN_MS);
    else
        lost_end(s, text);
    if (!sched_ckpt_busy(s))
        sched_migrations_resume(s); /* if the rows are given up */
}

static void lost_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_recovery, timer)->sched;
    if (!sched_lost_since(s) || sched_ckpt_busy(s) || s->state != SCHED_RUNNING)
        return; /* what runs now ends with sched_recovery_idle */
    paramo_err err = sched_ckpt_load_lost(s);
    if (err)
        lost_failed(s, err);
}

/* more: rows were lost since the last call; the load in progress ends. */
static void lost_load(struct scheduler *s, bool more)
{
    state_check(s);
    assert(sched_lost_since(s) && sched_restores_lost(s));
    if (!more && (sched_ckpt_busy(s) || s->recovery->timer.slot))
        return;             /* it is running already */
    s->recovery->tries = 0; /* first: the load that ends is tried again */
    s->recovery->said = false;
    if (sched_ckpt_busy(s))
        sched_ckpt_abandon(s, err_set(PARAMO_E_AGAIN, "a server died during it, and more rows are lost"));
    if (s->state == SCHED_RUNNING && sched_lost_since(s)) /* else there was no memory for a try */
        lost_soon(s, 0);
}

static const struct view_table *table_in(const struct ckpt_manifest *m, const char *name)
{
    for (uint32_t i = 0; i < m->tables_count; i++)
        if (strcmp(m->tables[i].name, name) == 0)
            return &m->tables[i];
    return NULL;
}

/* Does the checkpoint have the lost rows? */
static paramo_err lost_check(struct scheduler *s, const char *dir, const struct ckpt_manifest *m)
{
    if (m->job != s->job && strcmp(s->config.restore_dir, dir) != 0)
        return err_set(PARAMO_E_NOT_FOUND,
                       "%s: the last checkpoint there is of another job, and none is of this one", dir);
    for (uint32_t i = 0; i < sched_view_tables_count(s); i++) {
        const struct view_table *from = table_in(m, sched_view_table(s, i)->name);
        if (!sched_lost_table(s, sched_view_table(s, i)))
            continue;
        paramo_err err =
            from ? sched_tables_make(s, from)
                 : err_set(PARAMO_E_NOT_FOUND, "%s: its last checkpoint, %" PRIu64 ", has no table %s", dir,
                           m->number, sched_view_table(s, i)->name);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

paramo_err sched_recovery_opened(struct scheduler *s, const char *dir, const struct ckpt_manifest *m)
{
    assert(sched_lost_since(s) && sched_ckpt_busy(s));
    assert(!s->recovery->back[0]);
    char date[48] = " (which does not say when it was taken)";
    time_t at = (time_t)m->made_at;
    struct tm tm;
    paramo_err err = lost_check(s, dir, m);
    if (err)
        return err;
    if (m->made_at && gmtime_r(&at, &tm))
        (void)strftime(date, sizeof date, ", of %Y-%m-%d %H:%M:%S UTC", &tm);
    (void)snprintf(s->recovery->back, sizeof s->recovery->back,
                   "they go back to checkpoint %" PRIu64 " in %s%s: later pushes to them are lost", m->number,
                   dir, date);
    sched_recovery_announced(s);
    return PARAMO_OK;
}

void sched_recovery_ended(struct scheduler *s, const char *dir, uint64_t number, paramo_err err)
{
    if (err) {
        lost_failed(s, err);
        return;
    }
    log_warn("scheduler: lost rows are restored from checkpoint %" PRIu64 " in %s", number, dir);
    lost_over(s);
}

void sched_recovery_idle(struct scheduler *s)
{
    assert(!sched_ckpt_busy(s));
    s->recovery->back[0] = '\0';
    if (sched_lost_since(s) && !s->recovery->timer.slot && s->state == SCHED_RUNNING)
        lost_soon(s, 0);
}

/* Waits until the view that says so is durable: another scheduler might not know that these rows are lost. */
void sched_recovery_announced(struct scheduler *s)
{
    char text[CALL_TEXT_MAX];
    if (!s->recovery->back[0] || s->recovery->said || sched_view_announced(s) < sched_lost_since(s))
        return;
    state_check(s);
    assert(sched_lost_since(s));
    s->recovery->said = true;
    (void)sched_lost_describe(s, text);
    log_warn("scheduler: %s; %s", text, s->recovery->back);
}

/* ---- servers are gone ---------------------------------------------------------------------------------- */

void sched_recovery_server_gone(const struct sched_node *server)
{
    struct scheduler *s = server->sched;
    if (!sched_ring_gone(server, sched_migrations_ends(s)))
        return;
    if (sched_restores_lost(s))
        sched_lost_note(s);
    sched_ring_changed(s);
}

/* Are there partitions without an owner? */
static bool orphans(struct scheduler *s)
{
    uint8_t *lowest = sched_ring_lowest(s);
    bool any = false;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        bool orphan = sched_ring_is_orphan(s, a);
        if (orphan && !lowest[a])
            lowest[a] = RING_LEVELS; /* an earlier scheduler knew of that death */
        any |= orphan;
    }
    return any;
}

static bool any_lost(const struct scheduler *s)
{
    bool any = false;
    for (uint32_t i = 0; i < sched_view_tables_count(s) && !any; i++)
        any = sched_lost_partitions(s, sched_view_table(s, i)) != 0;
    return any;
}

/* Partitions without an owner on which no table has lost rows: servers that are left get them, empty. */
static void adopt_empty(struct scheduler *s)
{
    assert(!sched_lost_since(s));
    memset(sched_ring_lowest(s), 0, RING_PARTITIONS); /* nothing is lost by another owner, either */
    if (!sched_ring_adopt(s))
        return;
    sched_ring_changed(s);
    sched_view_change(s);
    sched_migrations_retarget(s);
}

void sched_recovery_check(struct scheduler *s)
{
    bool restores = sched_restores_lost(s);
    if (s->state != SCHED_RUNNING || (!sched_ring_chains(s)->replicas && !restores && !sched_lost_since(s)))
        return;
    sched_ring_check_gone(s);
    bool over = orphans(s);
    if (over && !sched_lost_since(s) && !any_lost(s)) {
        adopt_empty(s);
        over = orphans(s);
    }
    /* the scheduler before this one had its partitions wait for its return */
    if (over && restores && !sched_lost_grew(s)) {
        sched_lost_note(s);
        sched_migrations_wait_for_lost(s);
        sched_ring_changed(s);
        sched_view_change(s);
        over = orphans(s);
    }
    if (sched_lost_since(s) && restores && !over)
        lost_load(s, sched_lost_grew(s));
    else if (over || sched_lost_since(s)) /* the scheduler before this one ran without the option */
        lost_end(s, restores ? "no server is left" : NULL);
    else
        warn_of_tables(s);
    sched_lost_reported(s);
}

void sched_recovery_init(struct scheduler *s)
{
    s->recovery->timer.fire = lost_due;
}

void sched_recovery_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->recovery->timer);
}
