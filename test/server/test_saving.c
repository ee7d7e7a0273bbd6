/* A shard's part of a checkpoint: what was applied when it began is in, nothing later is, whatever the disk
 * does; and it comes back on other partitions. */
#include "server/shard/shard_tables.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/support_fake.h"
#include "sim/env/simfs.h"
#include "table/table_options.h"
#include "table/table_snapshot.h"

enum { KEYS = 3000, DENSE = RING_PARTITIONS };

static struct {
    struct simfs *disk;
    struct fake f;
    struct blocking_jobs *blocking_jobs;
    struct fake_conn *c;
    uint64_t number;                  /* of the next request */
    float sparse[KEYS], dense[DENSE]; /* as they are */
    float sparse_was[KEYS], dense_was[DENSE];
    bool there[KEYS], there_was[KEYS];
    bool done;
    paramo_err status;
    char text[ERR_TEXT_MAX];
    struct ckpt_file file;
    uint64_t random;
} w;

static uint64_t draw(uint64_t below)
{
    w.random = w.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w.random >> 33) % below;
}

static uint64_t key_of(size_t i)
{
    return (uint64_t)i * (UINT64_MAX / KEYS);
}

static void saved(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)arg;
    assert_false(w.done);
    w.done = true;
    w.status = status;
    snprintf(w.text, sizeof w.text, "%s", status ? err_text() : "");
    if (!status && file)
        w.file = *file;
}

static void disk_new(uint64_t seed)
{
    assert_int_equal(simfs_create(seed, &w.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(w.disk), "/var"), PARAMO_OK);
}

