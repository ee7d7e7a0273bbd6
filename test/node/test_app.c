/* Applications on messages (paramo/app.h) on whole nodes: embedded over inproc, and clusters over TCP. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node/node.h"
#include "support_cluster.h"
#include "unit.h"

enum { ECHO = 7, SILENT = 8, QUEUE = 9, LATE = 10 };

static void ok_at(paramo_err err, int line)
{
    if (err)
        (void)fprintf(stderr, "line %d: %s: %s\n", line, paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}
#define ok(call) ok_at(call, __LINE__)

/* ---- servers of apps ---- */

static atomic_uint served;

/* All four segments back, from where they were received; flags 1: the head's word as an error. */
static void echo(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    atomic_fetch_add(&served, 1);
    assert_null(info->table);
    if (info->flags & 1) {
        ok(paramo_answer_error(request, PARAMO_E_HANDLER, "thirteen is refused"));
        return;
    }
    paramo_array *seg[PARAMO_SEGS];
    for (unsigned i = 0; i < PARAMO_SEGS; i++)
        ok(paramo_request_keep(request, i, &seg[i]));
    ok(paramo_answer_arrays(request, seg));
    for (unsigned i = 0; i < PARAMO_SEGS; i++)
        paramo_array_unref(seg[i]);
}

/* ---- asking ---- */

struct heard {
    unsigned count;
    uint32_t nodes[32];
    size_t bytes;
    int32_t head;
    int placed;
    uint8_t first, last;
    paramo_array *kept;
};

static void hear(void *arg, uint64_t ts, const paramo_reply *reply)
{
    struct heard *h = arg;
    assert_true(ts > 0);
    if (h->count < 32)
        h->nodes[h->count] = reply->node;
    h->count++;
    h->head = reply->head;
    h->placed = reply->placed;
    const paramo_bytes *body = &reply->seg[PARAMO_SEG_BODY];
    h->bytes = body->len;
    if (body->len) {
        h->first = ((const uint8_t *)body->data)[0];
        h->last = ((const uint8_t *)body->data)[body->len - 1];
    }
}

static unsigned bits_of(uint32_t group, unsigned servers, unsigned workers)
{
    return (group & 1) + (group & 2 ? servers : 0) + (group & 4 ? workers : 0);
}

/* 100 requests to each sum of groups, several at once; every node answers each once. */
static void ask_every_group(paramo_node *node, uint32_t customer, unsigned servers, unsigned workers)
{
    paramo_worker *w;
    ok(paramo_customer_open(node, ECHO, customer, &w));
    for (uint32_t group = 1; group <= PARAMO_GROUP_ALL; group++) {
        unsigned size = bits_of(group, servers, workers);
        uint64_t ts[100];
        struct heard heard[100];
        memset(heard, 0, sizeof heard);
        for (int i = 0; i < 100; i++) {
            char body[24];
            paramo_message m;
            paramo_message_init(&m, group);
            m.head = i;
            m.seg[PARAMO_SEG_BODY] = (paramo_bytes){body, (size_t)i % sizeof body};
            memset(body, i, sizeof body);
            paramo_request_options o;
            paramo_request_options_init(&o);
            o.flags = PARAMO_COPY;
            ok(paramo_app_request(w, &m, 1, hear, &heard[i], &o, &ts[i]));
        }
        for (int i = 0; i < 100; i++) {
            uint32_t answers = 0;
            ok(paramo_wait(w, ts[i], 0));
            ok(paramo_answers(w, ts[i], &answers));
            assert_int_equal(answers, size);
            assert_int_equal(heard[i].count, size);
            assert_int_equal(heard[i].head, i);
            assert_int_equal(heard[i].bytes, i % 24);
            if (i % 24)
                assert_int_equal(heard[i].first, i);
            uint32_t sum = 0, want = 0, ids[32];
            size_t n = paramo_node_ids(node, group, ids, 32);
            assert_int_equal(n, size);
            for (unsigned k = 0; k < size; k++) {
                sum += heard[i].nodes[k];
                want += ids[k];
            }
            assert_int_equal(sum, want);
        }
    }
    paramo_worker_close(w);
}

