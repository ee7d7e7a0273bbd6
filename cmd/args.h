/*
 * Command-line options from a table: parsing, checking and the list in --help, so that all three agree.
 *
 * "--name VALUE", "--name=VALUE", "-n VALUE", and for lists "--name A B C" up to the next option. The
 * last one counts where an option comes twice, except for lists, which grow. A wrong option prints one line
 * that says what is wrong. It knows nothing of what the options mean. Tests: test/e2e/cli.sh.
 */
#ifndef CMD_ARGS_H
#define CMD_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum arg_kind {
    ARG_FLAG,     /* int: set to 1 */
    ARG_STRING,   /* const char * */
    ARG_LIST,     /* struct arg_list: one or more values */
    ARG_INT,      /* uint64_t in min..max */
    ARG_POSITIVE, /* double, finite, > 0 */
    ARG_NATURAL,  /* double, finite, >= 0 */
    ARG_CHOICE,   /* const char *: one of choices, separated by '|' */
    ARG_SECTION   /* only a heading in --help */
};

struct arg_list {
    const char **item;
    size_t n;
};

struct arg {
    const char *name; /* without "--"; a heading's text */
    enum arg_kind kind;
    char letter; /* "-n" as well, or 0 */
    void *out;
    const char *meta; /* what stands for the value in --help; choices for ARG_CHOICE */
    const char *help; /* lines separated by \n */
    uint64_t min, max;
    int *given; /* set to 1 if the option was there; or NULL */
};

/* Reads argv[1..argc). Returns -1 to go on; else the exit code (0 after --help, 2 after a wrong option), all
 * said. usage comes first in --help, then the options, then more. Lists are freed by args_free. */
int args_parse(const char *verb, int argc, char **argv, const struct arg *args, size_t n, const char *usage,
               const char *more);
void args_free(const struct arg *args, size_t n);
/* One line "paramo VERB: ... (paramo VERB --help shows how)"; returns the exit code for wrong usage. */
int args_wrong(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
