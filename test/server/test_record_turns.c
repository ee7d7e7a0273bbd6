/* A checkpoint saves and loads the records of many senders in turns, and what comes between two of them: changes,
 * views, the end of a sender, other orders, the end of the shard. */
#include "server/shard/senders.h"
#include "server/snapshot/load_records.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/save_records.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/replication/records.h"
#include "server/support_fake.h"
#include "sim/env/simfs.h"

/* SOME: with a record each millisecond, a load of them takes a while. */
enum { MANY = 10000, SOME = 300, NUMBER = 1, ID = 101 };

/* A turn may end with a record that costs more than is left of it. */
enum { STEP = RECORDS_TURN + RECORDS_COST + 2 * RECORDS_COST_NOTE };

static const uint64_t key = 7;

static struct {
    struct simfs *disk;
    struct fake f;
    struct blocking_jobs *blocking_jobs;
    struct fake_conn *c;
    bool done;
    paramo_err status;
    struct ckpt_file file;
} w;

static void told(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)arg;
    assert_false(w.done);
    w.done = true;
    w.status = status;
    if (!status && file)
        w.file = *file;
}

static void open_shard(size_t turn_records)
{
    fake_init(&w.f, NULL, NULL);
    w.f.shard->config.turn_records = turn_records;
    assert_int_equal(blocking_jobs_create(sim_env(w.f.sim), "files", &w.blocking_jobs), PARAMO_OK);
    w.f.number = UINT64_C(1) << 32;
    fake_view(&w.f);
    w.c = fake_connect(&w.f, 1);
}

static void close_shard(void)
{
    fake_disconnect(w.c);
    shard_close(w.f.shard);
    w.f.shard = NULL;
    lane_leave(w.f.lane);
    blocking_jobs_destroy(w.blocking_jobs);
    assert_true(lane_enter(w.f.lane));
    fake_fini(&w.f);
}

static void on(size_t turn_records)
{
    memset(&w, 0, sizeof w);
    assert_int_equal(simfs_create(1, &w.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(w.disk), "/var"), PARAMO_OK);
    open_shard(turn_records);
}

static void off(void)
{
    close_shard();
    simfs_destroy(w.disk);
}

static struct shard_save_config config_of(uint32_t term)
{
    return (struct shard_save_config){.fs = simfs_fs(w.disk),
                                      .blocking_jobs = w.blocking_jobs,
                                      .dir = "/var/ckpt",
                                      .number = NUMBER,
                                      .id = ID,
                                      .term = term,
                                      .done = told};
}

/* Worker 0 has many customers. Worker 1 has the connection. */
static struct sender_id many_id(uint32_t i)
{
    return (struct sender_id){.node = PARAMO_ID_WORKER(0), .customer = 100 + i, .incarnation = 101};
}

/* Number 3 is applied on all partitions, number 4 on some. */
static void senders(uint32_t count)
{
    static const uint64_t partitions[PARTITION_WORDS] = {5};
    for (uint32_t i = 0; i < count; i++) {
        struct sender_id id = many_id(i);
        struct sender *x = shard_sender(w.f.shard, &id);
        assert_non_null(x);
        applied_window_record(&x->applied_window, 3);
        assert_int_equal(applied_window_note_number(&x->applied_window, 4, partitions), PARAMO_OK);
    }
}

/* Of the senders: has the shard their records? */
static void senders_are_back(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sender_id id = many_id(i);
        const struct sender *x = shard_sender_find(w.f.shard, &id);
        assert_non_null(x);
        assert_int_equal(applied_window_state(&x->applied_window, 2), DEDUP_NEW);
        assert_int_equal(applied_window_state(&x->applied_window, 3), DEDUP_DONE);
        const struct applied_note *note = applied_window_note(&x->applied_window, 4);
        assert_non_null(note);
        assert_int_equal(note->partitions[0], 5);
        assert_null(note->next);
    }
}