/* 64 MiB and nothing at all, there and back, in one place and in pieces. */
static void large_and_empty(paramo_node *node, uint32_t to)
{
    enum { LARGE = 64 << 20 };
    paramo_worker *w;
    ok(paramo_customer_open(node, ECHO, 77, &w));
    paramo_message m;
    paramo_message_init(&m, to);
    struct heard h = {0};
    uint64_t ts;
    ok(paramo_app_request(w, &m, 1, hear, &h, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    assert_int_equal(h.count, 1);
    assert_int_equal(h.bytes, 0);
    uint8_t *large = malloc(LARGE), *back = calloc(1, LARGE);
    assert_true(large && back);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i * 31 + (i >> 16));
    m.seg[PARAMO_SEG_BODY] = (paramo_bytes){large, LARGE};
    ok(paramo_app_request(w, &m, 1, hear, &h, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    assert_int_equal(h.bytes, LARGE);
    assert_int_equal(h.last, large[LARGE - 1]);
    m.seg[PARAMO_SEG_BODY] = (paramo_bytes){0};
    m.seg[PARAMO_SEG_VALS] = (paramo_bytes){large, LARGE};
    m.into = back;
    m.into_len = LARGE;
    ok(paramo_app_request(w, &m, 1, hear, &h, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    assert_int_equal(h.placed, 1);
    assert_memory_equal(back, large, LARGE);
    free(large);
    free(back);
    paramo_worker_close(w);
}

static void mistakes(paramo_node *node, unsigned servers)
{
    paramo_worker *w, *other;
    ok(paramo_customer_open(node, ECHO, 5, &w));
    assert_int_equal(paramo_customer_open(node, ECHO, 5, &other), PARAMO_E_INVALID);
    ok(paramo_customer_open(node, ECHO + 1, 5, &other));
    paramo_worker_close(other);
    paramo_message m;
    uint64_t ts;
    const uint32_t nobody[] = {0, 6 + 2 + 2 * servers, 9 + 2 * 4096};
    for (unsigned i = 0; i < 3; i++) {
        paramo_message_init(&m, nobody[i]);
        assert_int_equal(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts), PARAMO_E_INVALID);
    }
    paramo_message_init(&m, PARAMO_GROUP_SERVERS);
    m.seg[0] = (paramo_bytes){NULL, 8};
    assert_int_equal(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts), PARAMO_E_INVALID);
    m.seg[0] = (paramo_bytes){&m, (size_t)1 << 40};
    assert_int_equal(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts), PARAMO_E_TOO_LARGE);
    m.seg[0] = (paramo_bytes){0};
    m.into = &m;
    m.into_len = 8;
    assert_int_equal(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts), PARAMO_E_INVALID);
    paramo_message_init(&m, PARAMO_ID_SERVER(0));
    m.flags = 1;
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_HANDLER);
    assert_non_null(strstr(paramo_last_error(), "thirteen is refused"));
    ok(paramo_app_request(w, NULL, 0, NULL, NULL, NULL, &ts)); /* to no node: complete at once */
    ok(paramo_wait(w, ts, 0));
    paramo_worker_close(w);
}

/* ---- callbacks that ask further ---- */

struct chain {
    paramo_worker *w;
    atomic_uint left, done;
    atomic_int failed;
};

static void next_link(void *arg, uint64_t ts, paramo_err status)
{
    struct chain *c = arg;
    (void)ts;
    if (status)
        atomic_store(&c->failed, (int)status);
    atomic_fetch_add(&c->done, 1);
    if (atomic_fetch_sub(&c->left, 1) <= 1)
        return;
    assert_int_equal(paramo_wait(c->w, 1, 0), PARAMO_OK); /* it is done: no wait */
    paramo_message m;
    paramo_message_init(&m, PARAMO_GROUP_SERVERS);
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.callback = next_link;
    o.callback_arg = c;
    if (paramo_app_request(c->w, &m, 1, NULL, NULL, &o, NULL))
        atomic_store(&c->failed, PARAMO_E_INTERNAL);
}

