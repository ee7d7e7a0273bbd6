#include "sim/coverage.h"

#include <string.h>

static const struct {
    const char *name, *machine;
} transitions[] = {
#define TRANSITION(machine, from, to) {#machine " " #from " " #to, #machine},
    COVER_TRANSITIONS(TRANSITION)
#undef TRANSITION
};

static const struct {
    const char *name, *text;
} machines[] = {
#define TEXT(name, text) {#name, #name ": " text},
    COVER_MACHINES(TEXT)
#undef TEXT
};

const char *coverage_transition_name(enum cover_transition transition)
{
    return transitions[transition].name;
}

const char *coverage_machine_text(enum cover_transition transition)
{
    if (transition && strcmp(transitions[transition].machine, transitions[transition - 1].machine) == 0)
        return NULL;
    unsigned k = 0;
    while (strcmp(machines[k].name, transitions[transition].machine) != 0)
        k++;
    return machines[k].text;
}
