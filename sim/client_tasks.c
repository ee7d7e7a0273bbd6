/*
 * What an application does on a thread of its own, with waits: it saves a table to its machine's disk, and
 * loads one. A fiber plays the thread. A file is whole, or the old content stays (disk full, torn write); a
 * save that was reported stays forever, at any later failure.
 */
#include "sim/client_tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/file.h"
#include "env/process.h"
#include "paramo/tensors.h"
#include "sim/capabilities.h"
#include "sim/cells.h"
#include "sim/ckpts_state.h"
#include "sim/cover.h"
#include "sim/disk.h"
#include "sim/fiber.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/machine.h"
#include "sim/memory.h"
#include "sim/overdue.h"
#include "sim/world.h"
#include "wire/capability.h"
#include "worker/client_impl.h"

enum { RESUMES_MAX = 10000 }; /* at most, until the task of a dead process has ended; arbitrary */

struct client_task {
    struct machine *machine;
    struct fiber *fiber;
    struct sim_event wake;
    struct sim_waiter waiter;
    bool (*done)(void *of); /* what it waits for; NULL: for the time only */
    void *of;
    uint64_t until;
    enum sim_table table;
    bool load;
    uint64_t from;
    uint64_t began_at;    /* by the worker's clock */
    uint64_t disk_struck; /* faults of its disk until then */
    uint32_t clears, deaths[SIM_SERVERS], began_deaths[SIM_SERVERS];
    uint64_t began_view; /* its client's */
    uint64_t must[SIM_KEYS];
    paramo_table handle;
};

static void path_of(enum sim_table table, char path[16])
{
    (void)snprintf(path, 16, "/d/%s", sim_table_names[table]);
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static void woken(struct sim_event *event)
{
    (void)event; /* client_task_step() runs after each event */
}

static bool ready(const struct client_task *e)
{
    return e->machine->dying || sim_now(e->machine->world->sim) >= e->until || (e->done && e->done(e->of));
}

static void wait_here(struct client_task *e, uint64_t until)
{
    e->until = until;
    while (!ready(e)) {
        if (until != UINT64_MAX)
            sim_must(sim_schedule(e->machine->world->sim, &e->wake, until));
        fiber_pause(e->fiber);
    }
    sim_cancel(e->machine->world->sim, &e->wake);
}

static bool waits(void *arg, bool (*done)(void *of), void *of, uint64_t deadline)
{
    struct client_task *e = arg;
    e->done = done;
    e->of = of;
    wait_here(e, deadline);
    return done(of);
}

static void disk_turns(void *arg)
{
    struct machine *m = arg;
    struct world *w = m->world;
    uint64_t now = sim_now(w->sim), takes = 20 * ENV_US;
    if (!m->client_task || m->dying)
        return; /* the judge reads the disk */
    if (now < m->disk_slow_until) {
        takes = m->disk_takes;
        w->struck += !w->hit[m->disk_slow_by];
        w->hit[m->disk_slow_by] = true;
    }
    m->client_task->done = NULL;
    wait_here(m->client_task, now + takes);
}

/* ---- files --------------------------------------------------------------------------------------------- */

struct rows {
    const uint64_t *keys, *vals;
    const uint32_t *lens;
    size_t n, vals_n;
};

static paramo_err rows_of(const paramo_tensors *file, enum sim_table table, struct rows *r)
{
    paramo_tensor keys, vals, lens = {0};
    paramo_err err = paramo_tensors_get(file, "keys", "U64", 1, &keys);
    if (!err)
        err = paramo_tensors_get(file, "values", "I64", table == SIM_VAR ? 1 : 2, &vals);
    if (!err && table == SIM_VAR)
        err = paramo_tensors_get(file, "lens", "U32", 1, &lens);
    if (err)
        return err;
    *r = (struct rows){.keys = keys.data,
                       .vals = vals.data,
                       .lens = lens.data,
                       .n = keys.bytes / sizeof *r->keys,
                       .vals_n = vals.bytes / sizeof *r->vals};
    return PARAMO_OK;
}

/* The file has every row that must exist, with all that must be in it, and no other. from 0: the values of
 * cells are not checked. */
static void rows_check(struct world *w, const char *where, enum sim_table table, const struct rows *r,
                       const uint64_t must[SIM_KEYS], uint64_t from)
{
    size_t row = 0, at = 0;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        bool there = row < r->n && r->keys[row] == w->ledger[table].keys[i].key;
        unsigned n = !there ? 0 : r->lens ? r->lens[row] : sim_row_values(table, i);
        if (at + n > r->vals_n)
            break;
        if (table == SIM_CELLS && !from && n)
            (void)judge_row(w, where, r->vals + at);
        else if (table != SIM_CELLS || from) {
            uint64_t began = from, least = must[i];
            overdue_read(&w->ledger[table].keys[i], &began, &least);
            ledger_file_check(w, where, table, i, r->vals + at, n, least, began);
        }
        row += there;
        at += n;
    }
    if (row != r->n || at != r->vals_n)
        judge_broken(w, "%s: table %d has rows of keys that no push has used, or out of order", where,
                     (int)table);
}