static void callbacks_ask_further(paramo_node *node)
{
    struct chain c = {.left = 50};
    ok(paramo_customer_open(node, ECHO, 6, &c.w));
    paramo_message m;
    uint64_t first;
    paramo_message_init(&m, PARAMO_GROUP_SERVERS);
    ok(paramo_app_request(c.w, &m, 1, NULL, NULL, NULL, &first));
    ok(paramo_wait(c.w, first, 0));
    next_link(&c, first, PARAMO_OK);
    while (atomic_load(&c.done) < 50)
        ok(paramo_wait_all(c.w, 0));
    assert_int_equal(atomic_load(&c.failed), PARAMO_OK);
    paramo_worker_close(c.w);
}

/* ---- requests that are taken, and work that waits for other nodes ---- */

struct taker {
    paramo_node *node;
    unsigned worked;
    paramo_err end;
    pthread_t thread;
};

/* Asks all servers itself before it answers: what a handler on a lane could not. */
static void *take_all(void *arg)
{
    struct taker *t = arg;
    paramo_worker *w;
    if (paramo_customer_open(t->node, ECHO, 50, &w))
        return NULL;
    paramo_request *q;
    const paramo_request_info *info;
    while ((t->end = paramo_app_take(t->node, QUEUE, PARAMO_ANY, 0, &q, &info)) == PARAMO_OK) {
        paramo_message m;
        uint64_t ts;
        paramo_message_init(&m, PARAMO_GROUP_SERVERS);
        if (paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts) || paramo_wait(w, ts, 0)) {
            (void)!paramo_answer_error(q, PARAMO_E_HANDLER, "asking the servers failed");
            continue;
        }
        t->worked++;
        int32_t twice = 2 * info->cmd;
        if (paramo_answer_body(q, &twice, sizeof twice))
            break;
    }
    paramo_worker_close(w);
    return NULL;
}

static void hear_twice(void *arg, uint64_t ts, const paramo_reply *reply)
{
    (void)ts;
    int32_t twice = 0;
    assert_int_equal(reply->seg[PARAMO_SEG_BODY].len, sizeof twice);
    memcpy(&twice, reply->seg[PARAMO_SEG_BODY].data, sizeof twice);
    assert_int_equal(twice, 2 * reply->head);
    (*(unsigned *)arg)++;
}

static void the_scheduler_drives_the_workers(struct cluster *c)
{
    struct taker takers[2] = {{.node = c->workers[0].node}, {.node = c->workers[1].node}};
    for (int i = 0; i < 2; i++) {
        ok(paramo_app_serve(takers[i].node, QUEUE, PARAMO_ANY, NULL, NULL));
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]), 0);
    }
    paramo_worker *w;
    ok(paramo_customer_open(c->scheduler.node, QUEUE, 0, &w));
    unsigned heard = 0;
    for (int i = 0; i < 20; i++) {
        paramo_message m;
        uint64_t ts;
        paramo_message_init(&m, PARAMO_GROUP_WORKERS);
        m.head = i;
        ok(paramo_app_request(w, &m, 1, hear_twice, &heard, NULL, &ts));
        ok(paramo_wait(w, ts, 0));
        assert_int_equal(heard, 2 * (unsigned)(i + 1));
    }
    paramo_worker_close(w);
    for (int i = 0; i < 2; i++) {
        paramo_request *q;
        const paramo_request_info *info;
        assert_int_equal(paramo_app_take(c->workers[i].node, ECHO, PARAMO_ANY, 1, &q, &info),
                         PARAMO_E_INVALID); /* it has a handler */
        ok(paramo_app_close(takers[i].node, QUEUE, PARAMO_ANY));
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        assert_int_equal(takers[i].end, PARAMO_E_CLOSED);
        assert_int_equal(takers[i].worked, 20);
        assert_int_equal(paramo_app_close(takers[i].node, QUEUE, PARAMO_ANY), PARAMO_E_NOT_FOUND);
    }
}

