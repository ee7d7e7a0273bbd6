/* Folders of checkpoints, read without a cluster (cluster/checkpoint/ckpt.h). */
#include <stdlib.h>

#include "cluster/checkpoint/ckpt.h"
#include "node/admin_impl.h"
#include "node/config.h"

struct paramo_checkpoint {
    struct ckpt *ckpt;
};

static paramo_checkpoint_info info_of(const struct ckpt_manifest *m, paramo_checkpoint_state state)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->files_count; i++)
        bytes += m->files[i].bytes;
    return (paramo_checkpoint_info){.size = sizeof(paramo_checkpoint_info),
                                    .number = m->number,
                                    .state = state,
                                    .cause = "",
                                    .base = m->base,
                                    .made_at = m->made_at,
                                    .job = m->job,
                                    .view = m->view,
                                    .tables = m->tables_count,
                                    .files = m->files_count,
                                    .bytes = bytes};
}

/* ---- listing ------------------------------------------------------------------------------------------- */

struct listing {
    void (*fn)(void *arg, const paramo_checkpoint_info *info);
    void *arg;
    struct whole {
        uint64_t number, id;
    } * whole; /* the whole ones seen so far: later ones may be based on them */
    size_t whole_count;
    bool failed;
};

static bool base_is_whole(const struct listing *l, const struct ckpt_manifest *m)
{
    bool found = m->base == 0;
    for (size_t i = 0; i < l->whole_count && !found; i++)
        found = l->whole[i].number == m->base && l->whole[i].id == m->base_id;
    return found;
}

static void note_whole(struct listing *l, const struct ckpt_manifest *m)
{
    struct whole *list = realloc(l->whole, (l->whole_count + 1) * sizeof *list);
    l->failed = l->failed || !list;
    if (!list)
        return;
    l->whole = list;
    list[l->whole_count++] = (struct whole){.number = m->number, .id = m->id};
}

static void list_one(void *arg, uint64_t number, paramo_err status, const char *text,
                     const struct ckpt_manifest *m)
{
    struct listing *l = arg;
    paramo_checkpoint_info info = {.size = sizeof info,
                                   .number = number,
                                   .state = status == PARAMO_E_NOT_FOUND ? PARAMO_CHECKPOINT_UNFINISHED
                                                                         : PARAMO_CHECKPOINT_DAMAGED,
                                   .cause = text};
    if (m) {
        bool whole = base_is_whole(l, m);
        info = info_of(m, whole ? PARAMO_CHECKPOINT_WHOLE : PARAMO_CHECKPOINT_NO_BASE);
        if (whole)
            note_whole(l, m);
    }
    l->fn(l->arg, &info);
}

paramo_err paramo_checkpoint_list(const char *dir, void (*fn)(void *arg, const paramo_checkpoint_info *info),
                                  void *arg)
{
    struct listing l = {.fn = fn, .arg = arg};
    if (!dir || !*dir || !fn)
        return err_set(PARAMO_E_INVALID, "dir is empty or fn is NULL");
    paramo_err err = ckpt_list(fs_real(), dir, list_one, &l);
    free(l.whole);
    return !err && l.failed ? err_memory(sizeof *l.whole) : err;
}

/* ---- one of them --------------------------------------------------------------------------------------- */

paramo_err paramo_checkpoint_open(const char *dir, uint64_t number, paramo_checkpoint **out)
{
    if (!dir || !*dir || !out)
        return err_set(PARAMO_E_INVALID, "dir is empty or checkpoint is NULL");
    paramo_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return err_memory(sizeof *checkpoint);
    paramo_err err = ckpt_open(fs_real(), dir, number, &checkpoint->ckpt);
    if (err)
        free(checkpoint);
    else
        *out = checkpoint;
    return err;
}

void paramo_checkpoint_close(paramo_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    ckpt_close(checkpoint->ckpt);
    free(checkpoint);
}

paramo_err paramo_checkpoint_info_get(const paramo_checkpoint *checkpoint, uint32_t link,
                                      paramo_checkpoint_info *info)
{
    if (!checkpoint || !info)
        return err_set(PARAMO_E_INVALID, "checkpoint or info is NULL");
    if (link >= ckpt_links(checkpoint->ckpt))
        return err_set(PARAMO_E_NOT_FOUND, "there is no such link: the checkpoint has %u",
                       ckpt_links(checkpoint->ckpt));
    paramo_checkpoint_info whole = info_of(ckpt_manifest(checkpoint->ckpt, link), PARAMO_CHECKPOINT_WHOLE);
    options_copy_out(info, &whole, sizeof whole);
    return PARAMO_OK;
}

struct tally {
    uint64_t blocks[CKPT_KINDS], bytes;
};

static paramo_err count_block(void *arg, const struct ckpt_block *block)
{
    struct tally *tally = arg;
    tally->blocks[block->kind]++;
    tally->bytes += block->bytes;
    return PARAMO_OK;
}

paramo_err paramo_checkpoint_verify(const paramo_checkpoint *checkpoint, paramo_checkpoint_contents *contents)
{
    struct tally tally = {0};
    if (!checkpoint || !contents)
        return err_set(PARAMO_E_INVALID, "checkpoint or contents is NULL");
    paramo_err err = ckpt_visit(checkpoint->ckpt, NULL, count_block, &tally);
    if (err)
        return err;
    paramo_checkpoint_contents whole = {.rows_blocks = tally.blocks[CKPT_ROWS],
                                        .erased_blocks = tally.blocks[CKPT_ERASED],
                                        .cleared_blocks = tally.blocks[CKPT_CLEARED],
                                        .window_blocks = tally.blocks[CKPT_WINDOWS],
                                        .bytes = tally.bytes};
    options_copy_out(contents, &whole, sizeof whole);
    return PARAMO_OK;
}
