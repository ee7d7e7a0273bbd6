#include "server/snapshot/loading.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/sm.h"
#include "server/migration/migration.h"
#include "server/replication/records.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "server/snapshot/ckpt_rows.h"
#include "server/snapshot/load_records.h"
#include "server/snapshot/saving.h"

enum { READ_BYTES = 8 << 20 /* of blocks, read in one blocking job. Arbitrary */ };

/* A block that was read. */
struct load_block {
    struct qnode node;
    struct ckpt_block block;
    struct load_records records; /* if it is one of records; its payload is decoded, and not kept */
    uint8_t payload[];
};

struct loading {
    struct shard *shard; /* NULL: it is closed */
    enum loading_phase phase;
    bool hold, lost; /* lost: loads only lost rows that will be restored */
    uint32_t term;   /* of the scheduler that ordered the hold */
    struct lane_timer limit;
    struct shard_save_config config;
    char *dir;
    bool matched;      /* its tables are there, and were cleared */
    struct map tables; /* of the checkpoint, by its ids -> shard_table */
    struct lane_timer next;
    paramo_err err;
    char text[ERR_TEXT_MAX];
    bool own[RING_PARTITIONS],
        mine[RING_LEVELS][RING_PARTITIONS]; /* mine: by the table's number of replicas, with copies */
    bool reads[RING_PARTITIONS];            /* blocks of these partitions, as when it began */
    /* the blocking job's while it is posted */
    struct blocking_job blocking_job;
    bool posted, end;
    struct ckpt *ckpt;
    struct ckpt_reader *reader;
    struct queue blocks;
    paramo_err work_err;
    uint64_t number; /* of this shard's loads */
    char work_text[ERR_TEXT_MAX];
};

bool loading_state(const struct loading *ld, enum loading_phase *phase, uint64_t *number)
{
    *phase = ld->phase;
    *number = ld->number;
    return ld->lost;
}

/* ---- the disk ---- */

static bool has_records(const struct ckpt_block *b)
{
    return b->kind == CKPT_WINDOWS || b->kind == CKPT_NOTES;
}

static bool wanted(void *arg, const struct ckpt_block *b)
{
    const struct loading *ld = arg;
    if (!b->table && !has_records(b))
        return false;
    if (has_records(b) && ckpt_reader_link(ld->reader))
        return false; /* records of a base are skipped: the newest checkpoint has all records */
    for (uint32_t a = b->partition; a < b->partition + b->partitions; a++)
        if (ld->reads[a])
            return true;
    return false;
}

static paramo_err open_ckpt(struct loading *ld)
{
    assert(ld->posted && !ld->ckpt);
    assert(!ld->reader);
    paramo_err err = ckpt_open(ld->config.fs, ld->dir, ld->config.number, &ld->ckpt);
    if (!err && ckpt_manifest(ld->ckpt, 0)->id != ld->config.id)
        err = err_set(PARAMO_E_CORRUPT, "%s: its checkpoint %" PRIu64 " has another id than the one to load",
                      ld->dir, ld->config.number);
    return err ? err : ckpt_reader_open(ld->ckpt, &ld->reader);
}

static void block_free(struct load_block *b)
{
    load_records_fini(&b->records);
    free(b);
}

/* Keeps the block, which is the reader's. */
static paramo_err keep(struct loading *ld, const struct ckpt_block *b)
{
    size_t bytes = has_records(b) ? 0 : b->bytes;
    assert(ld->posted);
    assert(ld->reader);
    struct load_block *copy = malloc(sizeof *copy + bytes);
    if (!copy)
        return err_memory(bytes);
    *copy = (struct load_block){.block = *b};
    copy->block.payload = copy->payload;
    if (bytes)
        memcpy(copy->payload, b->payload, bytes);
    paramo_err err = has_records(b) ? load_records_decode(b, &copy->records) : PARAMO_OK;
    if (err)
        block_free(copy);
    else
        queue_push(&ld->blocks, &copy->node);
    return err;
}