/* ---- which app, which customer ---- */

static void say_my_name(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)info;
    ok(paramo_answer_body(request, arg, strlen(arg)));
}

static void hear_name(void *arg, uint64_t ts, const paramo_reply *reply)
{
    (void)ts;
    (void)snprintf(arg, 32, "%.*s", (int)reply->seg[PARAMO_SEG_BODY].len,
                   (const char *)reply->seg[PARAMO_SEG_BODY].data);
}

static void ask_name(paramo_worker *w, uint32_t to, uint32_t customer, const char *want)
{
    char name[32] = "";
    paramo_message m;
    uint64_t ts;
    paramo_message_init(&m, to);
    m.customer = customer;
    ok(paramo_app_request(w, &m, 1, hear_name, name, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    assert_string_equal(name, want);
}

static void requests_find_their_customer(paramo_node *from, paramo_node *at)
{
    static char any[] = "any of 20", three[] = "three of 20", other[] = "any of 21";
    ok(paramo_app_serve(at, 20, PARAMO_ANY, say_my_name, any));
    ok(paramo_app_serve(at, 20, 3, say_my_name, three));
    ok(paramo_app_serve(at, 21, PARAMO_ANY, say_my_name, other));
    assert_int_equal(paramo_app_serve(at, 20, 3, say_my_name, three), PARAMO_E_INVALID);
    uint32_t to = paramo_node_id(at);
    paramo_worker *w, *v;
    ok(paramo_customer_open(from, 20, 3, &w));
    ok(paramo_customer_open(from, 21, 3, &v));
    ask_name(w, to, PARAMO_ANY, three);
    ask_name(w, to, 4, any);
    ask_name(v, to, PARAMO_ANY, other);
    ok(paramo_app_close(at, 20, 3));
    ask_name(w, to, PARAMO_ANY, any);
    paramo_worker_close(w);
    paramo_worker_close(v);
}

/* A request that comes first waits for its handler; one that no handler serves gets an error in time. */
static void handlers_may_come_late(paramo_node *from, paramo_node *at)
{
    paramo_worker *w;
    ok(paramo_customer_open(from, LATE, 0, &w));
    paramo_message m;
    uint64_t ts, other;
    paramo_message_init(&m, paramo_node_id(at));
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    m.app = LATE + 1;
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &other));
    ok(paramo_app_serve(at, LATE, PARAMO_ANY, echo, NULL));
    ok(paramo_wait(w, ts, 0));
    assert_int_equal(paramo_wait(w, other, 0), PARAMO_E_HANDLER);
    assert_non_null(strstr(paramo_last_error(), "is not served"));
    paramo_worker_close(w);
}

/* ---- whole clusters ---- */

static void by_tcp(paramo_config *config)
{
    config->van = "tcp";
}

static void short_waits(paramo_config *config)
{
    by_tcp(config);
    config->handler_wait_ms = 300;
}

static void by_whatever_there_is(paramo_config *config)
{
    config->handler_wait_ms = 300;
}

static void serve_echo(struct cluster *c)
{
    ok(paramo_app_serve(c->scheduler.node, ECHO, PARAMO_ANY, echo, NULL));
    for (unsigned i = 0; i < c->servers_count; i++)
        ok(paramo_app_serve(c->servers[i].node, ECHO, PARAMO_ANY, echo, NULL));
    for (unsigned i = 0; i < c->workers_count; i++)
        ok(paramo_app_serve(c->workers[i].node, ECHO, PARAMO_ANY, echo, NULL));
}

