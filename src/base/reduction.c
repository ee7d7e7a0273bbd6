#include "base/reduction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static double magnitude(double value)
{
    return value < 0 ? -value : value;
}

paramo_err reduction_check(const struct reduction *what)
{
    bool needs_two = what->function == PARAMO_REDUCE_DOT;
    if (what->function == PARAMO_REDUCE_USER)
        return user_name_is_good(what->user.name) && !what->most
                   ? PARAMO_OK
                   : err_set(PARAMO_E_INVALID,
                             "a function of the application needs a name, and gives no entries");
    if (what->function >= PARAMO_REDUCE_FUNCTIONS)
        return err_set(PARAMO_E_INVALID, "there is no reduction %u", what->function);
    if (what->two != needs_two)
        return err_set(PARAMO_E_INVALID,
                       needs_two ? "this reduction needs a second table" : "this reduction takes one table");
    size_t least = what->function == PARAMO_REDUCE_TOP || what->function == PARAMO_REDUCE_MIN ||
                   what->function == PARAMO_REDUCE_MAX;
    size_t most = what->function == PARAMO_REDUCE_TOP ? REDUCTION_ENTRIES_MAX : least;
    if (what->most < least || what->most > most)
        return err_set(PARAMO_E_INVALID, "%u entries were asked of this reduction, which gives %zu to %zu",
                       what->most, least, most);
    return PARAMO_OK;
}

size_t reduced_bytes(const struct reduction *what)
{
    const paramo_function *f =
        what->function == PARAMO_REDUCE_USER ? user_function_find(what->user.name) : NULL;
    return sizeof(struct reduced) + what->most * sizeof(paramo_entry) + (f ? f->state_bytes : 0);
}

static paramo_err user_init(struct reduced *found)
{
    const struct user_call *call = &found->of->user;
    paramo_err err = user_call_find(call, true, &found->user);
    if (err)
        return err;
    found->own = calloc(1, found->user->state_bytes);
    found->params = malloc(call->params_bytes + 1);
    if (!found->own || !found->params)
        err = err_memory(found->user->state_bytes + call->params_bytes);
    else if (call->params_bytes)
        memcpy(found->params, call->params, call->params_bytes);
    if (err)
        reduced_fini(found);
    return err;
}

size_t reduced_state_bytes(const struct reduced *found)
{
    return found->user ? found->user->state_bytes : 0;
}

paramo_err reduced_init(struct reduced *found, const struct reduction *what)
{
    *found = (struct reduced){.of = what};
    if (what->function == PARAMO_REDUCE_USER)
        return user_init(found);
    found->entries = what->most ? malloc(what->most * sizeof *found->entries) : NULL;
    return what->most && !found->entries ? err_memory(what->most * sizeof *found->entries) : PARAMO_OK;
}

void reduced_fini(struct reduced *found)
{
    free(found->entries);
    free(found->own);
    free(found->params);
    found->entries = NULL;
    found->own = found->params = NULL;
}

void reduced_reset(struct reduced *found)
{
    *found = (struct reduced){.of = found->of,
                              .entries = found->entries,
                              .user = found->user,
                              .own = found->own,
                              .params = found->params};
    if (found->user)
        memset(found->own, 0, found->user->state_bytes);
}

/* ---- the best entries ---------------------------------------------------------------------------------- */

bool reduced_before(unsigned function, const paramo_entry *a, const paramo_entry *b)
{
    double x = a->value, y = b->value;
    if (function == PARAMO_REDUCE_TOP) {
        x = -magnitude(x);
        y = -magnitude(y);
    } else if (function == PARAMO_REDUCE_MAX) {
        x = -x;
        y = -y;
    }
    if (x != y)
        return x < y;
    return a->key != b->key ? a->key < b->key : a->column < b->column;
}

static void swap(paramo_entry *a, paramo_entry *b)
{
    paramo_entry c = *a;
    *a = *b;
    *b = c;
}

/* The entry at i moves down until none below it is worse. */
static void sift_down(struct reduced *found, size_t i, size_t n)
{
    paramo_entry *e = found->entries;
    for (size_t worst; (worst = 2 * i + 1) < n; i = worst) {
        if (worst + 1 < n && reduced_before(found->of->function, &e[worst], &e[worst + 1]))
            worst++;
        if (!reduced_before(found->of->function, &e[i], &e[worst]))
            return;
        swap(&e[i], &e[worst]);
    }
}

static void entry_add(struct reduced *found, const paramo_entry *entry)
{
    paramo_entry *e = found->entries;
    unsigned function = found->of->function;
    if (found->n == found->of->most) {
        if (!reduced_before(function, entry, &e[0]))
            return;
        e[0] = *entry;
        sift_down(found, 0, found->n);
        return;
    }
    size_t i = found->n++;
    e[i] = *entry;
    for (size_t above; i && reduced_before(function, &e[above = (i - 1) / 2], &e[i]); i = above)
        swap(&e[above], &e[i]);
}

