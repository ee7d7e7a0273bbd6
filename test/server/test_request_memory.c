/* A request of each kind, in turns and in one, while each allocation of the shard fails in turn, alone or with all
 * after it: it is answered once, or its connection ends, or the shard knows nothing of it; and it has changed all of
 * its rows or none. Sent again, it is done once. */
#include "server/shard/shard_tables.h"
#include "server/support_fake.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* The linker gives us what this program asks for memory (CMakeLists.txt). */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool counts;      /* allocations, while a frame is handled */
static bool all_behind;  /* the first that fails, too */
static unsigned asked;   /* allocations so far */
static unsigned fails;   /* the number of the one that fails; 0: none */
static unsigned refused; /* allocations that have failed */

static bool lacks(void)
{
    if (!counts)
        return false;
    asked++;
    bool is = fails && (all_behind ? asked >= fails : asked == fails);
    refused += is;
    return is;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return lacks() ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
    return lacks() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return lacks() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return lacks() ? NULL : __real_aligned_alloc(alignment, size);
}

/* NEW keys are not there yet. The others have the value 1. */
enum { OLD = 40, NEW = 24, KEYS = OLD + NEW, TURN = 8, SPARSE = 1, DENSE = 2, VAR = 4, NUMBER = 10 };

static struct fake f;
static struct fake_conn *c;
static uint64_t keys[KEYS];
static float ones[KEYS];
static uint32_t lens[KEYS];

static void nothing(struct sim_event *event)
{
    (void)event;
}

/* The simulation has the memory that it needs for its events. */
static void events_have_room(void)
{
    static struct sim_event events[64];
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++) {
        events[i].fire = nothing;
        assert_int_equal(PARAMO_OK, sim_schedule(f.sim, &events[i], sim_now(f.sim) + i % 2));
    }
}

static void begin(size_t turn)
{
    fake_init(&f, NULL, NULL);
    f.shard->config.scan_keys = turn;
    f.tables = VAR;
    f.options[VAR - 1] = f.options[SPARSE - 1];
    f.options[VAR - 1].kind = PARAMO_TABLE_VAR;
    f.options[VAR - 1].optimizer = PARAMO_OPT_ADD;
    fake_view(&f);
    events_have_room();
    fake_pass(&f, ENV_SEC); /* the dense table is made, in turns */
    c = fake_connect(&f, 0);
    for (unsigned i = 0; i < KEYS; i++)
        ones[i] = (float)(lens[i] = 1);
}

static void end(void)
{
    fake_disconnect(c);
    fake_fini(&f);
}

static void keys_of(uint32_t table)
{
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = table == DENSE ? i : i * (UINT64_MAX / KEYS);
}

static void deliver(unsigned kind, uint32_t table, uint64_t number, uint32_t n)
{
    struct wire_head h = fake_head(&f, kind, table, number);
    bool has_vals = kind == WIRE_PUSH || kind == WIRE_PUSHPULL || kind == WIRE_PUT;
    uint64_t from = 0;
    uint8_t head[VAN_HEAD];
    struct van_seg seg[VAN_SEGS] = {{0}};
    h.flags = table == VAR && kind != WIRE_STAT && kind != WIRE_CLEAR && kind != WIRE_SCAN ? WIRE_LENS : 0;
    h.count = kind == WIRE_STAT || kind == WIRE_CLEAR ? 0 : kind == WIRE_SCAN ? 1 : n;
    seg[WIRE_SEG_KEYS] = (struct van_seg){.data = kind == WIRE_SCAN ? &from : keys, .len = 8 * h.count};
    if (has_vals) {
        seg[WIRE_SEG_VALS] = (struct van_seg){.data = ones, .len = 4 * h.count};
        seg[WIRE_SEG_LENS] = (struct van_seg){.data = lens, .len = table == VAR ? 4 * h.count : 0};
    }
    wire_head_encode(&h, head);
    counts = true;
    if (van_deliver(&c->conn, head, seg, has_vals ? 3 : h.count ? 1 : 0, NULL, 7))
        fail_msg("kind %u, table %u: %s", kind, table, err_text());
    fake_pass(&f, 100 * ENV_MS);
    counts = false;
}

/* Answers to this number since `since`; *status is the last one's. */
static unsigned answers(unsigned since, uint64_t number, paramo_err *status)
{
    unsigned n = 0;
    for (unsigned i = since; i < c->count; i++)
        if (c->sent[i].head.number == number && c->sent[i].head.kind == WIRE_ANSWER) {
            *status = c->sent[i].head.status;
            n++;
        }
    return n;
}

