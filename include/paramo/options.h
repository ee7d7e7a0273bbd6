/*
 * Options: what the value of a command-line option or an environment variable may be, and the table of all
 * settings of a node (paramo_config). A program that starts nodes takes names, limits, defaults and help from
 * here, as the program `paramo` does. Tests: test/node/test_settings.c, test/cmd/test_options.c.
 */
#ifndef PARAMO_OPTIONS_H
#define PARAMO_OPTIONS_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum paramo_option_type {
    PARAMO_OPTION_FLAG,     /* an option without a value; a variable of 0 or 1: number */
    PARAMO_OPTION_TEXT,     /* not empty: text */
    PARAMO_OPTION_LIST,     /* one or more texts; each is read by itself: text */
    PARAMO_OPTION_WORD,     /* one of the words in meta, separated by '|': text, and number: which, from 0 */
    PARAMO_OPTION_NUMBER,   /* a whole number from min to max: number */
    PARAMO_OPTION_POSITIVE, /* above 0, and fits a float: real */
    PARAMO_OPTION_NATURAL   /* 0 or above, and fits a float: real */
} paramo_option_type;

/* Where a value comes from. */
typedef enum paramo_option_source {
    PARAMO_FROM_DEFAULT,
    PARAMO_FROM_ENVIRONMENT,
    PARAMO_FROM_COMMAND_LINE
} paramo_option_source;

/* One line of a table of options. */
typedef struct paramo_option {
    const char *name;     /* of the option, without "--"; NULL: a variable only */
    const char *variable; /* environment variable with the same values; NULL: an option only */
    paramo_option_type type;
    uint64_t min, max; /* of a NUMBER */
    const char *meta;  /* the words of a WORD; otherwise what stands for the value in help; NULL for a FLAG */
    const char *preset; /* the value if none is given, as text; NULL: none */
    const char *help;   /* one sentence without its point; never NULL */
} paramo_option;

typedef struct paramo_option_value {
    uint64_t number;
    double real;
    const char *text; /* points into what was read */
} paramo_option_value;

/* Reads a value. INVALID: it is not one; the message names the option or the variable, the value, where it
 * comes from, and what it may be. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_option_read(const paramo_option *option,
                                                         paramo_option_source source, const char *text,
                                                         paramo_option_value *value);

/* The i-th setting of a node, from 0; NULL after the last. Static. */
PARAMO_API const paramo_option *paramo_config_option(size_t i);
/* Sets the field of the option `name` (without "--") from the command line. A FLAG is set with any text.
 * Strings are copied; the copies live as long as the process. INVALID: as paramo_option_read, or there is no
 * such option. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_config_set(paramo_config *config, const char *name,
                                                        const char *text);

#ifdef __cplusplus
}
#endif
#endif
