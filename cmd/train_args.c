#include "cmd/train_args.h"
#include "cmd/darlin_args.h"
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/model_args.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Changes o by the options that were given. Returns -1 or the exit code. */
static int read_objective(const struct options *s, struct objective *o)
{
    if (option_given(s, OPT_OBJECTIVE) && strcmp(option_text(s, OPT_OBJECTIVE), o->ops->name) != 0)
        *o = objective_of(objective_find(option_text(s, OPT_OBJECTIVE)));
    if (option_given(s, OPT_CLASSES))
        o->classes = (uint32_t)option_number(s, OPT_CLASSES);
    if (option_given(s, OPT_QUANTILE))
        o->quantile = option_real(s, OPT_QUANTILE);
    const char *wrong = objective_valid(o);
    return !wrong ? -1 : options_wrong(s, "--objective %s %s", o->ops->name, wrong);
}

/* Continues from a model: settings that were not given are those of the model, and settings that the model fixes must
 * agree. Returns -1 or the exit code. */
static int continue_from(const struct options *s, struct model_info *info)
{
    paramo_err err = darlin_args_on(s) ? train_take_weights(option_text(s, OPT_MODEL_FROM), info)
                                       : train_take_settings(option_text(s, OPT_MODEL_FROM), info);
    if (err != PARAMO_OK)
        return code_fail(verb_name(s->verb), err, paramo_last_error());
    if (option_given(s, OPT_HASH_BITS) && option_number(s, OPT_HASH_BITS) != info->hash_bits)
        return options_wrong(s, "%s was trained with --hash-bits %u", option_text(s, OPT_MODEL_FROM),
                             info->hash_bits);
    if (option_given(s, OPT_SCALE) && strcmp(option_text(s, OPT_SCALE), scale_name(info->scale)) != 0)
        return options_wrong(s, "%s was trained with --scale %s and continues only with that",
                             option_text(s, OPT_MODEL_FROM), scale_name(info->scale));
    if (option_given(s, OPT_TRAIN_SEED))
        info->seed = option_number(s, OPT_TRAIN_SEED);
    struct objective asked = info->objective;
    int code = read_objective(s, &asked);
    if (code >= 0)
        return code;
    if (asked.ops == info->objective.ops && asked.classes != info->objective.classes)
        return options_wrong(s, "%s was trained with --classes %" PRIu32, option_text(s, OPT_MODEL_FROM),
                             info->objective.classes);
    if (asked.ops != info->objective.ops || asked.classes != info->objective.classes ||
        asked.quantile != info->objective.quantile)
        return options_wrong(s, "%s was trained with another objective: %s", option_text(s, OPT_MODEL_FROM),
                             info->objective.ops->name);
    return model_args_continue(s, option_text(s, OPT_MODEL_FROM), info);
}

/* The columns of --columns, which must be those of the model that training continues from. */
static int take_columns(const struct options *s, int continues, struct model_info *info)
{
    struct columns *given;
    int code = data_args_columns(s, &given);
    if (code < 0 && given && continues && !columns_same(given, info->columns))
        code = options_wrong(s, "%s was trained with other --columns: leave it out",
                             option_text(s, OPT_MODEL_FROM));
    if (code < 0 && given && !continues) {
        info->columns = given;
        given = NULL;
    }
    columns_release(given);
    return code;
}

int train_args_model(const struct options *s, struct model_info *info)
{
    int code = model_args_begin(s, info);
    if (code < 0)
        code = read_objective(s, &info->objective);
    info->hash_bits = (uint32_t)option_number(s, OPT_HASH_BITS);
    info->seed = option_number(s, OPT_TRAIN_SEED);
    info->scale =
        option_text(s, OPT_SCALE) ? (enum scale_kind)scale_find(option_text(s, OPT_SCALE)) : SCALE_NONE;
    return code;
}

/* The field that name[0..len) names, by its number or its column; -1: there is none. */
static int field_of(const struct columns *columns, const char *name, size_t len)
{
    const struct column *c = columns ? columns_find(columns, name, len) : NULL;
    char *end;
    if (c)
        return c->role == COLUMN_CATEGORY || c->role == COLUMN_NUMBER ? c->field : -1;
    const unsigned long number =
        len > 0 && name[0] >= '0' && name[0] <= '9' ? strtoul(name, &end, 10) : UINT16_MAX + 1ul;
    return number <= UINT16_MAX && end == name + len ? (int)number : -1;
}

