/* User tasks (paramo/task.h) on whole nodes: clusters over TCP, with lost frames, and embedded. All nodes are in this
 * process, so all of them have its functions. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paramo/app.h"
#include "paramo/task.h"
#include "support_cluster.h"
#include "unit.h"

enum { HELD = 7 };

static void ok_at(paramo_err err, int line)
{
    if (err)
        (void)fprintf(stderr, "line %d: %s: %s\n", line, paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}
#define ok(call) ok_at(call, __LINE__)

/* ---- functions ---- */

static atomic_uint runs;

/* The node's id and the payload. */
static paramo_err echo(void *user, paramo_task *task, const paramo_task_info *info)
{
    uint32_t answer[8] = {info->node};
    assert_ptr_equal(user, &runs);
    assert_string_equal(info->name, "echo");
    assert_true(info->payload_bytes <= sizeof answer - sizeof *answer);
    memcpy(&answer[1], info->payload, info->payload_bytes);
    atomic_fetch_add(&runs, 1);
    return paramo_task_answer(task, answer, sizeof *answer + info->payload_bytes);
}

struct adding {
    paramo_task *task;
    paramo_table *table;
    uint64_t key;
    float value;
};

/* A request of one key and value, as a subtask. */
static void subtask_of(struct adding *a, paramo_callback callback, paramo_kv *kv, paramo_request_options *o)
{
    paramo_kv_init(kv);
    kv->keys = &a->key;
    kv->n = kv->vals_len = 1;
    kv->vals = &a->value;
    paramo_request_options_init(o);
    o->task = a->task;
    o->callback = callback;
    o->callback_arg = a;
}

static void added_and_pulled(void *arg, uint64_t ts, paramo_err status)
{
    struct adding *a = arg;
    (void)ts;
    assert_int_equal(status, PARAMO_OK);
    ok(paramo_task_answer(a->task, &a->value, sizeof a->value));
}

static void added(void *arg, uint64_t ts, paramo_err status)
{
    struct adding *a = arg;
    paramo_table *other;
    (void)ts;
    assert_int_equal(status, PARAMO_OK);
    ok(paramo_task_table(a->task, "sums", NULL, &other)); /* it is open: no wait */
    assert_ptr_equal(other, a->table);
    assert_int_equal(paramo_task_table(a->task, "others", NULL, &other), PARAMO_E_IN_CALLBACK);
    a->value = 0;
    paramo_kv kv;
    paramo_request_options o;
    subtask_of(a, added_and_pulled, &kv, &o);
    ok(paramo_pull(paramo_task_worker(a->task), a->table, &kv, &o, NULL));
}

/* Adds 1 to the row of the payload, pulls it, and answers with it. */
static paramo_err add(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct adding *a;
    void *memory;
    uint64_t ts;
    (void)user;
    paramo_table_options t;
    paramo_table_options_init(&t);
    ok(paramo_task_alloc(task, sizeof *a, &memory));
    a = memory;
    a->task = task;
    ok(paramo_task_table(task, "sums", &t, &a->table));
    memcpy(&a->key, info->payload, sizeof a->key);
    a->value = 1;
    paramo_kv kv;
    paramo_request_options o;
    subtask_of(a, added, &kv, &o);
    ok(paramo_push(paramo_task_worker(task), a->table, &kv, &o, &ts));
    paramo_err err = paramo_wait(paramo_task_worker(task), ts, 0); /* OK if it has completed at once */
    return err == PARAMO_OK || err == PARAMO_E_IN_CALLBACK ? PARAMO_OK : err;
}

struct relayed {
    paramo_task *task;
    uint32_t sum;
};

static void relay_heard(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    struct relayed *r = arg;
    uint32_t id;
    (void)ts;
    assert_int_equal(bytes, sizeof id);
    memcpy(&id, answer, sizeof id);
    assert_int_equal(id, node);
    r->sum += id;
}

static void relay_done(void *arg, uint64_t ts, paramo_err status)
{
    struct relayed *r = arg;
    (void)ts;
    if (!status)
        ok(paramo_task_answer(r->task, &r->sum, sizeof r->sum));
}

