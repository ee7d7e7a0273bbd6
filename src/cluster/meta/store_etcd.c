#include "cluster/meta/store_etcd.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/meta/store_etcd_call.h"
#include "cluster/meta/store_etcd_impl.h"
#include "cluster/meta/store_etcd_lead.h"
#include "cluster/meta/store_etcd_start.h"

/* ---- names -------------------------------------------------------------------------------------------- */

static paramo_err meta_parse(const char *meta, struct etcd_store *s)
{
    static const char scheme[] = "etcd://";
    char list[ENDPOINTS_MAX * ADDRESS_MAX], job[JOB_MAX] = "job";
    if (strncmp(meta, scheme, sizeof scheme - 1) != 0)
        return err_set(PARAMO_E_INVALID, "\"%.80s\" is not etcd://HOST:PORT[,HOST:PORT...][/JOB]", meta);
    const char *from = meta + sizeof scheme - 1, *slash = strchr(from, '/');
    size_t len = slash ? (size_t)(slash - from) : strlen(from);
    if (len >= sizeof list)
        return err_set(PARAMO_E_INVALID, "the list of etcd addresses is longer than %zu bytes",
                       sizeof list - 1);
    memcpy(list, from, len);
    list[len] = '\0';
    if (slash) {
        size_t name = strspn(slash + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
        if (!name || name >= sizeof job || slash[1 + name])
            return err_set(PARAMO_E_INVALID,
                           "the job's name in \"%.80s\" is not 1 to %d letters, digits, '.', '_' and '-'",
                           meta, JOB_MAX - 1);
        memcpy(job, slash + 1, name + 1);
    }
    (void)snprintf(s->prefix, sizeof s->prefix, "paramo/%s/", job);
    const char *rest = list;
    char address[ADDRESS_MAX], host[ADDRESS_MAX];
    while (address_next(&rest, address)) {
        uint16_t port;
        if (s->endpoints == ENDPOINTS_MAX)
            return err_set(PARAMO_E_INVALID, "there are more than %d etcd addresses", ENDPOINTS_MAX);
        if (address_split(address, host, sizeof host, &port) || !port)
            return err_set(PARAMO_E_INVALID, "\"%.80s\" is not HOST:PORT with a port from 1 to %d", address,
                           UINT16_MAX);
        memcpy(s->endpoint[s->endpoints++], address, sizeof address);
    }
    return s->endpoints && !*rest ? PARAMO_OK
                                  : err_set(PARAMO_E_INVALID, "an address is missing in \"%.80s\"", meta);
}

paramo_err store_etcd_check(const char *meta)
{
    struct etcd_store *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(sizeof *s);
    paramo_err err = meta_parse(meta, s);
    free(s);
    return err;
}

/* ---- what comes next ---------------------------------------------------------------------------------- */

static void store_free(struct etcd_store *s)
{
    assert(s->closed && !s->asking && !s->inside);
    assert(!s->first || !s->last->next);
    lane_timer_cancel(s->lane, &s->timer);
    while (s->first) {
        struct save *next = s->first->next;
        writer_fini(&s->first->records);
        free(s->first);
        s->first = next;
    }
    writer_fini(&s->found);
    writer_fini(&s->body);
    writer_fini(&s->answer);
    http_destroy(s->http);
    free(s);
}

/* True: not before then. */
static bool waits(struct etcd_store *s, uint64_t at)
{
    assert(!s->closed && !s->asking);
    return meta_now(s) < at && lane_timer_arm(s->lane, &s->timer, at) == PARAMO_OK;
}

static void turn_leading(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(!s->asking && !s->inside && s->phase >= PHASE_READ);
    meta_saves_fail(s);
    if (s->closed)
        store_free(s);
    else if (!s->fenced && meta_now(s) >= s->lease_due)
        meta_lease_call(s);
    else if (s->phase == PHASE_READ)
        meta_read_page(s);
    else if (s->first)
        meta_save_call(s);
    else if (!s->fenced && !waits(s, s->lease_due))
        meta_lease_call(s);
}

static void meta_turn(struct etcd_store *s)
{
    etcd_store_check(s);
    if (s->asking || s->inside)
        return;
    if (s->closed) {
        store_free(s);
        return;
    }
    switch (s->phase) {
    case PHASE_OPEN:
        return;
    case PHASE_WATCH:
        if (!waits(s, s->look_at))
            meta_watch(s);
        return;
    case PHASE_GRANT:
        meta_grant(s, meta_granted);
        return;
    case PHASE_CAMPAIGN:
        meta_campaign(s);
        return;
    case PHASE_READ:
    case PHASE_READY:
        turn_leading(s);
    }
}

static void timer_due(struct lane_timer *timer)
{
    struct etcd_store *s = container_of(timer, struct etcd_store, timer);
    assert(!s->closed && !s->inside);
    meta_turn(s);
}

/* ---- the store ---------------------------------------------------------------------------------------- */

static struct etcd_store *store_of(struct store *store)
{
    return container_of(store, struct etcd_store, store);
}

static paramo_err etcd_start(struct store *store, store_started_fn *done, void *arg)
{
    struct etcd_store *s = store_of(store);
    assert(s->phase == PHASE_OPEN && !s->asking);
    etcd_store_check(s);
    assert(!s->closed && !s->started && !s->first);
    s->started = done;
    s->started_arg = arg;
    s->give_up_at = meta_now(s) + s->patience_ms * ENV_MS;
    s->waited_for = 0;
    s->told[0] = '\0';
    meta_watch_in(s, 0);
    meta_turn(s);
    return PARAMO_OK;
}

static paramo_err etcd_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                            void *arg)
{
    struct etcd_store *s = store_of(store);
    assert(s->phase == PHASE_READY);
    etcd_store_check(s);
    assert(!s->closed && (!s->first || !s->last->next));
    bool late = s->broken && !whole && records->len;
    struct save *v = s->fenced || late ? NULL : malloc(sizeof *v);
    if (!v) {
        paramo_err err = s->fenced ? meta_fenced_text(s) : late ? meta_broken_text() : err_memory(sizeof *v);
        writer_fini(records);
        return err;
    }
    *v = (struct save){.records = *records, .whole = whole, .done = done, .arg = arg};
    *records = (struct writer){0};
    *(s->first ? &s->last->next : &s->first) = v;
    s->last = v;
    meta_turn(s); /* no callback comes from it: what waits before this one is not of those that fail */
    return PARAMO_OK;
}