/* Reads one A:B; names of columns may have colons, too. Returns 0 if it is not of that form. */
static int read_interaction(const char *text, const struct columns *columns, struct interactions *in)
{
    for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        const int a = field_of(columns, text, (size_t)(colon - text)),
                  b = field_of(columns, colon + 1, strlen(colon + 1));
        if (a >= 0 && b >= 0)
            return interactions_add(in, (uint16_t)a, (uint16_t)b);
    }
    return 0;
}

/* Reads --interactions, which must be those of the model that training continues from. Returns -1 or the exit code. */
static int read_interactions(const struct options *s, struct train_options *o)
{
    const struct option_list *list = option_list(s, OPT_INTERACTIONS);
    struct interactions given = {0};
    if (list->n == 0)
        return -1;
    if (o->model.ops->fields != MODEL_NO_FIELDS)
        return options_wrong(
            s, "--interactions: model %s combines fields itself: leave the option out, or use lr or fm",
            o->model.ops->name);
    for (size_t i = 0; i < list->n; i++)
        if (!read_interaction(list->item[i], o->model.columns, &given))
            return options_wrong(
                s,
                "--interactions %s: expected two fields, A:B, numbers or names of columns with values, "
                "each pair once, at most %d",
                list->item[i], INTERACTIONS_MAX);
    if (option_text(s, OPT_MODEL_FROM) && memcmp(&given, &o->model.interactions, sizeof given) != 0)
        return options_wrong(s, "%s was trained with other --interactions: leave it out",
                             option_text(s, OPT_MODEL_FROM));
    o->model.interactions = given;
    return -1;
}

/* Reads one LABEL=W. Returns 0 if it is not of that form. */
static int read_class_weight(const char *text, struct class_weights *c)
{
    char *end;
    const unsigned long label = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '=' || label >= c->n)
        return 0;
    const char *number = end + 1;
    const double weight = strtod(number, &end);
    c->weight[label] = (float)weight;
    return end > number && *end == '\0' && isfinite(c->weight[label]) && c->weight[label] > 0;
}

/* Reads --class-weight, which replaces the weights that the model was trained with. Returns -1 or the exit code. */
static int read_class_weights(const struct options *s, struct train_options *o)
{
    const struct option_list *list = option_list(s, OPT_CLASS_WEIGHT);
    const struct objective *objective = &o->model.objective;
    struct class_weights *c = &o->model.class_weight;
    if (list->n == 0)
        return -1;
    memset(c, 0, sizeof *c);
    if (!objective->ops->correct)
        return options_wrong(s, "--class-weight needs an objective with classes: logistic, hinge or softmax");
    o->balance = list->n == 1 && strcmp(list->item[0], "balanced") == 0;
    if (o->balance)
        return -1;
    c->n = objective->ops->many ? objective->classes : 2;
    for (uint32_t i = 0; i < c->n; i++)
        c->weight[i] = 1;
    for (size_t i = 0; i < list->n; i++)
        if (!read_class_weight(list->item[i], c))
            return options_wrong(
                s,
                "--class-weight %s: expected LABEL=W, with a label below %u and a weight above "
                "0, or balanced",
                list->item[i], (unsigned)c->n);
    return -1;
}

/* Reads --calibrate. Without it, a model that was calibrated is calibrated again if rows measure it. Returns -1 or the
 * exit code. */
static int read_calibration(const struct options *s, struct train_options *o)
{
    struct calibration *before = &o->model.calibration;
    const int given = option_given(s, OPT_CALIBRATE);
    const int measured = option_list(s, OPT_VALID)->n > 0 || option_number(s, OPT_HOLD_OUT) > 0;
    o->calibrate = given      ? (enum calibration_kind)calibration_find(option_text(s, OPT_CALIBRATE))
                   : measured ? before->kind
                              : CALIBRATION_NONE;
    memset(before, 0, sizeof *before); /* it does not fit the parameters after more training */
    if (o->calibrate != CALIBRATION_NONE && o->model.objective.ops != &objective_logistic)
        return options_wrong(s, "--calibrate needs --objective logistic");
    if (o->calibrate != CALIBRATION_NONE && !measured)
        return options_wrong(s, "--calibrate needs rows that are not learned: --hold-out or --valid");
    return -1;
}