static void open_shard(uint16_t foreign)
{
    fake_init(&w.f, NULL, NULL);
    w.f.foreign = foreign;
    assert_int_equal(blocking_jobs_create(sim_env(w.f.sim), "files", &w.blocking_jobs), PARAMO_OK);
    fake_view(&w.f);
    w.c = fake_connect(&w.f, 0);
    w.number = w.number ? w.number : 1; /* the sender is the same on the next shard */
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

static const struct fake_sent *ask(unsigned kind, uint32_t table, const uint64_t *key, const float *value)
{
    struct wire_head h = fake_head(&w.f, kind, table, w.number);
    h.floor = w.number++;
    if (kind == WIRE_CLEAR)
        h.count = 0;
    if (w.c->count > FAKE_SENT_MAX / 2)
        w.c->count = 0;
    unsigned before = w.c->count;
    assert_int_equal(fake_send(w.c, &h, key, value), PARAMO_OK);
    return w.c->count == before ? NULL : fake_last(w.c); /* NULL: it waits */
}

/* Some change, and what it comes to. False: it waits. */
static bool change(void)
{
    float one = (float)(1 + draw(4));
    uint64_t kind = draw(20), i = draw(kind < 10 ? KEYS : DENSE), key = kind < 10 ? key_of(i) : i;
    const struct fake_sent *sent = ask(kind == 0 ? WIRE_DELETE : WIRE_PUSH, kind < 10 ? 1 : 2, &key, &one);
    if (kind < 10) {
        w.sparse[i] = kind ? w.sparse[i] + one : 0;
        w.there[i] = kind != 0;
    } else {
        w.dense[i] += one;
    }
    if (sent)
        assert_int_equal(sent->head.status, PARAMO_OK);
    return sent != NULL;
}

static void fill(void)
{
    memset(w.sparse, 0, sizeof w.sparse);
    memset(w.dense, 0, sizeof w.dense);
    memset(w.there, 0, sizeof w.there);
    for (unsigned n = 0; n < 4000; n++)
        assert_true(change());
}

static struct shard_save_config config_of(uint64_t number)
{
    return (struct shard_save_config){.fs = simfs_fs(w.disk),
                                      .blocking_jobs = w.blocking_jobs,
                                      .dir = "/var/ckpt",
                                      .number = number,
                                      .id = number + 100,
                                      .changes = true,
                                      .done = saved};
}

static paramo_err begin_on(uint64_t number, uint64_t base, size_t queue_bytes)
{
    struct shard_save_config config = config_of(number);
    config.base_id = base ? base + 100 : 0;
    config.queue_bytes = queue_bytes;
    memcpy(w.sparse_was, w.sparse, sizeof w.sparse);
    memcpy(w.dense_was, w.dense, sizeof w.dense);
    memcpy(w.there_was, w.there, sizeof w.there);
    w.done = false;
    return shard_save(w.f.shard, &config);
}

static paramo_err begin(uint64_t number, size_t queue_bytes)
{
    return begin_on(number, 0, queue_bytes);
}

/* Changes continue until it has ended. */
static void until_done(void)
{
    unsigned waits = 0;
    for (unsigned n = 0; !w.done; n++) {
        assert_true(n < 2000000);
        if (!waits && !change())
            waits = w.c->count + 1; /* the next comes after it: order */
        if (waits && w.c->count + 1 > waits)
            waits = 0;
        if (waits || draw(8) == 0)
            fake_pass(&w.f, 20 * ENV_US);
    }
    fake_pass(&w.f, ENV_SEC); /* what waited has its turn */
}

static void commit_on(uint64_t number, uint64_t base)
{
    struct view_table tables[3];
    memcpy(tables, w.f.view->tables, sizeof tables);
    struct ckpt_manifest m = {.number = number,
                              .id = number + 100,
                              .base = base,
                              .base_id = base ? base + 100 : 0,
                              .tables_count = 3,
                              .tables = tables,
                              .files_count = 1,
                              .files = &w.file};
    assert_int_equal(ckpt_commit(simfs_fs(w.disk), "/var/ckpt", &m), PARAMO_OK);
}

static void commit(uint64_t number)
{
    commit_on(number, 0);
}

static float value_of(uint32_t table, uint64_t key)
{
    const struct fake_sent *sent = ask(WIRE_PULL, table, &key, NULL);
    assert_non_null(sent);
    assert_int_equal(sent->head.status, PARAMO_OK);
    return sent->vals[0];
}

/* What the shard has is what the other had when the checkpoint began, as far as its partitions go. */
static void check_loaded(uint16_t foreign)
{
    size_t rows = 0;
    for (size_t i = 0; i < KEYS; i++)
        if (key_of(i) >> 52 >= foreign) {
            assert_true(value_of(1, key_of(i)) == w.sparse_was[i]);
            rows += w.there_was[i];
        }
    for (size_t i = foreign; i < DENSE; i++)
        assert_true(value_of(2, i) == w.dense_was[i]);
    assert_int_equal(table_rows(shard_table_find(w.f.shard, 1)->table), rows);
}

static void load_on(uint16_t foreign, uint64_t number, paramo_err status)
{
    open_shard(foreign);
    uint64_t key = UINT64_MAX - 5;
    float five = 5;
    (void)ask(WIRE_PUSH, 1, &key, &five); /* of before: it goes */
    struct shard_save_config config = config_of(number);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    assert_null(ask(WIRE_PULL, 1, &key, NULL)); /* requests wait */
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    assert_int_equal(w.status, status);
    assert_int_equal(fake_last(w.c)->head.number, w.number - 1); /* and are answered then */
    if (!status)
        check_loaded(foreign);
    close_shard();
}

/* A shard on a disk of its own. */
static void on(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.random = seed;
    disk_new(seed);
    open_shard(0);
}

/* One that has begun to save all that it was filled with. */
static void on_saving(void)
{
    on(1);
    fill();
    assert_int_equal(begin(1, 0), PARAMO_OK);
}

/* Saves, and nothing changes during it. */
static void save_on(uint64_t number, uint64_t base)
{
    assert_int_equal(begin_on(number, base, 0), PARAMO_OK);
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    assert_int_equal(w.status, PARAMO_OK);
}

static void some_changes(unsigned count)
{
    for (unsigned n = 0; n < count; n++)
        assert_true(change());
}

static void taken_while_it_serves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        on(seed);
        fill();
        for (uint64_t number = 1; number <= 2; number++) {
            assert_int_equal(begin(number, seed == 2 ? 2000 : 0), PARAMO_OK); /* a slow disk: changes wait */
            assert_int_equal(begin(number, 0), PARAMO_E_AGAIN);
            until_done();
            assert_int_equal(w.status, PARAMO_OK);
            commit(number);
        }
        close_shard();
        load_on(0, 2, PARAMO_OK);
        load_on(1500, 2, PARAMO_OK);
        simfs_destroy(w.disk);
    }
}

