#include "wire/calls.h"

const char *call_kind_name(unsigned kind)
{
    static const char *const names[] = {"?",          "REGISTER",   "BARRIER",    "TABLE_OPEN", "LEAVE",
                                        "SHUTDOWN",   "POOL_OPEN",  "POOL_NEXT",  "POOL_DONE",  "POOL_END",
                                        "KV_PUT",     "KV_GET",     "KV_ADD",     "ADMIN_VIEW", "KV_DELETE",
                                        "ORDER_DONE", "CKPT_SAVE",  "CKPT_LOAD",  "DRAIN",      "STATUS",
                                        "CLOCK_JOIN", "CLOCK_TELL", "CLOCK_WAIT", "CLOCK_LEAVE"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

void call_text_encode(const char *text, struct writer *w)
{
    size_t len = strnlen(text, CALL_TEXT_MAX - 1);
    write_u16(w, (uint16_t)len);
    write_bytes(w, text, len);
}

paramo_err call_text_decode(struct reader *r, char text[CALL_TEXT_MAX])
{
    read_string(r, text, CALL_TEXT_MAX);
    return call_body_end(r, "text");
}

paramo_err call_body_end(const struct reader *r, const char *message)
{
    if (r->failed)
        return err_set(PARAMO_E_PROTOCOL, "%s: the message is cut short or a field is beyond its limit",
                       message);
    if (r->left)
        return err_set(PARAMO_E_PROTOCOL, "%s: %zu bytes follow its end", message, r->left);
    return PARAMO_OK;
}