static float value(uint32_t table, unsigned i)
{
    const struct table *t = shard_table_find(f.shard, table)->table;
    float v = 0;
    size_t total = 0;
    uint32_t len;
    if (table != VAR) {
        assert_int_equal(PARAMO_OK,
                         table_pull(shard_table_find(f.shard, table)->table, &keys[i], 1, &v, false));
        return v;
    }
    table_var_lens(t, &keys[i], 1, &len, &total);
    if (total)
        table_var_pull(t, &keys[i], 1, &v);
    return v;
}

/* Has the request changed all rows (1), or none (0)? */
static unsigned changed(unsigned kind, uint32_t table, const float before[KEYS])
{
    unsigned done = 0, not_done = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        float v = value(table, i);
        float after = kind == WIRE_PUSH || kind == WIRE_PUSHPULL  ? before[i] + 1
                      : kind == WIRE_PUT                          ? 1
                      : kind == WIRE_DELETE || kind == WIRE_CLEAR ? 0
                                                                  : before[i];
        if (v != after && v != before[i])
            fail_msg("row %u is %g, not %g or %g", i, (double)v, (double)before[i], (double)after);
        if (after != before[i]) {
            done += v == after;
            not_done += v == before[i];
        }
    }
    assert_true(!done || !not_done);
    return done > 0;
}

static const uint32_t tables[] = {SPARSE, DENSE, VAR};
static const unsigned kinds[] = {WIRE_PULL, WIRE_PUSH,   WIRE_PUSHPULL, WIRE_PUT,
                                 WIRE_STAT, WIRE_DELETE, WIRE_CLEAR,    WIRE_SCAN};

/* The client asks for a request that has no answer: does the shard know nothing of it? */
static bool is_unknown(unsigned kind, uint32_t table)
{
    struct wire_head probe = fake_head(&f, WIRE_PROBE, table, NUMBER);
    probe.count = 0;
    probe.probe.kind = (uint8_t)kind;
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    return fake_last(c)->head.kind == WIRE_PROBE_ANSWER && fake_last(c)->head.probed.found == PROBE_UNKNOWN;
}

/* False: fewer allocations were asked for. */
static bool one_fails(unsigned kind, uint32_t table, size_t turn, unsigned at)
{
    float before[KEYS];
    paramo_err status = PARAMO_OK;
    begin(turn);
    keys_of(table);
    deliver(WIRE_PUSH, table, 1, OLD);
    for (unsigned i = 0; i < KEYS; i++)
        before[i] = value(table, i);
    asked = refused = 0;
    fails = at;
    unsigned since = c->count;
    deliver(kind, table, NUMBER, KEYS);
    fails = 0;
    bool any = refused > 0;
    fake_pass(&f, 2 * ENV_SEC);
    unsigned n = answers(since, NUMBER, &status);
    if (n > 1 || (n == 0 && !c->closed && !is_unknown(kind, table)))
        fail_msg("kind %u, table %u, turn %zu, allocation %u: %u answers", kind, table, turn, at, n);
    unsigned is = changed(kind, table, before);
    assert_true(n == 0 || status == PARAMO_OK || status == PARAMO_E_MEMORY);
    /* A pushpull may have been applied, and there is no memory for its values (paramo.h). */
    assert_true(n == 0 || status == PARAMO_OK || !is || kind == WIRE_PUSHPULL);
    if (n == 0 ||
        status) { /* or the answer is lost: the client sends it again, over another connection if it has to */
        if (c->closed) {
            fake_disconnect(c);
            c = fake_connect(&f, 0);
        }
        since = c->count;
        deliver(kind, table, NUMBER, KEYS);
        assert_int_equal(answers(since, NUMBER, &status), 1);
        assert_int_equal(status, PARAMO_OK);
    }
    assert_int_equal(changed(kind, table, before), data_changes(kind));
    end();
    return any;
}

static void each_allocation_fails(void **state)
{
    (void)state;
    unsigned runs = 0;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (unsigned t = 0; t < 3; t++)
            for (size_t turn = 0; turn <= TURN; turn += TURN)
                for (int behind = 0; behind < 2; behind++) {
                    all_behind = behind;
                    unsigned at = 1;
                    while (one_fails(kinds[k], tables[t], turn, at))
                        at++;
                    runs += at;
                }
    assert_true(runs > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
