#include "learn/data/columns.h"
#include "learn/data/formats.h"
#include "learn/data/parse_line.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define TEXT_MAX (256u << 10) /* bytes of all names; arbitrary: a manifest has room for 1 MiB */

struct columns {
    atomic_uint owners;
    size_t n, cap;
    struct column *column;
    size_t text, features;
    enum column_role rest; /* of '*'; COLUMN_IGNORED: there is none */
    uint32_t *slot;        /* [mask + 1] a hash table by seed: number + 1, or 0 */
    size_t mask;
};

static const char *const words[COLUMN_ROLES] = {[COLUMN_IGNORED] = "ignore",
                                                [COLUMN_LABEL] = "label",
                                                [COLUMN_WEIGHT] = "weight",
                                                [COLUMN_CATEGORY] = "cat",
                                                [COLUMN_NUMBER] = "num"};

const char *column_role_name(enum column_role role)
{
    return words[role];
}

enum column_role column_role_find(const char *word, size_t len)
{
    enum column_role role = COLUMN_IGNORED;
    while (role < COLUMN_ROLES && (strlen(words[role]) != len || memcmp(words[role], word, len) != 0))
        role++;
    return role;
}

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for columns");
}

paramo_err columns_new(struct columns **columns)
{
    struct columns *c = calloc(1, sizeof *c);
    if (!c)
        return no_memory();
    atomic_init(&c->owners, 1);
    *columns = c;
    return PARAMO_OK;
}

void columns_retain(struct columns *c)
{
    if (c)
        (void)atomic_fetch_add(&c->owners, 1);
}

void columns_release(struct columns *c)
{
    if (!c || atomic_fetch_sub(&c->owners, 1) > 1)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->column[i].name);
    free(c->column);
    free(c->slot);
    free(c);
}

size_t columns_count(const struct columns *c)
{
    return c->n;
}

const struct column *columns_at(const struct columns *c, size_t i)
{
    return &c->column[i];
}

static uint64_t seed_of(const char *name, size_t len)
{
    return XXH3_64bits(name, len);
}

const struct column *columns_find(const struct columns *c, const char *name, size_t len)
{
    if (c->n == 0)
        return NULL;
    const uint64_t seed = seed_of(name, len);
    for (size_t at = (size_t)seed & c->mask; c->slot[at] != 0; at = (at + 1) & c->mask) {
        const struct column *column = &c->column[c->slot[at] - 1];
        if (column->seed == seed && column->len == len && memcmp(column->name, name, len) == 0)
            return column;
    }
    return NULL;
}

const struct column *columns_of_role(const struct columns *c, enum column_role role)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->column[i].role == role)
            return &c->column[i];
    return NULL;
}

int columns_same(const struct columns *a, const struct columns *b)
{
    if (!a || !b || a->n != b->n)
        return a == b;
    for (size_t i = 0; i < a->n; i++)
        if (a->column[i].role != b->column[i].role || a->column[i].len != b->column[i].len ||
            memcmp(a->column[i].name, b->column[i].name, a->column[i].len) != 0)
            return 0;
    return 1;
}

/* Well-formed UTF-8 (the bit patterns; overlong forms and surrogates are refused) without a zero byte. */
static int is_text(const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t more = p[i] < 0x80 ? 0 : p[i] >> 5 == 6 ? 1 : p[i] >> 4 == 14 ? 2 : p[i] >> 3 == 30 ? 3 : 4;
        uint32_t v = more == 0 ? p[i] : p[i] & (0x3fu >> more);
        if (p[i] == 0 || more > 3 || len - i <= more)
            return 0;
        for (size_t k = 1; k <= more; k++) {
            if (p[i + k] >> 6 != 2)
                return 0;
            v = v << 6 | (p[i + k] & 0x3fu);
        }
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (v < least[more] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
            return 0;
        i += more + 1;
    }
    return 1;
}

static void put_slot(struct columns *c, size_t i)
{
    size_t at = (size_t)c->column[i].seed & c->mask;
    while (c->slot[at] != 0)
        at = (at + 1) & c->mask;
    c->slot[at] = (uint32_t)i + 1;
}

static paramo_err reserve(struct columns *c)
{
    if (c->n < c->cap)
        return PARAMO_OK;
    const size_t cap = c->cap == 0 ? 16 : 2 * c->cap;
    struct column *column = realloc(c->column, cap * sizeof *column);
    if (!column)
        return no_memory();
    c->column = column;
    uint32_t *slot = calloc(4 * cap, sizeof *slot);
    if (!slot)
        return no_memory();
    free(c->slot);
    c->slot = slot;
    c->mask = 4 * cap - 1;
    c->cap = cap;
    for (size_t i = 0; i < c->n; i++)
        put_slot(c, i);
    return PARAMO_OK;
}

