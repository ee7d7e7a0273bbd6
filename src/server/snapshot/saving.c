#include "server/snapshot/saving.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "server/replication/records.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_impl.h"
#include "server/shard/slice.h"
#include "server/shard/table_map.h"
#include "server/snapshot/ckpt_rows.h"
#include "server/snapshot/load_state.h"
#include "server/snapshot/save_records.h"
#include "table/table.h"
#include "table/table_snapshot.h"

enum {
    STEP_BYTES = 64 << 10, /* of a table, copied in one round */
    REST = 31,             /* steps take 1/32 of the lane's time */
    VAR_ROWS = 16384,      /* in a buffer */
    WAIT_MS = 1            /* between two looks whether the shard is ready; arbitrary */
};

/* Comes before a table's rows: the keys that the base has and the table no longer has. */
struct save_gone {
    struct save_gone *next;
    uint32_t table;
    struct ring_placement placement;
    bool cleared; /* all of it in the shard's partitions */
    size_t n;
    uint64_t keys[];
};

/* Rows on their way to the disk, in the order of the copy. */
struct save_buffer {
    struct qnode node;
    uint32_t table; /* the fields that the blocking job needs: the table's part may have ended */
    struct ring_placement placement;
    size_t width; /* bytes of a row; VAR: of a value */
    size_t n, room;
    uint64_t *keys;
    uint32_t *lens; /* VAR */
    struct writer rows;
};

struct saving_table {
    struct saving_table *next;
    struct saving *saving;
    struct shard_table *table;
    uint32_t id;
    struct ring_placement placement;
    size_t row_bytes, value_bytes; /* row_bytes 0: VAR */
    uint64_t rows;                 /* when it began: no buffer needs more room */
    /* partitions whose rows were gone when it began, but still took memory */
    uint64_t gone[PARTITION_WORDS];
    struct table_snapshot *snapshot; /* NULL: all rows are copied */
    struct save_buffer *buffer[SAVE_GROUPS];
};

struct saving {
    struct shard *shard;  /* NULL: the shard is closed, or has aborted this saving */
    struct shard *former; /* the open shard in whose list saves->left this one is */
    struct saving *next_left;
    struct shard_save_config config;
    char *dir;
    uint32_t writer_number;
    enum saving_phase phase;               /* it has tables in the last one only */
    uint64_t wait_until;                   /* lane_now's clock */
    uint64_t partitions_changed;           /* of the shard when it began */
    bool changes;                          /* since the base are known */
    struct saving_table *tables, *current; /* current: the table being copied; NULL: all are */
    struct queue full;                     /* struct save_buffer */
    size_t queued;                         /* bytes in full and batch */
    struct lane_timer walk; /* the next turn until its snapshot, then step of the current table */
    paramo_err err;
    char text[ERR_TEXT_MAX];
    bool mine[RING_PARTITIONS];
    uint8_t group[RING_PARTITIONS]; /* SAVE_GROUPS: not the shard's */
    /* the blocking job's while it is posted */
    struct blocking_job blocking_job;
    bool posted, ending, ended, given_up;
    bool closed; /* the shard's node is closed: no blocking job follows this one */
    struct queue batch;
    struct ckpt_writer *writer;
    struct save_records records; /* the lane's while it collects them */
    struct save_gone *gone;
    paramo_err work_err;
    char work_text[ERR_TEXT_MAX];
    struct ckpt_file file;
};

static void saving_go(struct saving *sv);

void saving_lose_base(struct shard *s)
{
    s->saves->id = 0;
}

enum saving_phase saving_state(const struct saving *sv, uint64_t *number)
{
    *number = sv->config.number;
    return sv->phase;
}

static const struct sm machine = {
    "saving",
    {[SAVING_WAITING] = {"waiting", SM_TO(SAVING_COLLECTING)},
     [SAVING_COLLECTING] = {"collecting", SM_TO(SAVING_WAITING) | SM_TO(SAVING_COPYING)},
     [SAVING_COPYING] = {"copying", 0}}};