/* Calls the payload's function on all servers, and answers with the sum of their ids. */
static paramo_err relay(void *user, paramo_task *task, const paramo_task_info *info)
{
    void *memory;
    (void)user;
    ok(paramo_task_alloc(task, sizeof(struct relayed), &memory));
    *(struct relayed *)memory = (struct relayed){.task = task};
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.task = task;
    o.callback = relay_done;
    o.callback_arg = memory;
    char name[32];
    (void)snprintf(name, sizeof name, "%.*s", (int)info->payload_bytes, (const char *)info->payload);
    return paramo_task_call(paramo_task_worker(task), PARAMO_GROUP_SERVERS, name, NULL, 0, relay_heard,
                            memory, &o, NULL);
}

/* Asks the app of the node that calls, which answers when the test says so. */
static paramo_err ask_back(void *user, paramo_task *task, const paramo_task_info *info)
{
    paramo_message m;
    uint64_t ts;
    (void)user;
    paramo_message_init(&m, info->sender);
    m.app = HELD;
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.task = task;
    ok(paramo_task_answer(task, "early", 5));
    return paramo_app_request(paramo_task_worker(task), &m, 1, NULL, NULL, &o, &ts);
}

static paramo_err fails(void *user, paramo_task *task, const paramo_task_info *info)
{
    (void)user;
    ok(paramo_task_answer(task, "never", 5));
    if (info->payload_bytes == 1)
        return PARAMO_E_NUMERIC;
    if (info->payload_bytes == 2)
        paramo_task_fail(task, PARAMO_E_AGAIN, "a queue of ours is full");
    return info->payload_bytes == 2 ? PARAMO_OK : paramo_error_set(PARAMO_E_CORRUPT, "thirteen is refused");
}

/* ---- tasks in an order ---- */

enum { TRACED = 240 };
static atomic_uint clock_now;
/* When the call of this number began and ended on a server, from 1; 0: not. */
static atomic_uint began[2][TRACED], ended[2][TRACED];

struct traced {
    unsigned node, number;
};

static void trace_end(void *arg, uint64_t ts, paramo_err status)
{
    const struct traced *t = arg;
    (void)ts;
    assert_int_equal(status, PARAMO_OK);
    assert_int_equal(atomic_exchange(&ended[t->node][t->number], atomic_fetch_add(&clock_now, 1) + 1), 0);
}

/* Notes when it begins, and when its subtask on the other server has ended. */
static paramo_err trace(void *user, paramo_task *task, const paramo_task_info *info)
{
    void *memory;
    uint32_t number;
    (void)user;
    assert_int_equal(info->payload_bytes, sizeof number);
    memcpy(&number, info->payload, sizeof number);
    ok(paramo_task_alloc(task, sizeof(struct traced), &memory));
    struct traced *t = memory;
    *t = (struct traced){(info->node - 8) / 2, number};
    assert_int_equal(atomic_exchange(&began[t->node][number], atomic_fetch_add(&clock_now, 1) + 1), 0);
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.task = task;
    o.callback = trace_end;
    o.callback_arg = t;
    return paramo_task_call(paramo_task_worker(task), PARAMO_ID_SERVER(1 - t->node), "echo", NULL, 0, NULL,
                            NULL, &o, NULL);
}

static sem_t gate;

static paramo_err hold(void *user, paramo_task *task, const paramo_task_info *info)
{
    (void)user, (void)task, (void)info;
    while (sem_wait(&gate))
        ;
    return PARAMO_OK;
}

