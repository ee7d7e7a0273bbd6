#include "cmd/options.h"
#include "cmd/bench/bench_report.h"
#include "cmd/exitcode.h"
#include "cmd/run_child.h"
#include "cmd/suggest.h"
#include "learn/train/train.h"

#include "paramo/admin.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 26 };
enum { HELP_CODE = 'h', LONG_CODES = 1000 /* above every letter; the id is added */ };

/* ---- the table ---- */

#define FLAG           PARAMO_OPTION_FLAG, 0, 1
#define TEXT           PARAMO_OPTION_TEXT, 0, 0
#define LIST           PARAMO_OPTION_LIST, 0, 0
#define WORD           PARAMO_OPTION_WORD, 0, 0
#define NUMBER(lo, hi) PARAMO_OPTION_NUMBER, lo, hi
#define POSITIVE       PARAMO_OPTION_POSITIVE, 0, 0
#define NATURAL        PARAMO_OPTION_NATURAL, 0, 0

/* Verbs as bits. */
enum {
#define VERB_BIT(id, name, words, summary) id = 1 << VERB_##id,
    VERBS(VERB_BIT)
#undef VERB_BIT
        SCORES = PREDICT | EVAL | EXPLAIN,
    LEARNS = TRAIN | TUNE,
    NODES = SCHEDULER | SERVER | WORKER,
    ADMINS = RING | STATUS | DRAIN | CHECKPOINT
};

struct line {
    unsigned verbs;
    char letter;
    const char *heading, *setting; /* setting: the name of a node's setting */
    paramo_option option;
};

#define LINE(id, verbs_, name_, letter_, type_, meta_, preset_, variable_, help_)                            \
    {.verbs = (verbs_), .letter = (letter_), .option = {name_, variable_, type_, meta_, preset_, help_}},
#define SETTING(id, verbs_, name_)    {.verbs = (verbs_), .setting = (name_)},
#define HEADING(id, verbs_, heading_) {.verbs = (verbs_), .heading = (heading_)},
static const struct line lines[OPTION_COUNT] = {OPTIONS(LINE, SETTING, HEADING)};

#define VERB_NAME(id, name, words, summary)  #name,
#define VERB_WORDS(id, name, words, summary) words,
static const char *const verb_names[] = {VERBS(VERB_NAME)};
static const int verb_words[] = {VERBS(VERB_WORDS)};

const char *verb_name(enum verb verb)
{
    return verb_names[verb];
}

static const paramo_option *node_setting(const char *name)
{
    const paramo_option *option;
    for (size_t i = 0; (option = paramo_config_option(i)); i++)
        if (option->name && strcmp(option->name, name) == 0)
            return option;
    abort(); /* option_table.h names a setting that the library does not have; test_options.c would find it */
}

const paramo_option *option_line(enum verb verb, enum option_id id, const char **heading, char *letter)
{
    if (id >= OPTION_COUNT) {
        const struct model_option *model = verb == VERB_TRAIN || verb == VERB_TUNE || verb == VERB_IMPORT
                                               ? model_options_at(id - OPTION_COUNT)
                                               : NULL;
        *letter = 0;
        if (model && id == OPTION_COUNT)
            *heading = "The model and its optimizers";
        return model ? &model->option : NULL;
    }
    const struct line *line = &lines[id];
    if (!(line->verbs >> verb & 1))
        return NULL;
    *letter = line->letter;
    if (line->heading)
        *heading = line->heading;
    return line->heading ? NULL : line->setting ? node_setting(line->setting) : &line->option;
}

/* ---- help ---- */

/* Prints the words of text up to end, in lines of WIDTH columns. The output is at column `at`; lines begin at
 * indent. */
static void print_filled(const char *text, const char *end, int at, int indent)
{
    int begun = at < indent;
    (void)printf("%*s", begun ? indent - at : 0, "");
    at = begun ? indent : at;
    for (int first = 1; text < end; first = 0) {
        int len = (int)strcspn(text, " \n");
        len = len < end - text ? len : (int)(end - text);
        if (!first && at + 1 + len > WIDTH) {
            (void)printf("\n%*s", indent, "");
            at = indent;
            first = 1;
        }
        at += printf("%s%.*s", first ? "" : " ", len, text);
        text += len;
        text += strspn(text, " \n");
    }
    (void)putchar('\n');
}

/* Prints text. A line that begins with a blank or "usage:" stays as it is; other lines are joined and filled, up to the
 * next such line or an empty one. */
