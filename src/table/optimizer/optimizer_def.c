#include "table/optimizer/optimizer_def.h"

#include <assert.h>

const struct optimizer_def *optimizer_def(paramo_optimizer kind)
{
    static const struct optimizer_def *const defs[] = {
#define DEF(number, NAME, name) [number] = &optimizer_##name,
        PARAMO_OPTIMIZERS(DEF)
#undef DEF
    };
    assert((unsigned)kind < PARAMO_OPTIMIZER_COUNT);
    return defs[kind];
}
