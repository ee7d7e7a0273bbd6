#include "worker/transform_run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "worker/check.h"
#include "worker/client.h"
#include "worker/client_impl.h"
#include "worker/scan.h"

enum {
    PART_KEYS = 1 << 15,
    PARTS = 4 /* in flight at a time; both arbitrary */
};

struct part {
    uint64_t keys[PART_KEYS];
    size_t n;
    uint64_t ts; /* 0: not in flight */
    paramo_err status;
};

struct run {
    struct client *client;
    const struct client_table *table, *other;
    const struct transform *what;
    uint64_t last; /* the last key wanted */
    uint32_t timeout_ms;
    unsigned at; /* the part that is being filled */
    paramo_err err;
    char text[ERR_TEXT_MAX];
    struct part part[PARTS];
};

static void part_wait(struct run *r, struct part *p)
{
    if (!p->ts)
        return;
    assert(p->n > 0 && p->n <= PART_KEYS);
    paramo_err err = client_wait_status(r->client, p->ts, &p->status);
    if (err && !r->err) {
        r->err = err;
        err_text_copy(r->text);
    }
    if (err) /* the request may still run: only the wait ended */
        (void)!client_cancel(r->client, p->ts);
    p->ts = 0;
}

/* Issues the part that is full, and makes room for the next. */
static void part_issue(struct run *r)
{
    struct part *p = &r->part[r->at];
    if (!p->n || r->err)
        return;
    assert(r->at < PARTS && p->n <= PART_KEYS && !p->ts);
    paramo_request_options o = {.size = sizeof o, .timeout_ms = r->timeout_ms};
    paramo_kv kv = {.size = sizeof kv, .keys = p->keys, .n = p->n};
    struct client_call call = {.kind = REQUEST_TRANSFORM,
                               .table = r->table,
                               .other = r->other,
                               .kv = &kv,
                               .transform = r->what,
                               .options = &o,
                               .status = &p->status};
    p->status = PARAMO_OK;
    r->err = client_issue(r->client, &call, &p->ts);
    if (r->err) {
        err_text_copy(r->text);
        p->ts = 0;
    }
    r->at = (r->at + 1) % PARTS;
    part_wait(r, &r->part[r->at]);
    r->part[r->at].n = 0;
}

static void key_add(struct run *r, uint64_t key)
{
    struct part *p = &r->part[r->at];
    assert(!p->ts && p->n < PART_KEYS);
    p->keys[p->n++] = key;
    if (p->n == PART_KEYS)
        part_issue(r);
}

/* Non-zero ends the scan: after the range, or after an error. */
static int take(void *arg, const struct scan_rows *rows)
{
    struct run *r = arg;
    assert(r->at < PARTS);
    for (size_t i = 0; i < rows->n && !r->err; i++) {
        if (rows->keys[i] > r->last)
            return 1;
        key_add(r, rows->keys[i]);
    }
    return r->err != PARAMO_OK;
}

static paramo_err scanned(struct run *r, uint64_t begin, const struct client_table *of)
{
    paramo_err err = scan_keys_run(r->client, of, begin, r->timeout_ms, take, r);
    return err == PARAMO_E_INTERRUPTED ? PARAMO_OK : err; /* take has ended it */
}

/* Adds all keys whose rows are to be changed. The errors of parts are in r. */
static paramo_err keys_add(struct run *r, const struct transform_rows *rows)
{
    const struct client_table *t = r->table;
    if (!rows->keys && t->options.kind != PARAMO_TABLE_DENSE)
        return scanned(r, rows->begin, r->other ? r->other : t);
    for (size_t i = 0; i < rows->n && !r->err; i++)
        key_add(r, rows->keys[i]);
    for (uint64_t row = rows->begin; !rows->keys && row < t->options.rows && row <= r->last && !r->err; row++)
        key_add(r, row);
    return PARAMO_OK;
}

/* Wrong arguments are an error even if there are no rows. */
static paramo_err check_rows(const struct run *r, const struct transform_rows *rows)
{
    paramo_kv kv = {.size = sizeof kv, .keys = rows->keys, .n = rows->n};
    struct client_call call = {
        .kind = REQUEST_TRANSFORM, .table = r->table, .other = r->other, .kv = &kv, .transform = r->what};
    if (rows->keys && (rows->begin || rows->end))
        return err_set(PARAMO_E_INVALID, "transform: keys and a range are given; set begin and end to 0");
    if (rows->end && rows->begin >= rows->end)
        return err_set(PARAMO_E_INVALID,
                       "transform: the range from key %" PRIu64 " to below key %" PRIu64 " has no keys",
                       rows->begin, rows->end);
    return check_call(&call, r->client->config.frame_bytes);
}

paramo_err transform_run(struct client *client, const struct client_table *table,
                         const struct client_table *other, const struct transform *what,
                         const struct transform_rows *rows, uint32_t timeout_ms)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot wait for a whole table");
    struct run *r = malloc(sizeof *r);
    if (!r)
        return err_memory(sizeof *r);
    r->client = client;
    r->table = table;
    r->other = other;
    r->what = what;
    r->timeout_ms = timeout_ms;
    r->last = rows->end - 1; /* end 0: the last key of all */
    r->at = 0;
    r->err = PARAMO_OK;
    for (unsigned i = 0; i < PARTS; i++)
        r->part[i].n = r->part[i].ts = 0;
    paramo_err err = check_rows(r, rows);
    if (!err)
        err = keys_add(r, rows);
    if (!err)
        part_issue(r);
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    for (unsigned i = 0; i < PARTS; i++)
        part_wait(r, &r->part[i]);
    if (err)
        err = err_set(err, "%s", text);
    else if (r->err)
        err = err_set(r->err, "%s", r->text);
    free(r);
    return err;
}
