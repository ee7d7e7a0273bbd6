/*
 * A C file with the model's parameters and a function that scores a row, for a program without Paramo. It sums in the
 * order of learn/model, in floats, so margins have the same bits if the compiler does not fuse products and sums
 * (-ffp-contract=off; x86-64 without -march has no fused instructions). Each model has a text of its own here, for the
 * part of the margin besides the weighted sum.
 */
#include "learn/export/forms.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"

#include <inttypes.h>
#include <string.h>

#define VALUES_A_LINE 8 /* arbitrary */

/* ---- texts of the file ---- */

static const char head[] = "#include <math.h>\n"
                           "#include <stddef.h>\n"
                           "#include <string.h>\n"
                           "\n"
                           "/* A feature of a row. Keys are those that 'paramo data convert' writes; field "
                           "counts for models of fields. */\n"
                           "typedef struct paramo_feature {\n"
                           "    unsigned long long key;\n"
                           "    unsigned field;\n"
                           "    float value;\n"
                           "} paramo_feature;\n"
                           "\n"
                           "#ifndef PARAMO_ROW_MAX\n"
                           "#define PARAMO_ROW_MAX 4096 /* features of a row */\n"
                           "#endif\n"
                           "\n"
                           "int paramo_score(const paramo_feature *row, size_t n, double *out);\n"
                           "\n";

static const char lookup[] = "\n"
                             "struct term {\n"
                             "    long at; /* row of the tables; -1: none */\n"
                             "    unsigned field;\n"
                             "    float x;\n"
                             "};\n"
                             "\n"
                             "static long find(unsigned long long key)\n"
                             "{\n"
                             "    long low = 0, high = KEYS;\n"
                             "    while (low < high) {\n"
                             "        long middle = low + (high - low) / 2;\n"
                             "        if (model_keys[middle] < key)\n"
                             "            low = middle + 1;\n"
                             "        else\n"
                             "            high = middle;\n"
                             "    }\n"
                             "    return low < KEYS && model_keys[low] == key ? low : -1;\n"
                             "}\n"
                             "\n"
                             "static float weight(const struct term *t, int c)\n"
                             "{\n"
                             "    return t->at < 0 ? 0.0f : model_w[t->at * OUTPUTS + c];\n"
                             "}\n";

/* A feature whose weight is 0 has no factors. */
static const char factors[] =
    "\n"
    "static float fold(const float *lane)\n"
    "{\n"
    "    float four[4];\n"
    "    int i;\n"
    "    for (i = 0; i < 4; i++)\n"
    "        four[i] = lane[i] + lane[i + 4];\n"
    "    return (four[0] + four[2]) + (four[1] + four[3]);\n"
    "}\n"
    "\n"
    "static const float *row_of(const struct term *t, int c)\n"
    "{\n"
    "    static const float none[V_DIM];\n"
    "    return weight(t, c) == 0 ? none : model_v + ((size_t)t->at * OUTPUTS + (size_t)c) * V_DIM;\n"
    "}\n";

static const char dot[] = "\n"
                          "static void dot(float x, const float *a, const float *b, float *lane)\n"
                          "{\n"
                          "    int k;\n"
                          "    for (k = 0; k < DIM; k++)\n"
                          "        lane[k % 8] += x * (a[k] * b[k]);\n"
                          "}\n";

static const char add[] = "\n"
                          "static void add(float x, const float *v, float *out)\n"
                          "{\n"
                          "    int k;\n"
                          "    for (k = 0; k < DIM; k++)\n"
                          "        out[k] += x * v[k];\n"
                          "}\n";

static const char of_lr[] = "\n"
                            "static float products(const struct term *t, size_t n, int c)\n"
                            "{\n"
                            "    (void)t, (void)n, (void)c;\n"
                            "    return 0;\n"
                            "}\n";

