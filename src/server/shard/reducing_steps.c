#include "server/shard/reducing_steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/shard/owned_keys.h"
#include "server/shard/table_map.h"

/* ---- memory -------------------------------------------------------------------------------------------- */

paramo_err reducing_make(struct shard *s, const void *body, size_t len, struct reducing **r)
{
    struct reducing *x = calloc(1, sizeof *x);
    if (!x)
        return err_memory(sizeof *x);
    assert(len <= sizeof x->body);
    memcpy(x->body, body, len);
    x->body_bytes = len;
    paramo_err err = reduction_decode(x->body, len, &x->what);
    if (!err)
        err = reduced_init(&x->found, &x->what);
    if (err) {
        free(x);
        return err;
    }
    s->reducing_bytes += reduced_bytes(&x->what);
    assert(s->reducing_bytes >= reduced_bytes(&x->what));
    *r = x;
    return PARAMO_OK;
}

void reducing_free(struct shard *s, struct reducing *r)
{
    assert(s->reducing_bytes >= reduced_bytes(&r->what));
    assert(r->body_bytes <= sizeof r->body);
    s->reducing_bytes -= reduced_bytes(&r->what);
    reduced_fini(&r->found);
    free(r);
}

bool reducing_same(const struct reducing *a, const struct reducing *b)
{
    return a->body_bytes == b->body_bytes && memcmp(a->body, b->body, a->body_bytes) == 0;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

size_t reducing_step_values(const struct shard *s)
{
    return 2 * (s->config.scan_keys ? s->config.scan_keys : (size_t)SCAN_STEP_KEYS);
}

bool reducing_waits(const struct shard *s, const struct shard_table *t, const struct reducing *r)
{
    const struct shard_table *other = r->what.two ? shard_table_get(s, r->what.other) : NULL;
    return t->clears || (other && other->clears);
}

void reducing_step(struct shard *s, struct shard_table *t, struct reducing *r)
{
    struct owned_keys owned = {s, t};
    struct shard_table *other = r->what.two ? shard_table_find(s, r->what.other) : NULL;
    if (r->what.two && (!other || !other->table)) {
        r->at.done = true; /* the request is refused when it is handled again */
        return;
    }
    table_reduce_step(t->table, other ? other->table : NULL, &r->at, reducing_step_values(s), &r->found,
                      owned_keys_only(&owned), &owned);
}

void reducing_restart(struct reducing *r)
{
    r->at = (struct table_reducing){0};
    reduced_reset(&r->found);
}