static void move(struct saving *sv, enum saving_phase to)
{
    sm_check(&machine, sv->phase, to);
    sv->phase = to;
}

static void fail(struct saving *sv, paramo_err err)
{
    assert(err);
    if (sv->err)
        return;
    sv->err = err;
    err_text_copy(sv->text);
}

/* ---- buffers ---- */

static void buffer_free(struct save_buffer *b)
{
    if (!b)
        return;
    free(b->keys);
    free(b->lens);
    writer_fini(&b->rows);
    free(b);
}

static size_t buffer_bytes(const struct save_buffer *b)
{
    return b->rows.len + b->n * (b->lens ? 12 : 8);
}

static struct save_buffer *buffer_new(struct saving_table *t)
{
    struct save_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->table = t->id;
    b->placement = t->placement;
    b->width = t->row_bytes ? t->row_bytes : t->value_bytes;
    b->room = t->row_bytes ? SAVE_BUFFER_BYTES / (t->row_bytes + 8) + 1 : VAR_ROWS;
    b->room = t->rows < b->room ? (size_t)t->rows + 1 : b->room;
    b->keys = malloc(b->room * sizeof *b->keys);
    b->lens = t->row_bytes ? NULL : malloc(b->room * sizeof *b->lens);
    b->rows.data = t->row_bytes ? malloc(b->room * t->row_bytes) : NULL;
    b->rows.capacity = b->rows.data ? b->room * t->row_bytes : 0;
    if (!b->keys || (t->row_bytes ? !b->rows.data : !b->lens)) {
        buffer_free(b);
        return NULL;
    }
    assert(b->room > 0 && !b->lens == (t->row_bytes > 0));
    assert(b->width > 0);
    return b;
}

/* Of the open shard's saving: what waits for the disk is counted, and a table is copied only before its end. */
static void saving_fits(const struct saving *sv)
{
    assert(!sv->shard || !sv->former);
    assert(sv->queued || (queue_empty(&sv->full) && queue_empty(&sv->batch)));
    assert(!sv->current || (sv->tables && sv->phase == SAVING_COPYING));
}

static void buffer_full(struct saving *sv, struct save_buffer **at)
{
    saving_fits(sv);
    struct save_buffer *b = *at;
    *at = NULL;
    if (!b)
        return;
    assert(b->n > 0 && b->n <= b->room);
    sv->queued += buffer_bytes(b);
    queue_push(&sv->full, &b->node);
}

/* Called by the table's snapshot. */
static void got_row(void *arg, uint64_t key, const void *row, uint32_t values)
{
    struct saving_table *t = arg;
    struct saving *sv = t->saving;
    assert(sv->shard && sv->phase == SAVING_COPYING);
    unsigned partition = ring_partition(ring_position(&t->placement, key));
    uint8_t group = sv->group[partition];
    if (group == SAVE_GROUPS || sv->err || partition_set_has(t->gone, partition))
        return;
    struct save_buffer **at = &t->buffer[group], *b = *at;
    if (!b)
        b = *at = buffer_new(t);
    if (!b) {
        fail(sv, err_memory(SAVE_BUFFER_BYTES));
        return;
    }
    assert(b->table == t->id && b->n < b->room);
    b->keys[b->n] = key;
    if (!b->lens) { /* there is room */
        memcpy(b->rows.data + b->rows.len, row, t->row_bytes);
        b->rows.len += t->row_bytes;
    } else {
        b->lens[b->n] = values;
        if (values)
            write_bytes(&b->rows, row, values * t->value_bytes);
        if (b->rows.failed)
            fail(sv, err_memory(b->rows.len));
    }
    if (++b->n == b->room || (b->lens && buffer_bytes(b) >= SAVE_BUFFER_BYTES))
        buffer_full(sv, at);
}

