/* HOLD, LOAD and GO on one shard: requests wait from the first to the last, then are handled in their order; also
 * when GO never comes. (What a load brings: test_saving.c; among copies: the simulator.) */
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "server/support_fake.h"
#include "sim/env/simfs.h"
#include "wire/reduction_body.h"

enum { HOLD_MS = 10000, NUMBER = 1, ID = 101 };

static const uint64_t key = 7;

static struct {
    struct simfs *disk;
    struct fake f;
    struct blocking_jobs *blocking_jobs;
    struct fake_conn *c;
    uint64_t number; /* of the next request */
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

static void on(void)
{
    memset(&w, 0, sizeof w);
    w.number = 1;
    assert_int_equal(simfs_create(1, &w.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(w.disk), "/var"), PARAMO_OK);
    fake_init(&w.f, NULL, NULL);
    assert_int_equal(blocking_jobs_create(sim_env(w.f.sim), "files", &w.blocking_jobs), PARAMO_OK);
    fake_view(&w.f);
    w.c = fake_connect(&w.f, 0);
}

static void off(void)
{
    fake_disconnect(w.c);
    shard_close(w.f.shard);
    w.f.shard = NULL;
    lane_leave(w.f.lane);
    blocking_jobs_destroy(w.blocking_jobs);
    assert_true(lane_enter(w.f.lane));
    fake_fini(&w.f);
    simfs_destroy(w.disk);
}

static struct shard_save_config config_of(uint64_t id)
{
    return (struct shard_save_config){.fs = simfs_fs(w.disk),
                                      .blocking_jobs = w.blocking_jobs,
                                      .dir = "/var/ckpt",
                                      .number = NUMBER,
                                      .id = id,
                                      .hold_ms = HOLD_MS,
                                      .done = told};
}

/* Its number. */
static uint64_t ask(unsigned kind)
{
    struct wire_head h = fake_head(&w.f, kind, 1, w.number++);
    const float one = 1;
    h.floor = h.number > DATA_WINDOW / 2 ? h.number - DATA_WINDOW / 2 : 1;
    h.count = kind != WIRE_CLEAR;
    assert_int_equal(fake_send(w.c, &h, &key, &one), PARAMO_OK);
    return h.number;
}

static void push(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        (void)ask(WIRE_PUSH);
}

static paramo_err pull(float *value)
{
    uint64_t number = ask(WIRE_PULL);
    const struct fake_sent *sent = fake_last(w.c);
    assert_int_equal(sent->head.number, number);
    *value = sent->vals[0];
    return (paramo_err)sent->head.status;
}

static void hold(void)
{
    struct shard_save_config config = config_of(ID);
    w.done = false;
    assert_int_equal(shard_load_hold(w.f.shard, &config), PARAMO_OK);
    assert_true(w.done); /* it has no followers */
    assert_int_equal(w.status, PARAMO_OK);
    w.c->count = 0;
}

/* Two pushes. */
static void save(void)
{
    struct shard_save_config config = config_of(ID);
    push(2);
    w.done = false;
    assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    assert_int_equal(w.status, PARAMO_OK);
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
    struct shard_save_config config = config_of(ID);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    while (!w.done)
        fake_pass(&w.f, 20 * ENV_US);
    assert_int_equal(w.status, PARAMO_OK);
}

/* `count` answers have come since the hold, from number `first` on, in order; those of pulls have the result of the
 * pushes before. */
static void answered(uint64_t first, unsigned count, float before)
{
    assert_int_equal(w.c->count, count);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_sent *sent = &w.c->sent[i];
        assert_int_equal(sent->head.number, first + i);
        assert_int_equal(sent->head.status, PARAMO_OK);
        if (sent->vals_bytes)
            assert_true(sent->vals[0] == before);
        else
            before++;
    }
}

static void waits_until_go(void **state)
{
    (void)state;
    on();
    push(1);
    hold();
    uint64_t first = w.number;
    push(2);
    (void)ask(WIRE_PULL);
    push(1);
    (void)ask(WIRE_PULL);
    assert_int_equal(w.c->count, 0);
    fake_pass(&w.f, (HOLD_MS - 1000) * ENV_MS);
    assert_int_equal(shard_load_go(w.f.shard, ID + 1, 0), PARAMO_OK); /* another's */
    fake_view(&w.f);                                                  /* of the same scheduler */
    assert_int_equal(w.c->count, 0);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    answered(first, 5, 1);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK); /* again: nothing */
    float value;
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 4);
    off();
}