static void functions_register(void)
{
    static const paramo_task_function all[] = {
        {sizeof *all, "echo", &runs, echo},  {sizeof *all, "add", NULL, add},
        {sizeof *all, "relay", NULL, relay}, {sizeof *all, "ask-back", NULL, ask_back},
        {sizeof *all, "trace", NULL, trace}, {sizeof *all, "fails", NULL, fails},
        {sizeof *all, "hold", NULL, hold},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ok(paramo_task_register(&all[i]));
}

/* ---- calls ---- */

struct heard {
    unsigned count;
    uint32_t nodes; /* sum of ids */
    uint32_t value; /* of the last */
    char text[16];
};

static void hear(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    struct heard *h = arg;
    assert_true(ts > 0);
    h->count++;
    h->nodes += node;
    if (bytes >= 4)
        memcpy(&h->value, answer, 4);
    (void)snprintf(h->text, sizeof h->text, "%.*s", (int)(bytes < 15 ? bytes : 15), (const char *)answer);
}

static paramo_err call(paramo_worker *w, uint32_t to, const char *name, const void *payload, size_t bytes,
                       struct heard *h)
{
    uint64_t ts;
    char own[32];
    *h = (struct heard){0};
    (void)snprintf(own, sizeof own, "%s", name);
    paramo_err err = paramo_task_call(w, to, own, payload, bytes, hear, h, NULL, &ts);
    memset(own, 'x', sizeof own); /* the name was copied */
    return err ? err : paramo_wait(w, ts, 0);
}

static void groups_and_subtasks(paramo_node *node, unsigned servers, unsigned workers, uint64_t key)
{
    paramo_worker *w;
    struct heard h;
    ok(paramo_customer_open(node, 0, 9, &w));
    unsigned before = atomic_load(&runs);
    uint32_t payload = 99, ids = 0;
    ok(call(w, PARAMO_GROUP_SERVERS | PARAMO_GROUP_WORKERS, "echo", &payload, 4, &h));
    assert_int_equal(h.count, servers + workers);
    assert_int_equal(atomic_load(&runs) - before, servers + workers);
    for (uint32_t i = 0; i < servers; i++)
        ids += PARAMO_ID_SERVER(i);
    ok(call(w, PARAMO_GROUP_WORKERS, "relay", "echo", 4, &h));
    assert_int_equal(h.count, workers);
    assert_int_equal(h.value, ids);
    float value = 0;
    for (unsigned i = 1; i <= 20; i++) {
        ok(call(w, i % 2 ? PARAMO_ID_SERVER(0) : PARAMO_ID_WORKER(0), "add", &key, sizeof key, &h));
        memcpy(&value, &h.value, sizeof value);
        assert_true(value == (float)i);
    }
    paramo_worker_close(w);
}

/* Many at once: each function runs once on each node, whatever frames are lost. */
static void exactly_once(paramo_node *node, unsigned servers)
{
    enum { CALLS = 100 };
    paramo_worker *w;
    static struct heard heard[CALLS];
    uint64_t ts[CALLS];
    memset(heard, 0, sizeof heard);
    ok(paramo_customer_open(node, 0, 9, &w));
    unsigned before = atomic_load(&runs);
    for (uint32_t i = 0; i < CALLS; i++) {
        paramo_request_options o;
        paramo_request_options_init(&o);
        o.flags = PARAMO_COPY;
        ok(paramo_task_call(w, PARAMO_GROUP_SERVERS, "echo", &i, sizeof i, hear, &heard[i], &o, &ts[i]));
    }
    for (unsigned i = 0; i < CALLS; i++) {
        ok(paramo_wait(w, ts[i], 0));
        assert_int_equal(heard[i].count, servers);
    }
    assert_int_equal(atomic_load(&runs) - before, CALLS * servers);
    uint64_t key = 8;
    struct heard h;
    float value = 0;
    for (unsigned i = 1; i <= 20; i++)
        ok(call(w, PARAMO_ID_SERVER(0), "add", &key, sizeof key, &h));
    memcpy(&value, &h.value, sizeof value);
    assert_true(value == 20);
    paramo_worker_close(w);
}

/* A task that waits for a subtask is not answered, and holds up no other. */
static void completes_with_its_subtasks(paramo_node *node)
{
    enum { WAITING = 50 };
    paramo_worker *w;
    struct heard waiting[WAITING], h;
    uint64_t ts[WAITING];
    memset(waiting, 0, sizeof waiting);
    ok(paramo_customer_open(node, 0, 9, &w));
    ok(paramo_app_serve(node, HELD, PARAMO_ANY, NULL, NULL));
    for (unsigned i = 0; i < WAITING; i++)
        ok(paramo_task_call(w, PARAMO_ID_SERVER(0), "ask-back", NULL, 0, hear, &waiting[i], NULL, &ts[i]));
    ok(call(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, &h)); /* after all of them */
    for (unsigned i = 0; i < WAITING; i++) {
        int done = 1;
        ok(paramo_test(w, ts[i], &done));
        assert_int_equal(done, 0);
    }
    for (unsigned i = 0; i < WAITING; i++) {
        paramo_request *q;
        const paramo_request_info *info;
        ok(paramo_app_take(node, HELD, PARAMO_ANY, 0, &q, &info));
        if (i)
            ok(paramo_answer_body(q, NULL, 0));
        else
            ok(paramo_answer_error(q, PARAMO_E_CORRUPT, "the first is refused"));
    }
    unsigned failed = 0;
    for (unsigned i = 0; i < WAITING; i++) {
        paramo_err err = paramo_wait(w, ts[i], 0);
        failed += err == PARAMO_E_CORRUPT;
        if (err)
            assert_non_null(strstr(paramo_last_error(), "task ask-back: "));
        if (err)
            assert_non_null(strstr(paramo_last_error(), "the first is refused"));
        assert_string_equal(waiting[i].text, err ? "" : "early");
    }
    assert_int_equal(failed, 1);
    ok(paramo_app_close(node, HELD, PARAMO_ANY));
    paramo_worker_close(w);
}

static void refused(paramo_worker *w, paramo_err want, const char *name, const void *payload, size_t bytes,
                    const char *text)
{
    struct heard h;
    assert_int_equal(call(w, PARAMO_ID_SERVER(0), name, payload, bytes, &h), want);
    assert_int_equal(h.count, 0);
    if (!strstr(paramo_last_error(), text))
        fail_msg("\"%s\" is not in: %s", text, paramo_last_error());
}

static void errors(paramo_node *node)
{
    paramo_worker *w, *other;
    struct heard h;
    ok(paramo_customer_open(node, 0, 9, &w));
    refused(w, PARAMO_E_CORRUPT, "fails", NULL, 0, "task fails: thirteen is refused");
    refused(w, PARAMO_E_NUMERIC, "fails", "x", 1, "task fails: the function has failed");
    refused(w, PARAMO_E_HANDLER, "fails", "xx", 2, "task fails: a queue of ours is full");
    refused(w, PARAMO_E_UNSUPPORTED, "no-such", NULL, 0, "no task \"no-such\"; it must be registered");
    refused(w, PARAMO_E_UNSUPPORTED, "relay", "no-such", 7, "no task \"no-such\"");
    refused(w, PARAMO_E_INVALID, "relay", "Not", 3, "the name of a task");
    assert_int_equal(call(w, PARAMO_ID_SERVER(0), "Not", NULL, 0, &h), PARAMO_E_INVALID);
    assert_int_equal(call(w, PARAMO_ID_SERVER(99), "echo", NULL, 0, &h), PARAMO_E_INVALID);
    assert_int_equal(call(w, 0, "echo", NULL, 0, &h), PARAMO_E_INVALID);
    assert_int_equal(paramo_task_call(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, NULL, NULL, NULL, NULL),
                     PARAMO_E_INVALID); /* its end would not be known */
    assert_int_equal(paramo_customer_open(node, PARAMO_TASKS_APP, 1, &other), PARAMO_E_INVALID);
    assert_int_equal(paramo_app_close(node, PARAMO_TASKS_APP, PARAMO_ANY), PARAMO_E_INVALID);
    assert_int_equal(paramo_app_serve(node, PARAMO_TASKS_APP, 1, NULL, NULL), PARAMO_E_INVALID);
    /* Bytes of a peer that are no call. */
    paramo_message m;
    uint64_t ts;
    char longer[64] = "echo";
    paramo_message_init(&m, PARAMO_ID_SERVER(0));
    m.app = PARAMO_TASKS_APP;
    for (unsigned i = 0; i < 4; i++) {
        const size_t bytes[] = {0, 64, 4, 4};
        m.seg[PARAMO_SEG_BODY] = (paramo_bytes){longer, bytes[i]};
        m.seg[PARAMO_SEG_KEYS] = (paramo_bytes){longer, i == 2 ? 8 : 0};
        m.flags = i == 3 ? 2 : i == 2;
        ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
        assert_int_equal(paramo_wait(w, ts, 0), i < 3 ? PARAMO_E_INVALID : PARAMO_E_UNSUPPORTED);
    }
    paramo_worker_close(w);
}

/* The bound of a node's queue. Its first task holds the thread up, so that the others wait. */
static void too_many(paramo_node *node)
{
    enum { CUSTOMERS = 5, EACH = 1000 };
    paramo_worker *w[CUSTOMERS];
    static uint64_t ts[CUSTOMERS][EACH];
    unsigned full = 0, done = 0;
    for (unsigned c = 0; c < CUSTOMERS; c++) {
        ok(paramo_customer_open(node, 0, 20 + c, &w[c]));
        for (unsigned i = 0; i < EACH; i++)
            ok(paramo_task_call(w[c], PARAMO_ID_SERVER(0), "hold", NULL, 0, NULL, NULL, NULL, &ts[c][i]));
    }
    struct heard h; /* a call that is refused as it arrives, after all others of its customer */
    for (unsigned c = 0; c < CUSTOMERS; c++)
        assert_int_equal(call(w[c], PARAMO_ID_SERVER(0), "no-such", NULL, 0, &h), PARAMO_E_UNSUPPORTED);
    for (unsigned i = 0; i < CUSTOMERS * EACH; i++)
        (void)sem_post(&gate);
    for (unsigned c = 0; c < CUSTOMERS; c++) {
        for (unsigned i = 0; i < EACH; i++) {
            paramo_err err = paramo_wait(w[c], ts[c][i], 0);
            full += err == PARAMO_E_FULL;
            done += err == PARAMO_OK;
        }
        paramo_worker_close(w[c]);
    }
    assert_int_equal(done, PARAMO_TASKS_MAX);
    assert_int_equal(done + full, CUSTOMERS * EACH);
    while (sem_trywait(&gate) == 0) /* those that were not needed */
        ;
}

static void traces_clear(void)
{
    for (unsigned i = 0; i < 2 * TRACED; i++) {
        atomic_store(&began[i / TRACED][i % TRACED], 0);
        atomic_store(&ended[i / TRACED][i % TRACED], 0);
    }
}

static bool runs_on(uint32_t to, unsigned server)
{
    return to == PARAMO_GROUP_SERVERS || to == PARAMO_ID_SERVER(server);
}

/* Calls of two customers, to one server or both. Each comes after two earlier ones of any of them. No wait in
 * between. */
static void execute_after(paramo_node *node, uint32_t calls)
{
    paramo_worker *w[2];
    static paramo_task_name names[TRACED];
    uint64_t ts[TRACED];
    unsigned after[TRACED][2];
    traces_clear();
    ok(paramo_customer_open(node, 0, 9, &w[0]));
    ok(paramo_customer_open(node, 3, 9, &w[1]));
    for (uint32_t i = 0; i < calls; i++) {
        const uint32_t to[] = {PARAMO_GROUP_SERVERS, PARAMO_ID_SERVER(0), PARAMO_ID_SERVER(1)};
        paramo_task_name named[2] = {{0}};
        for (unsigned k = 0; k < 2 && i; k++) {
            after[i][k] = k ? i - 1 : i - 1 - i * 7 % (i < 12 ? i : 12);
            named[k] = names[after[i][k]];
        }
        paramo_task_order order;
        paramo_task_order_init(&order);
        order.after = named;
        order.after_count = 2;
        order.name = &names[i];
        paramo_request_options o;
        paramo_request_options_init(&o);
        o.flags = PARAMO_COPY;
        ok(paramo_task_call_after(w[i / 3 % 2], to[i % 3], "trace", &i, sizeof i, &order, NULL, NULL, &o,
                                  &ts[i]));
    }
    for (unsigned i = 0; i < calls; i++)
        ok(paramo_wait(w[i / 3 % 2], ts[i], 0));
    for (unsigned i = 0; i < calls; i++)
        for (unsigned server = 0; server < 2; server++) {
            assert_int_equal(began[server][i] != 0, runs_on(names[i].to, server));
            for (unsigned k = 0; k < 2 && i; k++)
                if (began[server][i] && began[server][after[i][k]])
                    assert_true(ended[server][after[i][k]] < began[server][i]);
        }
    paramo_worker_close(w[0]);
    paramo_worker_close(w[1]);
}

/* Each call comes after the one tau + 1 before it: at most tau + 1 run at a time, and with tau more than one does. */
static void bounded_delay(paramo_node *node, unsigned tau)
{
    enum { CALLS = 60 };
    paramo_worker *w;
    paramo_task_name names[CALLS + 8] = {{0}};
    uint64_t ts[CALLS];
    traces_clear();
    ok(paramo_customer_open(node, 0, 9, &w));
    for (uint32_t i = 0; i < CALLS; i++) {
        paramo_task_order order;
        paramo_task_order_init(&order);
        order.after = &names[i + 7 - tau]; /* of call i - tau - 1; zeroed: there is none */
        order.after_count = 1;
        order.name = &names[i + 8];
        paramo_request_options o;
        paramo_request_options_init(&o);
        o.flags = PARAMO_COPY;
        ok(paramo_task_call_after(w, PARAMO_GROUP_SERVERS, "trace", &i, sizeof i, &order, NULL, NULL, &o,
                                  &ts[i]));
    }
    ok(paramo_wait_all(w, 0));
    for (unsigned server = 0; server < 2; server++)
        for (unsigned i = tau + 1; i < CALLS; i++)
            assert_true(ended[server][i - tau - 1] < began[server][i]);
    paramo_worker_close(w);
}

static void order_errors(paramo_node *node)
{
    paramo_worker *w;
    paramo_task_name failed, cancelled, none = {.session = 12345, .number = 7, .to = PARAMO_GROUP_SERVERS};
    uint64_t first, second, third, lost, elsewhere;
    unsigned before = atomic_load(&runs);
    ok(paramo_customer_open(node, 0, 9, &w));
    paramo_task_order order;
    paramo_task_order_init(&order);
    order.name = &failed;
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(0), "fails", NULL, 0, &order, NULL, NULL, NULL, &first));
    order.after = &failed;
    order.after_count = 1;
    order.name = &cancelled;
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, &order, NULL, NULL, NULL, &second));
    order.after = &cancelled; /* the error goes on */
    order.name = NULL;
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, &order, NULL, NULL, NULL, &third));
    assert_int_equal(paramo_wait(w, first, 0), PARAMO_E_CORRUPT);
    assert_int_equal(paramo_wait(w, second, 0), PARAMO_E_CANCELLED);
    assert_non_null(strstr(paramo_last_error(), "task echo: a call that it comes after has failed"));
    assert_int_equal(paramo_wait(w, third, 0), PARAMO_E_CANCELLED);
    assert_int_equal(atomic_load(&runs), before);
    /* On another server they do not hold it up. */
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(1), "echo", NULL, 0, &order, NULL, NULL, NULL, &elsewhere));
    ok(paramo_wait(w, elsewhere, 0));
    /* A name of a call that never comes: the order's deadline is that of the request. */
    order.after = &none;
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.timeout_ms = 100;
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, &order, NULL, NULL, &o, &lost));
    assert_int_equal(paramo_wait(w, lost, 0), PARAMO_E_TIMEOUT);
    order.after_count = PARAMO_TASK_AFTER_MAX + 1;
    assert_int_equal(
        paramo_task_call_after(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, &order, NULL, NULL, NULL, &lost),
        PARAMO_E_TOO_LARGE);
    ok(paramo_task_call_after(w, PARAMO_ID_SERVER(0), "echo", NULL, 0, NULL, NULL, NULL, NULL, &lost));
    ok(paramo_wait(w, lost, 0));
    assert_int_equal(atomic_load(&runs), before + 2); /* the one that was late did not run */
    /* Words of a peer that are no order. */
    uint64_t words[202] = {1000, 5, 1, 5, 1, 8}; /* it names itself */
    paramo_message m;
    paramo_message_init(&m, PARAMO_ID_SERVER(0));
    m.app = PARAMO_TASKS_APP;
    m.seg[PARAMO_SEG_BODY] = (paramo_bytes){"echo", 4};
    for (unsigned i = 0; i < 6; i++) {
        const size_t bytes[] = {0, 16, 48, 20, sizeof words, 24};
        m.flags = i < 5;
        m.seg[PARAMO_SEG_KEYS] = (paramo_bytes){words, bytes[i]};
        ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &lost));
        assert_int_equal(paramo_wait(w, lost, 0), PARAMO_E_INVALID);
    }
    paramo_worker_close(w);
}