/* ---- the disk ---- */

static paramo_err put_cleared(struct saving *sv, uint32_t table)
{
    assert(sv->posted && sv->writer); /* a blocking job */
    paramo_err err = PARAMO_OK;
    for (unsigned a = 0, end; a < RING_PARTITIONS && !err; a = end) {
        for (end = a + 1; end < RING_PARTITIONS && sv->mine[end] == sv->mine[a]; end++)
            ;
        struct ckpt_block block = {
            .kind = CKPT_CLEARED, .table = table, .partition = a, .partitions = end - a};
        if (sv->mine[a])
            err = ckpt_put(sv->writer, &block);
    }
    return err;
}

static paramo_err put_erased(struct saving *sv, const struct save_gone *gone)
{
    uint64_t *keys = malloc((gone->n + 1) * sizeof *keys);
    paramo_err err = keys ? ckpt_by_partition(&gone->placement, gone->keys, gone->n, keys)
                          : err_memory(gone->n * sizeof *keys);
    for (size_t at = 0, took; at < gone->n && !err; at += took) {
        struct writer payload = {0};
        struct ckpt_block block;
        err = ckpt_erased_encode(gone->table, &gone->placement, keys + at, gone->n - at, &payload, &block,
                                 &took);
        if (!err)
            err = ckpt_put(sv->writer, &block);
        writer_fini(&payload);
    }
    free(keys);
    return err;
}

static paramo_err put_gone(struct saving *sv)
{
    assert(sv->posted);
    assert(sv->writer);
    paramo_err err = PARAMO_OK;
    for (const struct save_gone *gone = sv->gone; gone && !err; gone = gone->next)
        err = gone->cleared ? put_cleared(sv, gone->table) : put_erased(sv, gone);
    return err;
}

static paramo_err put_buffer(struct saving *sv, const struct save_buffer *b)
{
    assert(sv->posted && sv->writer);
    assert(b->n > 0 && b->n <= b->room);
    struct writer payload = {0};
    struct ckpt_block block;
    paramo_err err = ckpt_rows_pack(b->table, &b->placement, b->keys, b->lens, b->rows.data, b->n, b->width,
                                    &payload, &block);
    if (!err)
        err = ckpt_put(sv->writer, &block);
    writer_fini(&payload);
    return err;
}

static void work(struct blocking_job *blocking_job)
{
    struct saving *sv = container_of(blocking_job, struct saving, blocking_job);
    assert(sv->posted && !sv->ended);
    paramo_err err = sv->work_err;
    if (sv->given_up) {
        ckpt_abort(sv->writer);
        sv->writer = NULL;
        return;
    }
    if (!sv->writer) {
        err = ckpt_begin(sv->config.fs, sv->dir, sv->config.number, sv->config.id, sv->writer_number,
                         &sv->writer);
        if (!err)
            err = save_records_put(&sv->records, sv->writer);
        save_records_fini(&sv->records);
        if (!err)
            err = put_gone(sv);
    }
    for (const struct qnode *node = sv->batch.head; node && !err; node = node->next)
        err = put_buffer(sv, container_of(node, struct save_buffer, node));
    if (!err && sv->ending) {
        err = ckpt_end(sv->writer, &sv->file);
        sv->writer = NULL; /* freed in any case */
        sv->ended = !err;
    }
    assert(!sv->ended || (!sv->writer && !sv->work_err));
    if (err && !sv->work_err) {
        sv->work_err = err;
        err_text_copy(sv->work_text);
    }
}

/* ---- life ---- */

static void queue_clear(struct saving *sv, struct queue *queue)
{
    saving_fits(sv);
    for (struct qnode *node; (node = queue_pop(queue));) {
        struct save_buffer *b = container_of(node, struct save_buffer, node);
        assert(sv->queued >= buffer_bytes(b));
        sv->queued -= buffer_bytes(b);
        buffer_free(b);
    }
}

