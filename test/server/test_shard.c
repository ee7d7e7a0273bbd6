/* The shard, one frame at a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "server/shard/kept.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "server/snapshot/load_records.h"
#include "server/support_fake.h"
#include "wire/capability.h"
#include "wire/reduction_body.h"

static const float one = 1;
static const uint64_t key = UINT64_C(0xf000000000000007), row = 4000;

static float value_of(struct fake *f, struct fake_conn *c, uint32_t table, uint64_t number)
{
    struct wire_head h = fake_head(f, WIRE_PULL, table, number);
    assert_int_equal(fake_send(c, &h, table == 2 ? &row : &key, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    assert_int_equal(fake_last(c)->vals_bytes, 4);
    return fake_last(c)->vals[0];
}

static void test_once(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 1, 5);
    h.attempt = 3;
    h.slice = 1;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
        assert_int_equal(c->count, i);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
        assert_int_equal(fake_last(c)->head.attempt, 3);
        assert_int_equal(fake_last(c)->head.slice, 1);
        assert_int_equal(fake_last(c)->class, VAN_ANSWER);
    }
    assert_true(value_of(&f, c, 1, 6) == 1);
    /* another sender's number 5 is another chunk */
    struct fake_conn *d = fake_connect(&f, 1);
    assert_int_equal(fake_send(d, &h, &key, &one), PARAMO_OK);
    assert_true(value_of(&f, c, 1, 7) == 2);
    /* the record outlives the connection */
    fake_disconnect(c);
    c = fake_connect(&f, 0);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_true(value_of(&f, c, 1, 8) == 2);
    /* below the floor no sender waits */
    struct wire_head later = fake_head(&f, WIRE_PUSH, 1, 900);
    later.floor = 800;
    assert_int_equal(fake_send(c, &later, &key, &one), PARAMO_OK);
    unsigned before = c->count;
    h.number = 799;
    h.floor = 799;
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(c->count, before);
    later.kind = WIRE_PULL;
    later.number = 901;
    assert_int_equal(fake_send(c, &later, &key, NULL), PARAMO_OK);
    assert_true(fake_last(c)->vals[0] == 3);
    /* a repeated pushpull reads only */
    struct wire_head both = later;
    both.kind = WIRE_PUSHPULL;
    both.number = 902;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(fake_send(c, &both, &key, &one), PARAMO_OK);
        assert_true(fake_last(c)->vals[0] == 4);
    }
    fake_disconnect(c);
    fake_disconnect(d);
    fake_fini(&f);
}