static void waits_until_go_when_loaded(void **state)
{
    (void)state;
    on();
    save();
    push(3); /* which the load takes back */
    hold();
    uint64_t first = w.number;
    push(2);
    load();
    (void)ask(WIRE_PULL); /* others may have to load still */
    push(1);
    fake_pass(&w.f, ENV_SEC);
    assert_int_equal(w.c->count, 0);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    answered(first, 4, 2);
    off();
}

/* The load has failed at another shard. What this shard had not touched stays; what it has loaded, or begun to,
 * is lost. A later load brings it back. */
static void fails_elsewhere(void **state)
{
    (void)state;
    float value;
    on();
    save();
    hold();
    uint64_t first = w.number;
    push(1);
    shard_load_drop(w.f.shard, ID + 1, 0); /* another one */
    assert_int_equal(w.c->count, 0);
    shard_load_drop(w.f.shard, ID, 0);
    answered(first, 1, 2);
    hold();
    (void)ask(WIRE_PULL);
    load();
    assert_int_equal(w.c->count, 0);
    shard_load_drop(w.f.shard, ID, 0);
    assert_int_equal(fake_last(w.c)->head.status, PARAMO_E_DATA_LOST);
    assert_int_equal(pull(&value), PARAMO_E_DATA_LOST);
    shard_load_drop(w.f.shard, ID, 0); /* again */
    hold();
    struct shard_save_config config = config_of(ID);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    shard_load_drop(w.f.shard, ID, 0); /* in the middle */
    assert_int_equal(w.status, PARAMO_E_CANCELLED);
    fake_pass(&w.f, ENV_SEC);
    assert_int_equal(pull(&value), PARAMO_E_DATA_LOST);
    hold();
    load();
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 2);
    off();
}

/* GO never comes: the hold ends by itself. */
static void not_for_ever(void **state)
{
    (void)state;
    on();
    hold();
    uint64_t first = w.number;
    push(2);
    fake_pass(&w.f, (HOLD_MS - 1) * ENV_MS);
    assert_int_equal(w.c->count, 0);
    fake_pass(&w.f, 2 * ENV_MS);
    answered(first, 2, 0);
    hold(); /* and another may come */
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    off();
}

static void next_scheduler(void)
{
    w.f.number = ((w.f.number >> 32) + 1) << 32;
    fake_view(&w.f);
}

/* GO comes too late for this shard, which does not know whether all have loaded: its rows are lost, so each GO of the
 * scheduler gets the answer that the load has failed. */
static void go_comes_too_late(void **state)
{
    (void)state;
    float value;
    on();
    save();
    hold();
    load();
    fake_pass(&w.f, (HOLD_MS + 1) * ENV_MS);
    assert_int_equal(pull(&value), PARAMO_E_DATA_LOST);
    assert_int_equal(shard_load_go(w.f.shard, ID + 1, 0), PARAMO_OK); /* another's */
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_E_TIMEOUT);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_E_TIMEOUT);
    hold(); /* and once more, in time */
    load();
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 2);
    off();
}

/* The load has failed, and GO, which says so, overtakes HOLD, or LOAD. Nothing else would end that hold. A later load
 * of the same checkpoint holds. */
static void go_overtakes_hold(void **state)
{
    (void)state;
    float value;
    on();
    struct shard_save_config config = config_of(ID);
    save();
    assert_int_equal(shard_load_go(w.f.shard, ID, 3), PARAMO_OK);
    w.done = false;
    config.order = 2;
    assert_int_equal(shard_load_hold(w.f.shard, &config), PARAMO_E_CANCELLED);
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_CANCELLED);
    assert_false(w.done);
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 2);
    config.order = 4;
    assert_int_equal(shard_load_hold(w.f.shard, &config), PARAMO_OK);
    assert_true(w.done);
    w.c->count = 0;
    uint64_t first = w.number;
    push(1);
    assert_int_equal(shard_load_go(w.f.shard, ID, 5), PARAMO_OK);
    answered(first, 1, 2);
    off();
}

/* LOAD comes when this shard has let its hold go and serves: what it did since some copies have, that had
 * loaded before, and others not. Nothing is loaded, and the scheduler hears it. */
static void load_comes_too_late(void **state)
{
    (void)state;
    float value;
    on();
    struct shard_save_config config = config_of(ID);
    w.f.replicas = 1;
    fake_view(&w.f);
    save();
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_TIMEOUT); /* no hold was there */
    hold();
    fake_pass(&w.f, (HOLD_MS + 1) * ENV_MS);
    push(1);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_TIMEOUT);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_E_TIMEOUT);
    fake_pass(&w.f, ENV_SEC);
    assert_false(w.done);
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 3);
    hold(); /* and once more, in time; loaded once it is not loaded again */
    load();
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_TIMEOUT);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    assert_int_equal(pull(&value), PARAMO_OK);
    assert_true(value == 2);
    off();
}