static void file_check(struct machine *m, enum sim_table table, const uint64_t must[SIM_KEYS], uint64_t from)
{
    struct world *w = m->world;
    char path[16], where[64];
    paramo_tensors *file;
    struct rows r;
    path_of(table, path);
    (void)snprintf(where, sizeof where, "%s's file", m->name);
    paramo_err err = paramo_tensors_open(path, &file);
    if (err == PARAMO_E_NOT_FOUND && !m->saved[table].there)
        return;
    if (!err) {
        err = rows_of(file, table, &r);
        if (!err)
            rows_check(w, where, table, &r, must, from);
        paramo_tensors_close(file);
    }
    if (err && !m->dying && !disk_crashed(m->disk)) /* they may be freed while it waits */
        judge_broken(w, "%s: the file of table %d: %s: %s", m->name, (int)table, err_name(err), err_text());
}

void client_task_check_files(struct machine *m)
{
    if (!m->disk || m->client_task) /* a save writes to it now */
        return;
    file_use(disk_fs(m->disk));
    for (unsigned t = 0; t < SIM_TABLES; t++)
        if (t != SIM_USER && m->saved[t].begun)
            file_check(m, (enum sim_table)t, m->saved[t].must, 0);
    file_use(NULL);
}

/* The application throws away what a lying disk has lost; all else must be as before. */
void client_task_power_fails(struct machine *m)
{
    struct fs *fs = disk_fs(m->disk);
    char path[16];
    disk_power_fails(m->disk);
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        path_of((enum sim_table)t, path);
        if (!disk_lost(m->disk, path))
            continue;
        m->saved[t].begun = m->saved[t].there = false;
        m->world->counts[PLAY_lies]++;
        if (!fs_unlink(fs, path))
            sim_must(fs_sync_dir(fs, "/d"));
    }
}

/* ---- saving and loading -------------------------------------------------------------------------------- */

/* Is a server dead by the customer's view, or was it by one that came since the task began, or has one died since? */
static bool server_died(const struct client_task *e)
{
    const struct world *w = e->machine->world;
    bool died = judge_sees_dead(e->handle.worker->client->view) != 0;
    for (unsigned p = 0; p < SIM_SERVERS; p++)
        died = died || w->deaths[p] != e->began_deaths[p] || w->death_view[p] >= e->began_view ||
               (w->holder[p] && !w->copies_at[p] && !w->left[p]);
    return died;
}

