#include "worker/check_other.h"

paramo_err check_other(const struct client_table *t, const struct client_table *other)
{
    const char *what = NULL;
    if (t->row_values == 0 || other->row_values == 0)
        return err_set(PARAMO_E_UNSUPPORTED, "table %s has no rows of a fixed length",
                       t->row_values ? other->name : t->name);
    if (t->placement.kind != other->placement.kind)
        what = "placement";
    else if (t->placement.kind == PARAMO_PLACE_DENSE && t->placement.rows != other->placement.rows)
        what = "number of rows";
    else if (t->row_values != other->row_values)
        what = "dim";
    return what ? err_set(PARAMO_E_SIZE_MISMATCH,
                          "tables %s and %s differ in their %s, so their rows do not go together", t->name,
                          other->name, what)
                : PARAMO_OK;
}