/* Ends the snapshots of the tables. */
static void tables_end(struct saving *sv)
{
    saving_fits(sv);
    sv->current = NULL;
    while (sv->tables) {
        struct saving_table *t = sv->tables;
        assert(t->table->saving == t);
        sv->tables = t->next;
        t->table->saving = NULL;
        table_snapshot_close(t->snapshot);
        clearing_update(sv->shard, t->table); /* of one that is given up, marks may be left */
        for (size_t i = 0; i < SAVE_GROUPS; i++)
            buffer_free(t->buffer[i]);
        free(t);
    }
}

static void saving_free(struct saving *sv)
{
    assert(!sv->posted);
    queue_clear(sv, &sv->batch);
    queue_clear(sv, &sv->full);
    tables_end(sv);
    assert(sv->queued == 0);
    save_records_fini(&sv->records);
    for (struct save_gone *gone = sv->gone, *next; gone; gone = next) {
        next = gone->next;
        free(gone);
    }
    free(sv->dir);
    free(sv);
}

static void finish(struct saving *sv)
{
    struct shard *s = sv->shard;
    char label[VIEW_LABEL_MAX];
    paramo_err err = sv->err ? err_set(sv->err, "%s", sv->text) : PARAMO_OK;
    if (err)
        log_warn("%s, shard %u: saving checkpoint %llu failed: %s", view_id_label(s->config.node, label),
                 s->config.index, (unsigned long long)sv->config.number, sv->text);
    assert(s->saves->current == sv && !sv->posted && (sv->err || sv->ended));
    assert(!sv->current && !sv->writer);
    s->saves->current = NULL;
    if (err)
        s->saves->id = 0;
    lane_timer_cancel(s->lane, &sv->walk);
    if (err)
        (void)err_set(err, "%s", sv->text);
    sv->config.done(sv->config.arg, err, &sv->file);
    saving_free(sv);
    slice_resume_all(s);
}

static void post(struct saving *sv);

/* The shard has aborted the saving: removes its file, then frees it. */
static void leave(struct saving *sv)
{
    assert(!sv->shard && !sv->posted && sv->former);
    if (sv->writer) {
        post(sv);
        return;
    }
    struct saving **at = &sv->former->saves->left;
    while (*at != sv) {
        assert(*at);
        at = &(*at)->next_left;
    }
    *at = sv->next_left;
    saving_free(sv);
}

static void worked(struct blocking_job *blocking_job)
{
    struct saving *sv = container_of(blocking_job, struct saving, blocking_job);
    assert(sv->posted);
    assert(sv->shard ? sv->shard->saves->current == sv : sv->former || sv->closed);
    sv->posted = false;
    queue_clear(sv, &sv->batch);
    if (!sv->shard) {
        if (sv->closed) {
            ckpt_abort(sv->writer);
            saving_free(sv);
        } else {
            leave(sv);
        }
        return;
    }
    if (sv->work_err && !sv->err) {
        sv->err = sv->work_err;
        memcpy(sv->text, sv->work_text, sizeof sv->text);
    }
    struct shard *s = sv->shard;
    saving_go(sv);
    if (s->saves->current == sv)
        slice_resume_all(s);
}

static void post(struct saving *sv)
{
    assert(!sv->posted && queue_empty(&sv->batch));
    saving_fits(sv);
    sv->posted = true;
    sv->given_up = sv->err != PARAMO_OK;
    sv->batch = sv->full;
    sv->full = (struct queue){0};
    blocking_jobs_post(sv->config.blocking_jobs, &sv->blocking_job);
}

/* Do followers have every number that the records count? If not, and the checkpoint were restored beside a
 * follower's rows, such a number would be applied nowhere. A migration's target is no follower before it has
 * all. */
static bool all_followed(const struct shard *s)
{
    for (const struct chain_stream *st = s->chain ? s->chain->streams : NULL; st; st = st->next)
        if (!st->migration_source && st->acked < st->saved)
            return false;
    return !s->chain || !chain_routes(s->chain);
}

