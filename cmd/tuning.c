#include "cmd/tuning.h"
#include "cmd/metrics_json.h"
#include "learn/io/progress.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, SHOWN = 5, LINE_MAX = 4096 }; /* SHOWN: trials in the table; arbitrary */

static const struct objective *objective_in(const struct tuning *t)
{
    return &t->base.model.objective;
}

/* Prints options, each " --name value", in lines of WIDTH columns. The output is at column `at`; the other lines begin
 * at indent. Each line but the last ends with `end`. */
static void print_options(const char *text, int at, int indent, const char *end)
{
    const int last = (int)strlen(end);
    int empty = 1;
    while (*text) {
        /* a value may have blanks in quotes */
        size_t len = 1;
        for (int quoted = 0; text[len] && (quoted || strncmp(text + len, " --", 3) != 0); len++)
            quoted ^= text[len] == '\'';
        if (!empty && at + (int)len + last > WIDTH) {
            (void)printf("%s\n%*s", end, indent, "");
            at = indent;
            empty = 1;
        }
        const int skip = empty && *text == ' '; /* no blank before the first option of a line */
        at += printf("%.*s", (int)len - skip, text + skip);
        empty = 0;
        text += len;
    }
    (void)putchar('\n');
}

static void print_trial(const struct tuning *t, size_t number, char mark)
{
    const struct tune_trial *trial = &t->search.trial[number];
    char text[LINE_MAX], loss[32] = "diverged";
    if (isfinite(trial->outcome.loss))
        (void)snprintf(loss, sizeof loss, "%.5f", objective_shown(objective_in(t), trial->outcome.loss));
    const int at = printf("%5zu%c %6" PRIu64 " %6" PRIu64 " %12s %8.1f  ", number, mark, trial->budget,
                          trial->outcome.epochs, loss, trial->outcome.seconds);
    (void)tune_text(&t->space, trial->point, text, sizeof text);
    print_options(text, at, at, "");
}

/* The indices of the trials that were trained, the best first. NULL: no memory. The caller frees them. */
static size_t *sorted(const struct tune_search *s)
{
    size_t *place = malloc((s->n + 1) * sizeof *place), n = 0;
    for (size_t i = 0; place && i < s->n; i++) {
        if (s->trial[i].budget == 0)
            continue;
        size_t at = n++;
        for (; at > 0 && s->trial[i].outcome.loss < s->trial[place[at - 1]].outcome.loss; at--)
            place[at] = place[at - 1];
        place[at] = i;
    }
    return place;
}

static const char *measured_on(const struct tuning *t)
{
    return t->rows.valid ? "validation rows" : t->plan.folds > 0 ? "rows of all folds" : "held-out rows";
}

int tuning_print(const struct tuning *t)
{
    const struct tune_search *s = &t->search;
    char time[16];
    size_t *place = sorted(s);
    int usual = 0;
    if (!place)
        return 0;
    (void)printf("trial  epochs   best %12s  seconds  options\n", objective_in(t)->ops->loss);
    for (size_t i = 0; i < s->trained && i < SHOWN; i++) {
        usual |= place[i] == 0;
        print_trial(t, place[i], i == 0 ? '*' : ' ');
    }
    if (!usual && s->trained > 0 && s->trial[0].budget > 0)
        print_trial(t, 0, ' ');
    free(place);
    (void)printf("\n%zu trial%s in %s%s", s->trained, s->trained == 1 ? "" : "s",
                 progress_time(time, sizeof time, progress_now() - t->began), t->cut ? ", cut short" : "");
    if (t->resumed > 0)
        (void)printf("; %" PRIu64 " training%s of an earlier run", t->resumed, t->resumed == 1 ? "" : "s");
    (void)printf("; trial 0 has the usual options\n");
    if (t->command) {
        (void)printf("The best on the %s is trial %zu. On all rows it is trained by\n\n", measured_on(t),
                     s->best);
        print_options(t->command, 0, 4, " \\");
    }
    if (t->saved)
        (void)printf("\nThat model is saved to %s.\n", option_text(t->options, OPT_MODEL_OUT));
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* ---- JSON ---- */

static json_t *trial_json(const struct tuning *t, size_t number)
{
    const struct tune_trial *trial = &t->search.trial[number];
    json_t *settings = json_object();
    for (size_t i = 0; i < t->space.n; i++)
        (void)json_object_set_new(settings, t->space.option[i].name, json_real(trial->point[i]));
    json_t *j = json_pack("{s:I, s:I, s:I, s:b, s:f, s:o}", "trial", (json_int_t)number, "epochs",
                          (json_int_t)trial->budget, "best_epoch", (json_int_t)trial->outcome.epochs, "ended",
                          trial->outcome.ended, "seconds", trial->outcome.seconds, "settings", settings);
    (void)json_object_set_new(j, objective_in(t)->ops->key,
                              metrics_number(objective_shown(objective_in(t), trial->outcome.loss)));
    return j;
}

int tuning_print_json(const struct tuning *t)
{
    const struct tune_search *s = &t->search;
    json_t *trials = json_array();
    char base[64];
    for (size_t i = 0; i < s->n; i++)
        if (s->trial[i].budget > 0)
            (void)json_array_append_new(trials, trial_json(t, i));
    json_t *j = json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:i, s:f, s:I, s:b, s:o, s:o, s:s?, s:b, s:s?}", "version", 1, "model",
        t->base.model.ops->name, "objective", objective_in(t)->ops->name, "measured_on", measured_on(t),
        "epochs", (json_int_t)s->epochs, "hold_out", (int)t->rows.hold_out, "seconds",
        progress_now() - t->began, "resumed", (json_int_t)t->resumed, "cut", t->cut, "trials", trials, "best",
        s->trained > 0 ? json_integer((json_int_t)s->best) : json_null(), "command", t->command, "saved",
        t->saved, "model_out", t->saved ? option_text(t->options, OPT_MODEL_OUT) : NULL);
    (void)snprintf(base, sizeof base, "base_%s", objective_in(t)->ops->key);
    if (j && t->guess > 0)
        (void)json_object_set_new(j, base, metrics_number(objective_shown(objective_in(t), t->guess)));
    const int bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
    json_decref(j);
    (void)putchar('\n');
    return !bad && fflush(stdout) == 0 && !ferror(stdout);
}
