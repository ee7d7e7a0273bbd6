#include "wire/user_body.h"

#include <assert.h>
#include <string.h>

size_t user_body_bytes(const struct user_call *call)
{
    return 1 + strlen(call->name) + call->params_bytes;
}

void user_body_encode(struct writer *w, const struct user_call *call)
{
    size_t len = strlen(call->name);
    assert(user_name_is_good(call->name) && call->params_bytes <= PARAMO_FUNCTION_PARAMS_MAX);
    write_u8(w, (uint8_t)len);
    write_bytes(w, call->name, len);
    if (call->params_bytes)
        write_bytes(w, call->params, call->params_bytes);
}

void user_body_decode(struct reader *r, struct user_call *call)
{
    size_t len = read_u8(r);
    const void *name = len < USER_FUNCTION_NAME_MAX ? read_span(r, len) : NULL;
    *call = (struct user_call){0};
    if (name)
        memcpy(call->name, name, len);
    if (r->failed || strlen(call->name) != len || !user_name_is_good(call->name) ||
        r->left > PARAMO_FUNCTION_PARAMS_MAX) {
        r->failed = true;
        return;
    }
    call->params_bytes = (uint32_t)r->left;
    call->params = read_span(r, r->left);
}