/* A fault at each step: it is given up, or whole; the shard continues; the checkpoint before stays. */
static void every_fault(void **state)
{
    (void)state;
    for (enum simfs_fault fault = SIMFS_FAIL; fault <= SIMFS_HALF; fault++) {
        for (uint64_t step = 0;; step++) {
            on(step + 1);
            some_changes(300);
            uint64_t steps = simfs_steps(w.disk);
            simfs_plan(w.disk, fault, steps + step);
            assert_int_equal(begin(1, 0), PARAMO_OK);
            until_done();
            bool came = simfs_steps(w.disk) > steps + step;
            simfs_plan(w.disk, fault, UINT64_MAX);
            some_changes(20);
            for (size_t i = 0; i < KEYS; i += 100)
                assert_true(value_of(1, key_of(i)) == w.sparse[i]);
            assert_null(w.f.shard->saves->current);
            paramo_err status = w.status;
            if (status) {
                assert_true(w.text[0]);
                assert_int_equal(begin(2, 0), PARAMO_OK); /* the next one */
                until_done();
                assert_int_equal(w.status, PARAMO_OK);
            } else {
                commit(1);
            }
            close_shard();
            if (!status)
                load_on(700, 1, PARAMO_OK);
            simfs_destroy(w.disk);
            if (!came)
                break;
        }
    }
}

static void given_up(void **state)
{
    (void)state;
    on_saving();
    shard_save_drop(w.f.shard, 2); /* another one */
    assert_non_null(w.f.shard->saves->current);
    shard_save_drop(w.f.shard, 1);
    until_done();
    assert_int_equal(w.status, PARAMO_E_CANCELLED);
    assert_int_equal(begin(2, 0), PARAMO_OK);
    fake_pass(&w.f, 100 * ENV_US);
    close_shard(); /* while it goes on */
    assert_int_equal(w.status, PARAMO_E_CLOSED);
    simfs_destroy(w.disk);
}

/* All rows go at once, and are still in the checkpoint. */
static void cleared_amid_a_save(void **state)
{
    (void)state;
    on_saving();
    assert_null(ask(WIRE_CLEAR, 1, NULL, NULL)); /* it waits until they have been taken */
    fake_pass(&w.f, ENV_SEC);
    assert_true(w.done);
    assert_int_equal(w.status, PARAMO_OK);
    assert_int_equal(table_rows(shard_table_find(w.f.shard, 1)->table), 0);
    commit(1);
    close_shard();
    load_on(0, 1, PARAMO_OK);
    simfs_destroy(w.disk);
}

static unsigned push(uint64_t number, uint64_t key)
{
    struct wire_head h = fake_head(&w.f, WIRE_PUSH, 1, number);
    float one = 1;
    h.floor = 1;
    assert_int_equal(fake_send(w.c, &h, &key, &one), PARAMO_OK);
    return fake_last(w.c)->head.status;
}

static float pulled(uint64_t number, uint64_t key)
{
    struct wire_head h = fake_head(&w.f, WIRE_PULL, 1, number);
    h.floor = 1;
    assert_int_equal(fake_send(w.c, &h, &key, NULL), PARAMO_OK);
    assert_int_equal(fake_last(w.c)->head.status, PARAMO_OK);
    return fake_last(w.c)->vals[0];
}

