/* A folder with the state of a scheduler, its files from the input: store_dir opens it or says what is wrong,
 * and the durable records that it finds are refused, or a scheduler goes on with them: its members come back
 * and call, time passes, what it sends can be read, it saves, and another one goes on with what it has saved.
 * Never an abort. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/meta/store_dir.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/scheduler/scheduler.h"
#include "cluster/session/control_message.h"
#include "cluster/view/view.h"
#include "fakevan.h"
#include "sim/env/simfs.h"
#include "wire/barrier_call.h"
#include "wire/clock_calls.h"
#include "wire/hello.h"
#include "wire/kv_calls.h"
#include "wire/pool_calls.h"
#include "wire/register_call.h"

enum { MEMBERS_MAX = 8, STARTS = 2 };

static struct world {
    struct fakeworld world;
    struct simfs *disk;
    struct blocking_jobs *blocking_jobs;
    struct store *store;
    struct scheduler *scheduler;
    struct store_state found;
    struct writer records;
    bool started, over;
    paramo_err status;
} w;

static void over(void *arg, paramo_err status, const char *text)
{
    (void)arg, (void)status;
    CHECK(!w.over && text);
    w.over = true;
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head head;
    struct reader body;
    struct view *view;
    (void)arg, (void)c;
    CHECK(control_message_open(frame->head, frame->seg, frame->nseg, &head, &body) == PARAMO_OK);
    if (head.kind == WIRE_VIEW) {
        CHECK(view_decode(&body, &view) == PARAMO_OK && view->complete);
        CHECK(view->number >> 32 <= STORE_TERM_MAX + SCHED_TERMS_AHEAD);
        view_unref(view);
    }
}

/* ---- the files ---- */

static void put(const char *path, const void *data, size_t len)
{
    struct fs_file *file;
    CHECK(fs_open(simfs_fs(w.disk), path, FS_CREATE, &file) == PARAMO_OK);
    CHECK(!len || fs_write_all(file, data, len) == PARAMO_OK);
    CHECK(fs_sync(file) == PARAMO_OK);
    fs_close(file);
    CHECK(fs_sync_dir(simfs_fs(w.disk), "/d/s") == PARAMO_OK);
}

static void put_writer(const char *path, struct writer *file, bool right)
{
    CHECK(!file->failed);
    if (right)
        write_u64(file, hash_bytes(file->data, file->len));
    put(path, file->data, file->len);
    writer_fini(file);
}

/* As the store writes them, around bytes of the input; or those bytes and nothing else. */
static void files(struct source *s, uint8_t how)
{
    size_t len;
    bool right = !(how & 1);
    uint32_t log_bytes = how & 2 ? draw_u16(s) : 0;
    struct writer file = {0};
    if (right) {
        write_bytes(&file, "PARAMOST", 8);
        write_u32(&file, 1);
        write_u32(&file, how & 4 ? (uint32_t)draw_number(s) : 1);
        write_u64(&file, 5);
        len = s->left > log_bytes ? s->left - log_bytes : 0;
        write_u64(&file, len);
    } else {
        len = s->left > log_bytes ? s->left - log_bytes : 0;
    }
    uint8_t *bytes = draw_bytes(s, len, &len);
    write_bytes(&file, bytes, len);
    free(bytes);
    put_writer("/d/s/state", &file, right);
    if (!log_bytes)
        return;
    if (right) {
        write_bytes(&file, "PARAMORE", 8);
        write_u64(&file, 5);
        write_u64(&file, 1);
        write_u64(&file, s->left);
    }
    bytes = draw_bytes(s, s->left, &len);
    write_bytes(&file, bytes, len);
    free(bytes);
    put_writer("/d/s/log.5", &file, right);
}

static void started(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    CHECK(!w.started && !status == !!state);
    w.started = true;
    w.status = status;
    if (state) {
        w.found = *state;
        write_bytes(&w.records, state->records, state->bytes);
        CHECK(!w.records.failed);
        w.found.records = w.records.data;
    }
}

/* ---- the members of that job ---- */

static void send_message(struct fakeconn *c, const struct wire_head *head, struct writer *body)
{
    if (fakeconn_alive(c))
        (void)fakeconn_control_message(c, head, body->data, body->len);
    writer_fini(body);
}

static void begin_call(struct fakeconn *c, unsigned kind, uint64_t number, struct writer *body)
{
    struct wire_head head = {.call = {.kind = WIRE_CALL, .what = kind, .number = number, .floor = 1}};
    send_message(c, &head, body);
}

