#include "worker/reduction_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/check_other.h"

static struct reduction reduction_of(const struct client_call *call)
{
    const paramo_reduction *from = call->reduction;
    bool one = from->function == PARAMO_REDUCE_MIN || from->function == PARAMO_REDUCE_MAX;
    return (struct reduction){.function = (uint8_t)from->function,
                              .two = call->other != NULL,
                              .other = call->other ? call->other->id : 0,
                              .begin = from->begin,
                              .last = from->end - 1, /* end 0: the last key of all */
                              .most = one ? 1 : (uint32_t)from->most};
}

/* The function must be here, too: this process adds up what the servers have found. */
static paramo_err check_user(const paramo_reduction *from)
{
    const paramo_function *f;
    struct user_call user;
    paramo_err err = user_call_make(&user, from->name, from->params, from->params_bytes);
    if (!err)
        err = user_call_find(&user, true, &f);
    if (!err && (!from->state || from->state_bytes < f->state_bytes))
        err = err_set(PARAMO_E_INVALID, "function \"%s\" has a state of %zu bytes, but there is room for %zu",
                      f->name, f->state_bytes, from->state ? from->state_bytes : 0);
    return err;
}

static paramo_err user_of(const paramo_reduction *from, struct reduction *what)
{
    return from->function == PARAMO_REDUCE_USER
               ? user_call_make(&what->user, from->name, from->params, from->params_bytes)
               : PARAMO_OK;
}

paramo_err reduction_request_check(const struct client_call *call)
{
    const paramo_reduction *from = call->reduction;
    if (from->function == PARAMO_REDUCE_USER) {
        paramo_err wrong = check_user(from);
        if (wrong)
            return wrong;
    } else if ((unsigned)from->function >= PARAMO_REDUCE_FUNCTIONS) {
        return err_set(PARAMO_E_INVALID, "there is no reduction %u", (unsigned)from->function);
    }
    if (from->end && from->begin >= from->end)
        return err_set(PARAMO_E_INVALID,
                       "the range from key %" PRIu64 " to below key %" PRIu64 " has no keys", from->begin,
                       from->end);
    if (from->most > PARAMO_REDUCE_ENTRIES_MAX)
        return err_set(PARAMO_E_INVALID, "%zu entries are wanted, at most %d are possible", from->most,
                       PARAMO_REDUCE_ENTRIES_MAX);
    if (from->most && !from->entries)
        return err_set(PARAMO_E_INVALID, "entries is NULL");
    struct reduction what = reduction_of(call);
    paramo_err err = user_of(from, &what);
    if (!err)
        err = reduction_check(&what);
    return err || !call->other ? err : check_other(call->table, call->other);
}

paramo_err reduction_request_make(const struct client_call *call, struct reduction_request **r)
{
    struct reduction_request *x = calloc(1, sizeof *x);
    if (!x)
        return err_memory(sizeof *x);
    x->what = reduction_of(call);
    x->to = call->reduction;
    paramo_err err = user_of(call->reduction, &x->what);
    if (!err) {
        x->body_bytes = reduction_body_bytes(&x->what);
        reduction_encode(&x->what, x->body);
        err = reduction_decode(x->body, x->body_bytes, &x->what); /* borrows from the body now */
    }
    if (!err)
        err = reduced_init(&x->found, &x->what);
    if (err) {
        free(x);
        return err;
    }
    *r = x;
    return PARAMO_OK;
}

void reduction_request_free(struct reduction_request *r)
{
    if (!r)
        return;
    reduced_fini(&r->found);
    free(r);
}

paramo_err reduction_request_take(struct reduction_request *r, const void *body, uint64_t len)
{
    struct reduced one;
    paramo_err err = reduced_init(&one, &r->what);
    if (err)
        return err;
    err = reduced_decode(body, len, &one);
    if (!err)
        err = reduced_merge(&r->found, &one);
    reduced_fini(&one);
    return err;
}

void reduction_request_end(struct reduction_request *r)
{
    paramo_reduction *to = r->to;
    to->rows = r->found.rows;
    to->values = r->found.values;
    to->nans = r->found.nans + r->found.sum.nans;
    to->value = reduced_value(&r->found);
    to->n = r->found.n;
    if (r->found.n)
        to->at = r->found.entries[0];
    if (r->found.user)
        memcpy(to->state, r->found.own, reduced_state_bytes(&r->found));
    if (r->found.n && r->what.function == PARAMO_REDUCE_TOP)
        memcpy(to->entries, r->found.entries, r->found.n * sizeof *to->entries);
}