static void load(uint64_t number)
{
    struct shard_save_config config = config_of(number);
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    assert_int_equal(w.status, PARAMO_OK);
}

/* The server that had the rows is another process now: what comes again, and is in the rows, is not done
 * twice; what is not in them is done. */
static void repeated_after_load(void **state)
{
    (void)state;
    uint64_t low = 7, high = UINT64_MAX - 7;
    on(1);
    for (uint64_t n = 1; n <= 3; n++)
        assert_int_equal(push(n, high), PARAMO_OK);
    assert_int_equal(begin(1, 0), PARAMO_OK);
    assert_int_equal(push(4, high), PARAMO_OK); /* later than the cut */
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    commit(1);
    close_shard();
    for (uint16_t foreign = 0; foreign <= 1500; foreign += 1500) { /* the same partitions, and fewer */
        open_shard(foreign);
        for (int again = 0; again < 2; again++) { /* a second time it is no news */
            load(1);
            for (uint64_t n = 1; n <= 3; n++)
                assert_int_equal(push(n, high), PARAMO_OK);
            assert_true(pulled(50, high) == 3);
        }
        assert_int_equal(push(4, high), PARAMO_OK);
        assert_int_equal(push(4, high), PARAMO_OK);
        assert_true(pulled(51, high) == 4);
        if (!foreign)
            assert_int_equal(push(2, low), PARAMO_OK); /* the same number: done on all partitions */
        close_shard();
    }
    open_shard(0);
    assert_int_equal(push(9, high), PARAMO_OK);
    w.f.worker_dead = true;
    fake_view(&w.f);
    load(1); /* no sender is left that would send again */
    assert_int_equal(w.f.shard->senders->count, 0);
    close_shard();
    simfs_destroy(w.disk);
}

static void damaged(void **state)
{
    (void)state;
    on_saving();
    until_done();
    commit(1);
    close_shard();
    assert_true(simfs_flip(w.disk, "/var/ckpt/00000001/blocks-0", 40000, 3));
    load_on(0, 1, PARAMO_E_CORRUPT); /* what was loaded is lost: the pull that waited says so */
    load_on(0, 9, PARAMO_E_NOT_FOUND);
    simfs_destroy(w.disk);
}

struct tally {
    unsigned rows, erased, cleared;
};

static paramo_err count_block(void *arg, const struct ckpt_block *b)
{
    struct tally *tally = arg;
    tally->rows += b->kind == CKPT_ROWS;
    tally->erased += b->kind == CKPT_ERASED;
    tally->cleared += b->kind == CKPT_CLEARED;
    return PARAMO_OK;
}

/* Of it and those that it is based on. */
static struct tally blocks_of(uint64_t number)
{
    struct tally tally = {0};
    struct ckpt *c;
    assert_int_equal(ckpt_open(simfs_fs(w.disk), "/var/ckpt", number, &c), PARAMO_OK);
    assert_int_equal(ckpt_visit(c, NULL, count_block, &tally), PARAMO_OK);
    ckpt_close(c);
    return tally;
}

/* One full, the others what has changed since, whatever happens during it: each has the tables as they were.
 */
static void chain_of_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        on(seed);
        fill();
        for (uint64_t number = 1; number <= 5; number++) {
            assert_int_equal(begin_on(number, number - 1, seed == 2 ? 2000 : 0), PARAMO_OK);
            until_done();
            assert_int_equal(w.status, PARAMO_OK);
            commit_on(number, number - 1);
            if (seed == 3 && number == 2) { /* what has changed is not known then */
                assert_non_null(ask(WIRE_CLEAR, 1, NULL, NULL));
                memset(w.sparse, 0, sizeof w.sparse);
                memset(w.there, 0, sizeof w.there);
            }
            some_changes(200);
        }
        close_shard();
        assert_int_equal(blocks_of(5).cleared, seed == 3);
        assert_true(blocks_of(5).erased > 0);
        load_on(0, 5, PARAMO_OK);
        load_on(1500, 5, PARAMO_OK);
        simfs_destroy(w.disk);
    }
}