static void print_text(const char *text)
{
    while (*text) {
        const char *end = text;
        if (*text == ' ' || *text == '\n' || strncmp(text, "usage:", 6) == 0) {
            end += strcspn(text, "\n");
            (void)printf("%.*s\n", (int)(end - text), text);
        } else {
            do
                end += strcspn(end, "\n") + 1;
            while (end[-1] && *end && *end != '\n' && *end != ' ');
            end--;
            print_filled(text, end, 0, 0);
        }
        text = *end ? end + 1 : end;
    }
}

static void print_option(const paramo_option *option, char letter)
{
    char help[600];
    (void)snprintf(help, sizeof help, option->preset ? "%s (%s)" : "%s", option->help, option->preset);
    int at = letter ? printf("  -%c, --%s", letter, option->name) : printf("  --%s", option->name);
    if (option->meta)
        at += printf(" %s", option->meta);
    if (at > HELP_COLUMN - 2) {
        (void)putchar('\n');
        at = 0;
    }
    print_filled(help, help + strlen(help), at, HELP_COLUMN);
}

static void print_help(enum verb verb, const char *usage, const char *more)
{
    int listed = 0; /* an option or a heading */
    print_text(usage);
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        const char *heading = NULL;
        char letter;
        const paramo_option *option = option_line(verb, id, &heading, &letter);
        if (heading || (option && !listed))
            (void)putchar('\n');
        if (heading)
            (void)printf("%s\n", heading);
        listed = listed || heading || option;
        if (option)
            print_option(option, letter);
    }
    (void)printf("  --help%*sthis text\n\n", HELP_COLUMN - 8, "");
    print_text(more);
}

/* ---- parsing ---- */

static void print_wrong(enum verb verb, const char *fmt, va_list args)
{
    (void)fprintf(stderr, "paramo %s: ", verb_names[verb]);
    (void)vfprintf(stderr, fmt, args);
    (void)fprintf(stderr, " (see 'paramo %s --help')\n", verb_names[verb]);
}

int options_wrong(const struct options *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_wrong(o->verb, fmt, args);
    va_end(args);
    return CODE_USAGE;
}

static int list_add(const struct options *o, struct option_list *list, const char *text)
{
    const char **item = realloc(list->item, (list->n + 1) * sizeof *item);
    if (!item)
        return code_fail(verb_names[o->verb], PARAMO_E_MEMORY, "out of memory for the options");
    list->item = item;
    list->item[list->n++] = text;
    return -1;
}

/* Reads a value of an option. Returns -1, or the exit code. */
static int read_value(struct options *o, enum option_id id, const paramo_option *option,
                      paramo_option_source source, const char *text)
{
    struct option_state *state = &o->state[id];
    if (paramo_option_read(option, source, text, &state->value))
        return options_wrong(o, "%s", paramo_last_error());
    state->source = source;
    state->raw = text;
    return option->type == PARAMO_OPTION_LIST ? list_add(o, &state->list, text) : -1;
}

/* The arguments of getopt_long. */
struct getopt_table {
    struct option longs[OPTION_ALL + 2];
    char letters[3 + 2 * OPTION_ALL];
    int id_of_letter[128]; /* -1: none */
};

static void getopt_fill(enum verb verb, struct getopt_table *t)
{
    char *letter = t->letters;
    size_t n = 0;
    *letter++ = '+';
    *letter++ = ':';
    memset(t->id_of_letter, -1, sizeof t->id_of_letter);
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        const char *heading;
        char one;
        const paramo_option *option = option_line(verb, id, &heading, &one);
        if (!option)
            continue;
        int has_value = option->type == PARAMO_OPTION_FLAG ? no_argument : required_argument;
        t->longs[n++] = (struct option){option->name, has_value, NULL, LONG_CODES + (int)id};
        if (one) {
            t->id_of_letter[(unsigned char)one] = (int)id;
            *letter++ = one;
            if (has_value)
                *letter++ = ':';
        }
    }
    *letter++ = HELP_CODE;
    *letter = '\0';
    t->longs[n++] = (struct option){"help", no_argument, NULL, HELP_CODE};
    t->longs[n] = (struct option){NULL, 0, NULL, 0};
}

static int unknown_option(const struct options *o, const char *word)
{
    char name[64];
    struct suggestion near;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    suggest_begin(&near, name + strspn(name, "-"));
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        const char *heading;
        char one;
        const paramo_option *option = option_line(o->verb, id, &heading, &one);
        if (option)
            suggest_try(&near, option->name);
    }
    suggest_try(&near, "help");
    if (near.best)
        return options_wrong(o, "unknown option '%s'; did you mean '--%s'?", word, near.best);
    return options_wrong(o, "unknown option '%s'", word);
}