static paramo_err read_some(struct loading *ld)
{
    assert(ld->posted && !ld->work_err && !ld->end);
    paramo_err err = ld->reader ? PARAMO_OK : open_ckpt(ld);
    for (size_t bytes = 0; !err && bytes < READ_BYTES && !ld->end;) {
        struct ckpt_block b;
        err = ckpt_reader_next(ld->reader, wanted, ld, &b, &ld->end);
        if (err || ld->end)
            break;
        err = keep(ld, &b);
        bytes += b.bytes;
    }
    return err;
}

static void work(struct blocking_job *blocking_job)
{
    struct loading *ld = container_of(blocking_job, struct loading, blocking_job);
    assert(ld->posted);
    assert(ld->ckpt || !ld->reader);
    ld->work_err = read_some(ld);
    if (ld->work_err)
        err_text_copy(ld->work_text);
}

/* ---- life ---- */

static void loading_free(struct loading *ld)
{
    assert(!ld->posted && !ld->next.slot && !ld->limit.slot);
    assert(!ld->shard || ld->shard->loads->current != ld);
    for (struct qnode *node; (node = queue_pop(&ld->blocks));)
        block_free(container_of(node, struct load_block, node));
    ckpt_reader_close(ld->reader);
    ckpt_close(ld->ckpt);
    map_fini(&ld->tables);
    free(ld->dir);
    free(ld);
}

static void fail(struct loading *ld, paramo_err err)
{
    assert(err);
    if (ld->err)
        return;
    ld->err = err;
    err_text_copy(ld->text);
}

static bool owns(const struct shard *s, unsigned partition)
{
    return s->self >= 0 && view_ring(s->view)->owner[partition] == (unsigned)s->self;
}

/* Does this shard have the partition's rows of a table with this number of replicas? */
static bool holds(const struct shard *s, unsigned partition, int replicas)
{
    int level = s->chain ? s->chain->level[partition] : -1;
    return owns(s, partition) || (level > 0 && level <= replicas);
}

/* After a new view: no rows are loaded for partitions that have left, nor for tables that this shard no
 * longer has there. Such rows would stay, and be old when the partition returns. Partitions that arrive
 * during the load are not loaded. */
static void keep_held(struct loading *ld)
{
    assert(ld->shard && ld->shard->loads->current == ld);
    assert(ld->hold || ld->phase >= LOADING);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        ld->own[a] &= owns(ld->shard, a);
        for (int r = 0; r < RING_LEVELS; r++)
            ld->mine[r][a] &= holds(ld->shard, a, r);
    }
}

/* The table's partitions that this loads. Others may have arrived since it began; it does not bring their
 * lost rows. */
static void loadable_partitions(const struct loading *ld, const struct shard_table *t,
                                uint64_t partitions[PARTITION_WORDS])
{
    assert(!ld->lost);
    assert(t->replicas < RING_LEVELS);
    memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (ld->mine[t->replicas][a])
            partition_set_add(partitions, a);
}

/* Restored rows stay lost until all of them are loaded. */
static void mark(struct loading *ld, bool lost)
{
    uint64_t key, partitions[PARTITION_WORDS];
    assert(ld->matched && ld->shard && ld->phase >= LOADING);
    void *value;
    for (size_t i = 0; map_next(&ld->tables, &i, &key, &value) && !(ld->lost && lost);) {
        struct shard_table *t = value;
        if (!ld->lost)
            loadable_partitions(ld, t, partitions);
        shard_table_lose(t, ld->lost ? t->returns : partitions, lost);
    }
}

static const struct sm machine = {
    "loading",
    {[HOLDING] = {"holding", SM_TO(HELD) | SM_TO(LOADING)}, /* a load without a hold begins at once */
     [HELD] = {"held", SM_TO(LOADING)},
     [LOADING] = {"loading", SM_TO(LOADED)},
     [LOADED] = {"loaded", 0}}};