void saving_mark(struct shard *s)
{
    assert(!s->saves->current || s->saves->current->shard == s);
    for (struct chain_stream *st = s->chain && s->saves->current ? s->chain->streams : NULL; st;
         st = st->next) {
        assert(st->saved <= st->seq && st->acked <= st->seq);
        st->saved = st->seq;
    }
}

void saving_check(struct shard *s)
{
    assert(!s->saves->current || s->saves->current->shard == s);
    if (s->saves->current && !s->saves->current->posted &&
        s->saves->current->ended) /* the blocking job owns `ended` while one runs */
        saving_go(s->saves->current);
}

/* Continues wherever it can. Afterwards a blocking job runs, or the timer is armed, or an acknowledgement is
 * awaited, or the saving has ended. */
static void saving_go(struct saving *sv)
{
    struct shard *s = sv->shard;
    if (sv->err && sv->tables) {
        lane_timer_cancel(s->lane, &sv->walk);
        tables_end(sv);
        queue_clear(sv, &sv->full);
    }
    bool walking = sv->current != NULL;
    assert(s->saves->current == sv && !(sv->err && sv->tables));
    assert(!walking || sv->phase == SAVING_COPYING);
    if (!sv->posted) {
        sv->ending = !walking && !sv->err;
        if (sv->ended && !sv->err && !all_followed(s))
            return;
        if (sv->ended || (sv->err && !sv->writer)) {
            finish(sv);
            return;
        }
        if (sv->err || !queue_empty(&sv->full) || !walking)
            post(sv);
    }
    if (!sv->err && walking && sv->queued < sv->config.queue_bytes && !sv->walk.slot) {
        paramo_err err = lane_timer_arm(s->lane, &sv->walk, lane_now(s->lane));
        if (err) {
            fail(sv, err);
            if (!sv->posted)
                saving_go(sv);
        }
    }
}

/* One step of the current table. */
static void walk(struct lane_timer *timer)
{
    struct saving *sv = container_of(timer, struct saving, walk);
    struct shard *s = sv->shard;
    struct saving_table *t = sv->current;
    bool done = false;
    assert(s && s->saves->current == sv && (sv->err || t));
    saving_fits(sv);
    uint64_t begun = lane_now(s->lane);
    paramo_err err = sv->err ? sv->err : table_snapshot_step(t->snapshot, STEP_BYTES, &done);
    if (err)
        fail(sv, err);
    else if (done) {
        for (size_t i = 0; i < SAVE_GROUPS; i++)
            buffer_full(sv, &t->buffer[i]);
        table_snapshot_close(t->snapshot);
        t->snapshot = NULL;
        sv->current = t->next;
    }
    uint64_t now = env_now(lane_env(s->lane));
    if (!sv->err && sv->current && sv->queued < sv->config.queue_bytes)
        err = lane_timer_arm(s->lane, timer, now + REST * (now - begun));
    if (err)
        fail(sv, err);
    saving_go(sv);
}

/* The shard's partitions in SAVE_GROUPS, as large as each other. */
static void group_partitions(struct saving *sv, const struct shard *s)
{
    unsigned count = 0, at = 0;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        count += sv->mine[a] = view_ring(s->view)->owner[a] == (unsigned)s->self;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        sv->group[a] = (uint8_t)(sv->mine[a] ? at++ * SAVE_GROUPS / count : SAVE_GROUPS);
    assert(at == count);
    assert(s->self >= 0);
}

