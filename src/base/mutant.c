#include "base/mutant.h"

#include <string.h>

#ifdef PARAMO_MUTANTS
enum mutant mutant_chosen;

static const struct {
    const char *name, *text;
} mutants[] = {{"none", ""},
#define MUTANT_LINE(name, text) {#name, text},
               MUTANTS(MUTANT_LINE)
#undef MUTANT_LINE
};

const char *mutant_name(size_t i, const char **text)
{
    if (i >= MUTANT_COUNT)
        return NULL;
    *text = mutants[i].text;
    return mutants[i].name;
}

bool mutant_choose(const char *name)
{
    const char *text;
    for (size_t i = 1; i < MUTANT_COUNT; i++) {
        if (strcmp(name, mutant_name(i, &text)) == 0) {
            mutant_chosen = (enum mutant)i;
            return true;
        }
    }
    return false;
}
#else
const char *mutant_name(size_t i, const char **text)
{
    (void)i;
    (void)text;
    return NULL;
}

bool mutant_choose(const char *name)
{
    (void)name;
    return false;
}
#endif