static void move(struct loading *ld, enum loading_phase to)
{
    sm_check(&machine, ld->phase, to);
    ld->phase = to;
}

static void told(struct loading *ld, paramo_err status)
{
    assert(ld->shard && (status || ld->phase == HELD || ld->phase == LOADED));
    ld->config.done(ld->config.arg, status, NULL);
}

/* Requests are handled again. */
static void release(struct loading *ld)
{
    struct shard *s = ld->shard;
    assert(s->loads->current == ld && !ld->posted && ld->phase == LOADED);
    assert(!ld->next.slot);
    s->loads->current = NULL;
    s->loads->aborted = 0;
    lane_timer_cancel(s->lane, &ld->next);
    lane_timer_cancel(s->lane, &ld->limit);
    loading_free(ld);
    loading_update(s);
    slice_resume_view_deferred(s);
}

static void finish(struct loading *ld)
{
    struct shard *s = ld->shard;
    char label[VIEW_LABEL_MAX];
    assert(!ld->posted && ld->phase == LOADING && !ld->next.slot);
    assert(s->loads->current == ld);
    if (ld->matched)
        mark(ld, ld->err != PARAMO_OK);
    if (ld->err)
        log_error("%s, shard %u: loading checkpoint %" PRIu64 " failed: %s",
                  view_id_label(s->config.node, label), s->config.index, ld->config.number, ld->text);
    move(ld, LOADED);
    if (ld->err)
        (void)err_set(ld->err, "%s", ld->text);
    told(ld, ld->err);
    if (!ld->hold)
        release(ld);
}

static void again_in(struct loading *ld, uint64_t ns)
{
    assert(!ld->posted && ld->phase == LOADING);
    assert(ld->shard && ld->shard->loads->current == ld);
    paramo_err err = lane_timer_arm(ld->shard->lane, &ld->next, lane_now(ld->shard->lane) + ns);
    if (!err)
        return;
    fail(ld, err);
    finish(ld);
}

static void again(struct loading *ld)
{
    again_in(ld, 0);
}

/* ---- rows that must be restored ---- */

static bool returns(const struct shard_table *t)
{
    uint64_t any = 0;
    for (size_t i = 0; i < PARTITION_WORDS; i++)
        any |= t->returns[i];
    return any;
}

/* Finds the table's rows that are lost, ours, and will be restored by the view. */
static bool find_returns(const struct shard *s, struct shard_table *t)
{
    assert(t->replicas < RING_LEVELS);
    memset(t->returns, 0, sizeof t->returns);
    for (unsigned a = 0; t->table && s->self >= 0 && a < RING_PARTITIONS; a++) {
        bool is_lost = partition_set_has(t->lost_partitions, a) && s->view->lost[a] > t->replicas;
        if (view_ring(s->view)->owner[a] == (unsigned)s->self && is_lost)
            partition_set_add(t->returns, a);
    }
    return returns(t);
}

void loading_expect(struct shard *s)
{
    s->loads->restoring = s->view->lost_at != 0;
}

void loading_update(struct shard *s)
{
    struct shard_table *t;
    assert(!s->loads->current || s->loads->current->shard == s);
    if (s->loads->current)
        keep_held(s->loads->current);
    /* the end of such a load calls this again */
    s->loads->restoring = s->view->lost_at && s->loads->current && s->loads->current->lost;
    if (!s->view->lost_at || s->loads->restoring)
        return;
    for (size_t i = 0; (t = shard_table_next(s, &i));)
        s->loads->restoring |= t->lost && find_returns(s, t);
}