/* It has what has changed, and no more. */
static void changes_are_small(void **state)
{
    (void)state;
    on(1);
    fill();
    save_on(1, 0);
    commit(1);
    uint64_t whole = w.file.bytes;
    for (unsigned n = 0; n < 30; n++) { /* of table 2 each has a block of many rows */
        size_t i = draw(KEYS);
        uint64_t key = key_of(i);
        float one = 1;
        assert_non_null(ask(WIRE_PUSH, 1, &key, &one));
        w.sparse[i] += one;
        w.there[i] = true;
    }
    save_on(2, 1);
    commit_on(2, 1);
    assert_in_range(w.file.bytes, 100, whole / 20);
    save_on(3, 2);
    assert_in_range(w.file.bytes, 32, 2000); /* records only */
    commit_on(3, 2);
    close_shard();
    load_on(700, 3, PARAMO_OK);
    simfs_destroy(w.disk);
}

/* Then it saves all, and says so: what the base has in its partitions is void. */
static void whole_on_base(uint64_t number, uint64_t base, const char *why)
{
    unsigned cleared = blocks_of(base).cleared;
    save_on(number, base);
    commit_on(number, base);
    if (blocks_of(number).cleared != cleared + 1)
        print_error("%s: it has saved changes only\n", why);
    assert_int_equal(blocks_of(number).cleared, cleared + 1);
}

/* A base has rows of partitions that were cleared later: a load removes them in steps of the lane. */
static void cleared_rows_go_in_steps(void **state)
{
    enum { STEP = 16 };
    (void)state;
    on(1);
    fill();
    save_on(1, 0);
    commit(1);
    assert_non_null(ask(WIRE_CLEAR, 1, NULL, NULL));
    memset(w.sparse, 0, sizeof w.sparse);
    memset(w.there, 0, sizeof w.there);
    some_changes(30);
    whole_on_base(2, 1, "a table was cleared");
    close_shard();
    open_shard(0);
    w.f.shard->config.scan_keys = STEP;
    const struct table *t = shard_table_find(w.f.shard, 1)->table;
    struct shard_save_config config = config_of(2);
    size_t gone = 0;
    w.done = false;
    assert_int_equal(shard_load(w.f.shard, &config), PARAMO_OK);
    while (!w.done) {
        size_t rows = table_rows(t);
        fake_pass(&w.f, 20 * ENV_US);
        if (table_rows(t) < rows) {
            assert_in_range(rows - table_rows(t), 1, STEP);
            gone += rows - table_rows(t);
        }
    }
    assert_int_equal(w.status, PARAMO_OK);
    assert_true(gone > 50 * STEP);
    check_loaded(0);
    close_shard();
    simfs_destroy(w.disk);
}

static void changes_are_not_known(void **state)
{
    (void)state;
    on(1);
    fill();
    save_on(1, 0);
    commit(1);
    some_changes(30);
    save_on(2, 1); /* another shard fails: it is none */
    some_changes(30);
    whole_on_base(3, 1, "its last one was not the base");
    close_shard();
    load_on(0, 3, PARAMO_OK);

    open_shard(0);
    fill();
    whole_on_base(4, 3, "another server has its place");
    some_changes(30);
    assert_int_equal(begin_on(5, 4, 0), PARAMO_OK);
    shard_save_drop(w.f.shard, 5);
    until_done();
    assert_int_equal(w.status, PARAMO_E_CANCELLED);
    whole_on_base(6, 4, "the last one was given up");
    struct shard_save_config config = config_of(7);
    config.changes = false;
    w.done = false;
    assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
    while (!w.done)
        fake_pass(&w.f, ENV_SEC);
    commit(7);
    whole_on_base(8, 7, "no order said that there would be another");
    load(8);
    whole_on_base(9, 8, "it has loaded one");
    w.f.foreign = 1500;
    fake_view(&w.f);
    w.f.foreign = 0;
    fake_view(&w.f);
    whole_on_base(10, 9, "it has taken partitions over");
    some_changes(30);
    save_on(11, 10);
    commit_on(11, 10);
    assert_int_equal(blocks_of(11).cleared, blocks_of(10).cleared);
    w.f.foreign = 1500; /* partitions that it gives away are not in the way */
    fake_view(&w.f);
    save_on(12, 11);
    commit_on(12, 11);
    assert_int_equal(blocks_of(12).cleared, blocks_of(10).cleared);
    close_shard();
    load_on(1500, 12, PARAMO_OK);
    simfs_destroy(w.disk);
}