/* A server that joins after the others were told to hold is in no chain: it has served nothing, and loads
 * nothing. */
static void a_server_joins_amid_a_load(void **state)
{
    (void)state;
    on();
    struct shard_save_config config = config_of(ID);
    save();
    w.f.replicas = 1;
    w.f.foreign = RING_PARTITIONS;
    w.f.partitions_changed = w.f.number;
    fake_view(&w.f);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    fake_pass(&w.f, ENV_SEC);
    assert_true(w.done);
    assert_int_equal(w.status, PARAMO_OK);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    off();
}

/* A partition leaves while its rows are read: none of them is put here, where it would stay, and be old when
 * the partition comes again. */
static void partition_leaves_amid_a_load(void **state)
{
    (void)state;
    on();
    struct shard_save_config config = config_of(ID);
    const struct shard_table *t = map_get(&w.f.shard->tables->by_id, 1);
    uint32_t row = TABLE_NO_ROW;
    save();
    hold();
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    w.f.foreign = RING_PARTITIONS;
    w.f.partitions_changed = w.f.number;
    fake_view(&w.f);
    fake_pass(&w.f, ENV_SEC);
    assert_true(w.done);
    assert_int_equal(table_resolve(t->table, &key, 1, &row, false), PARAMO_OK);
    assert_int_equal(row, TABLE_NO_ROW);
    off();
}

/* Another scheduler knows nothing of the hold; of what is held nothing was changed. */
static void another_scheduler(void **state)
{
    (void)state;
    on();
    hold();
    uint64_t first = w.number;
    push(2);
    (void)ask(WIRE_PULL);
    assert_int_equal(w.c->count, 0);
    next_scheduler();
    answered(first, 3, 0);
    struct shard_save_config config = config_of(ID);
    w.done = false;
    assert_int_equal(shard_load_hold(w.f.shard, &config), PARAMO_OK); /* the new one's continues as well */
    first = w.number;
    w.c->count = 0;
    push(1);
    fake_view(&w.f);
    assert_int_equal(w.c->count, 0);
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    answered(first, 1, 2);
    off();
}

/* Others may not have loaded: what has been loaded here is lost, until it is cleared. What was given up
 * before a row was read is as it was. */
static void another_scheduler_when_loaded(void **state)
{
    (void)state;
    for (int loaded = 0; loaded < 2; loaded++) {
        float value;
        on();
        save();
        hold();
        push(1);
        if (loaded) {
            load();
        } else {
            struct shard_save_config config = config_of(ID);
            w.done = false;
            assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
        }
        next_scheduler();
        assert_true(w.done);
        assert_int_equal(w.status, loaded ? PARAMO_OK : PARAMO_E_CANCELLED);
        assert_int_equal(pull(&value), loaded ? PARAMO_E_DATA_LOST : PARAMO_OK); /* nothing was read yet */
        (void)ask(WIRE_CLEAR);
        assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
        assert_int_equal(pull(&value), PARAMO_OK);
        assert_true(value == 0);
        off();
    }
}

/* ---- requests that take turns ---- */

enum { ROWS = 40, TURN = 4 };

static void push_all(void)
{
    uint64_t keys[ROWS];
    float ones[ROWS];
    for (unsigned i = 0; i < ROWS; i++)
        keys[i] = i, ones[i] = 1;
    struct wire_head h = fake_head(&w.f, WIRE_PUSH, 1, w.number++);
    h.count = ROWS;
    assert_int_equal(fake_send(w.c, &h, keys, ones), PARAMO_OK);
    assert_int_equal(fake_last(w.c)->head.number, h.number);
    assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
}

/* What the answer found: SCAN: the first row, of a page that has some; STAT: how many rows; REDUCE: their sum. */
static double found_by(const struct fake_sent *sent, unsigned kind)
{
    static const struct reduction sum = {.function = PARAMO_REDUCE_SUM, .last = UINT64_MAX};
    double found = 0;
    struct data_stat stat;
    struct reduced reduced;
    assert_int_equal(sent->head.status, PARAMO_OK);
    if (kind == WIRE_SCAN) {
        assert_in_range(sent->head.count, 1, TURN);
        found = (double)sent->vals[0];
    } else if (kind == WIRE_STAT) {
        assert_int_equal(data_stat_decode(sent->text, DATA_STAT_BYTES, &stat), PARAMO_OK);
        found = (double)stat.nonzero;
    } else {
        assert_int_equal(reduced_init(&reduced, &sum), PARAMO_OK);
        assert_int_equal(reduced_decode(sent->text, reduced_body_bytes(&reduced), &reduced), PARAMO_OK);
        found = exactsum_value(&reduced.sum);
        reduced_fini(&reduced);
    }
    return found;
}

