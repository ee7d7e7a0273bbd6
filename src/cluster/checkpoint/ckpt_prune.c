#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/checkpoint/ckpt_format.h"
#include "cluster/checkpoint/ckpt_manifest.h"
#include "cluster/checkpoint/ckpt_prune.h"
#include "cluster/checkpoint/ckpt_read.h"

struct entry {
    uint64_t number, id, base, base_id;
    enum { WHOLE, ATTEMPT, DAMAGED } is;
    bool mine, stays;
};

struct pruning {
    struct fs *fs;
    bool (*mine)(void *arg, const struct ckpt_manifest *m);
    void *arg;
    struct entry *list; /* ascending numbers */
    size_t count;
    paramo_err err;
    char text[ERR_TEXT_MAX];
};

static void add(void *arg, uint64_t number, paramo_err status, const char *text,
                const struct ckpt_manifest *m)
{
    struct pruning *p = arg;
    if (p->err)
        return;
    assert(!m == !!status);
    assert(!p->count || p->list[p->count - 1].number <= number);
    struct entry *list = realloc(p->list, (p->count + 1) * sizeof *list);
    if (!list) {
        p->err = err_memory((p->count + 1) * sizeof *list);
        err_text_copy(p->text);
        return;
    }
    p->list = list;
    struct entry *e = &list[p->count++];
    *e = (struct entry){.number = number};
    if (m) {
        e->is = WHOLE;
        e->id = m->id;
        e->base = m->base;
        e->base_id = m->base_id;
        e->mine = p->mine(p->arg, m);
    } else if (status == PARAMO_E_NOT_FOUND || status == PARAMO_E_CORRUPT) {
        e->is = status == PARAMO_E_CORRUPT ? DAMAGED : ATTEMPT;
    } else { /* its base is unknown */
        p->err = status;
        (void)snprintf(p->text, sizeof p->text, "%s", text);
    }
}

static void keep_base(struct pruning *p, size_t of)
{
    const struct entry *e = &p->list[of];
    for (size_t i = of; i-- > 0 && e->base;)
        if (p->list[i].number == e->base && p->list[i].id == e->base_id)
            p->list[i].stays = true;
}

/* From the newest to the oldest, since a checkpoint is newer than its base. */
static void choose(struct pruning *p, size_t keep)
{
    uint64_t newest = 0;
    for (size_t i = p->count; i-- > 0;) {
        struct entry *e = &p->list[i];
        if (e->is == WHOLE) {
            newest = newest ? newest : e->number;
            e->stays = e->stays || !e->mine || keep > 0;
            keep -= e->mine && keep > 0;
            if (e->stays)
                keep_base(p, i);
        } else {
            e->stays = e->is == DAMAGED || e->number > newest;
        }
    }
}

struct names {
    char (*name)[CKPT_NAME_MAX];
    size_t count;
    bool failed;
};

static void add_name(void *arg, const char *name)
{
    struct names *n = arg;
    bool ours = strncmp(name, "blocks-", 7) == 0 || strncmp(name, "manifest", 8) == 0;
    if (!ours || strlen(name) >= CKPT_NAME_MAX || n->failed)
        return;
    void *list = realloc(n->name, (n->count + 1) * sizeof *n->name);
    n->failed = !list;
    if (!list)
        return;
    n->name = list;
    (void)snprintf(n->name[n->count++], CKPT_NAME_MAX, "%s", name);
}

static paramo_err empty(struct fs *fs, const char *folder)
{
    char path[FS_PATH_MAX];
    struct names n = {0};
    paramo_err err = fs_list(fs, folder, add_name, &n);
    if (!err && n.failed)
        err = err_memory(n.count * sizeof *n.name);
    assert(err || !n.count || n.name);
    for (size_t i = 0; i < n.count && !err; i++) {
        err = fs_join(folder, n.name[i], path);
        if (!err)
            err = fs_unlink(fs, path);
        if (err == PARAMO_E_NOT_FOUND)
            err = PARAMO_OK; /* its owner has removed it */
    }
    free(n.name);
    return err;
}

/* Removes the manifest first: without it the folder is an attempt. Only then its files go. */
static paramo_err remove_entry(struct fs *fs, const char *dir, const struct entry *e)
{
    char folder[FS_PATH_MAX], path[FS_PATH_MAX];
    paramo_err err = ckpt_paths(dir, e->number, "manifest", folder, path);
    if (!err && e->is == WHOLE) {
        err = fs_unlink(fs, path);
        if (!err)
            err = fs_sync_dir(fs, folder);
    }
    if (!err)
        err = empty(fs, folder);
    if (!err && e->is != WHOLE) /* its owner may have written a manifest in between */
        err = empty(fs, folder);
    return err ? err : fs_remove_dir(fs, folder);
}

paramo_err ckpt_prune(struct fs *fs, const char *dir, size_t keep,
                      bool (*mine)(void *arg, const struct ckpt_manifest *m), void *arg, size_t *removed)
{
    struct pruning p = {.fs = fs, .mine = mine, .arg = arg};
    *removed = 0;
    paramo_err err = ckpt_list(fs, dir, add, &p);
    if (!err && p.err)
        err = err_set(p.err, "%s", p.text);
    if (!err)
        choose(&p, keep);
    for (size_t i = p.count; i-- > 0 && !err;) {
        if (p.list[i].stays)
            continue;
        err = remove_entry(fs, dir, &p.list[i]);
        *removed += !err;
    }
    free(p.list);
    return err || !*removed ? err : fs_sync_dir(fs, dir);
}
