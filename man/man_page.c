/*
 * Writes the manual page of the program: a copy of standard input, in which the line .\" OPTIONS becomes the
 * options of all verbs, and .\" VARIABLES the environment variables of a node, both from their tables
 * (cmd/option_table.h, src/node/settings.c). Runs at build time. Tests: test/e2e/cli.sh.
 */
#include "cmd/options.h"

#include <string.h>

/* Dashes as they are typed; no line begins with a request. */
static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        (void)fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            (void)putchar('\\');
        (void)putchar(*text == '\\' ? 'e' : *text);
    }
}

static void print_help(const paramo_option *option)
{
    print_roff(option->help);
    if (option->preset)
        (void)printf(" (%s)", option->preset);
    (void)printf(".\n");
}

static void print_option(const paramo_option *option, char letter)
{
    (void)printf(".TP\n");
    if (letter)
        (void)printf("\\fB\\-%c\\fR, ", letter);
    (void)printf("\\fB\\-\\-");
    print_roff(option->name);
    (void)printf("\\fR");
    if (option->meta) {
        (void)printf(" \\fI");
        print_roff(option->meta);
        (void)printf("\\fR");
    }
    (void)putchar('\n');
    print_help(option);
    if (option->variable)
        (void)printf("Environment variable: \\fB%s\\fR.\n", option->variable);
}

static void print_options(void)
{
    for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
        (void)printf(".SS paramo %s\n", verb_name(verb));
        for (unsigned id = 0; id < OPTION_ALL; id++) {
            const char *heading;
            char letter;
            const paramo_option *option = option_line(verb, id, &heading, &letter);
            if (option)
                print_option(option, letter);
        }
    }
}

static void print_variables(void)
{
    const paramo_option *option;
    for (size_t i = 0; (option = paramo_config_option(i)); i++) {
        if (!option->variable)
            continue;
        (void)printf(".TP\n\\fB%s\\fR=\\fI", option->variable);
        print_roff(option->meta ? option->meta : "0|1");
        (void)printf("\\fR\n");
        print_help(option);
        if (option->name)
            (void)printf("Option: \\fB\\-\\-%s\\fR.\n", option->name);
    }
}

int main(void)
{
    char line[1000];
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, ".\\\" OPTIONS\n") == 0)
            print_options();
        else if (strcmp(line, ".\\\" VARIABLES\n") == 0)
            print_variables();
        else
            (void)fputs(line, stdout);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
