#include "learn/train/admission.h"
#include "learn/data/holdout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int admission_parse(const char *text, struct admission_rule *rule)
{
    char *end = NULL;
    const char *colon = strchr(text, ':');
    if (!colon || !((colon[1] >= '0' && colon[1] <= '9') || colon[1] == '.'))
        return -1;
    const double number = strtod(colon + 1, &end);
    if (*end != '\0' || !(number > 0))
        return -1;
    if (strncmp(text, "prob:", 5) == 0 && number <= 1) {
        rule->kind = ADMIT_SHARE;
        rule->share = number;
        return 0;
    }
    if (strncmp(text, "count:", 6) == 0 && number <= SKETCH_MOST && number == floor(number)) {
        rule->kind = ADMIT_COUNT;
        rule->count = (uint32_t)number;
        return 0;
    }
    return -1;
}

void admission_room(struct admission *a, uint64_t features, uint32_t workers)
{
    const uint64_t most = a->rule.most;
    if (most > 0)
        a->left = most > features ? (most - features) / workers : 0;
}

paramo_err admission_init(struct admission *a, const struct admission_rule *rule, uint64_t seed)
{
    *a = (struct admission){.rule = *rule, .seed = seed, .left = rule->most > 0 ? rule->most : UINT64_MAX};
    if (rule->kind == ADMIT_ALL)
        return PARAMO_OK;
    a->recent = malloc(ADMISSION_RECENT * sizeof *a->recent);
    if (!a->recent)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the admission of features");
    for (size_t i = 0; i < ADMISSION_RECENT; i++)
        a->recent[i] = BATCH_BIAS_KEY; /* the key of no feature */
    return rule->kind == ADMIT_COUNT ? sketch_init(&a->sketch, rule->bytes) : PARAMO_OK;
}

void admission_free(struct admission *a)
{
    sketch_free(&a->sketch);
    free(a->recent);
    *a = (struct admission){0};
}

static int in_model(const float *w, size_t width)
{
    for (size_t k = 0; k < width; k++)
        if (w[k] != 0.0f)
            return 1;
    return 0;
}

/* Admits a feature, if there is room. A feature that was admitted a short time ago, and is not in the model yet, takes
 * no room a second time. */
static int take(struct admission *a, uint64_t key)
{
    uint64_t *recent = &a->recent[holdout_mix(key) % ADMISSION_RECENT];
    if (*recent == key)
        return 1;
    if (a->left == 0)
        return 0;
    a->left--;
    a->admitted++;
    *recent = key;
    return 1;
}

static int admit(struct admission *a, uint64_t key, uint64_t draw, uint32_t times)
{
    const double limit = a->rule.share * 0x1p53;
    int wanted = 0;
    if (a->rule.kind == ADMIT_COUNT)
        return sketch_add(&a->sketch, key, times, a->rule.count) >= a->rule.count && take(a, key);
    for (uint32_t i = 0; !wanted && i < times; i++) {
        draw = holdout_mix(draw);
        wanted = (double)(draw >> 11) < limit;
    }
    return wanted ? take(a, key) : a->recent[holdout_mix(key) % ADMISSION_RECENT] == key;
}

void admission_batch(struct admission *a, const struct batch *b, const float *w, size_t width, int count,
                     uint64_t place, uint8_t *in)
{
    const size_t features = b->unique - 1;
    const uint64_t draw = holdout_mix(a->seed ^ holdout_mix(place));
    memset(in, 0, b->unique);
    for (size_t i = 0, n = count ? b->start[b->rows] - b->start[0] : 0; i < n; i++)
        in[b->index[i]] = (uint8_t)(in[b->index[i]] + (in[b->index[i]] < UINT8_MAX)); /* sightings */
    for (size_t i = 0; i < features; i++)
        in[i] = in_model(w + i * width, width) || admit(a, b->key[i], draw ^ holdout_mix(b->key[i]), in[i]);
    in[features] = 1;
}