static void test_views(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    struct fake_conn *c = fake_connect(&f, 0);
    /* before the first view all wait; so does what comes from a newer one */
    struct wire_head h = fake_head(&f, WIRE_PUSH, 2, 1), probe = fake_head(&f, WIRE_PROBE, 2, 1);
    h.view = 2;
    probe.count = 0;
    assert_int_equal(fake_send(c, &h, &row, &one), PARAMO_OK);
    fake_view(&f);
    assert_int_equal(c->count, 0);
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.kind, WIRE_PROBE_ANSWER);
    assert_int_equal(fake_last(c)->head.probed.found, PROBE_WORKING);
    fake_view(&f);
    assert_int_equal(fake_last(c)->head.kind, WIRE_ANSWER);
    assert_int_equal(fake_last(c)->head.number, 1);
    assert_int_equal(f.shard->kept->bytes, 0);
    assert_true(value_of(&f, c, 2, 2) == 1);
    probe.probe.kind = WIRE_PUSH;
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.kind, WIRE_ANSWER);
    probe.probe.kind = WIRE_PUSHPULL;
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.probed.found, PROBE_UNKNOWN);
    probe.number = 3;
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.probed.found, PROBE_UNKNOWN);
    /* partitions change: what was cut by an older view is refused with the new one's number */
    f.partitions_changed = 3;
    f.foreign = 100;
    fake_view(&f);
    h = fake_head(&f, WIRE_PUSH, 2, 4);
    h.view = 2;
    assert_int_equal(fake_send(c, &h, &row, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_MOVED);
    assert_int_equal(fake_last(c)->head.view, 3);
    h.view = 3;
    assert_int_equal(fake_send(c, &h, &row, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    /* keys of others', such as come when the caller changes what is being sent */
    uint64_t foreign = 99;
    h.number = 5;
    assert_int_equal(fake_send(c, &h, &foreign, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_INVALID);
    foreign = 1;
    h.table = 1;
    assert_int_equal(fake_send(c, &h, &foreign, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_INVALID);
    /* parked slices go with their connection, or after a while */
    h.view = 9;
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_true(f.shard->kept->bytes > 0);
    kept_drop_for_view(f.shard, NULL, lane_now(f.lane) + (SHARD_VIEW_DEFERRED_SECONDS + 1) * ENV_SEC);
    assert_int_equal(f.shard->kept->bytes, 0);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    fake_disconnect(c);
    assert_int_equal(f.shard->kept->bytes, 0);
    fake_fini(&f);
}

static void test_refusals(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 9, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_NO_TABLE);
    h.table = 3;
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_HANDLER);
    /* a value that is refused changes nothing, so that the same number may try again */
    float nan = NAN;
    f.options[3] = f.options[0];
    f.options[3].optimizer = PARAMO_OPT_SGD;
    f.tables = 4;
    fake_view(&f);
    h.table = 4;
    assert_int_equal(fake_send(c, &h, &key, &nan), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_NUMERIC);
    assert_true(fake_last(c)->text[0] != 0);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    /* what the caller has changed while it was sent; nothing is done, and done later under the same number */
    uint64_t two[2] = {key + 1, key};
    float vals[2] = {1, 1};
    h = fake_head(&f, WIRE_PUSH, 1, 2);
    h.count = 2;
    assert_int_equal(fake_send(c, &h, two, vals), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_KEYS_UNSORTED);
    assert_non_null(strstr(fake_last(c)->text, "PARAMO_COPY"));
    two[0] = key;
    assert_int_equal(fake_send(c, &h, two, vals), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_KEYS_REPEATED);
    h.table = 3;
    assert_int_equal(fake_send(c, &h, two, vals), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_KEYS_REPEATED);
    h.table = 1;
    two[1] = key + 1;
    assert_int_equal(fake_send(c, &h, two, vals), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    two[1] = key; /* done: what comes again is not looked at */
    assert_int_equal(fake_send(c, &h, two, vals), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    h = fake_head(&f, WIRE_PULL, 2, 3);
    two[0] = RING_PARTITIONS;
    assert_int_equal(fake_send(c, &h, two, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_KEY_RANGE);
    /* what breaks the protocol */
    h = fake_head(&f, WIRE_PUSH, 1, 2);
    h.number = 1 + DATA_WINDOW;
    assert_int_equal(fake_send(c, &h, &key, vals), PARAMO_E_PROTOCOL);
    h.number = 0;
    assert_int_equal(fake_send(c, &h, &key, vals), PARAMO_E_PROTOCOL);
    h = fake_head(&f, WIRE_ANSWER, 1, 3);
    assert_int_equal(fake_send(c, &h, &key, NULL), PARAMO_E_PROTOCOL);
    h = fake_head(&f, WIRE_PULL, 1, 3);
    h.flags = WIRE_COLUMNS;
    h.columns.first = 1;
    h.columns.count = 1;
    assert_int_equal(fake_send(c, &h, &key, NULL), PARAMO_E_PROTOCOL);
    /* columns of several rows are of a later version */
    static const uint64_t several[] = {1, 2};
    h = fake_head(&f, WIRE_PULL, 1, 3);
    h.flags = WIRE_COLUMNS;
    h.columns.count = 1;
    h.count = 2;
    c->conn.capabilities = 0;
    assert_int_equal(fake_send(c, &h, several, NULL), PARAMO_E_PROTOCOL);
    c->conn.capabilities = CAPABILITY_COLUMNS;
    assert_int_equal(fake_send(c, &h, several, NULL), PARAMO_OK);
    fake_disconnect(c);
    fake_fini(&f);
}

static void partitions_run(uint64_t partitions[PARTITION_WORDS], unsigned first, unsigned count)
{
    for (unsigned a = first; a < first + count; a++)
        partition_set_add(partitions, a);
}

/* The flag means nothing for a DELETE, and what stands beside its keys is no lens. */
static paramo_err delete_with_lens(struct fake_conn *c, const struct wire_head *head, const uint64_t *keys)
{
    static const uint32_t others[3] = {1000, 1000, 1000};
    struct wire_head h = *head;
    uint8_t bytes[VAN_HEAD];
    h.flags |= WIRE_LENS;
    wire_head_encode(&h, bytes);
    const struct van_seg seg[VAN_SEGS] = {{.data = (void *)(uintptr_t)keys, .len = 8 * (uint64_t)h.count},
                                          {.data = (void *)(uintptr_t)others, .len = 0},
                                          {.data = (void *)(uintptr_t)others, .len = 0}};
    return van_deliver(&c->conn, bytes, seg, 3, NULL, 7);
}

/* Partitions that came from another shard with a record of their own: of a chunk, what is new where it is. */
static void test_partial_apply(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.options[2] = f.options[0];
    f.options[2].kind = PARAMO_TABLE_VAR;
    f.options[3] = f.options[0];
    f.options[3].optimizer = PARAMO_OPT_MOMENTUM;
    f.tables = 4;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct sender *sender = c->conn.user ? ((struct peer *)c->conn.user)->sender : NULL;
    struct applied_window *applied_window = &sender->applied_window;
    /* partitions 10 to 19 come with numbers 1, 3, 5, 7, 9 done there; here 2, 4, 6, 8 have been */
    static const uint64_t keys[3] = {UINT64_C(5) << 52, UINT64_C(15) << 52, UINT64_C(25) << 52};
    const float vals[3] = {1, 2, 4};
    struct applied_window theirs;
    applied_window_init(&theirs);
    for (uint64_t n = 1; n < 10; n += 2)
        applied_window_record(&theirs, n);
    for (uint64_t n = 2; n < 10; n += 2) {
        struct wire_head h = fake_head(&f, WIRE_PUSH, n == 8 ? 4 : 1, n);
        assert_int_equal(fake_send(c, &h, keys, vals), PARAMO_OK);
    }
    uint64_t all[PARTITION_WORDS], partitions[PARTITION_WORDS] = {0};
    size_t bytes = 0;
    memset(all, 0xff, sizeof all);
    partitions_run(partitions, 10, 10);
    assert_int_equal(applied_window_import(applied_window, all, partitions, &theirs), PARAMO_OK);
    assert_int_equal(applied_window_count_notes(applied_window, &bytes), 9);
    /* the same numbers, all keys: those on the other partitions, or those here, are left out. Table 1 adds.
     */
    float want[3] = {3, 0, 0};
    static const struct {
        uint64_t number;
        unsigned kind;
    } ops[] = {{1, WIRE_PUSH}, {2, WIRE_PUSH}, {3, WIRE_PUSHPULL}, {4, WIRE_PUSHPULL},
               {5, WIRE_PUT},  {6, WIRE_PUT},  {7, WIRE_DELETE},   {9, WIRE_CLEAR}};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
        uint64_t n = ops[i].number;
        struct wire_head h = fake_head(&f, ops[i].kind, 1, n), probe = fake_head(&f, WIRE_PROBE, 1, n);
        probe.count = 0;
        probe.probe.kind = WIRE_PUSH;
        assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.kind, WIRE_PROBE_ANSWER);
        assert_int_equal(fake_last(c)->head.probed.found, PROBE_UNKNOWN);
        h.count = h.kind == WIRE_CLEAR ? 0 : 3;
        for (unsigned k = 0; k < 3; k++) {
            if ((k == 1) == (n % 2 != 0))
                continue;
            bool adds = h.kind == WIRE_PUSH || h.kind == WIRE_PUSHPULL;
            want[k] = adds ? want[k] + vals[k] : h.kind == WIRE_PUT ? vals[k] : 0;
        }
        for (unsigned again = 0; again < 2; again++) {
            assert_int_equal(h.kind == WIRE_DELETE ? delete_with_lens(c, &h, keys)
                                                   : fake_send(c, &h, keys, vals),
                             PARAMO_OK);
            assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
            struct wire_head pull = fake_head(&f, WIRE_PULL, 1, 100 + n);
            pull.count = 3;
            if (h.kind != WIRE_PUSHPULL)
                assert_int_equal(fake_send(c, &pull, keys, NULL), PARAMO_OK);
            for (unsigned k = 0; k < 3; k++)
                assert_true(fake_last(c)->vals[k] == want[k]);
        }
        assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.kind, WIRE_ANSWER);
    }
    /* rows with state keep their width, rows of any length their lengths */
    struct wire_head put = fake_head(&f, WIRE_PUT, 4, 8);
    put.count = 3;
    put.flags = WIRE_STATE;
    const float pairs[6] = {1, 2, 3, 4, 5, 6};
    struct van_seg seg[VAN_SEGS] = {{.data = (void *)(uintptr_t)keys, .len = sizeof keys},
                                    {0},
                                    {.data = (void *)(uintptr_t)pairs, .len = sizeof pairs}};
    uint8_t head[VAN_HEAD];
    wire_head_encode(&put, head);
    assert_int_equal(van_deliver(&c->conn, head, seg, 3, NULL, 7), PARAMO_OK);
    float rows[2];
    const struct shard_table *t = shard_table_find(f.shard, 4);
    assert_int_equal(table_get_rows(t->table, &keys[1], 1, true, rows), PARAMO_OK);
    assert_true(rows[0] == 3 && rows[1] == 4);
    assert_int_equal(table_get_rows(t->table, &keys[2], 1, true, rows), PARAMO_E_NOT_FOUND);
    for (uint64_t n = 10; n < 12; n++) { /* one more arrival, in which 10 was done */
        if (n == 10) {
            applied_window_init(&theirs);
            applied_window_record(&theirs, 10);
            memset(partitions, 0, sizeof partitions);
            partitions_run(partitions, 20, 10);
            assert_int_equal(applied_window_import(applied_window, all, partitions, &theirs), PARAMO_OK);
        }
        const uint32_t lens[3] = {1, 2, 3};
        struct wire_head push = fake_head(&f, WIRE_PUSH, 3, n);
        push.count = 3;
        push.flags = WIRE_LENS;
        seg[1] = (struct van_seg){.data = (void *)(uintptr_t)lens, .len = sizeof lens};
        wire_head_encode(&push, head);
        assert_int_equal(van_deliver(&c->conn, head, seg, 3, NULL, 7), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
        t = shard_table_find(f.shard, 3);
        uint32_t got[3];
        size_t total;
        table_var_lens(t->table, keys, 3, got, &total);
        assert_true(got[0] == 1 && got[1] == 2 && got[2] == (n == 10 ? 0 : 3));
    }
    /* below the floor nothing differs any more */
    struct wire_head last = fake_head(&f, WIRE_PUSH, 1, 20);
    last.floor = 11;
    assert_int_equal(fake_send(c, &last, keys, vals), PARAMO_OK);
    assert_null(applied_window->applied_notes);
    assert_int_equal(f.shard->pool.out, 0);
    fake_disconnect(c);
    fake_fini(&f);
}

static void test_fence(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 1, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    f.worker_dead = true;
    fake_view(&f);
    assert_true(c->closed); /* its host may have vanished, and reset nothing */
    assert_int_equal(f.shard->senders->count, 0);
    fake_disconnect(c);
    c = fake_connect(&f, 0); /* it does not know yet */
    assert_true(c->closed);
    assert_int_equal(f.shard->senders->count, 0);
    fake_disconnect(c);
    struct fake_conn *d = fake_connect(&f, 1);
    fake_disconnect(d);
    assert_int_equal(f.shard->senders->count, 1); /* it is alive, and may come back */
    fake_fini(&f);
}

/* Answers that cannot leave hold back what would make more of them, in order, and nothing is lost. */
static void test_back_pressure(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    c->full = true;
    for (uint64_t n = 1; n <= 500; n++) {
        struct wire_head h = fake_head(&f, n % 2 ? WIRE_PUSHPULL : WIRE_PULL, 1, n);
        assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    }
    assert_int_equal(c->count, 0);
    c->full = false;
    c->conn.user_ops->writable(c->conn.user, &c->conn);
    assert_int_equal(c->count, 500);
    for (uint64_t n = 1; n <= 500; n++) {
        assert_int_equal(c->sent[n - 1].head.number, n);
        assert_true(c->sent[n - 1].vals[0] == (float)((n + 1) / 2));
    }
    c->full = true;
    for (uint64_t n = 501; n <= 600; n++) {
        struct wire_head h = fake_head(&f, WIRE_PULL, 1, n);
        assert_int_equal(fake_send(c, &h, &key, NULL), PARAMO_OK);
    }
    fake_disconnect(c);
    assert_int_equal(f.shard->replies->out, 0);
    assert_int_equal(f.shard->pool.out, 0);
    fake_fini(&f);
}

/* ---- handlers ---- */

enum { KEYS = 60, LIST = 20, LISTS = 8, OPS = 3500 };

/* Remembered rows never show: lists come again, overlap, lose rows between, and hold keys that were made by
 * other lists, beside a model of the table. */
static void rows_remembered(paramo_optimizer optimizer)
{
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.options[0].optimizer = optimizer;
    f.options[0].alpha = 1;
    f.options[0].momentum = 0;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    float model[KEYS] = {0};
    uint64_t x = 1, deletions = 0, remembered = 0;
    for (uint64_t number = 1; number <= OPS; number++) {
        x = mix64(x + number);
        size_t first = x % LISTS * 5;
        unsigned op = (unsigned)(x >> 8) % 64;
        uint64_t keys[LIST];
        float vals[LIST];
        for (size_t i = 0; i < LIST; i++) {
            keys[i] = key + first + i;
            vals[i] = (float)(x >> 16 & 7);
        }
        struct wire_head h = fake_head(&f, op < 30 ? WIRE_PUSH : WIRE_PULL, 1, number);
        h.floor = number;
        h.count = LIST;
        if (op == 60)
            h.kind = WIRE_CLEAR;
        else if (op > 60)
            h.kind = WIRE_DELETE;
        else if (op > 40 && op < 50)
            h.flags = WIRE_CREATE;
        else if (op > 55)
            h.kind = WIRE_PUSHPULL;
        bool refused = op < 4;
        if (refused)
            vals[7] = NAN;
        const struct shard_table *t = shard_table_find(f.shard, 1);
        remembered += t->rows.count && h.kind == WIRE_PUSH &&
                      rowcache_find((struct rowcache *)&t->rows, table_generation(t->table), keys, LIST);
        if (h.kind == WIRE_CLEAR)
            h.count = 0;
        bool brings = h.kind == WIRE_PUSH || h.kind == WIRE_PUSHPULL;
        assert_int_equal(fake_send(c, &h, h.count ? keys : NULL, brings ? vals : NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, refused ? PARAMO_E_NUMERIC : PARAMO_OK);
        for (size_t i = 0; i < LIST && brings && !refused; i++)
            model[first + i] += optimizer == PARAMO_OPT_ADD ? vals[i] : -vals[i];
        for (size_t i = 0; i < LIST && h.kind == WIRE_DELETE; i++)
            model[first + i] = 0;
        if (h.kind == WIRE_CLEAR)
            memset(model, 0, sizeof model);
        deletions += h.kind == WIRE_DELETE;
        for (size_t i = 0; i < fake_last(c)->vals_bytes / 4; i++)
            assert_true(fake_last(c)->vals[i] == model[first + i]);
    }
    assert_true(deletions > 50 && remembered > 200);
    fake_disconnect(c);
    fake_fini(&f);
}

static void test_rows_remembered(void **state)
{
    (void)state;
    rows_remembered(PARAMO_OPT_ADD);      /* rows that lie in the index */
    rows_remembered(PARAMO_OPT_MOMENTUM); /* rows that lie in slabs */
}

static paramo_err reduce(struct fake_conn *c, const struct fake *f, uint32_t table,
                         const struct reduction *what)
{
    struct wire_head h = fake_head(f, WIRE_REDUCE, table, 1);
    uint8_t bytes[VAN_HEAD], body[REDUCTION_BODY_MAX];
    h.count = 0;
    wire_head_encode(&h, bytes);
    reduction_encode(what, body);
    const struct van_seg seg[VAN_SEGS] = {
        [WIRE_SEG_BODY] = {.data = body, .len = reduction_body_bytes(what)}};
    return van_deliver(&c->conn, bytes, seg, WIRE_SEG_BODY + 1, NULL, 7);
}

/* A request that is deferred comes again as one of another table: what was found, and how far the first was, are not
 * its. */
static void test_another_table(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.options[2] = f.options[0];
    f.options[2].kind = PARAMO_TABLE_VAR;
    f.options[3] = f.options[0];
    f.tables = 4;
    fake_view(&f);
    f.shard->config.scan_keys = 4;
    struct fake_conn *c = fake_connect(&f, 0);
    enum { ROWS = 40 };
    uint64_t keys[ROWS];
    float ones[ROWS];
    for (unsigned i = 0; i < ROWS; i++)
        keys[i] = i, ones[i] = 1;
    for (unsigned i = 0; i < 3; i++) {
        struct wire_head push = fake_head(&f, WIRE_PUSH, (uint32_t[]){1, 2, 4}[i], 2 + i);
        push.count = ROWS;
        assert_int_equal(fake_send(c, &push, keys, ones), PARAMO_OK);
    }
    const struct reduction dot = {.function = PARAMO_REDUCE_DOT, .two = true, .other = 4, .last = UINT64_MAX},
                           sum = {.function = PARAMO_REDUCE_SUM, .last = UINT64_MAX};
    const uint32_t tables[] = {1, 3, 2, 1}; /* sparse, of any length, dense */
    const struct reduction *asked[] = {&dot, &sum, &sum, &sum};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(reduce(c, &f, tables[i], asked[i]), PARAMO_OK);
        if (i % 2) /* what came first has had no step yet */
            fake_pass(&f, 1);
    }
    for (uint32_t table = 2; table > 0; table--) {
        struct wire_head stat = fake_head(&f, WIRE_STAT, table, 5);
        stat.count = 0;
        assert_int_equal(fake_send(c, &stat, NULL, NULL), PARAMO_OK);
        fake_pass(&f, 1);
    }
    fake_pass(&f, ENV_SEC);
    assert_int_equal(deferred_waiting(f.shard), 0);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    fake_disconnect(c);
    fake_fini(&f);
}

struct dispatch {
    unsigned handled;
    struct shard_request *open[8];
    unsigned open_count;
    float seen;
};

static void take(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    struct dispatch *dispatch = arg;
    dispatch->handled++;
    dispatch->seen = info->vals_len ? ((const float *)info->vals)[0] : 0;
    assert_string_equal(info->table, "t3");
    assert_int_equal(info->sender, 9);
    assert_int_equal(info->keys[0], key);
    if (info->cmd)
        assert_int_equal(shard_answer(request, &(float){7}, info->pull, NULL), PARAMO_OK);
    else
        dispatch->open[dispatch->open_count++] = request;
}

/* A checkpoint's note may be far ahead of what is known of its sender, whose requests its handler still has. */
static void test_note_far_ahead(void **state)
{
    (void)state;
    struct fake f;
    struct dispatch dispatch = {0};
    fake_init(&f, take, &dispatch);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    const struct sender *sender = ((struct peer *)c->conn.user)->sender;
    struct wire_head h = fake_head(&f, WIRE_PUSH, 3, 5);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    static bool own[RING_PARTITIONS];
    memset(own, 1, sizeof own);
    struct sender_note note = {.sender = sender->id, .number = 5 + DATA_WINDOW, .partitions = {1}};
    struct load_records records = {.partitions = RING_PARTITIONS, .notes = &note, .n = 1};
    bool done;
    assert_int_equal(load_records_turn(f.shard, own, &records, &done), PARAMO_OK);
    assert_true(done);
    assert_int_equal(sender->applied_window.own.floor, 6);
    h.number = 5 + DATA_WINDOW; /* it has the place that 5 had */
    h.floor = 6;
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(dispatch.handled, 2);
    for (unsigned i = 0; i < dispatch.open_count; i++)
        assert_int_equal(shard_answer(dispatch.open[i], NULL, 0, NULL), PARAMO_OK);
    fake_disconnect(c);
    fake_fini(&f);
}

static void test_handler(void **state)
{
    (void)state;
    struct fake f;
    struct dispatch dispatch = {0};
    fake_init(&f, take, &dispatch);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSHPULL, 3, 1), probe = fake_head(&f, WIRE_PROBE, 3, 1);
    probe.count = 0;
    float vals = 5;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK); /* a repeat waits for the same answer */
    assert_int_equal(dispatch.handled, 1);
    assert_true(dispatch.seen == 5);
    assert_int_equal(c->count, 0);
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.probed.found, PROBE_WORKING);
    assert_int_equal(shard_answer(dispatch.open[0], &(float){3}, 1, NULL), PARAMO_OK);
    assert_true(fake_last(c)->vals[0] == 3);
    size_t kept = f.shard->handling->kept_bytes;
    assert_true(kept > 0);
    unsigned before = c->count;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(c->count, before + 2);
    assert_true(fake_last(c)->vals[0] == 3);
    assert_int_equal(dispatch.handled, 1);
    /* the kept answer goes when the floor passes; a request that fails keeps its error */
    h.number = 2;
    h.floor = 2;
    h.cmd = 0;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    assert_int_equal(f.shard->handling->kept_bytes, 0);
    assert_int_equal(shard_answer_error(dispatch.open[1], PARAMO_E_INVALID, "no"), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_INVALID);
    assert_string_equal(fake_last(c)->text, "no");
    /* answered inside the handler */
    h.number = 3;
    h.cmd = 1;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    assert_true(fake_last(c)->vals[0] == 7);
    /* given up by its sender while it is worked on */
    h.number = 4;
    h.cmd = 0;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    h.number = 5;
    h.floor = 5;
    assert_int_equal(fake_send(c, &h, &key, &vals), PARAMO_OK);
    before = c->count;
    assert_int_equal(shard_answer(dispatch.open[2], NULL, 0, NULL), PARAMO_OK);
    assert_int_equal(c->count, before);
    /* answered when the shard is gone */
    fake_disconnect(c);
    shard_close(f.shard);
    f.shard = NULL;
    assert_int_equal(shard_answer(dispatch.open[3], NULL, 0, NULL), PARAMO_OK);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_rows_remembered),
        cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_handler),
        cmocka_unit_test(test_partial_apply),
        cmocka_unit_test(test_another_table),
        cmocka_unit_test(test_note_far_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
