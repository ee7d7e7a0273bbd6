#include "cmd/args.h"
#include "cmd/exitcode.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 26

int args_wrong(const char *verb, const char *fmt, ...)
{
    va_list args;
    (void)fprintf(stderr, "paramo %s: ", verb);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, " (see 'paramo %s --help')\n", verb);
    return CODE_USAGE;
}

static void print_help(const struct arg *args, size_t n, const char *usage, const char *more)
{
    (void)fputs(usage, stdout);
    for (size_t i = 0; i < n; i++) {
        const struct arg *a = &args[i];
        if (a->kind == ARG_SECTION) {
            (void)printf("\n%s\n", a->name);
            continue;
        }
        int used = a->letter != 0 ? printf("  -%c, --%s", a->letter, a->name) : printf("  --%s", a->name);
        if (a->meta != NULL)
            used += printf(" %s", a->meta);
        if (used > HELP_COLUMN - 2) {
            (void)putchar('\n');
            used = 0;
        }
        for (const char *line = a->help; line != NULL;) {
            const char *end = strchr(line, '\n');
            (void)printf("%*s%.*s\n", HELP_COLUMN - used, "",
                         end == NULL ? (int)strlen(line) : (int)(end - line), line);
            line = end == NULL ? NULL : end + 1;
            used = 0;
        }
    }
    (void)printf("  --help%*sthis text\n", HELP_COLUMN - 8, "");
    if (more != NULL)
        (void)printf("\n%s", more);
}

static const struct arg *find(const struct arg *args, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (args[i].kind != ARG_SECTION && strlen(args[i].name) == len &&
            memcmp(args[i].name, name, len) == 0)
            return &args[i];
    return NULL;
}

static int is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    if (strchr(value, '|'))
        return 0; /* several of them at once */
    for (const char *c = choices; c != NULL && len > 0; c = strchr(c, '|')) {
        c += *c == '|';
        if (strncmp(c, value, len) == 0 && (c[len] == 0 || c[len] == '|'))
            return 1;
    }
    return 0;
}

static int set(const char *verb, const struct arg *a, const char *value)
{
    char *end;
    errno = 0;
    switch (a->kind) {
    case ARG_STRING:
        if (value[0] == 0)
            return args_wrong(verb, "--%s is empty", a->name);
        *(const char **)a->out = value;
        return -1;
    case ARG_CHOICE:
        if (!is_choice(a->meta, value))
            return args_wrong(verb, "--%s '%s' is none of %s", a->name, value, a->meta);
        *(const char **)a->out = value;
        return -1;
    case ARG_LIST: {
        struct arg_list *list = a->out;
        const char **item = realloc(list->item, (list->n + 1) * sizeof *item);
        if (item == NULL)
            return code_fail(verb, PARAMO_E_MEMORY, "out of memory");
        list->item = item;
        list->item[list->n++] = value;
        return -1;
    }
    case ARG_INT: {
        unsigned long long n = strtoull(value, &end, 10);
        if (!isdigit((unsigned char)value[0]) || *end != 0 || errno != 0 || n < a->min || n > a->max)
            return args_wrong(verb, "--%s '%s' is not a whole number from %llu to %llu", a->name, value,
                              (unsigned long long)a->min, (unsigned long long)a->max);
        *(uint64_t *)a->out = n;
        return -1;
    }
    case ARG_POSITIVE:
    case ARG_NATURAL: {
        double x = strtod(value, &end);
        int positive = a->kind == ARG_POSITIVE;
        /* it becomes a float: what does not fit one is no good */
        if (value[0] == 0 || isspace((unsigned char)value[0]) || *end != 0 || !isfinite((float)x) || x < 0 ||
            (positive && !((float)x > 0)))
            return args_wrong(verb, "--%s '%s' is not a %s", a->name, value,
                              positive ? "positive number" : "number of 0 or more");
        *(double *)a->out = x;
        return -1;
    }
    default:
        return -1;
    }
}

/* The option that argv[*at] names, its value included; *at moves to the last word used. */
static int take(const char *verb, int argc, char **argv, int *at, const struct arg *args, size_t n)
{
    const char *word = argv[*at], *value = NULL;
    const struct arg *a = NULL;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        a = find(args, n, word + 2, equals == NULL ? strlen(word + 2) : (size_t)(equals - word - 2));
        value = equals == NULL ? NULL : equals + 1;
    } else {
        for (size_t i = 0; i < n && a == NULL; i++)
            a = args[i].kind != ARG_SECTION && args[i].letter == word[1] && word[2] == 0 ? &args[i] : NULL;
    }
    if (a == NULL)
        return args_wrong(verb, "there is no option %s", word);
    if (a->given != NULL)
        *a->given = 1;
    if (a->kind == ARG_FLAG) {
        if (value != NULL)
            return args_wrong(verb, "--%s takes no value", a->name);
        *(int *)a->out = 1;
        return -1;
    }
    if (value != NULL)
        return set(verb, a, value);
    if (*at + 1 >= argc || (strncmp(argv[*at + 1], "--", 2) == 0 && argv[*at + 1][2] != 0))
        return args_wrong(verb, "--%s needs a value", a->name);
    int code = set(verb, a, argv[++*at]);
    while (code < 0 && a->kind == ARG_LIST && *at + 1 < argc &&
           (argv[*at + 1][0] != '-' || argv[*at + 1][1] == 0))
        code = set(verb, a, argv[++*at]);
    return code;
}

int args_parse(const char *verb, int argc, char **argv, const struct arg *args, size_t n, const char *usage,
               const char *more)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(args, n, usage, more);
            return CODE_DONE;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == 0)
            return args_wrong(verb, "unexpected argument '%s'", argv[i]);
        int code = take(verb, argc, argv, &i, args, n);
        if (code >= 0)
            return code;
    }
    return -1;
}

void args_free(const struct arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (args[i].kind == ARG_LIST) {
            struct arg_list *list = args[i].out;
            free(list->item);
            *list = (struct arg_list){0};
        }
    }
}