/* The next request of a sort: SCAN, STAT or REDUCE of the whole table. */
static void ask_all(unsigned kind)
{
    struct wire_head h = fake_head(&w.f, kind, 1, w.number++);
    const uint64_t from = 0;
    const struct reduction sum = {.function = PARAMO_REDUCE_SUM, .last = UINT64_MAX};
    uint8_t bytes[VAN_HEAD], body[REDUCTION_BODY_MAX];
    h.count = kind == WIRE_SCAN;
    if (kind != WIRE_REDUCE) {
        assert_int_equal(fake_send(w.c, &h, &from, NULL), PARAMO_OK);
        return;
    }
    wire_head_encode(&h, bytes);
    reduction_encode(&sum, body);
    const struct van_seg seg[VAN_SEGS] = {
        [WIRE_SEG_BODY] = {.data = body, .len = reduction_body_bytes(&sum)}};
    assert_int_equal(van_deliver(&w.c->conn, bytes, seg, WIRE_SEG_BODY + 1, NULL, 7), PARAMO_OK);
}

static void one_event(void)
{
    lane_leave(w.f.lane);
    assert_true(sim_step(w.f.sim));
    assert_true(lane_enter(w.f.lane));
}

/* A load begins when the request has had some of its turns. What it finds is as before the load, if it is answered
 * before, else as after it. */
static void turns_find_one_state(void **state)
{
    (void)state;
    static const unsigned kinds[] = {WIRE_SCAN, WIRE_STAT, WIRE_REDUCE};
    static const double before[] = {2, ROWS, 2 * ROWS + 2}, after[] = {1, ROWS, ROWS + 2};
    for (unsigned i = 0; i < 3; i++) {
        bool early = false;
        for (unsigned turns = 0; !early; turns++) {
            assert_true(turns < ROWS);
            on();
            w.f.shard->config.scan_keys = TURN;
            push_all();
            save(); /* pushes two more to one row */
            push_all();
            w.c->count = 0;
            ask_all(kinds[i]);
            for (unsigned turn = 0; turn < turns; turn++)
                one_event();
            early = w.c->count > 0;
            assert_int_equal(w.c->count, early);
            if (early)
                assert_true(found_by(fake_last(w.c), kinds[i]) == before[i]);
            hold();
            load();
            assert_int_equal(w.c->count, 0);
            assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
            fake_pass(&w.f, ENV_SEC);
            assert_int_equal(w.c->count, !early);
            if (!early)
                assert_true(found_by(fake_last(w.c), kinds[i]) == after[i]);
            off();
        }
    }
}

/* A scan has the keys of a page when a load brings back rows before them. The scan finds these, too. */
static void a_page_is_of_one_load(void **state)
{
    (void)state;
    on();
    w.f.shard->config.scan_keys = TURN;
    push_all();
    save(); /* row `key` has 3, the others 1 */
    for (uint64_t k = 0; k < key; k++) {
        struct wire_head h = fake_head(&w.f, WIRE_DELETE, 1, w.number++);
        assert_int_equal(fake_send(w.c, &h, &k, NULL), PARAMO_OK);
        assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
    }
    ask_all(WIRE_SCAN);
    fake_pass(&w.f, ENV_SEC);
    assert_true(found_by(fake_last(w.c), WIRE_SCAN) == 3);
    hold();
    load();
    assert_int_equal(shard_load_go(w.f.shard, ID, 0), PARAMO_OK);
    ask_all(WIRE_SCAN);
    fake_pass(&w.f, ENV_SEC);
    assert_true(found_by(fake_last(w.c), WIRE_SCAN) == 1);
    off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_until_go),
        cmocka_unit_test(waits_until_go_when_loaded),
        cmocka_unit_test(fails_elsewhere),
        cmocka_unit_test(not_for_ever),
        cmocka_unit_test(go_comes_too_late),
        cmocka_unit_test(go_overtakes_hold),
        cmocka_unit_test(load_comes_too_late),
        cmocka_unit_test(a_server_joins_amid_a_load),
        cmocka_unit_test(partition_leaves_amid_a_load),
        cmocka_unit_test(another_scheduler),
        cmocka_unit_test(another_scheduler_when_loaded),
        cmocka_unit_test(turns_find_one_state),
        cmocka_unit_test(a_page_is_of_one_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
