#include "cmd/admin_json.h"

#include <stdio.h>

#include "cmd/exitcode.h"

int admin_json_print(const char *verb, json_t *root, size_t flags)
{
    int wrong = root ? json_dumpf(root, stdout, JSON_INDENT(1) | flags) : -1;
    json_decref(root);
    if (wrong)
        return code_fail(verb, PARAMO_E_MEMORY, "out of memory for the report");
    (void)printf("\n");
    return CODE_DONE;
}