/* Records of a base are not those of later ones: what was done since and is not in the records again (the
 * server that had it is gone, and so are its rows) is done again. */
static void records_of_the_last(void **state)
{
    (void)state;
    uint64_t key = UINT64_MAX - 7;
    on(1);
    for (uint64_t n = 1; n <= 3; n++)
        assert_int_equal(push(n, key), PARAMO_OK);
    save_on(1, 0);
    commit(1);
    close_shard();
    open_shard(0);
    assert_int_equal(push(1, key), PARAMO_OK);
    save_on(2, 1);
    commit_on(2, 1);
    close_shard();
    open_shard(0);
    load(2);
    assert_int_equal(push(1, key), PARAMO_OK); /* in the rows */
    assert_int_equal(push(2, key), PARAMO_OK); /* not in them */
    assert_true(pulled(50, key) == 2);
    close_shard();
    simfs_destroy(w.disk);
}

static void new_term(uint64_t term)
{
    w.f.number = term << 32;
    fake_view(&w.f);
}

static struct shard_save_config ordered_by(uint32_t term, uint64_t number)
{
    struct shard_save_config config = config_of(number);
    config.term = term;
    w.done = false;
    return config;
}

/* A save that a dead scheduler has ordered does not begin, does not continue, and blocks no other. */
static void ordered_by_the_dead(void **state)
{
    (void)state;
    for (unsigned pause = 0; pause < 4; pause++) { /* how far it is when the next one leads */
        struct ckpt *ckpt;
        struct writer old = {0};
        on(1 + pause);
        fill();
        new_term(2);
        struct shard_save_config config = ordered_by(1, 1);
        assert_int_equal(shard_save(w.f.shard, &config), PARAMO_E_CANCELLED);
        assert_int_equal(shard_load(w.f.shard, &config), PARAMO_E_CANCELLED);
        assert_int_equal(shard_load_hold(w.f.shard, &config), PARAMO_E_CANCELLED);
        assert_int_equal(shard_restore(w.f.shard, &config), PARAMO_E_CANCELLED);
        assert_false(w.done);
        config = ordered_by(2, 1);
        assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
        for (unsigned i = 0; i < pause; i++)
            fake_pass(&w.f, 100 * ENV_US);
        fake_view(&w.f);
        assert_false(w.done); /* the same one leads */
        new_term(3);
        assert_true(w.done);
        assert_int_equal(w.status, PARAMO_E_CANCELLED);
        config = ordered_by(3, 2);
        assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
        memcpy(w.sparse_was, w.sparse, sizeof w.sparse);
        memcpy(w.dense_was, w.dense, sizeof w.dense);
        memcpy(w.there_was, w.there, sizeof w.there);
        until_done();
        assert_int_equal(w.status, PARAMO_OK);
        commit(2);
        assert_int_equal(fs_load(simfs_fs(w.disk), "/var/ckpt/00000001/blocks-0", 1 << 30, &old),
                         PARAMO_E_NOT_FOUND);
        assert_int_equal(ckpt_open(simfs_fs(w.disk), "/var/ckpt", 0, &ckpt), PARAMO_OK);
        assert_int_equal(ckpt_manifest(ckpt, 0)->number, 2);
        ckpt_close(ckpt);
        close_shard();
        load_on(0, 2, PARAMO_OK);
        simfs_destroy(w.disk);
    }
}