static paramo_err add_gone(struct saving *sv, const struct saving_table *t, bool cleared,
                           const uint64_t *keys, size_t n)
{
    assert(t->saving == sv && (!cleared || !n));
    struct save_gone *gone = malloc(sizeof *gone + n * sizeof *keys);
    if (!gone)
        return err_memory(n * sizeof *keys);
    *gone =
        (struct save_gone){.next = sv->gone, .table = t->id, .placement = t->placement, .cleared = cleared};
    for (size_t i = 0; i < n; i++)
        if (sv->mine[ring_partition(ring_position(&t->placement, keys[i]))])
            gone->keys[gone->n++] = keys[i];
    assert(gone->n <= n);
    sv->gone = gone;
    return PARAMO_OK;
}

static paramo_err add_table(struct saving *sv, struct shard_table *from)
{
    bool changes = sv->changes && table_changes_known(from->table);
    if (from->lost)
        return err_set(PARAMO_E_DATA_LOST, "table %s: its rows are lost", from->name);
    struct saving_table *t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    t->saving = sv;
    t->table = from;
    t->id = from->id;
    t->placement = from->placement;
    memcpy(t->gone, from->clearing, sizeof t->gone);
    t->value_bytes = from->value_bytes;
    t->row_bytes = (size_t)from->stored_values * from->value_bytes;
    t->rows = table_rows(from->table);
    paramo_err err = table_snapshot_open(from->table, changes ? TABLE_SNAPSHOT_CHANGES : TABLE_SNAPSHOT_ALL,
                                         sv->config.changes, got_row, t, &t->snapshot);
    size_t erased = 0;
    const uint64_t *keys = !err && changes ? table_snapshot_erased(t->snapshot, &erased) : NULL;
    if (erased)
        err = add_gone(sv, t, false, keys, erased);
    else if (!err && !changes && sv->config.base_id && from->options.kind != PARAMO_TABLE_DENSE)
        err = add_gone(sv, t, true, NULL, 0);
    if (err) {
        table_snapshot_close(t->snapshot);
        free(t);
        return err;
    }
    assert(!sv->current && !sv->posted);
    assert(!from->saving);
    from->saving = t;
    t->next = sv->tables;
    sv->tables = t;
    return PARAMO_OK;
}

static paramo_err add_tables(struct saving *sv)
{
    struct shard *s = sv->shard;
    struct shard_table *t;
    paramo_err err = PARAMO_OK;
    assert(!s->saves->current || s->saves->current == sv);
    assert(sv->phase == SAVING_COPYING && !sv->current);
    sv->changes = sv->config.base_id && s->saves->id && s->saves->id == sv->config.base_id;
    s->saves->id = 0;
    for (size_t i = 0; !err && (t = shard_table_next(s, &i));)
        if (t->options.kind != PARAMO_TABLE_USER)
            err = t->lacks ? err_set(PARAMO_E_MEMORY, "out of memory for a table") : add_table(sv, t);
    return err;
}

/* One turn. After the last one the saving has the tables as they are, too. */
static paramo_err collect(struct saving *sv)
{
    struct shard *s = sv->shard;
    bool done;
    assert(sv->phase == SAVING_COLLECTING);
    paramo_err err = save_records_turn(&sv->records, &done);
    if (err)
        return err;
    if (!done) /* in a simulation, other events come between two turns */
        return lane_timer_arm(s->lane, &sv->walk, lane_now(s->lane) + (s->config.turn_records ? ENV_MS : 0));
    move(sv, SAVING_COPYING);
    assert(!sv->tables && !sv->gone && !sv->posted);
    return add_tables(sv);
}

static void tables_begin(struct saving *sv)
{
    struct shard *s = sv->shard;
    assert(s->saves->current == sv && sv->phase == SAVING_COPYING);
    saving_fits(sv);
    assert(!sv->current && !sv->posted);
    s->saves->id = sv->config.changes ? sv->config.id : 0;
    saving_mark(s);
    sv->walk.fire = walk;
    sv->current = sv->tables;
    saving_go(sv);
}

/* Can the snapshot be taken? AGAIN: steps of the lane change records, rows or marks. They end, and wait for no saving
 * that has no snapshot yet. */