static void come_back(const struct view_node *info)
{
    struct fakeconn *c = fakevan_unauth(&w.world.van);
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_CONTROL,
                          .incarnation = info->incarnation ? info->incarnation : 1,
                          .token = "token"};
    struct register_call place = {.role = info->role, .node = info->id, .rank = -1, .timeout_ms = 5000};
    struct pool_next next = {.name = "a", .customer = 0};
    struct pool_report done = {.name = "a", .unit = {.token = 1}};
    struct kv_put value = {.key = "a", .value = (const uint8_t *)"12345678", .len = 8};
    struct barrier_call barrier = {.group = PARAMO_GROUP_ALL, .timeout_ms = 1000};
    struct wire_head head = {.plain = {.kind = WIRE_HELLO}};
    struct writer body = {0};
    if (!c)
        return;
    if (info->role == PARAMO_ROLE_SERVER) {
        place.port = 1;
        place.shards = info->shards ? info->shards : 1;
        place.weight = 1;
    }
    hello_encode(&hello, &body);
    send_message(c, &head, &body);
    head = (struct wire_head){.call = {.kind = WIRE_CALL, .what = CALL_REGISTER}};
    register_call_encode(&place, &body);
    send_message(c, &head, &body);
    for (uint32_t round = 0; round < 3; round++) {
        next.round = round;
        pool_next_encode(&next, &body);
        begin_call(c, CALL_POOL_NEXT, 1 + round, &body);
    }
    pool_report_encode(&done, &body);
    begin_call(c, CALL_POOL_END, 4, &body);
    pool_report_encode(&done, &body);
    begin_call(c, CALL_POOL_DONE, 5, &body);
    kv_put_encode(&value, &body);
    begin_call(c, CALL_KV_ADD, 6, &body);
    barrier_call_encode(&barrier, &body);
    begin_call(c, CALL_BARRIER, 7, &body);
    begin_call(c, CALL_STATUS, 8, &body);
    clock_join_encode(&(struct clock_join){.customer = 0}, &body);
    begin_call(c, CALL_CLOCK_JOIN, 9, &body);
    clock_tell_encode(&(struct clock_tell){.session = clock_session(info->id, 9), .clock = 3}, &body);
    begin_call(c, CALL_CLOCK_TELL, 10, &body);
    clock_wait_encode(
        &(struct clock_wait){.session = clock_session(info->id, 9), .clock = 3, .timeout_ms = 10}, &body);
    begin_call(c, CALL_CLOCK_WAIT, 11, &body);
}

static void members_come(void)
{
    struct view_node info[MEMBERS_MAX];
    unsigned n = 0;
    size_t cursor = 0;
    for (struct sched_node *node; n < MEMBERS_MAX && (node = sched_roster_next(w.scheduler, &cursor));)
        info[n++] = node->info;
    for (unsigned i = 0; i < n; i++)
        come_back(&info[i]);
    come_back(&(struct view_node){.role = PARAMO_ROLE_WORKER, .incarnation = 4711});
}

/* ---- a scheduler on it ---- */

static bool open_store(void)
{
    struct store_dir_config config = {
        .lane = w.world.lane, .fs = simfs_fs(w.disk), .dir = "/d/s", .blocking_jobs = w.blocking_jobs};
    CHECK(store_dir_open(&config, &w.store) == PARAMO_OK);
    w.started = false;
    fakeworld_enter(&w.world);
    CHECK(store_start(w.store, started, NULL) == PARAMO_OK);
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 100);
    CHECK(w.started);
    return w.status == PARAMO_OK;
}

static bool go_on(uint8_t size, uint8_t how)
{
    struct scheduler_config config = {.van = &w.world.van.van,
                                      .lane = w.world.lane,
                                      .address = "scheduler",
                                      .token = "token",
                                      .num_servers = 1 + (size & 3),
                                      .num_workers = 1 + (size >> 2 & 3),
                                      .replicas = size >> 4 & 3,
                                      .own_member = size & 64,
                                      .heartbeat_timeout_ms = 2000,
                                      .fs = simfs_fs(w.disk),
                                      .blocking_jobs = w.blocking_jobs,
                                      .on_loss_restore = how & 8,
                                      .checkpoint_dir = "/d/ckpt",
                                      .store = w.store,
                                      .found = &w.found,
                                      .over = over};
    fakeworld_enter(&w.world);
    paramo_err err = scheduler_create(&config, &w.scheduler);
    if (!err)
        members_come();
    fakeworld_leave(&w.world);
    writer_fini(&w.records);
    if (err)
        return false;
    for (unsigned i = 0; i < 4; i++)
        fakeworld_pass(&w.world, 1000);
    fakeworld_enter(&w.world);
    scheduler_destroy(w.scheduler);
    fakeworld_leave(&w.world);
    w.store = NULL;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    CHECK(simfs_create(1, &w.disk) == PARAMO_OK && fs_make_dir(simfs_fs(w.disk), "/d") == PARAMO_OK &&
          fs_keep_dir(simfs_fs(w.disk), "/d/s") == PARAMO_OK);
    CHECK(blocking_jobs_create(lane_env(w.world.lane), "files", &w.blocking_jobs) == PARAMO_OK);
    uint8_t how = draw_u8(&s), shape = draw_u8(&s);
    files(&s, how);
    for (unsigned i = 0; i < STARTS; i++) {
        bool opened = open_store();
        CHECK(opened || i == 0 ||
              w.status == PARAMO_E_FORMAT); /* it has written that itself; the terms may be used up */
        if (!opened || !go_on(shape, how))
            break;
        fakeworld_pass(&w.world, 100);
        if (w.over)
            break;
    }
    fakeworld_enter(&w.world);
    if (w.store)
        store_close(w.store);
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 100);
    writer_fini(&w.records);
    blocking_jobs_destroy(w.blocking_jobs);
    fakeworld_close(&w.world);
    simfs_destroy(w.disk);
    return 0;
}