static const char of_fm[] = "\n"
                            "static float products(const struct term *t, size_t n, int c)\n"
                            "{\n"
                            "    float lane[8] = {0};\n"
                            "    int k;\n"
                            "    for (k = 0; k < DIM; k++) {\n"
                            "        float sum = 0, squares = 0;\n"
                            "        size_t i;\n"
                            "        for (i = 0; i < n; i++) {\n"
                            "            float p = row_of(&t[i], c)[k] * t[i].x;\n"
                            "            sum += p;\n"
                            "            squares += p * p;\n"
                            "        }\n"
                            "        lane[k % 8] += sum * sum - squares;\n"
                            "    }\n"
                            "    return 0.5f * fold(lane);\n"
                            "}\n";

/* The additions of model_ffm.c in the same order: by tiles of 64 features, into several sums in turn. */
static const char of_ffm[] =
    "\n"
    "static float products(const struct term *t, size_t n, int c)\n"
    "{\n"
    "    float lane[16] = {0};\n"
    "    size_t first, other, i, j, k;\n"
    "    for (first = 0; first < n; first += 64)\n"
    "        for (other = 0; other <= first; other += 64)\n"
    "            for (i = first; i < first + 64 && i < n; i++) {\n"
    "                size_t turn = 0;\n"
    "                for (j = other; t[i].field < FIELDS && j < other + 64 && j < i; j++) {\n"
    "                    if (t[j].field >= FIELDS)\n"
    "                        continue;\n"
    "                    dot(t[i].x * t[j].x, row_of(&t[i], c) + t[j].field * DIM, row_of(&t[j], c) + "
    "t[i].field * DIM,\n"
    "                        lane + (DIM == 4 ? turn % 4 * 4 : turn % 2 * 8));\n"
    "                    turn++;\n"
    "                }\n"
    "            }\n"
    "    for (k = 0; k < 8; k++)\n"
    "        lane[k] += lane[k + 8];\n"
    "    return fold(lane);\n"
    "}\n";

static const char of_fwfm[] =
    "\n"
    "static float products(const struct term *t, size_t n, int c)\n"
    "{\n"
    "    float sum[FIELDS * DIM], lane[8] = {0};\n"
    "    unsigned order[FIELDS], count[FIELDS] = {0}, fields = 0, p, q;\n"
    "    size_t i;\n"
    "    for (i = 0; i < n; i++) {\n"
    "        unsigned f = t[i].field;\n"
    "        if (f >= FIELDS)\n"
    "            continue;\n"
    "        if (count[f] == 0) {\n"
    "            order[fields++] = f;\n"
    "            memset(sum + f * DIM, 0, DIM * sizeof *sum);\n"
    "        }\n"
    "        count[f]++;\n"
    "        add(t[i].x, row_of(&t[i], c), sum + f * DIM);\n"
    "    }\n"
    "    for (p = 0; p < fields; p++) {\n"
    "        float met[DIM] = {0};\n"
    "        const unsigned f = order[p];\n"
    "        const float *s = sum + f * DIM;\n"
    "        for (q = 0; q < p; q++) {\n"
    "            const unsigned g = order[q];\n"
    "            add(model_r[((f < g ? f : g) * OUTPUTS + (unsigned)c) * FIELDS + (f < g ? g : f)], sum + g "
    "* DIM, met);\n"
    "        }\n"
    "        dot(1, s, met, lane);\n"
    "        if (count[f] > 1) {\n"
    "            const float x = 0.5f * model_r[(f * OUTPUTS + (unsigned)c) * FIELDS + f];\n"
    "            dot(x, s, s, lane);\n"
    "            for (i = 0; i < n; i++)\n"
    "                if (t[i].field == f)\n"
    "                    dot(-x * (t[i].x * t[i].x), row_of(&t[i], c), row_of(&t[i], c), lane);\n"
    "        }\n"
    "    }\n"
    "    return fold(lane);\n"
    "}\n";