paramo_err columns_add(struct columns *c, enum column_role role, const char *name, size_t len)
{
    char quote[PARSE_QUOTE_MAX];
    if (!is_text((const unsigned char *)name, len))
        return paramo_error_set(PARAMO_E_INVALID, "a column's name '%s' is not UTF-8 text",
                                parse_quote(quote, name, name + len));
    if (columns_find(c, name, len))
        return paramo_error_set(PARAMO_E_INVALID, "column '%s' is named twice",
                                parse_quote(quote, name, name + len));
    const int feature = role == COLUMN_CATEGORY || role == COLUMN_NUMBER;
    c->text += len + 40; /* about its bytes in a manifest */
    if (c->text > TEXT_MAX || (feature && c->features > PARSE_MAX_FIELD))
        return paramo_error_set(PARAMO_E_TOO_LARGE, "too many columns: %zu, with long names", c->n + 1);
    paramo_err err = reserve(c);
    char *copy = err == PARAMO_OK ? malloc(len + 1) : NULL;
    if (!copy)
        return err == PARAMO_OK ? no_memory() : err;
    memcpy(copy, name, len);
    copy[len] = '\0';
    const uint64_t seed = seed_of(name, len);
    c->column[c->n] = (struct column){.name = copy,
                                      .len = len,
                                      .role = role,
                                      .field = feature ? (uint16_t)c->features : 0,
                                      .seed = seed,
                                      .key = parse_mix(seed + 0x9e3779b97f4a7c15u)};
    c->features += (size_t)feature;
    put_slot(c, c->n++);
    return PARAMO_OK;
}

/* ---- the text of --columns ---- */

/* Copies the text up to one of the characters in stop to name, without backslashes. Returns the end of the text. */
static const char *take_name(const char *p, const char *stop, char *name, size_t *len)
{
    *len = 0;
    while (*p != '\0' && !strchr(stop, *p)) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        name[(*len)++] = *p++;
    }
    return p;
}

static paramo_err add_named(struct columns *c, enum column_role role, const char *name, size_t len)
{
    if (len == 0)
        return paramo_error_set(PARAMO_E_INVALID, "a name is missing after '%s='", words[role]);
    if (len == 1 && name[0] == '*') {
        if (role == COLUMN_LABEL || role == COLUMN_WEIGHT || c->rest != COLUMN_IGNORED)
            return paramo_error_set(PARAMO_E_INVALID,
                                    "'*' stands for the other columns, once, as cat or num");
        c->rest = role;
        return PARAMO_OK;
    }
    if ((role == COLUMN_LABEL || role == COLUMN_WEIGHT) && columns_of_role(c, role))
        return paramo_error_set(PARAMO_E_INVALID, "there is one %s column, not more", words[role]);
    return columns_add(c, role, name, len);
}

/* Reads "role=name;name" at *p, up to the comma after it. */
static paramo_err take_role(struct columns *c, const char **p, char *name)
{
    const size_t word = strcspn(*p, "=,");
    const enum column_role role = column_role_find(*p, word);
    if ((*p)[word] != '=' || role == COLUMN_ROLES)
        return paramo_error_set(PARAMO_E_INVALID,
                                "expected label=, weight=, cat=, num= or ignore=, found '%.40s'", *p);
    *p += word;
    while (**p == '=' || **p == ';') {
        size_t len;
        *p = take_name(*p + 1, ",;", name, &len);
        paramo_err err = add_named(c, role, name, len);
        if (err != PARAMO_OK)
            return err;
    }
    return PARAMO_OK;
}

paramo_err columns_parse(const char *text, struct columns **columns)
{
    struct columns *c = NULL;
    paramo_err err = columns_new(&c);
    char *name = err == PARAMO_OK ? malloc(strlen(text) + 1) : NULL;
    if (err == PARAMO_OK && !name)
        err = no_memory();
    for (const char *p = text; err == PARAMO_OK;) {
        err = take_role(c, &p, name);
        if (*p == '\0')
            break;
        p++;
    }
    free(name);
    if (err == PARAMO_OK && c->features == 0 && c->rest == COLUMN_IGNORED)
        err = paramo_error_set(PARAMO_E_INVALID, "no feature is named: cat=NAME or num=NAME is missing");
    if (err != PARAMO_OK) {
        columns_release(c);
        return err;
    }
    *columns = c;
    return PARAMO_OK;
}

int columns_has_rest(const struct columns *c)
{
    return c->rest != COLUMN_IGNORED;
}

paramo_err columns_take_rest(struct columns *c, const char *name, size_t len)
{
    return columns_find(c, name, len) || len == 0 ? PARAMO_OK : columns_add(c, c->rest, name, len);
}

paramo_err columns_end_rest(struct columns *c)
{
    c->rest = COLUMN_IGNORED;
    return c->features > 0 ? PARAMO_OK
                           : paramo_error_set(PARAMO_E_INVALID, "'*' stands for no column: all have a role");
}