/* ---- clusters ---- */

static void by_tcp(paramo_config *config)
{
    config->van = "tcp";
}

static void over_tcp(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 2, by_tcp);
    groups_and_subtasks(c.workers[0].node, 2, 2, 7);
    groups_and_subtasks(c.servers[1].node, 2, 2, 9);
    cluster_stop(&c);
}

static void at_their_ends(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 1, by_tcp);
    completes_with_its_subtasks(c.workers[0].node);
    errors(c.workers[0].node);
    order_errors(c.workers[0].node);
    execute_after(c.workers[0].node, TRACED);
    bounded_delay(c.workers[0].node, 0);
    bounded_delay(c.workers[0].node, 3);
    too_many(c.workers[0].node);
    cluster_stop(&c);
}

static void dropping(paramo_config *config)
{
    config->van = "tcp";
    config->drop_percent = 10;
    config->retry_ms = 5;
}

static void with_lost_frames(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 1, dropping);
    exactly_once(c.workers[0].node, 2);
    execute_after(c.workers[0].node, 60);
    cluster_stop(&c);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    groups_and_subtasks(node, 2, 1, 7);
    completes_with_its_subtasks(node);
    errors(node);
    order_errors(node);
    execute_after(node, TRACED);
    ok(paramo_stop(node));
}

