#include "cluster/scheduler/sched_ckpt_manifest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt_end.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/order.h"

paramo_err sched_ckpt_add_tables(struct sched_ckpt *c)
{
    const struct scheduler *s = c->sched;
    struct ckpt_manifest *m = &c->manifest;
    m->tables = malloc((sched_view_tables_count(s) + 1) * sizeof *m->tables);
    if (!m->tables)
        return err_memory(sched_view_tables_count(s) * sizeof *m->tables);
    m->tables_count = sched_view_tables_count(s);
    if (sched_view_tables_count(s))
        memcpy(m->tables, sched_view_table(s, 0), sched_view_tables_count(s) * sizeof *m->tables);
    return PARAMO_OK;
}

static void write_manifest(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    sched_ckpt_note_work(c, ckpt_commit(c->fs, c->order.dir, &c->manifest));
}

static bool is_unasked(const struct ckpt_manifest *m)
{
    struct reader records = reader_over(m->extra, m->extra_bytes), record;
    uint64_t id;
    while (store_record_next(&records, &id, &record))
        if (id >> 56 == RECORD_UNASKED)
            return true;
    return false;
}

/* This job may not remove checkpoints of a job that it does not continue. */
static bool is_mine(void *arg, const struct ckpt_manifest *m)
{
    const struct sched_ckpt *c = arg;
    return (c->all_mine || m->job == c->manifest.job) && is_unasked(m);
}

static void remove_old(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    sched_ckpt_note_work(c, ckpt_prune(c->fs, c->order.dir, c->keep, is_mine, c, &c->removed));
}

static void removed(struct sched_ckpt *c)
{
    if (c->work_err)
        log_warn("scheduler: not all old checkpoints in %s were removed: %s", c->order.dir, c->work_text);
    else if (c->removed)
        log_debug("scheduler: %zu old checkpoints in %s were removed", c->removed, c->order.dir);
}

static void written(struct sched_ckpt *c)
{
    assert(!c->load && !c->err && !c->orders_out);
    sched_ckpt_check(c);
    struct scheduler *s = c->sched;
    const struct ckpt_order *m = &c->order;
    sched_ckpt_finish(c);
    if (m->changes) {
        s->ckpts->base =
            (struct ckpt_base){.number = m->number, .id = m->id, .links = m->base ? c->base.links + 1 : 1};
        memcpy(s->ckpts->base.dir, m->dir, sizeof m->dir);
    }
    c->keep = s->config.checkpoint_keep;
    c->all_mine = strcmp(s->config.restore_dir, m->dir) == 0;
    if (c->unasked && c->keep)
        sched_ckpt_do_work(c, remove_old, removed);
}

/* Each shard writes its own blocks-N; no two shards may have the same. */
static paramo_err check_name(struct sched_ckpt *c, const char *name)
{
    assert(c->what == ORDER_CKPT_SAVE || c->what == ORDER_CKPT_DROP);
    unsigned long shard = 0;
    char again[CKPT_NAME_MAX] = "";
    if (strncmp(name, "blocks-", 7) == 0 && name[7] >= '0' && name[7] <= '9')
        shard = strtoul(name + 7, NULL, 10);
    (void)snprintf(again, sizeof again, "blocks-%lu", shard);
    if (shard >= sched_ring_shards_count(c->sched) || strcmp(again, name) != 0 ||
        c->written[shard / 64] >> shard % 64 & 1)
        return err_set(PARAMO_E_PROTOCOL, "it reported file '%s', which it was not ordered to write", name);
    c->written[shard / 64] |= UINT64_C(1) << shard % 64;
    return PARAMO_OK;
}

paramo_err sched_ckpt_add_files(struct sched_ckpt *c, struct reader *result)
{
    struct ckpt_manifest *m = &c->manifest;
    struct ckpt_written *w = malloc(sizeof *w);
    paramo_err err = w ? ckpt_written_decode(result, w) : err_memory(sizeof *w);
    struct ckpt_file *files = NULL;
    if (!err && w->count > VIEW_SHARDS_MAX - m->files_count)
        err = err_set(PARAMO_E_PROTOCOL, "there are more files than shards");
    if (!err && w->count) {
        files = realloc(m->files, (m->files_count + w->count) * sizeof *files);
        if (!files)
            err = err_memory(w->count * sizeof *files);
    }
    if (files)
        m->files = files;
    for (uint32_t i = 0; !err && i < w->count; i++)
        err = check_name(c, w->file[i].name);
    for (uint32_t i = 0; !err && i < w->count; i++) {
        struct ckpt_file *file = &files[m->files_count++];
        *file =
            (struct ckpt_file){.bytes = w->file[i].bytes, .blocks = w->file[i].blocks, .sum = w->file[i].sum};
        memcpy(file->name, w->file[i].name, sizeof file->name);
    }
    free(w);
    return err;
}

void sched_ckpt_commit(struct sched_ckpt *c)
{
    assert(!c->load && !c->orders_out && !c->finished);
    sched_ckpt_do_work(c, write_manifest, written);
}