/* getopt_long has returned c, '?' or ':', for an option that is unknown or lacks a value. */
static int wrong_option(const struct options *o, int c, char **argv)
{
    const char *word = argv[optind - 1];
    if (c == ':')
        return options_wrong(o, "no value after option '%s'", word);
    if (optopt >= LONG_CODES || (optopt == HELP_CODE && word[1] == '-'))
        return options_wrong(o, "%.*s takes no value", (int)strcspn(word, "="), word);
    if (optopt)
        return options_wrong(o, "unknown option '-%c'", optopt);
    return unknown_option(o, word);
}

/* Reads the command line. Returns -1, or the exit code. After -1, optind is the index of the first word that is not an
 * option. */
static int parse_line(struct options *o, int argc, char **argv, const char *usage, const char *more)
{
    struct getopt_table t;
    getopt_fill(o->verb, &t);
    int code = -1, list = -1; /* list: the id of the last option if it is a list */
    optind = 0;               /* glibc: start over */
    opterr = 0;
    while (code < 0) {
        int c = getopt_long(argc, argv, t.letters, t.longs, NULL);
        if (c == -1) {
            if (list < 0 || optind >= argc || strcmp(argv[optind - 1], "--") == 0)
                break;
            code =
                read_value(o, (unsigned)list, &lines[list].option, PARAMO_FROM_COMMAND_LINE, argv[optind++]);
            continue;
        }
        if (c == HELP_CODE) {
            print_help(o->verb, usage, more);
            return CODE_DONE;
        }
        int id = c >= LONG_CODES ? c - LONG_CODES : c > 0 && c < 128 ? t.id_of_letter[c] : -1;
        if (id < 0)
            return wrong_option(o, c, argv);
        const char *heading;
        char letter;
        const paramo_option *option = option_line(o->verb, (unsigned)id, &heading, &letter);
        if (optarg && optarg == argv[optind - 1] && strncmp(optarg, "--", 2) == 0 && optarg[2])
            return options_wrong(o, "no value after option '%s'", argv[optind - 2]);
        code = read_value(o, (unsigned)id, option, PARAMO_FROM_COMMAND_LINE, optarg ? optarg : "1");
        list = option->type == PARAMO_OPTION_LIST ? id : -1;
    }
    return code;
}

/* Reads the options that are not on the command line from the environment, or from their defaults. */
static int read_defaults(struct options *o)
{
    int code = -1;
    for (unsigned id = 0; id < OPTION_ALL && code < 0; id++) {
        const char *heading;
        char letter;
        const paramo_option *option = option_line(o->verb, id, &heading, &letter);
        if (!option || o->state[id].source == PARAMO_FROM_COMMAND_LINE)
            continue;
        const char *text = option->variable ? getenv(option->variable) : NULL;
        if (text && *text)
            code = read_value(o, id, option, PARAMO_FROM_ENVIRONMENT, text);
        else if (option->preset)
            code = read_value(o, id, option, PARAMO_FROM_DEFAULT, option->preset);
    }
    return code;
}

int options_parse(struct options *o, enum verb verb, int argc, char **argv, const char *usage,
                  const char *more)
{
    *o = (struct options){.verb = verb, .word = argv + 1};
    while (o->words < verb_words[verb] && o->words + 1 < argc && argv[o->words + 1][0] != '-')
        o->words++;
    argc -= o->words;
    argv += o->words;
    int code = parse_line(o, argc, argv, usage, more);
    if (code < 0 && verb_words[verb] == WORDS_COMMAND) {
        o->word = argv + optind;
        o->words = argc - optind;
    } else if (code < 0 && optind < argc) {
        code = options_wrong(o, "unexpected argument '%s'", argv[optind]);
    }
    return code < 0 ? read_defaults(o) : code;
}

void options_free(struct options *o)
{
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        free(o->state[id].list.item);
        o->state[id].list = (struct option_list){0};
    }
}

/* ---- values ---- */

int option_given(const struct options *o, enum option_id id)
{
    return o->state[id].source == PARAMO_FROM_COMMAND_LINE;
}

int option_flag(const struct options *o, enum option_id id)
{
    return o->state[id].value.number != 0;
}

uint64_t option_number(const struct options *o, enum option_id id)
{
    return o->state[id].value.number;
}

double option_real(const struct options *o, enum option_id id)
{
    return o->state[id].value.real;
}

const char *option_text(const struct options *o, enum option_id id)
{
    return o->state[id].value.text;
}

const struct option_list *option_list(const struct options *o, enum option_id id)
{
    return &o->state[id].list;
}

void options_export(const struct options *o, const enum option_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *heading;
        char letter;
        const paramo_option *option = option_line(o->verb, ids[i], &heading, &letter);
        if (option && option->variable && option_given(o, ids[i]))
            (void)setenv(option->variable, o->state[ids[i]].raw, 1);
    }
}
