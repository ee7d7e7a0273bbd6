/*
 * Vowpal Wabbit's readable form (vw --readable_model or, with names, --invert_hash): a head, then "index:weight" or
 * "name:index:weight". A feature whose id is a number has it as its index, as in Vowpal Wabbit. The bias is Vowpal
 * Wabbit's constant, with index 11650396, cut to the number of bits.
 */
#include "learn/export/forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONSTANT 11650396u /* hash of the constant feature */

static unsigned bits_of(const struct model_table *w)
{
    const uint64_t last = w->n > 1 ? w->keys[w->n - 2] : 0; /* the last key is the bias */
    unsigned bits = 18;                                     /* Vowpal Wabbit's default */
    while (bits < 64 && last >> bits != 0)
        bits++;
    return bits;
}

/* Writes a name without separators: colons and blanks become '_', and the tab between column and value becomes '='. */
static paramo_err write_name(struct output *out, const char *name)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s", name);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\t' ? '=' : *c == ':' || *c == ' ' ? '_' : *c;
    return export_print(out, "%s:", text);
}

paramo_err export_vw(const struct model *m, const struct export_options *o, struct output *out)
{
    const struct model_table *w = &m->table[0];
    if (m->n > 1 || w->dim > 1)
        return paramo_error_set(PARAMO_E_UNSUPPORTED, "Vowpal Wabbit's form has one weight for each feature, "
                                                      "so it takes only lr with one output: use --to text");
    if (m->scale.file)
        return paramo_error_set(PARAMO_E_UNSUPPORTED,
                                "Vowpal Wabbit's form has no scales: train with --scale none");
    paramo_err err = export_plain(m);
    if (err != PARAMO_OK)
        return err;
    const unsigned bits = bits_of(w);
    const uint64_t constant = bits < 24 ? CONSTANT & ((UINT64_C(1) << bits) - 1) : CONSTANT;
    err = export_print(
        out,
        "Version 9.0.0\nId paramo\nMin label:%d\nMax label:1\nbits:%u\nlda:0\n0 ngram:\n0 skip:\n"
        "options: --loss_function %s\n:0\n",
        m->info.objective.ops->labels == LABEL_BINARY ? -1 : 0, bits, m->info.objective.ops->name);
    for (uint64_t i = 0; err == PARAMO_OK && i < w->n; i++) {
        const int bias = w->keys[i] == BATCH_BIAS_KEY;
        if (w->values[i] == 0)
            continue;
        const char *name = bias ? "Constant" : o->names ? names_find(o->names, w->keys[i]) : NULL;
        if (o->names && name)
            err = write_name(out, name);
        if (err == PARAMO_OK)
            err = export_print(out, "%" PRIu64 ":%.9g\n", bias ? constant : w->keys[i], (double)w->values[i]);
    }
    return err;
}
