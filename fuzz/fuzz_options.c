/* The command line: arguments separated by zero bytes, the first byte draws the verb. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "harness.h"

enum { ARGS = 24 };

static void check_value(const paramo_option *option, const struct option_state *state)
{
    switch (option->type) {
    case PARAMO_OPTION_FLAG:
        CHECK(state->value.number <= 1);
        break;
    case PARAMO_OPTION_TEXT:
        CHECK(*state->value.text);
        break;
    case PARAMO_OPTION_LIST:
        CHECK(state->list.n);
        for (size_t i = 0; i < state->list.n; i++)
            CHECK(*state->list.item[i]);
        break;
    case PARAMO_OPTION_WORD:
        CHECK(strstr(option->meta, state->value.text));
        break;
    case PARAMO_OPTION_NUMBER:
        CHECK(state->value.number >= option->min && state->value.number <= option->max);
        break;
    case PARAMO_OPTION_POSITIVE:
        CHECK(isfinite(state->value.real) && state->value.real > 0);
        break;
    case PARAMO_OPTION_NATURAL:
        CHECK(isfinite(state->value.real) && state->value.real >= 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (!nowhere) {
        nowhere = fopen("/dev/null", "we");
        CHECK(nowhere);
        stderr = stdout = nowhere;
    }
    char *text = harness_alloc(size + 1), *argv[ARGS + 1] = {(char[]){"verb"}};
    int argc = 1;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && argc < ARGS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    struct options o;
    const enum verb verb = size ? (enum verb)(data[0] % VERB_COUNT) : VERB_TRAIN;
    int code = options_parse(&o, verb, argc, argv, "usage: verb\n\ntext\n", "  more\n");
    CHECK(code == -1 || code == 0 || code == 2);
    for (unsigned id = 0; id < OPTION_ALL && code == -1; id++) {
        const char *heading;
        char letter;
        const paramo_option *option = option_line(verb, id, &heading, &letter);
        if (option && o.state[id].raw)
            check_value(option, &o.state[id]);
    }
    options_free(&o);
    free(text);
    return 0;
}