static const char of_mvm[] =
    "\n"
    "static float products(const struct term *t, size_t n, int c)\n"
    "{\n"
    "    float sum[FIELDS * DIM], lane[8] = {0};\n"
    "    size_t i, f;\n"
    "    int k;\n"
    "    for (f = 0; f < FIELDS; f++)\n"
    "        memcpy(sum + f * DIM, model_b + (f * OUTPUTS + (size_t)c) * DIM, DIM * sizeof *sum);\n"
    "    for (i = 0; i < n; i++)\n"
    "        if (t[i].field < FIELDS)\n"
    "            add(t[i].x, row_of(&t[i], c), sum + t[i].field * DIM);\n"
    "    for (f = 1; f < FIELDS; f++)\n"
    "        for (k = 0; k < DIM; k++)\n"
    "            sum[k] = sum[k] * sum[f * DIM + (size_t)k];\n"
    "    for (k = 0; k < DIM; k++)\n"
    "        lane[k % 8] += sum[k];\n"
    "    return fold(lane);\n"
    "}\n";

static const char of_mf[] = "\n"
                            "static float products(const struct term *t, size_t n, int c)\n"
                            "{\n"
                            "    float user[DIM] = {0}, item[DIM] = {0}, lane[8] = {0};\n"
                            "    size_t i;\n"
                            "    for (i = 0; i < n; i++) {\n"
                            "        if (t[i].field == USER_FIELD)\n"
                            "            add(t[i].x, row_of(&t[i], c), user);\n"
                            "        if (t[i].field == ITEM_FIELD)\n"
                            "            add(t[i].x, row_of(&t[i], c), item);\n"
                            "    }\n"
                            "    dot(1, user, item, lane);\n"
                            "    return fold(lane);\n"
                            "}\n";

static const struct {
    const struct model_ops *ops;
    int factors, dot, add; /* the texts that `products` needs */
    const char *products;
} models[] = {
    {&model_lr, 0, 0, 0, of_lr},     {&model_fm, 1, 0, 0, of_fm},   {&model_ffm, 1, 1, 0, of_ffm},
    {&model_fwfm, 1, 1, 1, of_fwfm}, {&model_mvm, 1, 0, 1, of_mvm}, {&model_mf, 1, 1, 1, of_mf},
};

/* The prediction from margin[c], c < OUTPUTS. */
static const struct {
    const struct objective_ops *ops;
    const char *text;
} objectives[] = {
    {&objective_logistic, "    const double m = (double)margin[0], e = exp(m < 0 ? m : -m);\n"
                          "    out[0] = (m < 0 ? e : 1.0) / (1.0 + e);\n"},
    {&objective_hinge, "    out[0] = (double)margin[0];\n"},
    {&objective_squared, "    out[0] = LABEL_SCALE * (double)margin[0];\n"},
    {&objective_quantile, "    out[0] = LABEL_SCALE * (double)margin[0];\n"},
    {&objective_poisson, "    out[0] = exp((double)margin[0] < 30 ? (double)margin[0] : 30);\n"},
    {&objective_softmax, "    double sum = 0;\n"
                         "    float most = margin[0];\n"
                         "    int c;\n"
                         "    for (c = 1; c < OUTPUTS; c++)\n"
                         "        most = margin[c] > most ? margin[c] : most;\n"
                         "    for (c = 0; c < OUTPUTS; c++)\n"
                         "        sum += out[c] = exp((double)margin[c] - (double)most);\n"
                         "    for (c = 0; c < OUTPUTS; c++)\n"
                         "        out[c] /= sum;\n"},
};

