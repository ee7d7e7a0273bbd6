/*
 * The command line of all verbs: one parser (GNU long options) over one table (option_table.h), with limits,
 * defaults, environment variables and --help from there.
 *
 * The forms are "--name VALUE", "--name=VALUE", "-n VALUE", and for lists "--name A B C" up to the next option; a name
 * may be cut as long as it is unique. A value on the command line wins over the environment, and that over the default.
 * If an option comes twice, the last value wins, but a list grows. A wrong option gives one line on standard error. It
 * never knows what an option means.
 * Tests: test/cmd/test_options.c, test/e2e/cli.sh, fuzz/fuzz_options.c.
 */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include "cmd/model_options.h"
#include "cmd/option_table.h"
#include "cmd/verbs.h"

#include "paramo/options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_id {
#define OPTION_ENUM(id, ...) OPT_##id,
    OPTIONS(OPTION_ENUM, OPTION_ENUM, OPTION_ENUM)
#undef OPTION_ENUM
        OPTION_COUNT,
    OPTION_ALL = OPTION_COUNT + MODEL_OPTIONS_MAX /* the models' options follow, in their order */
};

struct option_list {
    const char **item;
    size_t n;
};

struct option_state {
    paramo_option_source source;
    const char *raw; /* the value as it was given; of a list the last item */
    paramo_option_value value;
    struct option_list list;
};

struct options {
    enum verb verb;
    char **word; /* the words right after the verb, or the command at the end (WORDS_COMMAND) */
    int words;
    struct option_state state[OPTION_ALL];
};

/* Reads argv[1..argc). Returns -1 to continue; otherwise the exit code, after everything is printed: 0 after --help, 2
 * after a wrong option. --help prints usage, the options, and then more. The caller calls options_free afterwards, also
 * after an error. */
int options_parse(struct options *o, enum verb verb, int argc, char **argv, const char *usage,
                  const char *more);
void options_free(struct options *o);

/* Is the option on the command line? */
int option_given(const struct options *o, enum option_id id);
int option_flag(const struct options *o, enum option_id id);
uint64_t option_number(const struct options *o, enum option_id id);
double option_real(const struct options *o, enum option_id id);
/* NULL: not given, and there is no default. */
const char *option_text(const struct options *o, enum option_id id);
const struct option_list *option_list(const struct options *o, enum option_id id);

/* The description of an option, or NULL if the verb does not have it. Sets *letter (0: none), and *heading if a group
 * begins there; otherwise *heading stays as it was. */
const paramo_option *option_line(enum verb verb, enum option_id id, const char **heading, char *letter);
/* Sets the environment variable of each of these options that is on the command line to its value. */
void options_export(const struct options *o, const enum option_id *ids, size_t n);
/* Prints "paramo VERB: ... (see 'paramo VERB --help')" on standard error; returns the exit code for wrong usage. */
int options_wrong(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *verb_name(enum verb verb);

#endif
