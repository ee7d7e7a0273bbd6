/* Schedule files of the simulator, as `paramo sim --replay` reads them: any text is a schedule or an error,
 * and what was read is written and read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "sim/fault.h"

static void same(const struct schedule *a, const struct schedule *b)
{
    CHECK(a->seed == b->seed && a->count == b->count);
    CHECK(schedule_nodes(a) == schedule_nodes(b));
    for (size_t i = 0; i < a->count; i++) {
        const struct fault *x = &a->faults[i], *y = &b->faults[i];
        CHECK(x->step == y->step && x->kind == y->kind && x->from == y->from && x->to == y->to &&
              x->n == y->n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct schedule read, again;
    char *text = harness_alloc(size + 1);
    harness_quiet();
    if (size) /* an empty input has no bytes to copy from */
        memcpy(text, data, size);
    text[size] = '\0';
    if (schedule_read(text, &read) == PARAMO_OK) {
        char *written = schedule_write(&read);
        CHECK(written);
        CHECK(schedule_read(written, &again) == PARAMO_OK);
        same(&read, &again);
        for (size_t i = 0; i < read.count; i++) {
            CHECK(read.faults[i].kind < FAULT_KINDS_COUNT && fault_name(read.faults[i].kind));
            CHECK(read.faults[i].from < schedule_nodes(&read) && read.faults[i].to < schedule_nodes(&read));
            CHECK(i == 0 || read.faults[i].step >= read.faults[i - 1].step);
        }
        schedule_fini(&again);
        schedule_fini(&read);
        free(written);
    }
    free(text);
    return 0;
}