static bool etcd_sure(const struct store *store)
{
    const struct etcd_store *s = container_of((struct store *)(uintptr_t)store, struct etcd_store, store);
    return meta_now(s) < s->sure_until;
}

static void etcd_close(struct store *store)
{
    struct etcd_store *s = store_of(store);
    assert(!s->closed);
    etcd_store_check(s);
    s->closed = true;
    lane_timer_cancel(s->lane, &s->timer);
    if (!s->asking && !s->inside)
        store_free(s);
}

paramo_err store_etcd_open(const struct store_etcd_config *config, struct store **out)
{
    static const struct store_ops ops = {
        .start = etcd_start, .save = etcd_save, .sure = etcd_sure, .close = etcd_close};
    struct etcd_store *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(sizeof *s);
    s->store.ops = &ops;
    s->lane = config->lane;
    s->blocking_jobs = config->blocking_jobs;
    s->http = config->http;
    s->patience_ms = config->patience_ms;
    s->timer.fire = timer_due;
    s->turn = meta_turn;
    (void)snprintf(s->name, sizeof s->name, "%s", config->name);
    paramo_err err = meta_parse(config->meta, s);
    if (err) {
        free(s);
        return err;
    }
    etcd_store_check(s);
    *out = &s->store;
    return PARAMO_OK;
}