/* True: it is answered, with OK. */
static bool push(uint64_t number)
{
    struct wire_head h = fake_head(&w.f, WIRE_PUSH, 1, number);
    const float one = 1;
    unsigned before = w.c->count;
    assert_int_equal(fake_send(w.c, &h, &key, &one), PARAMO_OK);
    if (w.c->count == before)
        return false;
    assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
    return true;
}

static float pulled(uint64_t number)
{
    struct wire_head h = fake_head(&w.f, WIRE_PULL, 1, number);
    assert_int_equal(fake_send(w.c, &h, &key, NULL), PARAMO_OK);
    assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
    return fake_last(w.c)->vals[0];
}

static void begin(uint32_t term)
{
    struct shard_save_config config = config_of(term);
    w.done = false;
    assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
    assert_false(w.done);
}

static void until_done(paramo_err status)
{
    for (unsigned i = 0; !w.done; i++) {
        assert_true(i < 1000);
        fake_pass(&w.f, ENV_SEC);
    }
    assert_int_equal(w.status, status);
}

static void commit(void)
{
    struct ckpt_manifest m = {.number = NUMBER,
                              .id = ID,
                              .tables_count = w.f.view->tables_count,
                              .tables = w.f.view->tables,
                              .files_count = 1,
                              .files = &w.file};
    assert_int_equal(ckpt_commit(simfs_fs(w.disk), "/var/ckpt", &m), PARAMO_OK);
}

static void load(void)
{
    struct shard_save_config config = config_of(0);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
}

/* A checkpoint with the senders' records; then another shard has their places, without them. */
static void saved(uint32_t count, size_t turn_records)
{
    on(0);
    assert_true(push(1));
    senders(count);
    begin(0);
    until_done(PARAMO_OK);
    commit();
    close_shard();
    open_shard(turn_records);
}

/* ---- a turn is short ---- */

/* However many senders there are, no turn costs more than a turn may. */
static void turns_of_a_save_are_short(void **state)
{
    (void)state;
    uint64_t all[PARTITION_WORDS];
    struct save_records records;
    unsigned turns = 0;
    memset(all, 0xff, sizeof all);
    on(0);
    senders(MANY);
    assert_int_equal(save_records_begin(&records, w.f.shard, all), PARAMO_OK);
    for (bool done = false; !done; turns++) {
        uint64_t before = records.spent;
        assert_int_equal(save_records_turn(&records, &done), PARAMO_OK);
        assert_in_range(records.spent - before, 1, STEP);
    }
    assert_true(records.spent >= MANY * RECORDS_COST);
    assert_in_range(turns, MANY * RECORDS_COST / STEP, 100);
    assert_int_equal(records.windows_count, MANY + 1);
    save_records_fini(&records);
    off();
}

/* Adds all records of the block. */
static void turns_are_short(const struct ckpt_block *block)
{
    static bool own[RING_PARTITIONS];
    struct load_records records;
    unsigned turns = 0;
    uint64_t begun = w.f.shard->loads->spent;
    memset(own, true, sizeof own);
    assert_int_equal(load_records_decode(block, &records), PARAMO_OK);
    for (bool done = false; !done; turns++) {
        uint64_t before = w.f.shard->loads->spent;
        assert_int_equal(load_records_turn(w.f.shard, own, &records, &done), PARAMO_OK);
        assert_in_range(w.f.shard->loads->spent - before, 1, STEP);
    }
    assert_true(w.f.shard->loads->spent - begun >= records.n * RECORDS_COST);
    assert_in_range(turns, records.n * RECORDS_COST / STEP, 100);
    load_records_fini(&records);
}