static paramo_err clear_returns(struct loading *ld)
{
    struct shard *s = ld->shard;
    assert(ld->lost && ld->matched && ld->phase == LOADING);
    uint64_t key;
    void *value;
    size_t found = 0, due = 0, room = clearing_room(s);
    for (size_t i = 0; map_next(&ld->tables, &i, &key, &value); found++)
        ;
    const struct shard_table *t;
    for (size_t i = 0; (t = shard_table_next(s, &i));)
        due += returns(t);
    if (found != due)
        return err_set(PARAMO_E_NOT_FOUND, "the checkpoint lacks some of the lost tables");
    for (size_t i = 0; map_next(&ld->tables, &i, &key, &value);)
        clearing_begin_some(s, value, ((struct shard_table *)value)->returns, &room);
    return PARAMO_OK;
}

/* Matches tables by name: their ids may differ here. */
static paramo_err match_table(struct loading *ld, const struct view_table *from)
{
    struct shard *s = ld->shard;
    assert(!ld->matched);
    const struct view_table *here = view_table_named(s->view, from->name);
    struct shard_table *t = here ? shard_table_get(s, here->id) : NULL;
    if (ld->lost)
        return t && returns(t) ? map_put(&ld->tables, from->id, t) : PARAMO_OK;
    if (t && t->lacks)
        return err_set(PARAMO_E_MEMORY, "out of memory for table %s", from->name);
    if (!t || (!t->table && t->options.kind != PARAMO_TABLE_USER))
        return err_set(PARAMO_E_NO_TABLE, "there is no table %s", from->name);
    return t->table ? map_put(&ld->tables, from->id, t) : PARAMO_OK;
}

static paramo_err match(struct loading *ld)
{
    const struct ckpt_manifest *m = ckpt_manifest(ld->ckpt, 0);
    paramo_err err = PARAMO_OK;
    uint64_t key;
    void *value;
    size_t room = clearing_room(ld->shard);
    for (uint32_t i = 0; i < m->tables_count && !err; i++)
        err = match_table(ld, &m->tables[i]);
    if (err)
        return err;
    assert(!ld->matched);
    assert(ld->phase == LOADING);
    ld->matched = true;
    if (ld->lost)
        return clear_returns(ld);
    for (size_t i = 0; map_next(&ld->tables, &i, &key, &value);)
        clearing_begin_some(ld->shard, value, NULL, &room);
    return PARAMO_OK;
}

/* ---- blocks ---- */

static paramo_err apply_rows(struct loading *ld, const struct ckpt_block *b)
{
    assert(ld->phase == LOADING && ld->shard->loads->current == ld);
    assert(ld->matched && !has_records(b));
    struct shard_table *t = map_get(&ld->tables, b->table);
    if (!t)
        return ld->lost ? PARAMO_OK
                        : err_set(PARAMO_E_CORRUPT,
                                  "a block of table %" PRIu32 ", which is not in the manifest", b->table);
    for (unsigned a = 0; ld->lost && a < RING_PARTITIONS; a++)
        ld->mine[0][a] = partition_set_has(t->returns, a) && ld->own[a];
    const bool *mine = ld->mine[ld->lost ? 0 : t->replicas];
    if (b->kind != CKPT_CLEARED)
        return ckpt_rows_apply(t->table, &t->placement, mine, b);
    uint64_t partitions[PARTITION_WORDS] = {0};
    paramo_err err = ckpt_cleared(t->table, mine, b, partitions);
    if (!err)
        clearing_begin(ld->shard, t, partitions); /* the next block waits for its end */
    return err;
}

/* Of a block with records, as many as fit into a turn. done: it is applied. */
static paramo_err apply(struct loading *ld, struct load_block *b, bool *done)
{
    assert(ld->matched && !ld->err);
    *done = true;
    if (has_records(&b->block))
        return load_records_turn(ld->shard, ld->own, &b->records, done);
    return apply_rows(ld, &b->block);
}

/* Are earlier rows still being removed, or do records pass from one owner to another? Neither a row nor a
 * record may come before that ends. */
static bool waits(const struct loading *ld)
{
    bool any = ld->shard->chain && records_pending(ld->shard->chain);
    uint64_t key;
    void *value;
    for (size_t i = 0; map_next(&ld->tables, &i, &key, &value);)
        any |= ((struct shard_table *)value)->clears;
    return any && !ld->err;
}

