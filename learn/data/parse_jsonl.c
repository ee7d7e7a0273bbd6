/*
 * jsonl: a JSON object in each line (RFC 8259), whose keys are the names of columns.
 *
 * Values are strings, numbers, true and false; null is missing. Keys that are not used may have objects and lists,
 * which are skipped. A string counts as its text: "5" and 5 are the same category.
 */
#include "learn/data/parse_jsonl.h"
#include "learn/data/parse_cells.h"

#define HIGH UINT64_C(0x8080808080808080)
#define ONES UINT64_C(0x0101010101010101)

/* The first quote, backslash or control character from p on. */
static inline const char *string_stop(const char *p)
{
    for (;; p += 8) {
        const uint64_t x = number_load(p), quote = x ^ ONES * '"', slash = x ^ ONES * '\\';
        /* the lowest bit that is set is right; a borrow can make only higher ones wrong */
        const uint64_t found =
            (((x - ONES * 0x20) & ~x) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash)) & HIGH;
        if (found != 0)
            return p + (__builtin_ctzll(found) >> 3);
    }
}

static inline const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || (*p == '\r' && p[1] != '\n'))
        p++;
    return p;
}

static __attribute__((cold)) const char *wrong(struct cells *c, const char *what, const char *at)
{
    char word[PARSE_QUOTE_MAX];
    const char *stop = at;
    while ((unsigned char)*stop > ' ' && stop - at < PARSE_QUOTED)
        stop++;
    (void)snprintf(c->what, sizeof c->what, "%s, found %s%s%s", what, stop > at ? "'" : "",
                   stop > at ? parse_quote(word, at, stop) : "the end of the line or a blank",
                   stop > at ? "'" : "");
    return NULL;
}

