/* The command line: arguments separated by zero bytes, against options of every kind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/args.h"
#include "harness.h"

enum { ARGS = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (!nowhere) {
        nowhere = fopen("/dev/null", "we");
        CHECK(nowhere);
        stderr = stdout = nowhere;
    }
    char *text = harness_alloc(size + 1), *argv[ARGS + 1] = {(char[]){"verb"}};
    int argc = 1, flag = 0, given = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && argc < ARGS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    const char *string = NULL, *choice = "one";
    struct arg_list list = {0};
    uint64_t number = 7;
    double positive = 1, natural = 0;
    const struct arg args[] = {
        {.name = "Heading", .kind = ARG_SECTION},
        {.name = "flag", .kind = ARG_FLAG, .letter = 'f', .out = &flag, .help = "a flag\ntwo lines"},
        {.name = "string", .kind = ARG_STRING, .out = &string, .meta = "S", .help = "a string"},
        {.name = "list", .kind = ARG_LIST, .letter = 'l', .out = &list, .meta = "FILE...", .help = "some"},
        {.name = "number",
         .kind = ARG_INT,
         .letter = 'n',
         .out = &number,
         .meta = "N",
         .help = "a number",
         .min = 3,
         .max = 1000,
         .given = &given},
        {.name = "positive", .kind = ARG_POSITIVE, .out = &positive, .meta = "X", .help = "above zero"},
        {.name = "natural", .kind = ARG_NATURAL, .out = &natural, .meta = "X", .help = "zero or more"},
        {.name = "choice", .kind = ARG_CHOICE, .out = &choice, .meta = "one|two", .help = "one of"}};
    enum { N = sizeof args / sizeof args[0] };
    int code = args_parse("verb", argc, argv, args, N, "usage", "more");
    CHECK(code == -1 || code == 0 || code == 2);
    if (code == -1) {
        CHECK(flag == 0 || flag == 1);
        CHECK(number >= 3 && number <= 1000);
        CHECK(isfinite(positive) && positive > 0 && isfinite(natural) && natural >= 0);
        CHECK(strcmp(choice, "one") == 0 || strcmp(choice, "two") == 0);
        for (size_t i = 0; i < list.n; i++)
            CHECK(list.item[i]);
    }
    args_free(args, N);
    free(text);
    return 0;
}