static void everything(void (*configure)(paramo_config *config))
{
    struct cluster c;
    cluster_start_with(&c, 2, 2, configure);
    serve_echo(&c);
    unsigned before = atomic_load(&served);
    ask_every_group(c.scheduler.node, 1, 2, 2);
    assert_int_equal(atomic_load(&served) - before, 100 * 4 * 5); /* each node is in four of the seven sums */
    ask_every_group(c.workers[1].node, 2, 2, 2);
    ask_every_group(c.servers[0].node, 3, 2, 2);
    large_and_empty(c.scheduler.node, PARAMO_ID_WORKER(1));
    large_and_empty(c.workers[0].node, PARAMO_ID_SCHEDULER);
    mistakes(c.workers[0].node, 2);
    callbacks_ask_further(c.workers[0].node);
    the_scheduler_drives_the_workers(&c);
    requests_find_their_customer(c.servers[0].node, c.workers[0].node);
    handlers_may_come_late(c.workers[0].node, c.scheduler.node);
    cluster_stop(&c);
}

static void over_tcp(void **state)
{
    (void)state;
    everything(short_waits);
}

/* Shared memory, where UCX is. Its own threads are not made for ThreadSanitizer. */
static void over_ucx(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    everything(by_whatever_there_is);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    ok(paramo_app_serve(node, ECHO, PARAMO_ANY, echo, NULL));
    ask_every_group(node, 1, 2, 1);
    large_and_empty(node, PARAMO_ID_SERVER(1));
    mistakes(node, 2);
    callbacks_ask_further(node);
    requests_find_their_customer(node, node);
    ok(paramo_stop(node));
}

static void dropping(paramo_config *config)
{
    by_tcp(config);
    config->drop_percent = 10;
}

/* PS_DROP_MSG=10: nothing is lost, nothing is done twice. */
static void with_lost_frames(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 2, dropping);
    serve_echo(&c);
    unsigned before = atomic_load(&served);
    ask_every_group(c.scheduler.node, 1, 2, 2);
    assert_int_equal(atomic_load(&served) - before, 100 * 4 * 5);
    cluster_stop(&c);
}

/* ---- keys of servers ---- */

static void servers_have_all_keys(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers++) {
        paramo_node *node = embedded_start(servers);
        uint64_t next = 0, first, last = 0;
        for (uint32_t rank = 0; rank < servers; rank++) {
            ok(paramo_server_range(node, rank, &first, &last));
            assert_int_equal(first, next);
            double share = (double)(last - first) / 18446744073709551616.0 * servers;
            assert_true(share > 0.99 && share < 1.01);
            next = last + 1;
        }
        assert_true(last == UINT64_MAX);
        assert_int_equal(paramo_server_range(node, servers, &first, &last), PARAMO_E_NOT_FOUND);
        ok(paramo_stop(node));
    }
}

static void one_is_larger(paramo_config *config)
{
    static unsigned servers;
    by_tcp(config);
    if (config->roles == PARAMO_ROLE_SERVER)
        config->weight = servers++ ? 1 : 3;
}

static void servers_have_keys_by_weight(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 1, one_is_larger);
    uint64_t first, last;
    ok(paramo_server_range(c.workers[0].node, 0, &first, &last));
    assert_int_equal(first, 0);
    assert_true(last == UINT64_MAX / 4 || last == UINT64_MAX / 4 * 3 + 2);
    assert_int_equal(c.servers[0].config.weight + c.servers[1].config.weight, 4);
    ok(paramo_server_range(c.servers[0].node, 1, &first, &last));
    assert_true(first == UINT64_C(1) << 62 || first == UINT64_C(3) << 62);
    assert_true(last == UINT64_MAX);
    cluster_stop(&c);
}

/* A push to a USER table placed by range goes where paramo_server_range says. */
static void tell_where(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    for (size_t i = 0; i < info->n; i++)
        ((uint32_t *)arg)[info->keys[i] >> 56] = info->to;
    ok(paramo_answer(request, NULL, 0, NULL));
}