static void turns_of_a_load_are_short(void **state)
{
    (void)state;
    struct sender_window *windows = calloc(MANY, sizeof *windows);
    struct sender_note *notes = calloc(SENDER_NOTES_MAX, sizeof *notes);
    struct writer w_windows = {0}, w_notes = {0};
    assert_non_null(windows);
    assert_non_null(notes);
    on(0);
    for (uint32_t i = 0; i < MANY; i++) {
        windows[i].sender = many_id(i);
        dedup_init(&windows[i].dedup);
        dedup_record(&windows[i].dedup, 3);
    }
    for (uint32_t i = 0; i < SENDER_NOTES_MAX; i++)
        notes[i] = (struct sender_note){.sender = many_id(i), .number = 4, .partitions = {5}};
    sender_windows_encode(windows, MANY, &w_windows);
    sender_notes_encode(notes, SENDER_NOTES_MAX, &w_notes);
    struct ckpt_block block = {.kind = CKPT_WINDOWS,
                               .partitions = RING_PARTITIONS,
                               .payload = w_windows.data,
                               .bytes = w_windows.len};
    turns_are_short(&block);
    block.kind = CKPT_NOTES;
    block.payload = w_notes.data;
    block.bytes = w_notes.len;
    turns_are_short(&block);
    senders_are_back(SENDER_NOTES_MAX);
    writer_fini(&w_windows);
    writer_fini(&w_notes);
    free(windows);
    free(notes);
    off();
}

/* ---- in the middle of a save ---- */

/* One record is copied each millisecond. */
static void begin_and_wait(void)
{
    on(1);
    assert_true(push(1));
    senders(SOME);
    begin(1);
    fake_pass(&w.f, 100 * ENV_MS);
    assert_false(w.done);
    assert_false(push(2));
}

/* A change waits, and is not in the checkpoint. Reads go on. A view that changes no owner, another order, and
 * the goodbye of a customer do no harm. */
static void changes_in_the_middle(void **state)
{
    (void)state;
    begin_and_wait();
    close_shard();
    assert_int_equal(w.status, PARAMO_E_CLOSED);
    open_shard(1);
    assert_true(push(1));
    senders(SOME);
    begin(1);
    fake_pass(&w.f, 100 * ENV_MS);
    assert_true(pulled(50) == 1);
    fake_view(&w.f);
    struct shard_save_config config = config_of(1);
    assert_int_equal(shard_save(w.f.shard, &config), PARAMO_E_AGAIN);
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_AGAIN);
    assert_false(push(2));
    unsigned before = w.c->count;
    fake_pass(&w.f, SOME * ENV_MS);
    assert_int_equal(w.c->count, before + 1);
    until_done(PARAMO_OK);
    commit();
    assert_true(pulled(51) == 2);
    close_shard();
    open_shard(1);
    load();
    until_done(PARAMO_OK);
    senders_are_back(SOME);
    assert_true(push(1)); /* in the checkpoint */
    assert_true(pulled(52) == 1);
    assert_true(push(2)); /* not in it */
    assert_true(pulled(53) == 2);
    off();
}

/* Partitions change owners, the order is taken back, or another scheduler leads: the save ends, and changes go
 * on. */
static void ended_in_the_middle(void **state)
{
    (void)state;
    static const paramo_err status[] = {PARAMO_E_AGAIN, PARAMO_E_CANCELLED, PARAMO_E_CANCELLED};
    for (unsigned i = 0; i < 3; i++) {
        begin_and_wait();
        unsigned before = w.c->count;
        if (i == 0) {
            w.f.partitions_changed = w.f.number;
            fake_view(&w.f);
            fake_pass(&w.f, 2 * ENV_MS);
        } else if (i == 1) {
            shard_save_drop(w.f.shard, NUMBER);
        } else {
            w.f.number = UINT64_C(2) << 32;
            fake_view(&w.f);
        }
        assert_true(w.done);
        assert_int_equal(w.status, status[i]);
        assert_int_equal(w.c->count, before + 1);
        assert_true(pulled(50) == 2);
        begin(2);
        until_done(PARAMO_OK);
        off();
    }
}

/* The worker of those that are still to be visited dies. */
static void senders_gone_in_the_middle(void **state)
{
    (void)state;
    begin_and_wait();
    w.f.worker_dead = true;
    w.f.shard->config.turn_records = MANY; /* all are freed at once */
    fake_view(&w.f);
    w.f.shard->config.turn_records = 1;
    assert_int_equal(w.f.shard->senders->count, 1);
    assert_false(w.done);
    until_done(PARAMO_OK);
    assert_true(pulled(50) == 2);
    off();
}