/* The node closes while the file of a save that was given up is still being written: nothing is posted to
 * blocking jobs that are over, and the file is removed. */
static void closed_after_it_was_given_up(void **state)
{
    (void)state;
    unsigned left = 0;
    for (unsigned pause = 0; pause < 6; pause++) {
        struct writer old = {0};
        on(1 + pause);
        fill();
        new_term(2);
        struct shard_save_config config = ordered_by(2, 1);
        assert_int_equal(shard_save(w.f.shard, &config), PARAMO_OK);
        for (unsigned i = 0; i < pause; i++)
            fake_pass(&w.f, 100 * ENV_US);
        assert_false(w.done);
        new_term(3);
        assert_int_equal(w.status, PARAMO_E_CANCELLED);
        left += w.f.shard->saves->left != NULL;
        close_shard();
        assert_int_equal(fs_load(simfs_fs(w.disk), "/var/ckpt/00000001/blocks-0", 1 << 30, &old),
                         PARAMO_E_NOT_FOUND);
        simfs_destroy(w.disk);
    }
    assert_true(left > 2);
}

/* ---- it waits until the shard is ready ---- */

enum { REMOVAL_MS = 200 }; /* at least */

/* All rows of the dense table get their initial values, 16 each millisecond. */
static void on_removing(void)
{
    w.f.shard->config.scan_keys = 16;
    assert_non_null(ask(WIRE_CLEAR, 2, NULL, NULL));
    memset(w.dense, 0, sizeof w.dense);
    assert_true(shard_table_find(w.f.shard, 2)->clears);
}

static enum saving_phase phase(void)
{
    uint64_t number;
    return saving_state(w.f.shard->saves->current, &number);
}

static bool is_waiting(void)
{
    return w.f.shard->saves->current && phase() == SAVING_WAITING;
}

static paramo_err begin_waiting(uint64_t number, uint64_t base, uint32_t hold_ms)
{
    struct shard_save_config config = config_of(number);
    config.base_id = base ? base + 100 : 0;
    config.hold_ms = hold_ms;
    config.term = (uint32_t)(w.f.view->number >> 32);
    w.done = false;
    return shard_save(w.f.shard, &config);
}

/* Changes are applied at once while it waits, and are in the checkpoint. What has changed since the base is still
 * known. */
static void waits_for_a_removal(void **state)
{
    (void)state;
    unsigned turns = 0;
    on(1);
    fill();
    save_on(1, 0);
    commit(1);
    on_removing();
    assert_int_equal(begin_waiting(2, 1, 10000), PARAMO_OK);
    for (; is_waiting(); turns++) {
        size_t i = draw(KEYS);
        uint64_t key = key_of(i);
        float one = 1;
        assert_non_null(ask(WIRE_PUSH, 1, &key, &one));
        w.sparse[i] += one;
        w.there[i] = true;
        fake_pass(&w.f, ENV_MS);
    }
    assert_true(turns > REMOVAL_MS);
    assert_false(shard_table_find(w.f.shard, 2)->clears);
    memcpy(w.sparse_was, w.sparse, sizeof w.sparse);
    memcpy(w.dense_was, w.dense, sizeof w.dense);
    memcpy(w.there_was, w.there, sizeof w.there);
    until_done();
    assert_int_equal(w.status, PARAMO_OK);
    commit_on(2, 1);
    assert_int_equal(blocks_of(2).cleared, 0);
    close_shard();
    load_on(0, 2, PARAMO_OK);
    simfs_destroy(w.disk);
}