/* Four hexadecimal digits at p, or -1. */
static long hex4(const char *p)
{
    long v = 0;
    for (int i = 0; i < 4; i++) {
        const int d = p[i] >= '0' && p[i] <= '9'                     ? p[i] - '0'
                      : (p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f' ? (p[i] | 0x20) - 'a' + 10
                                                                     : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static size_t put_utf8(char *out, unsigned long v)
{
    if (v < 0x80) {
        out[0] = (char)v;
        return 1;
    }
    const size_t more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, v >>= 6)
        out[i] = (char)(0x80 | (v & 0x3f));
    out[0] = (char)(more == 1 ? 0xc0 | v : more == 2 ? 0xe0 | v : 0xf0 | v);
    return more + 1;
}

/* Writes the escape at p, which is after its backslash, to out. Returns its end, or NULL. */
static const char *take_escape(struct cells *c, const char *p, char *out, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = *p != '\0' ? strchr(from, *p) : NULL;
    if (found) {
        out[(*n)++] = to[found - from];
        return p + 1;
    }
    long v = *p == 'u' ? hex4(p + 1) : -1;
    if (v < 0 || (v >= 0xdc00 && v < 0xe000))
        return wrong(c, "expected a JSON escape after the backslash", p);
    p += 5;
    if (v >= 0xd800 && v < 0xdc00) {
        const long low = p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return wrong(c, "expected the second half of a surrogate pair", p);
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *n += put_utf8(out + *n, (unsigned long)v);
    return p;
}

/* Reads the string whose quote is at p. Returns the place after its closing quote, or NULL. */
static inline const char *take_string(struct cells *c, const char *p, const char **text, size_t *len)
{
    const char *stop = string_stop(++p);
    *text = p;
    *len = (size_t)(stop - p);
    if (__builtin_expect(*stop == '"', 1))
        return stop + 1;
    size_t n = 0;
    for (;; stop = string_stop(p)) {
        const size_t piece = (size_t)(stop - p);
        if (!cells_scratch(c, n + piece + 4)) /* an escape is four bytes of UTF-8 at most */
            return NULL;
        memcpy(c->scratch + n, p, piece);
        n += piece;
        if (*stop == '"') {
            memset(c->scratch + n, '\n', PARSE_PAD);
            *text = c->scratch;
            *len = n;
            return stop + 1;
        }
        if (*stop != '\\') {
            (void)snprintf(c->what, sizeof c->what,
                           *stop == '\n' || *stop == '\r' ? "a string that is not closed"
                                                          : "a control character in a string");
            return NULL;
        }
        p = take_escape(c, stop + 1, c->scratch, &n);
        if (!p)
            return NULL;
    }
}

/* Skips the object or list at p. Returns its end, or NULL. */
static const char *skip_nested(struct cells *c, const char *p)
{
    size_t depth = 0;
    do {
        const char *text;
        size_t len;
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        if (*p == '\n')
            return wrong(c, "an object or list that is not closed", p);
        p = *p == '"' ? take_string(c, p, &text, &len) : p + 1;
    } while (p && depth > 0);
    return p;
}

static inline int is_number_sign(char s)
{
    return (s >= '0' && s <= '9') || s == '-' || s == '+' || s == '.' || s == 'e' || s == 'E';
}

/* Reads the value at p; column NULL: it is not used. Returns its end, or NULL. */
static inline const char *take_value(struct cells *c, const struct column *column, const char *p)
{
    const char *text = p, *why;
    size_t len;
    float v;
    if (*p == '"') {
        p = take_string(c, p, &text, &len);
        return p && column && !cells_take(c, column, text, len) ? NULL : p;
    }
    if (*p == '{' || *p == '[') {
        if (column) {
            (void)cells_wrong(c, column, "expected a string, a number, true, false or null", p, 1);
            return NULL;
        }
        return skip_nested(c, p);
    }
    if (column && column->role == COLUMN_NUMBER && (*p == '-' || (*p >= '0' && *p <= '9')) &&
        (p = number_float(text, &v, &why)) != NULL && !is_number_sign(*p)) {
        cells_put_number(c, column, v);
        return p;
    }
    p = text;
    if (strncmp(p, "null", 4) == 0)
        return p + 4;
    len = strncmp(p, "true", 4) == 0 ? 4 : strncmp(p, "false", 5) == 0 ? 5 : 0;
    if (len == 0 && (*p == '-' || (*p >= '0' && *p <= '9')))
        while (is_number_sign(p[len]))
            len++;
    if (len == 0)
        return wrong(c, "expected a JSON value", p);
    return column && !cells_take(c, column, p, len) ? NULL : p + len;
}

/* Reads the object at p. Returns the newline after it, or NULL: it is bad. seen[i]: the last row that had column i. */
static inline const char *take_row(struct cells *c, const struct columns *columns, const char *p,
                                   uint32_t *seen, uint32_t row)
{
    const struct column *const first = columns_at(columns, 0);
    const char *text;
    size_t len;
    if (*p != '{')
        return wrong(c, "expected '{', the start of an object", p);
    p = skip_blanks(p + 1);
    for (int more = *p != '}'; more;) {
        if (*p != '"')
            return wrong(c, "expected a key between quotes", p);
        if (!(p = take_string(c, p, &text, &len)))
            return NULL;
        const struct column *column = columns_find(columns, text, len);
        if (column && column->role == COLUMN_IGNORED)
            column = NULL;
        if (column && seen[column - first] == row) {
            (void)snprintf(c->what, sizeof c->what, "key '%.60s' comes twice", column->name);
            return NULL;
        }
        if (column)
            seen[column - first] = row;
        p = skip_blanks(p);
        if (*p != ':')
            return wrong(c, "expected ':' after the key", p);
        if (!(p = take_value(c, column, skip_blanks(p + 1))))
            return NULL;
        p = skip_blanks(p);
        more = *p == ',';
        if (more)
            p = skip_blanks(p + 1);
        else if (*p != '}')
            return wrong(c, "expected ',' or '}' after the value", p);
    }
    p = skip_blanks(p + 1);
    if (*p == '\r')
        p++;
    return *p == '\n' ? p : wrong(c, "expected the end of the line after the object", p);
}

static paramo_err parse_jsonl(const struct parse_job *job)
{
    const char *p = job->text, *const end = job->end;
    struct cells c;
    uint64_t lines = 0;
    paramo_err err = PARAMO_OK;
    uint32_t *seen = calloc(columns_count(job->settings->columns) + 1, sizeof *seen);
    if (!seen)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for columns");
    cells_open(&c, job);
    for (; p < end && err == PARAMO_OK; lines++) {
        p = skip_blanks(p);
        if (*p != '\n' && *p != '\r') {
            const char *const line = p;
            cells_begin(&c);
            p = take_row(&c, job->settings->columns, p, seen, (uint32_t)lines + 1);
            if (!p || !cells_end(&c)) {
                cells_undo(&c);
                err = parse_bad_line(job, lines, c.what, NULL);
                p = line;
            }
        }
        while (*p != '\n')
            p++;
        p++;
    }
    cells_close(&c, lines);
    free(seen);
    return err;
}

int jsonl_begins(const char *text, size_t len)
{
    size_t i = parse_mark(text, len);
    while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n'))
        i++;
    return i < len && text[i] == '{';
}

paramo_err jsonl_keys(const char *text, size_t len, struct table_header *keys)
{
    const char *begin = memchr(text, '{', len), *name;
    const char *nl = begin ? memchr(begin, '\n', (size_t)(text + len - begin)) : NULL;
    struct cells c = {0};
    paramo_err err = table_text_check(text, len);
    if (err != PARAMO_OK)
        return err;
    size_t line = begin ? (size_t)((nl ? nl : text + len) - begin) : 0, n;
    char *copy = malloc(line + PARSE_PAD); /* with the pad that the parsers need */
    err = copy ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for keys");
    *keys = (struct table_header){0};
    if (copy && begin)
        memcpy(copy, begin, line);
    if (copy)
        memset(copy + line, '\n', PARSE_PAD);
    const char *p = copy && begin ? skip_blanks(copy + 1) : NULL;
    while (err == PARAMO_OK && p && *p == '"') {
        if (!(p = take_string(&c, p, &name, &n)))
            break;
        err = table_header_add(keys, name, n);
        p = skip_blanks(p);
        p = *p == ':' ? take_value(&c, NULL, skip_blanks(p + 1)) : NULL;
        p = p ? skip_blanks(p) : NULL;
        if (p && *p == ',')
            p = skip_blanks(p + 1);
    }
    if (err == PARAMO_OK && (!p || *p != '}'))
        err = paramo_error_set(PARAMO_E_FORMAT, "its first line is not a complete JSON object");
    free(copy);
    free(c.scratch);
    if (err != PARAMO_OK)
        table_header_free(keys);
    return err;
}

static enum judged judge_none(const char *line, const char *end)
{
    (void)line;
    (void)end;
    return JUDGED_NO;
}

/* The shortest feature is "a":1, in an object. */
const struct format_ops format_jsonl = {.name = "jsonl",
                                        .line = "a JSON object",
                                        .fields = 1,
                                        .names = 1,
                                        .columns = COLUMNS_BY_NAME,
                                        .feature_bytes = 4,
                                        .row_features = 1,
                                        .judge = judge_none,
                                        .parse = parse_jsonl};