static const char score[] = "\n"
                            "/* Writes the prediction for a row of n features to out: one number, or one for "
                            "each class. Returns 0, or -1 if the row\n"
                            " * has more than PARAMO_ROW_MAX features. */\n"
                            "int paramo_score(const paramo_feature *row, size_t n, double *out)\n"
                            "{\n"
                            "    struct term t[PARAMO_ROW_MAX];\n"
                            "    float margin[OUTPUTS];\n"
                            "    size_t i;\n"
                            "    int o;\n"
                            "    if (n > PARAMO_ROW_MAX)\n"
                            "        return -1;\n"
                            "    for (i = 0; i < n; i++) {\n"
                            "        t[i].at = find(row[i].key);\n"
                            "        t[i].field = row[i].field;\n"
                            "        t[i].x = scaled(t[i].at, row[i].value);\n"
                            "    }\n"
                            "    for (o = 0; o < OUTPUTS; o++) {\n"
                            "        float sum = model_bias[o];\n"
                            "        for (i = 0; i < n; i++)\n"
                            "            sum += weight(&t[i], o) * t[i].x;\n"
                            "        margin[o] = sum + products(t, n, o);\n"
                            "    }\n"
                            "    predict(margin, out);\n"
                            "    return 0;\n"
                            "}\n";

static const char unscaled[] = "\n"
                               "static float scaled(long at, float value)\n"
                               "{\n"
                               "    (void)at;\n"
                               "    return value;\n"
                               "}\n";

/* A program that reads rows as text and prints predictions, for a look at the file and for tests. */
static const char program[] =
    "\n"
    "#ifdef PARAMO_MAIN /* reads 'label [field:]key:value ...' lines, and prints predictions */\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "\n"
    "int main(void)\n"
    "{\n"
    "    static char line[1 << 20];\n"
    "    static paramo_feature row[PARAMO_ROW_MAX];\n"
    "    static double out[OUTPUTS];\n"
    "    while (fgets(line, sizeof line, stdin)) {\n"
    "        size_t n = 0;\n"
    "        int c;\n"
    "        char *word = strtok(line, \" \\t\\n\");\n"
    "        while ((word = strtok(NULL, \" \\t\\n\")) && n < PARAMO_ROW_MAX) {\n"
    "            char *second = strchr(word, ':'), *third = second ? strchr(second + 1, ':') : NULL;\n"
    "            row[n].field = third ? (unsigned)strtoul(word, NULL, 10) : 0;\n"
    "            row[n].key = strtoull(third ? second + 1 : word, NULL, 10);\n"
    "            row[n].value = third ? strtof(third + 1, NULL) : second ? strtof(second + 1, NULL) : 1;\n"
    "            n++;\n"
    "        }\n"
    "        if (paramo_score(row, n, out) != 0)\n"
    "            return 1;\n"
    "        for (c = 0; c < OUTPUTS; c++)\n"
    "            printf(\"%.9g%c\", out[c], c + 1 < OUTPUTS ? '\\t' : '\\n');\n"
    "    }\n"
    "    return 0;\n"
    "}\n"
    "#endif\n";

/* ---- the file ---- */

static paramo_err put(struct output *out, const char *text)
{
    return output_write(out, text, strlen(text));
}

/* "#define NAME value", with the name in capitals. */
static paramo_err write_constant(struct output *out, const char *name, double value)
{
    char text[MODEL_NAME_MAX + 1];
    size_t n = 0;
    for (; name[n] != '\0' && n < MODEL_NAME_MAX; n++)
        text[n] = name[n] >= 'a' && name[n] <= 'z' ? (char)(name[n] - 'a' + 'A') : '_';
    text[n] = '\0';
    return export_print(out, "#define %s %.0f\n", text, value);
}

static paramo_err write_values(struct output *out, const float *value, size_t n, size_t *column)
{
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; err == PARAMO_OK && i < n; i++)
        err =
            export_print(out, "%s%af,", (*column)++ % VALUES_A_LINE == 0 ? "\n    " : " ", (double)value[i]);
    return err;
}

/* Is a row of w written? It is if one of its weights is not 0, and it is not the bias. */
static int counts(const struct model_table *w, uint64_t row)
{
    int any = 0;
    for (uint32_t c = 0; c < w->dim; c++)
        any |= w->values[row * w->dim + c] != 0;
    return any && w->keys[row] != BATCH_BIAS_KEY;
}