/* One block in a round, or a part of one. */
static void next(struct lane_timer *timer)
{
    struct loading *ld = container_of(timer, struct loading, next);
    paramo_err err = PARAMO_OK;
    assert(!ld->posted && ld->phase == LOADING && ld->shard->loads->current == ld);
    assert(ld->reader || ld->work_err);
    if (ld->work_err) {
        ld->err = ld->work_err;
        memcpy(ld->text, ld->work_text, sizeof ld->text);
    }
    if (!ld->err && !ld->matched)
        err = match(ld);
    if (err)
        fail(ld, err);
    err = PARAMO_OK;
    if (waits(ld)) {
        again_in(ld, ENV_MS);
        return;
    }
    struct qnode *node = ld->err ? NULL : ld->blocks.head;
    if (node) {
        struct load_block *b = container_of(node, struct load_block, node);
        bool done;
        err = apply(ld, b, &done);
        if (err)
            fail(ld, err);
        if (done || err) {
            (void)queue_pop(&ld->blocks);
            block_free(b);
        }
        /* In a simulation, other events come between two turns. */
        again_in(ld, !done && ld->shard->config.turn_records ? ENV_MS : 0);
    } else if (ld->err || ld->end) {
        finish(ld);
    } else {
        ld->posted = true;
        blocking_jobs_post(ld->config.blocking_jobs, &ld->blocking_job);
    }
}

static void worked(struct blocking_job *blocking_job)
{
    struct loading *ld = container_of(blocking_job, struct loading, blocking_job);
    assert(ld->posted && !ld->next.slot);
    assert(!ld->shard || ld->shard->loads->current == ld);
    ld->posted = false;
    if (ld->shard)
        again(ld);
    else
        loading_free(ld);
}

/* Aborts the load; requests still wait. */
static void load_abort(struct shard *s, paramo_err why)
{
    struct loading *ld = s->loads->current;
    assert(ld->shard == s && why);
    assert(!ld->posted || ld->phase == LOADING);
    s->loads->current = NULL;
    s->loads->aborted = ld->config.id;
    lane_timer_cancel(s->lane, &ld->next);
    lane_timer_cancel(s->lane, &ld->limit);
    if (ld->matched)
        mark(ld, true);
    if (ld->phase == HOLDING || ld->phase == LOADING)
        told(ld, why);
    ld->shard = NULL;
    if (!ld->posted)
        loading_free(ld);
}

static void too_long(struct lane_timer *timer)
{
    struct loading *ld = container_of(timer, struct loading, limit);
    struct shard *s = ld->shard;
    assert(s->loads->current == ld && ld->hold);
    load_abort(s, err_set(PARAMO_E_TIMEOUT, "the load has not ended in time"));
    slice_resume_view_deferred(s);
}

/* Do all later members of the chains have every change of this shard? Some may still be on their way to a stream. */
static bool all_have_all(const struct shard *s)
{
    if (s->chain && records_pending(s->chain))
        return false;
    for (const struct chain_stream *st = s->chain ? s->chain->streams : NULL; st; st = st->next)
        if (!queue_empty(&st->entries))
            return false;
    return true;
}

/* May a dead owner still read rows that are ours now? The load must not replace them, and end, before that is over. */
static bool old_owner_reads(const struct shard *s)
{
    return s->chain && lane_now(s->lane) < s->chain->wait_until;
}

void loading_check(struct shard *s)
{
    struct loading *ld = s->loads->current;
    if (!ld || !ld->hold)
        return;
    assert(ld->shard == s);
    if (s->view->number >> 32 != ld->term) {
        load_abort(s, err_set(PARAMO_E_CANCELLED, "another scheduler leads now"));
        slice_resume_view_deferred(s);
    } else if (ld->phase == HOLDING && all_have_all(s) && !old_owner_reads(s)) {
        move(ld, HELD);
        told(ld, PARAMO_OK);
    }
}