void reduced_sort(struct reduced *found)
{
    for (size_t n = found->n; n > 1; n--) {
        swap(&found->entries[0], &found->entries[n - 1]);
        sift_down(found, 0, n - 1);
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

static inline double value_at(paramo_dtype dtype, const void *values, size_t i)
{
    switch (dtype) {
    case PARAMO_F32:
        return (double)((const float *)values)[i];
    case PARAMO_F64:
        return ((const double *)values)[i];
    case PARAMO_I32:
        return ((const int32_t *)values)[i];
    case PARAMO_I64:
        return (double)((const int64_t *)values)[i];
    case PARAMO_U8:
        break;
    }
    return ((const uint8_t *)values)[i];
}

/* F32 has a loop of its own, without a switch over the type for each value. */
#define EACH(body)                                                                                           \
    switch (dtype) {                                                                                         \
    case PARAMO_F32:                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                     \
            double x = value_at(PARAMO_F32, values, i);                                                      \
            body;                                                                                            \
        }                                                                                                    \
        break;                                                                                               \
    default:                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                     \
            double x = value_at(dtype, values, i);                                                           \
            body;                                                                                            \
        }                                                                                                    \
    }

static void user_add(struct reduced *found, uint64_t key, uint32_t column, paramo_dtype dtype,
                     const void *values, paramo_dtype other_dtype, const void *other, size_t n)
{
    const paramo_function_rows rows = {.size = sizeof rows,
                                       .params = found->params,
                                       .params_bytes = found->of->user.params_bytes,
                                       .keys = &key,
                                       .n = 1,
                                       .column = column,
                                       .columns = (uint32_t)n,
                                       .dtype = dtype,
                                       .vals = (void *)(uintptr_t)values,
                                       .other = other,
                                       .other_dtype = other_dtype};
    found->user->add(found->user->user, &rows, found->own);
}

void reduced_add(struct reduced *found, uint64_t key, uint32_t column, paramo_dtype dtype, const void *values,
                 paramo_dtype other_dtype, const void *other, size_t n)
{
    struct exactsum *sum = &found->sum;
    found->values += n;
    switch ((paramo_reduce_function)found->of->function) {
    case PARAMO_REDUCE_COUNT:
        break;
    case PARAMO_REDUCE_SUM:
        EACH(exactsum_add(sum, x));
        break;
    case PARAMO_REDUCE_NORM1:
        EACH(exactsum_add(sum, magnitude(x)));
        break;
    case PARAMO_REDUCE_NORM2_SQUARED:
        EACH(exactsum_add(sum, x * x));
        break;
    case PARAMO_REDUCE_DOT:
        EACH(exactsum_add(sum, x * value_at(other_dtype, other, i)));
        break;
    case PARAMO_REDUCE_MIN:
    case PARAMO_REDUCE_MAX:
    case PARAMO_REDUCE_TOP:
        EACH(if (x != x) found->nans++;
             else entry_add(found, &(paramo_entry){.key = key, .column = column + (uint32_t)i, .value = x}));
        break;
    case PARAMO_REDUCE_USER:
        user_add(found, key, column, dtype, values, other_dtype, other, n);
        break;
    }
}

paramo_err reduced_merge(struct reduced *found, struct reduced *other)
{
    size_t n = found->n + other->n < found->of->most ? found->n + other->n : found->of->most;
    paramo_entry *merged = n ? malloc(found->of->most * sizeof *merged) : NULL;
    if (n && !merged)
        return err_memory(found->of->most * sizeof *merged);
    assert(other->of->function == found->of->function);
    for (size_t i = 0, a = 0, b = 0; i < n; i++) {
        bool ours = b == other->n || (a < found->n && reduced_before(found->of->function, &found->entries[a],
                                                                     &other->entries[b]));
        merged[i] = ours ? found->entries[a++] : other->entries[b++];
    }
    if (n) {
        free(found->entries);
        found->entries = merged;
    }
    if (found->user && found->user->merge(found->user->user, found->params, found->of->user.params_bytes,
                                          found->own, other->own))
        return err_set(PARAMO_E_PROTOCOL, "function \"%s\" refuses the result of a server",
                       found->user->name);
    found->n = n;
    found->rows += other->rows;
    found->values += other->values;
    found->nans += other->nans;
    exactsum_merge(&found->sum, &other->sum);
    return PARAMO_OK;
}

double reduced_value(struct reduced *found)
{
    if (reduction_sums(found->of->function))
        return exactsum_value(&found->sum);
    return found->n ? found->entries[0].value : 0;
}
