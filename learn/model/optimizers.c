#include "learn/model/optimizers.h"

#include <string.h>

static const struct optimizer_choice choices[] = {
    {.name = "ftrl", .code = PARAMO_OPT_FTRL, .alpha = 0.1},
    {.name = "adagrad", .code = PARAMO_OPT_ADAGRAD, .alpha = 0.1},
    {.name = "sgd", .code = PARAMO_OPT_SGD, .alpha = 0.002, .stateless = 1},
};

const struct optimizer_choice *optimizers_at(size_t i)
{
    return i < sizeof choices / sizeof *choices ? &choices[i] : NULL;
}

const struct optimizer_choice *optimizers_find(const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].name, name) == 0)
            return &choices[i];
    return NULL;
}
