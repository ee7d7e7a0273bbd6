#include "worker/check_page.h"

#include <inttypes.h>

paramo_err check_page(const struct client_call *call)
{
    const struct client_table *t = call->table;
    const paramo_page *page = call->page;
    bool var = !t->row_values;
    if (page->end && page->begin >= page->end)
        return err_set(PARAMO_E_INVALID,
                       "a page: the range from key %" PRIu64 " to below key %" PRIu64 " has no keys",
                       page->begin, page->end);
    if (!page->most || page->most > PARAMO_PAGE_KEYS_MAX)
        return err_set(PARAMO_E_INVALID, "a page: room for %zu keys, not for 1 to %d", page->most,
                       PARAMO_PAGE_KEYS_MAX);
    if (!page->keys || !page->vals)
        return err_set(PARAMO_E_INVALID, "a page: keys or vals is NULL");
    if (var != (page->lens != NULL))
        return err_set(PARAMO_E_SIZE_MISMATCH, "a page: rows of table %s have %s, so lens must %sbe given",
                       t->name, var ? "lengths of their own" : "one length", var ? "" : "not ");
    uint32_t columns = client_call_columns(call).count, row = columns ? columns : t->row_values;
    if (page->vals_len < row)
        return err_set(PARAMO_E_SIZE_MISMATCH,
                       "a page: room for %zu values, but a row of table %s has %" PRIu32 "%s", page->vals_len,
                       t->name, row, columns ? " in these columns" : "");
    return PARAMO_OK;
}