static void judge_end(const struct client_task *e, paramo_err err)
{
    const struct machine *m = e->machine;
    const struct world *w = m->world;
    bool ok = m->dying;
    switch (err) {
    case PARAMO_OK:
        ok = true;
        break;
    case PARAMO_E_TIMEOUT: /* of one of its requests, each of which has that time */
        ok = ok ||
             lane_now(e->handle.worker->lane) >= e->began_at + m->made->config.request_timeout_ms * ENV_MS;
        break;
    case PARAMO_E_IO:
        ok = ok || disk_struck(m->disk) != e->disk_struck;
        break;
    case PARAMO_E_NOT_FOUND:
        ok = ok || (e->load && !m->saved[e->table].there);
        break;
    case PARAMO_E_NODE_LOST:
        ok = ok || (server_died(e) && judge_may_refuse(w));
        break;
    case PARAMO_E_DATA_LOST:
        ok = ok || judge_data_lost(w) || judge_may_be_lost(w, e->table, m->client_task_from) ||
             ckpts_may_have_lost(w, e->table, m->client_task_from);
        break;
    case PARAMO_E_MEMORY:
        ok = ok || memory_failed(m, UINT32_MAX, e->from);
        break;
    case PARAMO_E_FENCED:
        ok = ok || m->declared_dead;
        break;
    case PARAMO_E_UNSUPPORTED:
        ok = ok || (m->customers[m->client_task_customer].reads &&
                    capabilities_lacked(m, UINT32_MAX) & CAPABILITY_READERS);
        break;
    default:
        break;
    }
    /* The membership has ended: waits end with its status. */
    if (atomic_load(&m->made->own->state) != MEMBER_SLOT_JOINED)
        ok = ok || err == PARAMO_E_CLOSED || err == m->made->own->code;
    if (!ok)
        judge_broken(e->machine->world, "%s: %s a table ended with %s, without a cause: %s", m->name,
                     e->load ? "loading" : "saving", err_name(err), err_text());
}

static void save(struct client_task *e)
{
    struct machine *m = e->machine;
    struct world *w = m->world;
    char path[16];
    path_of(e->table, path);
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        e->must[i] = w->ledger[e->table].keys[i].must;
        m->saved[e->table].must[i] &= e->must[i]; /* from now on it may be the old file or the new one */
    }
    m->saved[e->table].begun = true;
    paramo_err err = paramo_table_save(e->handle.worker, &e->handle, path, 0);
    judge_end(e, err);
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[e->table].keys[i];
        uint64_t from = e->from;
        overdue_read(k, &from, &e->must[i]);
        if (e->clears != w->ledger[e->table].clears || losses_between(k, e->from))
            e->must[i] = m->saved[e->table].must[i] = 0;
    }
    if (err || m->dying || disk_crashed(m->disk))
        return;
    w->counts[PLAY_saves]++;
    m->saved[e->table].there = true;
    memcpy(m->saved[e->table].must, e->must, sizeof e->must);
    file_check(m, e->table, e->must, e->from);
}

static void load(struct client_task *e)
{
    struct machine *m = e->machine;
    struct world *w = m->world;
    char path[16];
    uint64_t value[SIM_KEYS];
    bool has[SIM_KEYS] = {false};
    paramo_tensors *file;
    struct rows r = {0};
    path_of(e->table, path);
    paramo_err err = paramo_tensors_open(path, &file);
    if (!err)
        err = rows_of(file, e->table, &r);
    if (err) {
        judge_end(e, err);
        return;
    }
    for (size_t row = 0; row < r.n; row++) {
        unsigned i = ledger_index(w, e->table, r.keys[row]);
        if (i == SIM_KEYS || !cell_room(w, &w->cells[i])) {
            paramo_tensors_close(file);
            return;
        }
        has[i] = true;
        value[i] = r.vals[2 * row];
    }
    paramo_tensors_close(file);
    e->from = ++w->moment;
    memcpy(e->deaths, w->deaths, sizeof e->deaths);
    for (unsigned i = 0; i < SIM_KEYS; i++)
        if (has[i])
            cell_write(&w->cells[i], value[i], e->from);
    err = paramo_table_load(e->handle.worker, &e->handle, path);
    judge_end(e, err);
    w->moment++;
    /* As with a request of its own (ledger.c, cells_done()): the server that took a row may be gone, or dead
     * to all others without knowing it; then the row may exist or not. */
    for (unsigned i = 0; i < SIM_KEYS && !err; i++)
        if (has[i] && (w->schedule->replicas || ledger_stays(w, SIM_CELLS, i, e->from, e->deaths)) &&
            !losses_between(&w->ledger[SIM_CELLS].keys[i], e->from))
            cell_written(&w->cells[i], value[i], e->from, w->moment);
    w->counts[PLAY_loads] += !err;
}