static paramo_err write_keys(const struct model_table *w, struct output *out)
{
    size_t column = 0;
    paramo_err err = put(out, "\nstatic const unsigned long long model_keys[KEYS + 1] = {");
    for (uint64_t i = 0; err == PARAMO_OK && i < w->n; i++)
        if (counts(w, i))
            err = export_print(out, "%s%" PRIu64 "ULL,", column++ % 4 == 0 ? "\n    " : " ", w->keys[i]);
    return err == PARAMO_OK ? put(out, "\n    0};\n") : err;
}

/* A table's rows of the features that are written; zeros for those without a row. */
static paramo_err write_features(const struct model *m, size_t number, struct output *out)
{
    static const float zeros[FACTORS_MAX] = {0};
    const struct model_table *w = &m->table[0], *t = &m->table[number];
    size_t column = 0;
    paramo_err err = export_print(out, "static const float model_%s[] = {", t->name);
    for (uint64_t i = 0; err == PARAMO_OK && i < w->n; i++) {
        const float *row = counts(w, i) ? modelio_row(t, w->keys[i]) : NULL;
        for (uint32_t done = 0; err == PARAMO_OK && counts(w, i) && !row && done < t->dim;
             done += FACTORS_MAX)
            err =
                write_values(out, zeros, t->dim - done < FACTORS_MAX ? t->dim - done : FACTORS_MAX, &column);
        if (err == PARAMO_OK && row)
            err = write_values(out, row, t->dim, &column);
    }
    return err == PARAMO_OK ? put(out, "\n    0};\n") : err;
}

/* All rows of a table whose rows are not features. Its keys are 0, 1 ... . */
static paramo_err write_rows(const struct model *m, size_t number, struct output *out)
{
    const struct model_table *t = &m->table[number];
    size_t column = 0;
    paramo_err err = export_print(out, "static const float model_%s[] = {", t->name);
    for (size_t r = 0; err == PARAMO_OK && r < model_fixed_rows(&m->info, number); r++) {
        const float *row = modelio_row(t, r);
        for (uint32_t k = 0; err == PARAMO_OK && k < t->dim; k++)
            err = write_values(out, row ? row + k : &(float){0}, 1, &column);
    }
    return err == PARAMO_OK ? put(out, "\n    0};\n") : err;
}

/* After the scales: the means to subtract from the values of each feature. */
static paramo_err write_means(const struct model *m, struct output *out)
{
    const struct model_table *w = &m->table[0];
    size_t column = 0;
    paramo_err err = put(out, "\n    1};\nstatic const float model_mean[] = {");
    for (uint64_t i = 0; err == PARAMO_OK && i < w->n; i++) {
        const float *row = modelio_row(&m->scale, w->keys[i]);
        const float mean = row ? scale_mean(m->info.scale, row) : 0.0f;
        if (counts(w, i))
            err = write_values(out, &mean, 1, &column);
    }
    return err;
}

/* The divisors of the values of each feature, and the function that scales. */
static paramo_err write_scale(const struct model *m, struct output *out)
{
    const struct model_table *w = &m->table[0];
    size_t column = 0;
    if (!m->scale.file)
        return put(out, unscaled);
    paramo_err err = put(out, "static const float model_scale[] = {");
    for (uint64_t i = 0; err == PARAMO_OK && i < w->n; i++) {
        const float *row = modelio_row(&m->scale, w->keys[i]);
        const float divisor = row ? scale_divisor(m->info.scale, row) : 1.0f;
        if (counts(w, i))
            err = write_values(out, &divisor, 1, &column);
    }
    if (err == PARAMO_OK && m->info.scale == SCALE_CENTRED)
        err = write_means(m, out);
    if (err == PARAMO_OK)
        err = export_print(out,
                           "\n    1};\n\nstatic float scaled(long at, float value)\n{\n"
                           "    float x = at < 0 ? value : %s / model_scale[at];\n",
                           m->info.scale == SCALE_CENTRED ? "(value - model_mean[at])" : "value");
    if (err == PARAMO_OK && m->info.scale != SCALE_MAXABS)
        err = export_print(out, "    x = x < -%.1ff ? -%.1ff : x > %.1ff ? %.1ff : x;\n", (double)SCALE_MOST,
                           (double)SCALE_MOST, (double)SCALE_MOST, (double)SCALE_MOST);
    return err == PARAMO_OK ? put(out, "    return x;\n}\n") : err;
}