static void range_tables_agree(void **state)
{
    (void)state;
    static uint32_t where[256];
    paramo_node *node = embedded_start(3);
    ok(paramo_serve(node, NULL, tell_where, where)); /* the node has joined already */
    paramo_worker *w;
    ok(paramo_worker_open(node, 0, &w));
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_USER;
    o.placement = PARAMO_PLACE_RANGE;
    paramo_table *t;
    ok(paramo_table_open(w, "by range", &o, &t));
    uint64_t keys[256], ts;
    float vals[256] = {0};
    for (uint64_t i = 0; i < 256; i++)
        keys[i] = i << 56 | 0xffffffffffffff;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = kv.vals_len = 256;
    kv.vals = vals;
    ok(paramo_push(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    for (uint32_t rank = 0; rank < 3; rank++) {
        uint64_t first, last;
        ok(paramo_server_range(node, rank, &first, &last));
        for (unsigned i = 0; i < 256; i++)
            assert_int_equal(keys[i] >= first && keys[i] <= last, where[i] == PARAMO_ID_SERVER(rank));
    }
    ok(paramo_stop(node));
}

/* ---- stopping ---- */

static void count_exit(void *arg)
{
    (*(unsigned *)arg)++;
}

static void *stop_now(void *arg)
{
    struct cluster_node *n = arg;
    n->stopped = paramo_stop_now(n->node);
    return NULL;
}

/* Servers and scheduler that do not wait for the job's end; again and again in one process. */
static void leaving_without_waiting(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct cluster c;
        unsigned exits = 0;
        cluster_start_with(&c, 1, 1, by_tcp);
        ok(paramo_on_exit(c.workers[0].node, count_exit, &exits));
        ok(paramo_on_exit(c.workers[0].node, count_exit, &exits));
        struct cluster_node *all[] = {&c.servers[0], &c.scheduler, &c.workers[0]};
        for (int i = 0; i < 3; i++) /* the worker is there all the time: stop would wait for it */
            (void)stop_now(all[i]);
        assert_int_equal(exits, 2);
    }
}

/* A taker ends by itself when the job does, and what comes after that is refused. */
static void takers_end_with_the_job(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 1, 1, by_tcp);
    struct taker t = {.node = c.servers[0].node};
    paramo_worker *w;
    paramo_message m;
    uint64_t ts;
    ok(paramo_customer_open(t.node, QUEUE, 0, &w));
    ok(paramo_app_serve(t.node, QUEUE, PARAMO_ANY, NULL, NULL));
    assert_int_equal(pthread_create(&t.thread, NULL, take_all, &t), 0);
    ok(paramo_shutdown(c.workers[0].node, "enough"));
    assert_int_equal(pthread_join(t.thread, NULL), 0);
    assert_int_equal(t.end, PARAMO_E_CLOSED);
    paramo_message_init(&m, paramo_node_id(t.node));
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    assert_int_equal(paramo_wait(w, ts, 60000), PARAMO_E_SHUTDOWN);
    paramo_worker_close(w);
    struct cluster_node *all[] = {&c.servers[0], &c.workers[0], &c.scheduler};
    for (int i = 0; i < 3; i++)
        (void)paramo_stop(all[i]->node);
}

/* ---- an app's place ---- */

struct place_user {
    paramo_node *node;
    paramo_err err;
};

static void *take_once(void *arg)
{
    struct place_user *u = arg;
    paramo_request *request;
    const paramo_request_info *info;
    u->err = paramo_app_take(u->node, QUEUE, PARAMO_ANY, 50, &request, &info);
    return NULL;
}

static void *close_app(void *arg)
{
    struct place_user *u = arg;
    u->err = paramo_app_close(u->node, QUEUE, PARAMO_ANY);
    return NULL;
}

static bool has_worked(pthread_t thread, long ms)
{
    clockid_t clock;
    struct timespec used;
    assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return used.tv_sec || used.tv_nsec > ms * 1000000;
}