/* Orders may overtake each other: HOLD or LOAD may come after the GO that ended their load. */
static paramo_err check_order(const struct shard *s, const struct shard_save_config *config)
{
    paramo_err late = saving_check_term(s, config->term);
    if (late || config->order >= s->loads->over)
        return late;
    return err_set(PARAMO_E_CANCELLED, "the scheduler has ended this load already");
}

static paramo_err loading_begin(struct shard *s, const struct shard_save_config *config, struct loading **out)
{
    paramo_err late = check_order(s, config);
    if (late)
        return late;
    if (s->loads->current && s->loads->current->config.id == config->id)
        load_abort(s, err_set(PARAMO_E_CANCELLED, "the checkpoint is loaded again"));
    if (saving_now(s) || s->loads->current)
        return err_set(PARAMO_E_AGAIN, "the shard is saving or loading a checkpoint already");
    if (s->self < 0)
        return err_set(PARAMO_E_AGAIN, "the shard is not in the view yet");
    /* Records may be passing from one owner to another: a hold and the first block wait for their end. A refusal would
     * not do: the load itself ends migrations, whose records then pass, and the next attempt could find these. */
    paramo_err err = migration_suspend(s);
    if (err)
        return err;
    assert(!s->loads->current && !saving_now(s) && s->self >= 0);
    struct loading *ld = calloc(1, sizeof *ld);
    if (!ld)
        return err_memory(sizeof *ld);
    ld->shard = s;
    ld->number = ++s->loads->begun;
    ld->config = *config;
    ld->blocking_job = (struct blocking_job){.lane = s->lane, .work = work, .done = worked};
    ld->next.fire = next;
    ld->limit.fire = too_long;
    map_init(&ld->tables);
    assert(ld->phase == HOLDING && !ld->posted);
    *out = ld;
    return PARAMO_OK;
}

paramo_err shard_load_hold(struct shard *s, const struct shard_save_config *config)
{
    struct loading *ld = NULL;
    paramo_err err = loading_begin(s, config, &ld);
    if (err)
        return err;
    err = lane_timer_arm(s->lane, &ld->limit, lane_now(s->lane) + config->hold_ms * ENV_MS);
    if (err) {
        loading_free(ld);
        return err;
    }
    assert(!s->loads->current && ld->phase == HOLDING);
    ld->hold = true;
    ld->term = (uint32_t)(s->view->number >> 32);
    s->loads->current = ld;
    loading_check(s);
    return PARAMO_OK;
}

static paramo_err err_hold_expired(const struct shard *s)
{
    return err_set(PARAMO_E_TIMEOUT, "shard %u aborted the load: other shards took too long; load it again",
                   s->config.index);
}

paramo_err shard_load_go(struct shard *s, uint64_t id, uint64_t order)
{
    struct loading *ld = s->loads->current;
    s->loads->over = order > s->loads->over ? order : s->loads->over;
    if (!ld || !ld->hold || ld->config.id != id)
        return s->loads->aborted == id ? err_hold_expired(s) : PARAMO_OK;
    assert(ld->shard == s);
    assert(!ld->lost); /* a restore holds nothing */
    if (ld->phase == LOADED) {
        release(ld);
    } else {
        load_abort(s, err_set(PARAMO_E_CANCELLED, "the scheduler aborted the load"));
        s->loads->aborted = 0; /* the scheduler learns it by this answer */
        slice_resume_view_deferred(s);
    }
    return PARAMO_OK;
}

void shard_load_drop(struct shard *s, uint64_t id, uint64_t order)
{
    s->loads->over = order > s->loads->over ? order : s->loads->over;
    if (!s->loads->current || !s->loads->current->hold || s->loads->current->config.id != id)
        return;
    assert(s->loads->current->shard == s);
    assert(!s->loads->current->lost);
    load_abort(s, err_set(PARAMO_E_CANCELLED, "the scheduler aborted the load"));
    s->loads->aborted = 0; /* the scheduler knows it */
    slice_resume_view_deferred(s);
}