static paramo_err write_constants(const struct model *m, struct output *out)
{
    const struct model_info *info = &m->info;
    const float *bias = modelio_row(&m->table[0], BATCH_BIAS_KEY);
    uint64_t keys = 0;
    size_t column = 0;
    for (uint64_t i = 0; i < m->table[0].n; i++)
        keys += (uint64_t)counts(&m->table[0], i);
    paramo_err err = export_print(
        out, "#define KEYS %" PRIu64 "\n#define OUTPUTS %" PRIu32 "\n#define LABEL_SCALE %.17g\n", keys,
        model_outputs(info), info->objective.label_scale);
    if (err == PARAMO_OK && m->n > 1)
        err = export_print(out, "#define V_DIM %" PRIu32 "\n", model_shape(info, 1).dim);
    for (size_t i = 0; err == PARAMO_OK && i < info->ops->settings; i++)
        if (info->ops->setting[i].whole)
            err = write_constant(out, info->ops->setting[i].option, info->setting[i]);
    if (err == PARAMO_OK)
        err = put(out, "\nstatic const float model_bias[OUTPUTS] = {");
    for (uint32_t c = 0; err == PARAMO_OK && c < model_outputs(info); c++)
        err = write_values(out, bias ? bias + c : &(float){0}, 1, &column);
    return err == PARAMO_OK ? put(out, "};\n") : err;
}

static paramo_err write_tables(const struct model *m, struct output *out)
{
    paramo_err err = write_keys(&m->table[0], out);
    for (size_t t = 0; err == PARAMO_OK && t < m->n; t++)
        err = model_fixed_rows(&m->info, t) > 0 ? write_rows(m, t, out) : write_features(m, t, out);
    return err;
}

paramo_err export_c(const struct model *m, const struct export_options *o, struct output *out)
{
    const char *predict = NULL;
    size_t k = 0;
    (void)o;
    paramo_err err = export_plain(m);
    if (err != PARAMO_OK)
        return err;
    while (k < sizeof models / sizeof *models && models[k].ops != m->info.ops)
        k++;
    for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++)
        if (objectives[i].ops == m->info.objective.ops)
            predict = objectives[i].text;
    if (k == sizeof models / sizeof *models || !predict)
        return paramo_error_set(PARAMO_E_UNSUPPORTED,
                                "there is no C text for model %s and objective %s: use --to text",
                                m->info.ops->name, m->info.objective.ops->name);
    err =
        export_print(out,
                     "/* Written by 'paramo export --to c': model %s, objective %s. Compile it as C99 with\n"
                     " * -ffp-contract=off for the same scores as 'paramo predict'; link with -lm. */\n",
                     m->info.ops->name, m->info.objective.ops->name);
    if (err == PARAMO_OK)
        err = put(out, head);
    if (err == PARAMO_OK)
        err = write_constants(m, out);
    if (err == PARAMO_OK)
        err = write_tables(m, out);
    if (err == PARAMO_OK)
        err = write_scale(m, out);
    if (err == PARAMO_OK)
        err = put(out, lookup);
    if (err == PARAMO_OK && models[k].factors)
        err = put(out, factors);
    if (err == PARAMO_OK && models[k].dot)
        err = put(out, dot);
    if (err == PARAMO_OK && models[k].add)
        err = put(out, add);
    if (err == PARAMO_OK)
        err = put(out, models[k].products);
    if (err == PARAMO_OK)
        err = export_print(out, "\nstatic void predict(const float *margin, double *out)\n{\n%s}\n", predict);
    if (err == PARAMO_OK)
        err = put(out, score);
    return err == PARAMO_OK ? put(out, program) : err;
}