static paramo_err check_ready(const struct shard *s)
{
    struct shard_table *t;
    if (s->chain && records_pending(s->chain))
        return err_set(PARAMO_E_AGAIN, "the shard is taking over records of senders from another shard");
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        if (t->options.kind == PARAMO_TABLE_USER || t->lacks)
            continue;
        if (table_snapshot_must_wait(t->table))
            return err_set(PARAMO_E_AGAIN,
                           "table %s: checkpoints were given up, and their marks are being cleared", t->name);
        if (t->clears && t->options.kind == PARAMO_TABLE_DENSE)
            return err_set(PARAMO_E_AGAIN, "table %s: its rows are being cleared", t->name);
    }
    return PARAMO_OK;
}

/* The next turn. A checkpoint in which partitions change owners fails anyway
 * (cluster/scheduler/sched_ckpt_servers.c). */
static paramo_err turn(struct saving *sv)
{
    struct shard *s = sv->shard;
    assert(sv->phase != SAVING_COPYING && !sv->tables);
    if (s->place->partitions_changed != sv->partitions_changed)
        return err_set(PARAMO_E_AGAIN, "partitions changed owners while the checkpoint began");
    paramo_err err = check_ready(s);
    if (err) {
        if (sv->phase == SAVING_COLLECTING) { /* records that have passed since were copied in part */
            save_records_fini(&sv->records);
            move(sv, SAVING_WAITING);
        }
        uint64_t now = lane_now(s->lane);
        return now < sv->wait_until ? lane_timer_arm(s->lane, &sv->walk, now + WAIT_MS * ENV_MS) : err;
    }
    if (sv->phase == SAVING_WAITING) {
        uint64_t mine[PARTITION_WORDS] = {0};
        for (unsigned a = 0; a < RING_PARTITIONS; a++)
            if (sv->mine[a])
                partition_set_add(mine, a);
        err = save_records_begin(&sv->records, s, mine);
        if (err)
            return err;
        move(sv, SAVING_COLLECTING);
    }
    return collect(sv);
}

static void turn_fire(struct lane_timer *timer)
{
    struct saving *sv = container_of(timer, struct saving, walk);
    struct shard *s = sv->shard;
    bool held = sv->phase == SAVING_COLLECTING;
    assert(s->saves->current == sv && !sv->err && !sv->posted);
    paramo_err err = turn(sv);
    if (err) {
        fail(sv, err);
        saving_go(sv);
        return;
    }
    held = held && sv->phase != SAVING_COLLECTING;
    if (sv->phase == SAVING_COPYING)
        tables_begin(sv);
    if (held)
        slice_resume_all(s);
}

paramo_err shard_save(struct shard *s, const struct shard_save_config *config)
{
    paramo_err late = saving_check_term(s, config->term);
    if (late)
        return late;
    if (s->saves->current || loading_now(s))
        return err_set(PARAMO_E_AGAIN, "the shard is saving or loading a checkpoint already");
    if (s->self < 0)
        return err_set(PARAMO_E_AGAIN, "the shard is not in the view yet");
    struct saving *sv = calloc(1, sizeof *sv);
    if (!sv)
        return err_memory(sizeof *sv);
    sv->shard = s;
    sv->config = *config;
    if (!sv->config.queue_bytes)
        sv->config.queue_bytes = SAVE_QUEUE_BYTES;
    sv->writer_number = (uint32_t)s->self;
    sv->blocking_job = (struct blocking_job){.lane = s->lane, .work = work, .done = worked};
    sv->walk.fire = turn_fire;
    sv->dir = strdup(config->dir);
    sv->wait_until = lane_now(s->lane) + config->hold_ms * ENV_MS;
    sv->partitions_changed = s->place->partitions_changed;
    group_partitions(sv, s);
    paramo_err err = sv->dir ? turn(sv) : err_memory(strlen(config->dir));
    if (err) {
        lane_timer_cancel(s->lane, &sv->walk);
        saving_free(sv);
        return err;
    }
    assert(!s->saves->current && !sv->posted);
    assert(sv->phase != SAVING_COPYING || sv->partitions_changed == s->place->partitions_changed);
    s->saves->current = sv;
    if (sv->phase == SAVING_COPYING)
        tables_begin(sv);
    return PARAMO_OK;
}