/* Reads the options that decide which new features the model gets. Returns -1 or the exit code. */
static int read_admission(const struct options *s, struct admission_rule *rule)
{
    const char *text = option_text(s, OPT_ADMIT);
    if (!text && option_given(s, OPT_MAX_FEATURES))
        return options_wrong(s, "--max-features needs --admit");
    if (text && admission_parse(text, rule) != 0)
        return options_wrong(s, "--admit is " ADMISSION_WORDS ", N from 1 to %d and P above 0 to 1, not '%s'",
                             SKETCH_MOST, text);
    if (option_given(s, OPT_ADMIT_MEMORY) && rule->kind != ADMIT_COUNT)
        return options_wrong(s, "--admit-memory needs --admit count:N");
    rule->bytes = (size_t)option_number(s, OPT_ADMIT_MEMORY) << 20;
    rule->most = option_given(s, OPT_MAX_FEATURES) ? option_number(s, OPT_MAX_FEATURES) : 0;
    return -1;
}

/* Refuses what --aggregate, --snapshot and --deterministic exclude. Returns -1 or the exit code. */
static int check_together(const struct options *s, struct train_options *o)
{
    if (o->aggregate && o->darlin.on)
        return options_wrong(s, "--aggregate and --solver darlin exclude each other");
    if (o->snapshot && o->darlin.on)
        return options_wrong(s, "--snapshot and --solver darlin exclude each other");
    if (!o->deterministic)
        return -1;
    if (o->model.factor_after > 0)
        return options_wrong(
            s, "--deterministic: the model gives factors to a feature after a number of rows, "
               "which depends on the order in which workers read them; continue it without --deterministic");
    if (o->model.scale == SCALE_AUTO) /* magnitudes depend on the order of the rows */
        o->model.scale = SCALE_NONE;
    return o->model.scale == SCALE_NONE ? -1 : options_wrong(s, "--deterministic needs --scale none");
}

int train_args_read(const struct options *s, struct train_options *o)
{
    if (option_list(s, OPT_DATA)->n == 0)
        return options_wrong(s, "--data is missing");
    if (!model_args_name(s) && !option_text(s, OPT_MODEL_FROM))
        return options_wrong(s, "--model is missing");
    if (option_number(s, OPT_PATIENCE) > 0 && option_list(s, OPT_VALID)->n == 0 &&
        option_number(s, OPT_HOLD_OUT) == 0)
        return options_wrong(s, "--patience needs --hold-out or --valid");
    if (option_given(s, OPT_HOLD_OUT) && option_number(s, OPT_HOLD_OUT) > 0 &&
        option_list(s, OPT_VALID)->n > 0)
        return options_wrong(
            s, "--valid and --hold-out both name the rows that measure the model: give one of them");
    if (pace_parse(option_text(s, OPT_CONSISTENCY), &o->bound) != 0)
        return options_wrong(s, "--consistency is asp, bsp or ssp:S with S up to %d, not '%s'",
                             PACE_BOUND_MAX, option_text(s, OPT_CONSISTENCY));
    if (rate_schedule_parse(option_text(s, OPT_SCHEDULE), &o->schedule) != 0)
        return options_wrong(s, "--schedule is " RATE_SCHEDULE_WORDS ", not '%s' (docs/TRAINING.md)",
                             option_text(s, OPT_SCHEDULE));
    o->schedule.warmup = option_given(s, OPT_WARMUP) ? option_real(s, OPT_WARMUP) : 0;
    o->aggregate =
        (paramo_aggregate)option_number(s, OPT_AGGREGATE); /* the words are in the order of the enum */
    o->deterministic = option_flag(s, OPT_DETERMINISTIC);
    if (o->aggregate && o->bound != 1)
        return options_wrong(s, "--aggregate needs --consistency bsp");
    if (o->deterministic && !o->aggregate)
        return options_wrong(s, "--deterministic needs --consistency bsp and --aggregate sum or mean");
    if (o->deterministic &&
        (option_given(s, OPT_ADMIT) || option_given(s, OPT_EXPIRE) || option_given(s, OPT_FACTOR_AFTER)))
        return options_wrong(
            s, "--deterministic excludes --admit, --expire and --factor-after, which depend on the "
               "order in which workers read rows");
    o->negatives = option_given(s, OPT_NEGATIVES) ? option_real(s, OPT_NEGATIVES) : 1;
    if (o->negatives > 1)
        return options_wrong(s, "--negatives %g: expected a share above 0 and at most 1", o->negatives);
    o->negatives = o->negatives < 1 ? o->negatives : 0;
    struct model_info *info = &o->model;
    int code = option_text(s, OPT_MODEL_FROM) ? continue_from(s, info) : train_args_model(s, info);
    if (code < 0)
        code = take_columns(s, option_text(s, OPT_MODEL_FROM) != NULL, info);
    if (code < 0)
        code = darlin_args_apply(s, o);
    if (code < 0 && option_given(s, OPT_FACTOR_AFTER))
        info->factor_after = (uint32_t)option_number(s, OPT_FACTOR_AFTER);
    if (code < 0 && info->factor_after > 0 && info->ops->tables == 1)
        code = options_wrong(s, "--factor-after: %s has no factors", info->ops->name);
    if (code < 0 && o->negatives > 0 && info->objective.ops != &objective_logistic)
        code = options_wrong(s, "--negatives needs --objective logistic");
    if (code < 0)
        code = read_interactions(s, o);
    if (code < 0)
        code = read_class_weights(s, o);
    if (code < 0)
        code = read_calibration(s, o);
    if (code < 0)
        code = read_admission(s, &o->admission);
    if (code < 0)
        code = check_together(s, o);
    if (code >= 0)
        return code;
    (void)snprintf(info->data_format, sizeof info->data_format, "%s", option_text(s, OPT_FORMAT));
    data_args_apply(s, &o->reader);
    o->reader.columns = info->columns;
    o->data = option_list(s, OPT_DATA)->item;
    o->data_n = option_list(s, OPT_DATA)->n;
    o->valid = option_list(s, OPT_VALID)->item;
    o->valid_n = option_list(s, OPT_VALID)->n;
    o->model_in = option_text(s, OPT_MODEL_FROM);
    o->model_out = option_text(s, OPT_MODEL_OUT);
    o->epochs = option_number(s, OPT_EPOCHS);
    o->expire = option_given(s, OPT_EXPIRE) ? (uint32_t)option_number(s, OPT_EXPIRE) : 0;
    o->shuffle = option_number(s, OPT_SHUFFLE);
    o->batch = option_number(s, OPT_BATCH);
    o->ahead = (uint32_t)option_number(s, OPT_AHEAD);
    o->servers = (uint32_t)option_number(s, OPT_TRAIN_SERVERS);
    o->workers = (uint32_t)option_number(s, OPT_TRAIN_WORKERS);
    o->hold_out = (unsigned)option_number(s, OPT_HOLD_OUT);
    o->patience = option_given(s, OPT_PATIENCE) || o->epochs > 0 ? (uint32_t)option_number(s, OPT_PATIENCE)
                                                                 : TRAIN_PATIENCE;
    o->drop_state = option_flag(s, OPT_NO_STATE);
    o->snapshot = option_flag(s, OPT_SNAPSHOT);
    o->quiet = option_flag(s, OPT_QUIET);
    return -1;
}