/* Starts the read; `next` does the rest. */
static paramo_err start(struct shard *s, struct loading *ld)
{
    ld->dir = strdup(ld->config.dir);
    if (!ld->dir)
        return err_memory(strlen(ld->config.dir));
    memcpy(ld->reads, ld->mine[RING_REPLICAS_MAX], sizeof ld->reads);
    assert(ld->phase == (ld->hold ? HELD : HOLDING));
    move(ld, LOADING);
    assert(!ld->posted && (!s->loads->current || s->loads->current == ld));
    s->loads->current = ld;
    saving_lose_base(s);
    ld->posted = true;
    blocking_jobs_post(ld->config.blocking_jobs, &ld->blocking_job);
    return PARAMO_OK;
}

/* False: the shard joined after the others were told to hold, and has no row that it could have served. */
static bool in_a_chain(const struct shard *s)
{
    const struct ring_chains *chains = &s->view->chains;
    for (partition_set_runs(a, end, s->place->runs))
        for (unsigned level = 0; level <= chains->replicas; level++)
            if (s->self >= 0 && chains->level[level].owner[a] == (unsigned)s->self)
                return true;
    return false;
}

paramo_err shard_load(struct shard *s, const struct shard_save_config *config)
{
    struct loading *ld = s->loads->current;
    /* A shard that served after its hold has sent changes to copies that are loaded, or will be. */
    bool copies = s->view && s->view->chains.replicas;
    if (ld && ld->phase == HELD && ld->config.id == config->id) {
        ld->config = *config;
    } else if (copies && in_a_chain(s)) {
        paramo_err late = check_order(s, config);
        return late ? late : err_hold_expired(s);
    } else {
        paramo_err err = loading_begin(s, config, &ld);
        if (err)
            return err;
    }
    assert(ld->shard == s && ld->phase <= HELD && !ld->posted);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        ld->own[a] = owns(s, a);
        for (int r = 0; r < RING_LEVELS; r++)
            ld->mine[r][a] = holds(s, a, r);
    }
    paramo_err err = start(s, ld);
    assert(err || s->loads->current == ld);
    if (err && !ld->hold)
        loading_free(ld);
    return err;
}

paramo_err shard_restore(struct shard *s, const struct shard_save_config *config)
{
    struct loading *ld;
    struct shard_table *t;
    bool any = false;
    paramo_err late = saving_check_term(s, config->term);
    if (late)
        return late;
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        if (t->lost && t->lacks) {
            shard_table_again(s);
            return err_set(PARAMO_E_MEMORY,
                           "shard %u: out of memory for table %s, whose rows are lost: restore it again",
                           s->config.index, t->name);
        }
    }
    shard_save_drop(s, 0);
    if (s->loads->current)
        load_abort(s, err_set(PARAMO_E_CANCELLED, "lost rows are being restored"));
    paramo_err err = loading_begin(s, config, &ld);
    if (err)
        return err;
    assert(ld->phase == HOLDING && !ld->hold);
    ld->lost = true;
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        any |= find_returns(s, t);
        for (unsigned a = 0; a < RING_PARTITIONS; a++)
            ld->own[a] |= partition_set_has(t->returns, a);
    }
    memcpy(ld->mine[RING_REPLICAS_MAX], ld->own, sizeof ld->own);
    err = any ? start(s, ld) : PARAMO_OK;
    assert(err || !any || s->loads->current == ld);
    if (err || !any)
        loading_free(ld);
    if (!err && !any)
        config->done(config->arg, PARAMO_OK, NULL); /* it was done before */
    return err;
}

void loading_close(struct shard *s)
{
    if (s->loads->current)
        load_abort(s, err_set(PARAMO_E_CLOSED, "the node is closed"));
    assert(!s->loads->current);
}