static void run(void *arg)
{
    struct client_task *e = arg;
    if (e->load)
        load(e);
    else
        save(e);
}

/* ---- playing ------------------------------------------------------------------------------------------- */

static void resume(struct machine *m)
{
    struct client_task *e = m->client_task;
    sim_set_waiter(m->world->sim, &e->waiter);
    file_use(disk_fs(m->disk));
    bool over = fiber_resume(e->fiber);
    file_use(NULL);
    sim_set_waiter(m->world->sim, NULL);
    if (!over)
        return;
    fiber_free(e->fiber);
    free(e);
    m->client_task = NULL;
}

void client_task_start(struct machine *m, unsigned customer, uint64_t draw)
{
    static const enum sim_table tables[] = {SIM_DENSE, SIM_SPARSE, SIM_VAR, SIM_ROWS, SIM_CELLS};
    struct client_task *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->machine = m;
    e->wake.fire = woken;
    e->waiter = (struct sim_waiter){waits, e};
    e->load = draw % 3 == 0 && !m->customers[customer].reads;
    e->table = e->load ? SIM_CELLS : tables[draw / 3 % 5];
    e->from = ++m->world->moment;
    e->began_at = lane_now(m->customers[customer].worker->lane);
    e->disk_struck = disk_struck(m->disk);
    memcpy(e->began_deaths, m->world->deaths, sizeof e->began_deaths);
    e->began_view = m->customers[customer].worker->client->view->number;
    e->handle.worker = m->customers[customer].worker;
    e->handle.spec = m->tables[e->table];
    e->handle.options = m->tables[e->table].options;
    atomic_store(&e->handle.users, 1);
    e->clears = m->world->ledger[e->table].clears;
    m->client_task = e;
    m->client_task_from = e->from;
    m->client_task_customer = customer;
    e->fiber = fiber_new(run, e);
    resume(m);
}

void client_task_step(struct machine *m)
{
    struct client_task *e = m->client_task;
    if (disk_crashed(m->disk)) { /* with its machine */
        if (m->up)
            machine_kill(m, ENV_SEC);
        client_task_power_fails(m);
        client_task_check_files(m);
        return;
    }
    if (!e || !ready(e))
        return;
    uint64_t paused = sim_host_paused_until(m->host);
    if (paused > sim_now(m->world->sim))
        sim_must(sim_schedule(m->world->sim, &e->wake, paused));
    else
        resume(m);
    cover_watch(m); /* a request may have started a connection */
}

void client_task_die(struct machine *m)
{
    if (!m->client_task)
        return;
    disk_process_gone(m->disk, true, 0);
    for (unsigned i = 0; m->client_task; i++) {
        if (i == RESUMES_MAX)
            abort();
        resume(m);
    }
    disk_process_gone(m->disk, false, 0);
}

void client_task_disk(struct machine *m, uint64_t seed)
{
    if (m->disk)
        disk_free(m->disk);
    m->disk = disk_new(seed, disk_turns, m);
    memset(m->saved, 0, sizeof m->saved);
    m->disk_slow_until = 0;
    sim_must(fs_make_dir(disk_fs(m->disk), "/d"));
}
