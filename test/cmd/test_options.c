/* The table of options, and the command line of all verbs. */
#include <stdlib.h>
#include <string.h>

#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/suggest.h"
#include "unit.h"

enum { WORDS_OF_TEST = 16 };

/* Parses "paramo VERB line"; a word may not have blanks. */
static int parse(struct options *o, enum verb verb, const char *line)
{
    static char text[256];
    char *argv[WORDS_OF_TEST] = {(char *)(uintptr_t)verb_name(verb)}, *rest = text;
    int argc = 1;
    assert_true(strlen(line) < sizeof text);
    strcpy(text, line);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        assert_true(argc < WORDS_OF_TEST - 1);
        argv[argc++] = word;
    }
    static char *kept[WORDS_OF_TEST]; /* o->word points into it */
    memcpy(kept, argv, sizeof argv);
    return options_parse(o, verb, argc, kept, "usage: \n", "");
}

/* Of `paramo train`. */
static enum option_id option_named(const char *name)
{
    const char *heading;
    char letter;
    const paramo_option *option;
    unsigned id = 0;
    while (!(option = option_line(VERB_TRAIN, id, &heading, &letter)) || strcmp(option->name, name) != 0)
        assert_true(++id < OPTION_ALL);
    return id;
}

static void every_line_is_whole(void **state)
{
    (void)state;
    for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
        const char *names[OPTION_ALL], letters[] = "h";
        size_t n = 0;
        for (unsigned id = 0; id < OPTION_ALL; id++) {
            const char *heading;
            char letter;
            paramo_option_value value;
            const paramo_option *option = option_line(verb, id, &heading, &letter);
            if (!option)
                continue;
            assert_non_null(option->name);
            assert_true(*option->help && option->help[strlen(option->help) - 1] != '.');
            assert_int_equal(!option->meta, option->type == PARAMO_OPTION_FLAG);
            assert_true(option->min <= option->max);
            assert_null(letter ? strchr(letters, letter) : NULL);
            if (option->preset)
                assert_int_equal(paramo_option_read(option, PARAMO_FROM_DEFAULT, option->preset, &value),
                                 PARAMO_OK);
            for (size_t i = 0; i < n; i++)
                assert_string_not_equal(names[i], option->name);
            assert_string_not_equal(option->name, "help");
            names[n++] = option->name;
        }
    }
}

static void values_come_in_every_form(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(parse(&o, VERB_TRAIN, "--data a b - --epochs=3 --data c --alpha 0.5 -q --model fm"), -1);
    const struct option_list *data = option_list(&o, OPT_DATA);
    assert_int_equal(data->n, 4);
    assert_string_equal(data->item[2], "-");
    assert_string_equal(data->item[3], "c");
    assert_int_equal(option_number(&o, OPT_EPOCHS), 3);
    assert_true(option_real(&o, option_named("alpha")) == 0.5);
    assert_true(option_flag(&o, OPT_QUIET) && !option_flag(&o, OPT_JSON));
    assert_string_equal(option_text(&o, option_named("model")), "fm");
    assert_string_equal(option_text(&o, OPT_FORMAT), "auto"); /* the default */
    assert_false(option_given(&o, OPT_FORMAT));
    assert_null(option_text(&o, OPT_MODEL_OUT));
    options_free(&o);
    assert_int_equal(parse(&o, VERB_TRAIN, "--ep 4 --epochs 5"), -1); /* cut; the last one counts */
    assert_int_equal(option_number(&o, OPT_EPOCHS), 5);
    options_free(&o);
}