/* Places change hands under the lock, which the test has: by the time that a thread which takes from an app, or
 * closes it, may use the place, it belongs to another app, which must not be affected. */
static void a_place_is_looked_up_and_held_in_one_step(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        struct place_user u = {.node = embedded_start(1)};
        pthread_t user;
        struct handler *h = &u.node->handlers[1]; /* the first is that of tasks */
        ok(paramo_app_serve(u.node, QUEUE, PARAMO_ANY, NULL, NULL));
        while (atomic_flag_test_and_set(&u.node->handlers_lock))
            ;
        assert_int_equal(pthread_create(&user, NULL, closes ? close_app : take_once, &u), 0);
        while (!has_worked(user, 20) && !atomic_load(&h->takers) && atomic_load(&h->state) == HANDLER_OPEN)
            (void)sched_yield(); /* it waits for the lock, or does not */
        unsigned takers = atomic_load(&h->takers);
        bool open = atomic_load(&h->state) == HANDLER_OPEN;
        h->id = ECHO;
        atomic_flag_clear(&u.node->handlers_lock);
        assert_int_equal(pthread_join(user, NULL), 0);
        assert_int_equal(takers, 0);
        assert_true(open && atomic_load(&h->state) == HANDLER_OPEN);
        assert_int_equal(u.err, closes ? PARAMO_E_NOT_FOUND : PARAMO_E_CLOSED);
        ok(paramo_app_close(u.node, ECHO, PARAMO_ANY));
        assert_int_equal(atomic_load(&h->state), HANDLER_FREE);
        ok(paramo_stop(u.node));
    }
}

/* A worker that has left, or died, ends what waits for it, and what comes after. */
static void asking_one_that_has_left(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 1, 2, by_tcp);
    paramo_worker *w;
    ok(paramo_customer_open(c.workers[0].node, QUEUE, 0, &w));
    ok(paramo_app_serve(c.workers[1].node, QUEUE, PARAMO_ANY, NULL, NULL));
    paramo_message m;
    uint64_t ts;
    paramo_message_init(&m, paramo_node_id(c.workers[1].node));
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    paramo_request *q;
    const paramo_request_info *info;
    ok(paramo_app_take(c.workers[1].node, QUEUE, PARAMO_ANY, 60000, &q, &info));
    ok(paramo_stop(c.workers[1].node));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_NODE_LOST);
    ok(paramo_answer_body(q, NULL, 0)); /* without effect */
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(paramo_last_error(), "has left"));
    paramo_worker_close(w);
    c.workers_count = 1;
    cluster_stop(&c);
}

/* ---- output structs ---- */

static void a_shorter_struct_is_filled_as_far_as_it_reaches(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(1);
    paramo_worker *w;
    ok(paramo_worker_open(node, 0, &w));
    paramo_counters counters;
    memset(&counters, 0x5a, sizeof counters);
    counters.size = offsetof(paramo_counters, frames_sent);
    paramo_worker_counters(w, &counters);
    assert_int_equal(counters.size, offsetof(paramo_counters, frames_sent));
    assert_int_equal(counters.bytes_sent, 0);
    assert_int_equal(counters.frames_sent, 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(counters.in_flight, 0x5a5a5a5a5a5a5a5a);
    ok(paramo_stop(node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedded),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(over_ucx),
        cmocka_unit_test(with_lost_frames),
        cmocka_unit_test(servers_have_all_keys),
        cmocka_unit_test(servers_have_keys_by_weight),
        cmocka_unit_test(range_tables_agree),
        cmocka_unit_test(leaving_without_waiting),
        cmocka_unit_test(takers_end_with_the_job),
        cmocka_unit_test(a_place_is_looked_up_and_held_in_one_step),
        cmocka_unit_test(asking_one_that_has_left),
        cmocka_unit_test(a_shorter_struct_is_filled_as_far_as_it_reaches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