void shard_save_drop(struct shard *s, uint64_t number)
{
    struct saving *sv = s->saves->current;
    if (!sv || (number && sv->config.number != number))
        return;
    assert(sv->shard == s && !sv->former);
    fail(sv, err_set(PARAMO_E_CANCELLED, "the scheduler aborted the checkpoint"));
    saving_go(sv);
}

void saving_sender_gone(struct shard *s, const struct sender *sender)
{
    if (s->saves->current && s->saves->current->phase == SAVING_COLLECTING)
        save_records_sender_gone(&s->saves->current->records, sender);
}

bool saving_holds(const struct shard *s, const struct wire_head *h, const struct van_seg *seg)
{
    const struct saving *sv = s->saves->current;
    if (!sv || sv->err || !data_changes(h->kind))
        return false;
    if (sv->phase == SAVING_COLLECTING)
        return true;
    if (sv->queued < sv->config.queue_bytes && h->kind != WIRE_CLEAR)
        return false;
    const struct shard_table *t = shard_table_get(s, h->table);
    if (!t || !t->saving || !t->saving->snapshot)
        return false;
    return table_snapshot_holds(
        t->saving->snapshot, h->kind == WIRE_CLEAR || !h->count ? NULL : seg[WIRE_SEG_KEYS].data, h->count);
}

bool saving_behind(const struct shard *s, const struct shard_table *t)
{
    const struct saving *sv = s->saves->current;
    return sv && !sv->err && t->saving && t->saving->snapshot && sv->queued >= sv->config.queue_bytes &&
           table_snapshot_holds(t->saving->snapshot, NULL, 0);
}

/* Ends the saving with err and this thread's message. Only what a blocking job works on remains. */
static void report_end(struct shard *s, paramo_err err)
{
    struct saving *sv = s->saves->current;
    assert(sv->shard == s && !sv->former);
    saving_fits(sv);
    fail(sv, err);
    s->saves->current = NULL;
    lane_timer_cancel(s->lane, &sv->walk);
    tables_end(sv);
    queue_clear(sv, &sv->full);
    sv->shard = NULL;
    sv->config.done(sv->config.arg, err_set(sv->err, "%s", sv->text), NULL);
}

void saving_close(struct shard *s)
{
    for (struct saving *left = s->saves->left; left; left = left->next_left)
        left->closed = true;
    s->saves->left = NULL;
    struct saving *sv = s->saves->current;
    if (!sv)
        return;
    report_end(s, err_set(PARAMO_E_CLOSED, "the node is closed"));
    assert(!s->saves->current && !sv->shard);
    assert(!sv->former);
    sv->closed = true;
    if (!sv->posted) {
        ckpt_abort(sv->writer);
        saving_free(sv);
    }
}

paramo_err saving_check_term(const struct shard *s, uint32_t term)
{
    if (!term || !s->view || term >= s->view->number >> 32)
        return PARAMO_OK;
    return err_set(PARAMO_E_CANCELLED, "the scheduler that ordered it no longer leads");
}

void saving_new_view(struct shard *s)
{
    struct saving *sv = s->saves->current;
    paramo_err err = sv ? saving_check_term(s, sv->config.term) : PARAMO_OK;
    if (!err)
        return;
    report_end(s, err);
    assert(!s->saves->current && !sv->shard);
    assert(!sv->former);
    s->saves->id = 0;
    sv->former = s;
    sv->next_left = s->saves->left;
    s->saves->left = sv;
    if (!sv->posted)
        leave(sv);
    slice_resume_all(s);
}