static void words_and_commands(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(parse(&o, VERB_RUN, "-s2 -vw 3 paramo train --epochs 2"), -1);
    assert_int_equal(option_number(&o, OPT_RUN_SERVERS), 2);
    assert_int_equal(option_number(&o, OPT_RUN_WORKERS), 3);
    assert_true(option_flag(&o, OPT_RUN_VERBOSE));
    assert_int_equal(o.words, 4);
    assert_string_equal(o.word[0], "paramo");
    assert_int_equal(parse(&o, VERB_RUN, "-s 1 -w 1 -- --epochs"), -1);
    assert_int_equal(o.words, 1);
    assert_string_equal(o.word[0], "--epochs");
    assert_int_equal(parse(&o, VERB_CHECKPOINT, "verify dir --number 3"), -1);
    assert_int_equal(o.words, 2);
    assert_int_equal(parse(&o, VERB_CHECKPOINT, "verify dir more --number 3"), CODE_USAGE);
    assert_int_equal(parse(&o, VERB_STATUS, "now"), CODE_USAGE);
    assert_int_equal(parse(&o, VERB_STATUS, "--json now"), CODE_USAGE);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    struct options o;
    static const struct {
        enum verb verb;
        const char *line;
    } wrong[] = {
        {VERB_TRAIN, "--bogus"},
        {VERB_TRAIN, "-x"},
        {VERB_TRAIN, "--epochs"},
        {VERB_TRAIN, "--epochs 0"},
        {VERB_TRAIN, "--epochs -1"},
        {VERB_TRAIN, "--epochs 1x"},
        {VERB_TRAIN, "--quiet=1"},
        {VERB_TRAIN, "--model tree"},
        {VERB_TRAIN, "--model lr|fm"},
        {VERB_TRAIN, "--alpha 0"},
        {VERB_TRAIN, "--alpha nan"},
        {VERB_TRAIN, "--alpha 1e300"},
        {VERB_TRAIN, "--l1 -1"},
        {VERB_TRAIN, "--data="},
        {VERB_TRAIN, "--model-out --json"},
        {VERB_TRAIN, "--checkpoint-ev 0"},
        {VERB_TRAIN, "--seeds 3"},
        {VERB_RUN, "-s"},
        {VERB_RUN, "-s 513"},
        {VERB_TRAIN, "--m lr"},
        {VERB_SERVER, "--van inproc"},
        {VERB_TRAIN, "--hash-bits 64"},
        {VERB_RING, "show --help=1"},
        {VERB_SERVER, "--port 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(&o, wrong[i].verb, wrong[i].line), CODE_USAGE);
        options_free(&o);
    }
}

static void the_environment_counts_before_the_default(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(setenv("PARAMO_REPLICAS", "2", 1), 0);
    assert_int_equal(parse(&o, VERB_RUN, "-s 1"), -1);
    assert_int_equal(option_number(&o, OPT_REPLICAS), 2);
    assert_false(option_given(&o, OPT_REPLICAS));
    assert_int_equal(parse(&o, VERB_RUN, "--replicas 1"), -1);
    assert_int_equal(option_number(&o, OPT_REPLICAS), 1);
    options_export(&o, (enum option_id[]){OPT_REPLICAS, OPT_STATE}, 2);
    assert_string_equal(getenv("PARAMO_REPLICAS"), "1");
    assert_null(getenv("PARAMO_STATE"));
    assert_int_equal(setenv("PARAMO_REPLICAS", "4", 1), 0);
    assert_int_equal(parse(&o, VERB_RUN, "-s 1"), CODE_USAGE);
    assert_string_equal(paramo_last_error(),
                        "PARAMO_REPLICAS=4 in the environment: not a whole number from 0 to 3");
    assert_int_equal(setenv("PARAMO_REPLICAS", "", 1), 0); /* as if it were not set */
    assert_int_equal(parse(&o, VERB_RUN, "-s 1"), -1);
    assert_int_equal(option_number(&o, OPT_REPLICAS), 0);
    assert_int_equal(unsetenv("PARAMO_REPLICAS"), 0);
}

static const char *nearest(const char *word)
{
    static const char *const candidates[] = {"model", "model-out", "mode", "workers", "worker", "l1", "l2"};
    struct suggestion s;
    suggest_begin(&s, word);
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        suggest_try(&s, candidates[i]);
    return s.best;
}

static void a_near_word_is_suggested(void **state)
{
    (void)state;
    assert_string_equal(nearest("modle"), "model"); /* two letters have changed places: one step */
    assert_string_equal(nearest("model-uot"), "model-out");
    assert_string_equal(nearest("wrkers"), "workers");      /* missing; "worker" has two steps */
    assert_string_equal(nearest("mmode"), "mode");          /* too many */
    assert_string_equal(nearest("model+oxx"), "model-out"); /* three of nine */
    assert_null(nearest("modelling"));                      /* four */
    assert_null(nearest("l3"));                             /* one of two letters is more than one in three */
    assert_null(nearest(""));
    char longer[100] = {0};
    memset(longer, 'm', sizeof longer - 1);
    assert_null(nearest(longer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_whole),
        cmocka_unit_test(values_come_in_every_form),
        cmocka_unit_test(words_and_commands),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(a_near_word_is_suggested),
        cmocka_unit_test(the_environment_counts_before_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
