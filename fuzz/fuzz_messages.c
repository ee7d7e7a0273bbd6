/* Every control message: the first byte picks the decoder. What decodes is encoded and decoded to the same
 * again; where the format has one way only to say a thing, to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "cluster/view/view.h"
#include "harness.h"
#include "wire/barrier_call.h"
#include "wire/calls.h"
#include "wire/ckpt_order.h"
#include "wire/clock_calls.h"
#include "wire/end.h"
#include "wire/heartbeat.h"
#include "wire/hello.h"
#include "wire/kv_calls.h"
#include "wire/migration_order.h"
#include "wire/order.h"
#include "wire/pool_calls.h"
#include "wire/register_call.h"
#include "wire/status.h"
#include "wire/table_spec.h"

/* Decodes in and encodes to out; false if it does not decode. */
typedef bool (*codec)(struct reader *in, struct writer *out);

#define CODEC(name, type)                                                                                    \
    static bool codec_##name(struct reader *in, struct writer *out)                                          \
    {                                                                                                        \
        type m;                                                                                              \
        if (name##_decode(in, &m))                                                                           \
            return false;                                                                                    \
        name##_encode(&m, out);                                                                              \
        return true;                                                                                         \
    }

CODEC(hello, struct hello)
CODEC(welcome, struct welcome)
CODEC(register_call, struct register_call)
CODEC(register_result, struct register_result)
CODEC(barrier_call, struct barrier_call)
CODEC(barrier_result, struct barrier_result)
CODEC(table_spec, paramo_table_options)
CODEC(table_open, struct table_open)
CODEC(table_open_result, struct table_open_result)
CODEC(pool_open, struct pool_open)
CODEC(pool_next, struct pool_next)
CODEC(pool_next_result, struct pool_next_result)
CODEC(pool_report, struct pool_report)
CODEC(kv_put, struct kv_put)
CODEC(kv_get, struct kv_get)
CODEC(kv_delete, struct kv_delete)
CODEC(clock_join, struct clock_join)
CODEC(clock_joined, struct clock_joined)
CODEC(clock_tell, struct clock_tell)
CODEC(clock_wait, struct clock_wait)
CODEC(clock_leave, struct clock_leave)
CODEC(clock_result, struct clock_result)
CODEC(heartbeat, struct heartbeat)
CODEC(migration_order, struct migration_order)
CODEC(order_done, struct order_done)
CODEC(ckpt_order, struct ckpt_order)
CODEC(ckpt_result, struct ckpt_result)
CODEC(ckpt_written, struct ckpt_written)

static bool codec_reject(struct reader *in, struct writer *out)
{
    paramo_err code;
    if (reject_decode(in, &code))
        return false;
    CHECK(code != PARAMO_OK);
    reject_encode(code, err_text(), out);
    return true;
}

static bool codec_end(struct reader *in, struct writer *out)
{
    paramo_err status;
    char text[CALL_TEXT_MAX];
    if (end_decode(in, &status, text))
        return false;
    end_encode(status, text, out);
    return true;
}

static bool codec_text(struct reader *in, struct writer *out)
{
    char text[CALL_TEXT_MAX];
    if (call_text_decode(in, text))
        return false;
    call_text_encode(text, out);
    return true;
}

static bool codec_view(struct reader *in, struct writer *out)
{
    struct view *view;
    if (view_decode(in, &view))
        return false;
    for (uint32_t i = 0; i < view->shards_count; i++) {
        CHECK(view_node(view, view->shards[i].node));
        CHECK(view_shard_index(view, view->shards[i].node, view->shards[i].index) == (int)i);
    }
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t member = view->chains.level[l].owner[a];
            CHECK(member < view->shards_count || member == RING_NONE);
            for (unsigned k = 0; k < l && member != RING_NONE; k++)
                CHECK(view->chains.level[k].owner[a] != member &&
                      view->chains.level[k].owner[a] != RING_NONE);
            CHECK(l <= view->chains.replicas || member == RING_NONE);
        }
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        CHECK(view->owner_gone[a] <= view->number);
    for (uint32_t i = 0; i < view->tables_count; i++)
        CHECK(view_table(view, view->tables[i].id) == &view->tables[i]);
    view_encode(view, out);
    view_unref(view);
    return true;
}

static bool codec_shard_report(struct reader *in, struct writer *out)
{
    struct shard_report m;
    shard_report_decode(in, &m);
    if (!reader_done(in))
        return false;
    shard_report_encode(&m, out);
    return true;
}

static bool codec_status(struct reader *in, struct writer *out)
{
    struct status m;
    if (status_decode(in, &m))
        return false;
    status_encode(&m, out);
    status_fini(&m);
    return true;
}

static const struct {
    codec run;
    bool one_way; /* a thing is said in one way only */
} codecs[] = {{codec_hello, true},
              {codec_welcome, true},
              {codec_reject, false}, /* unknown codes become INTERNAL */
              {codec_register_call, true},
              {codec_register_result, false}, /* any number is true */
              {codec_barrier_call, true},
              {codec_barrier_result, true},
              {codec_table_spec, true},
              {codec_table_open, true},
              {codec_table_open_result, true},
              {codec_pool_open, true},
              {codec_pool_next, true},
              {codec_pool_next_result, true},
              {codec_pool_report, true},
              {codec_kv_put, true},
              {codec_kv_get, true},
              {codec_kv_delete, true},
              {codec_heartbeat, false},
              {codec_end, false},
              {codec_text, true},
              {codec_view, false},       /* a ring may come in more runs than it needs */
              {codec_order_done, false}, /* unknown codes become INTERNAL */
              {codec_migration_order, true},
              {codec_ckpt_order, true},
              {codec_ckpt_result, true},
              {codec_ckpt_written, true},
              {codec_shard_report, true},
              {codec_status, true},
              {codec_clock_join, true},
              {codec_clock_joined, true},
              {codec_clock_tell, true},
              {codec_clock_wait, true},
              {codec_clock_leave, true},
              {codec_clock_result, true}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    size_t which = data[0] % (sizeof codecs / sizeof codecs[0]), got;
    struct source s = {data + 1, size - 1};
    uint8_t *bytes = draw_bytes(&s, size - 1, &got);
    struct reader r = reader_over(bytes, got);
    struct writer once = {0}, twice = {0};
    if (codecs[which].run(&r, &once)) {
        if (which != 7) /* table_spec is part of others: it leaves what follows */
            CHECK(r.left == 0);
        CHECK(!once.failed);
        CHECK(!codecs[which].one_way ||
              (once.len == got - r.left && (!once.len || memcmp(once.data, bytes, once.len) == 0)));
        r = reader_over(once.data, once.len);
        CHECK(codecs[which].run(&r, &twice));
        CHECK(twice.len == once.len && (!once.len || memcmp(once.data, twice.data, once.len) == 0));
    }
    writer_fini(&once);
    writer_fini(&twice);
    free(bytes);
    return 0;
}