/* A node that leaves answers: what waits for a subtask, and what waits for the thread. */
static void ends_with_its_node(void **state)
{
    (void)state;
    struct cluster c;
    paramo_worker *w;
    uint64_t waits, held, behind, none;
    cluster_start_with(&c, 1, 2, by_tcp);
    paramo_node *node = c.workers[0].node;
    uint32_t to = paramo_node_id(c.workers[1].node);
    ok(paramo_customer_open(node, 0, 9, &w));
    ok(paramo_app_serve(node, HELD, PARAMO_ANY, NULL, NULL));
    ok(paramo_task_call(w, to, "ask-back", NULL, 0, NULL, NULL, NULL, &waits));
    paramo_request *q;
    const paramo_request_info *info;
    ok(paramo_app_take(node, HELD, PARAMO_ANY, 0, &q, &info)); /* its subtask has been sent */
    ok(paramo_task_call(w, to, "hold", NULL, 0, NULL, NULL, NULL, &held));
    ok(paramo_task_call(w, to, "echo", NULL, 0, NULL, NULL, NULL, &behind));
    (void)sem_post(&gate);
    ok(paramo_stop(c.workers[1].node));
    assert_int_equal(paramo_wait(w, waits, 0), PARAMO_E_CLOSED);
    paramo_err err = paramo_wait(w, held, 0);
    assert_true(err == PARAMO_OK || err == PARAMO_E_CLOSED || err == PARAMO_E_NODE_LOST);
    err = paramo_wait(w, behind, 0);
    assert_true(err == PARAMO_OK || err == PARAMO_E_CLOSED || err == PARAMO_E_NODE_LOST);
    ok(paramo_task_call(w, to, "echo", NULL, 0, NULL, NULL, NULL, &none));
    assert_int_equal(paramo_wait(w, none, 0), PARAMO_E_NODE_LOST);
    ok(paramo_answer_body(q, NULL, 0));
    paramo_worker_close(w);
    c.workers_count = 1;
    cluster_stop(&c);
}

static int begin(void **state)
{
    (void)state;
    functions_register();
    return sem_init(&gate, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_tcp), cmocka_unit_test(at_their_ends),      cmocka_unit_test(with_lost_frames),
        cmocka_unit_test(embedded), cmocka_unit_test(ends_with_its_node),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