int train_args_left_open(const struct options *s, const struct train_options *o)
{
    static const enum option_id deciding[] = {
        OPT_EPOCHS,   OPT_HOLD_OUT,       OPT_PATIENCE,         OPT_MODEL_FROM, OPT_CALIBRATE,
        OPT_ADMIT,    OPT_EXPIRE,         OPT_FACTOR_AFTER,     OPT_NEGATIVES,  OPT_WARMUP,
        OPT_SCHEDULE, OPT_CHECKPOINT_DIR, OPT_CHECKPOINT_EVERY, OPT_RESTORE};
    int open = option_list(s, OPT_VALID)->n == 0 && !o->darlin.on && !o->deterministic;
    for (size_t i = 0; i < sizeof deciding / sizeof *deciding; i++)
        open &= !option_given(s, deciding[i]);
    return open;
}

/* Is the cause of the error a label that is a number, but not 0 or 1? */
static int found_number(const char *why)
{
    static const char expected[] = "expected a label, 0 or 1 ", found[] = "found '";
    const char *at = strstr(why, expected);
    char *end;
    at = at ? strstr(at, found) : NULL;
    if (!at)
        return 0;
    const char *number = at + sizeof found - 1;
    const double label = strtod(number, &end);
    return end > number && *end == '\'' && isfinite(label);
}

int train_args_failed(const struct options *s, const struct train_options *o, paramo_err err)
{
    const char *why = paramo_last_error();
    char more[PARAMO_ERROR_MAX + 160];
    if (err != PARAMO_E_FORMAT || o->model.objective.ops->labels != LABEL_BINARY || !found_number(why))
        return code_fail(verb_name(s->verb), err, why);
    (void)snprintf(
        more, sizeof more,
        "%s; numbers are learned with --objective squared (counts: poisson), classes 0, 1, ... with "
        "--objective softmax --classes C",
        why);
    return code_fail(verb_name(s->verb), err, more);
}