static enum saving_phase phase(void)
{
    uint64_t number;
    return saving_state(w.f.shard->saves->current, &number);
}

/* Rows of the dense table go: partitions have left. The save waits again, what was collected is of an earlier moment,
 * and changes that waited go on. */
static void a_removal_in_the_middle(void **state)
{
    (void)state;
    static const uint64_t all[PARTITION_WORDS] = {UINT64_MAX};
    struct shard_table *dense;
    on(1);
    assert_true(push(1));
    senders(SOME);
    w.f.shard->config.scan_keys = 4;
    struct shard_save_config config = config_of(1);
    config.hold_ms = 1000;
    assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
    fake_pass(&w.f, 100 * ENV_MS);
    assert_int_equal(phase(), SAVING_COLLECTING);
    assert_false(push(2));
    unsigned before = w.c->count;
    dense = shard_table_find(w.f.shard, 2);
    clearing_begin(w.f.shard, dense, all);
    assert_true(dense->clears);
    fake_pass(&w.f, 2 * ENV_MS);
    assert_int_equal(phase(), SAVING_WAITING);
    assert_int_equal(w.c->count, before + 1);
    assert_true(push(3));
    while (phase() == SAVING_WAITING)
        fake_pass(&w.f, ENV_MS);
    assert_false(dense->clears);
    assert_int_equal(phase(), SAVING_COLLECTING);
    assert_false(push(4));
    until_done(PARAMO_OK);
    commit();
    close_shard();
    open_shard(1);
    load();
    until_done(PARAMO_OK);
    senders_are_back(SOME);
    for (uint64_t number = 1; number <= 3; number++)
        assert_true(push(number)); /* in the checkpoint, with its record */
    assert_true(pulled(50) == 3);
    assert_true(push(4));
    assert_true(pulled(51) == 4);
    off();
}

/* ---- in the middle of a load ---- */

static void load_and_wait(void)
{
    saved(SOME, 1);
    load();
    fake_pass(&w.f, 100 * ENV_MS);
    assert_false(w.done);
    assert_in_range(w.f.shard->senders->count, 2, SOME);
    assert_false(push(2));
}

static void loaded_in_turns(void **state)
{
    (void)state;
    load_and_wait();
    fake_view(&w.f);
    until_done(PARAMO_OK);
    senders_are_back(SOME);
    assert_true(pulled(50) == 2);
    close_shard();
    open_shard(1);
    load();
    fake_pass(&w.f, 100 * ENV_MS);
    close_shard();
    assert_int_equal(w.status, PARAMO_E_CLOSED);
    open_shard(1);
    off();
}

/* No record is added for partitions that have left. */
static void partitions_leave_in_the_middle(void **state)
{
    (void)state;
    load_and_wait();
    size_t before = w.f.shard->senders->count;
    w.f.foreign = RING_PARTITIONS;
    w.f.partitions_changed = w.f.number;
    fake_view(&w.f);
    until_done(PARAMO_OK);
    assert_int_equal(w.f.shard->senders->count, before);
    off();
}

/* Dead senders get no record. */
static void senders_die_in_the_middle(void **state)
{
    (void)state;
    load_and_wait();
    w.f.worker_dead = true;
    fake_view(&w.f);
    until_done(PARAMO_OK);
    fake_pass(&w.f, 10 * ENV_SEC);
    assert_int_equal(w.f.shard->senders->count, 1);
    assert_true(pulled(50) == 2);
    off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_of_a_save_are_short),
        cmocka_unit_test(turns_of_a_load_are_short),
        cmocka_unit_test(changes_in_the_middle),
        cmocka_unit_test(ended_in_the_middle),
        cmocka_unit_test(senders_gone_in_the_middle),
        cmocka_unit_test(a_removal_in_the_middle),
        cmocka_unit_test(loaded_in_turns),
        cmocka_unit_test(partitions_leave_in_the_middle),
        cmocka_unit_test(senders_die_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