/* Two saves that were given up have left marks in the rows; the third waits until these are removed. */
static void waits_for_marks(void **state)
{
    (void)state;
    on(1);
    fill();
    for (uint64_t number = 1; number <= 2; number++) { /* both end before a step of the lane */
        new_term(1 + number);
        assert_int_equal(begin_waiting(number, 0, 0), PARAMO_OK);
    }
    new_term(4);
    assert_true(table_snapshot_must_wait(shard_table_find(w.f.shard, 1)->table));
    assert_int_equal(begin_waiting(3, 0, 0), PARAMO_E_AGAIN);
    assert_int_equal(begin_waiting(3, 0, 10000), PARAMO_OK);
    assert_true(is_waiting());
    memcpy(w.sparse_was, w.sparse, sizeof w.sparse);
    memcpy(w.dense_was, w.dense, sizeof w.dense);
    memcpy(w.there_was, w.there, sizeof w.there);
    while (!w.done)
        fake_pass(&w.f, ENV_MS);
    assert_int_equal(w.status, PARAMO_OK);
    commit(3);
    close_shard();
    load_on(0, 3, PARAMO_OK);
    simfs_destroy(w.disk);
}

/* What ends a save that waits: it leaves no file, and the next one is taken. */
static void ends_while_it_waits(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        paramo_err status;
    } ends[] = {{"the scheduler takes the order back", PARAMO_E_CANCELLED},
                {"another scheduler leads", PARAMO_E_CANCELLED},
                {"partitions change owners", PARAMO_E_AGAIN},
                {"its time is over", PARAMO_E_AGAIN},
                {"the node closes", PARAMO_E_CLOSED}};
    for (unsigned i = 0; i < 5; i++) {
        struct writer file = {0};
        on(1 + i);
        new_term(2);
        fill();
        on_removing();
        assert_int_equal(begin_waiting(1, 0, i == 3 ? 50 : 10000), PARAMO_OK);
        fake_pass(&w.f, 20 * ENV_MS);
        assert_true(is_waiting());
        assert_false(w.done);
        fake_view(&w.f); /* one that changes no owner is no reason */
        assert_int_equal(shard_save(w.f.shard, &(struct shard_save_config){.number = 9}), PARAMO_E_AGAIN);
        assert_true(is_waiting());
        if (i == 0) {
            shard_save_drop(w.f.shard, 1);
        } else if (i == 1) {
            new_term(3);
        } else if (i == 2) {
            w.f.partitions_changed = w.f.number;
            fake_view(&w.f);
            fake_pass(&w.f, 2 * ENV_MS);
        } else if (i == 3) {
            fake_pass(&w.f, 40 * ENV_MS);
            assert_string_equal(w.text, "table t2: its rows are being cleared");
        } else {
            close_shard();
        }
        if (!w.done)
            print_error("%s: it waits on\n", ends[i].how);
        assert_true(w.done);
        assert_int_equal(w.status, ends[i].status);
        assert_int_equal(fs_load(simfs_fs(w.disk), "/var/ckpt/00000001/blocks-0", 1 << 30, &file),
                         PARAMO_E_NOT_FOUND);
        if (i < 4) {
            assert_null(w.f.shard->saves->current);
            assert_int_equal(begin_waiting(2, 0, 10000), PARAMO_OK);
            while (!w.done)
                fake_pass(&w.f, ENV_SEC);
            assert_int_equal(w.status, PARAMO_OK);
            close_shard();
        }
        simfs_destroy(w.disk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_while_it_serves),
        cmocka_unit_test(every_fault),
        cmocka_unit_test(given_up),
        cmocka_unit_test(ordered_by_the_dead),
        cmocka_unit_test(closed_after_it_was_given_up),
        cmocka_unit_test(cleared_amid_a_save),
        cmocka_unit_test(repeated_after_load),
        cmocka_unit_test(damaged),
        cmocka_unit_test(records_of_the_last),
        cmocka_unit_test(changes_are_not_known),
        cmocka_unit_test(cleared_rows_go_in_steps),
        cmocka_unit_test(chain_of_changes),
        cmocka_unit_test(changes_are_small),
        cmocka_unit_test(waits_for_a_removal),
        cmocka_unit_test(waits_for_marks),
        cmocka_unit_test(ends_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
