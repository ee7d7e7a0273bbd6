/*
 * vw: the text format of Vowpal Wabbit (its wiki, "Input format"):
 *
 *     [label [importance]] ['tag] |namespace[:scale] feature[:value] feature ... |namespace ...
 *
 * A tag has a quote before it, or stands right before the first bar; it is ignored. The key of a feature is a hash of
 * namespace and feature. Features without a namespace begin after a bar and a blank. The field of a feature is that of
 * its namespace's first letter, as in Vowpal Wabbit's interactions: 0 without a name, a to z 1 to 26, A to Z 27 to 52,
 * 0 to 9 53 to 62, others 63. These are not supported: initial predictions (a third number), labels of several parts
 * (cost-sensitive, contextual bandits), and examples of several lines.
 */
#include "learn/data/parse_cells.h"

/* The field of a namespace. */
static unsigned field_of(const char *name, size_t len)
{
    const char c = len > 0 ? name[0] : ' ';
    return len == 0               ? 0
           : c >= 'a' && c <= 'z' ? 1u + (unsigned)(c - 'a')
           : c >= 'A' && c <= 'Z' ? 27u + (unsigned)(c - 'A')
           : c >= '0' && c <= '9' ? 53u + (unsigned)(c - '0')
                                  : 63u;
}

static inline int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline int line_ends(const char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

#define HIGH UINT64_C(0x8080808080808080)
#define ONES UINT64_C(0x0101010101010101)

/* The first blank, control character, colon or bar from p on. */
static inline const char *name_end(const char *p)
{
    for (;; p += 8) {
        const uint64_t x = number_load(p), colon = x ^ ONES * ':', bar = x ^ ONES * '|';
        /* the lowest bit that is set is right; a borrow can make only higher ones wrong */
        const uint64_t found =
            (((x - ONES * 0x21) & ~x) | ((colon - ONES) & ~colon) | ((bar - ONES) & ~bar)) & HIGH;
        if (found != 0)
            return p + (__builtin_ctzll(found) >> 3);
    }
}

static const char *wrong(struct cells *c, const char *what, const char *at, const char *end)
{
    char word[PARSE_QUOTE_MAX];
    const char *stop = at;
    while (stop < end && (unsigned char)*stop > ' ')
        stop++;
    if (stop == at)
        (void)snprintf(c->what, sizeof c->what, "%s, found %s", what,
                       line_ends(at) || at >= end ? "the end of the line" : "a blank");
    else
        (void)snprintf(c->what, sizeof c->what, "%s, found '%s'", what, parse_quote(word, at, stop));
    return NULL;
}

/* The message about a word before the bar that is not a number. */
static const char *not_taken(struct cells *c, const char *word, const char *stop, const char *end)
{
    if (memchr(word, ':', (size_t)(stop - word)))
        return wrong(c, "labels of several parts (cost-sensitive, bandits) are not supported", word, end);
    return wrong(c, "expected a label, an importance or a tag before the bar", word, end);
}

/* Reads label, importance and tag. Returns the bar, or NULL. */
static const char *take_head(struct cells *c, const char *p, const char *end)
{
    for (int numbers = 0;; numbers++) {
        while (is_blank(*p))
            p++;
        const char *const word = p;
        while ((unsigned char)*p > ' ' && *p != '|')
            p++;
        if (word == p && *p != '|')
            return wrong(c, "expected a bar before the features", p, end);
        if (word == p)
            return p;
        if (*word == '\'' || *p == '|') { /* a tag, the last */
            while (is_blank(*p))
                p++;
            return *p == '|' ? p : wrong(c, "expected a bar after the tag", p, end);
        }
        const char *what = NULL;
        float v;
        if (number_float(word, &v, &what) != p)
            return not_taken(c, word, p, end);
        if (numbers == 0 && c->rule->kind != LABEL_NONE) {
            what = label_read(c->rule, word, (size_t)(p - word), &c->b->label[c->rows]);
            c->labelled = 1;
        } else if (numbers == 1) {
            what = v < 0 ? "expected an importance, at least 0" : NULL;
            c->weight = v;
        } else if (numbers > 1 && v != 0) {
            what = "initial predictions (a third number before the bar) are not supported";
        } else {
            what = NULL;
        }
        if (what)
            return wrong(c, what, word, end);
    }
}

/* Reads ":number" at p; the value is 1 if there is none. Returns its end, or NULL. */
static inline const char *take_value(struct cells *c, const char *p, const char *end, float *v)
{
    const char *what;
    *v = 1.0f;
    if (__builtin_expect(*p != ':', 1))
        return p;
    const char *q = number_float(p + 1, v, &what);
    return q ? q : wrong(c, what, p + 1, end);
}

/* Reads the namespaces from the bar at p on. Returns the end of the line, or NULL. */
static inline const char *take_features(struct cells *c, const char *p, const char *end)
{
    while (*p == '|') {
        const char *name = ++p;
        float scale;
        p = name_end(p);
        const size_t len = (size_t)(p - name);
        const struct cells_group group = {len > 0 ? XXH3_64bits(name, len) : 0, (uint16_t)field_of(name, len),
                                          name, len};
        if (len == 0 && !is_blank(*p) && !line_ends(p))
            return wrong(c, "expected the name of a namespace or a blank after the bar", p, end);
        if (!(p = take_value(c, p, end, &scale)))
            return NULL;
        for (;;) {
            if (!is_blank(*p) && *p != '|' && !line_ends(p))
                return wrong(c, "expected a blank after the name or value", p, end);
            while (is_blank(*p))
                p++;
            if (*p == '|' || line_ends(p))
                break;
            float v;
            const char *const feature = p;
            p = name_end(p);
            const size_t n = (size_t)(p - feature);
            if (n == 0)
                return wrong(c, "expected the name of a feature", p, end);
            if (!(p = take_value(c, p, end, &v)))
                return NULL;
            v *= scale;
            if (!__builtin_isfinite(v))
                return wrong(c, "the value, times that of its namespace, is beyond the range of a float",
                             feature, end);
            c->not_one |= v != 1.0f;
            cells_put_category(c, &group, feature, n, v);
        }
    }
    return p;
}

static paramo_err parse_vw(const struct parse_job *job)
{
    const char *p = job->text, *const end = job->end;
    struct cells c;
    uint64_t lines = 0;
    paramo_err err = PARAMO_OK;
    cells_open(&c, job);
    for (; p < end && err == PARAMO_OK; lines++) {
        const char *const line = p;
        while (is_blank(*p))
            p++;
        if (*p != '\n' && *p != '#' && !(*p == '\r' && p[1] == '\n')) {
            cells_begin(&c);
            p = take_head(&c, line, end);
            p = p ? take_features(&c, p, end) : NULL;
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
    return err;
}

/* A line of vw has a bar, a blank somewhere after it, and before it only numbers and perhaps a tag. */
static enum judged judge_vw(const char *line, const char *end)
{
    const char *bar = memchr(line, '|', (size_t)(end - line)), *p = line;
    if (!bar)
        return JUDGED_NO;
    const char *behind = bar + 1; /* a namespace without features is a cell of a table with bars */
    while (behind < end && *behind != '|' && !is_blank(*behind))
        behind++;
    if (behind == end || *behind == '|')
        return JUDGED_NO;
    while (p < bar) {
        const char *word = p;
        while (p < bar && !is_blank(*p))
            p++;
        const int tag = p > word && (*word == '\'' || p == bar);
        for (const char *q = word; !tag && q < p; q++)
            if (!strchr("+-.0123456789eE:", *q) || *q == '\0')
                return JUDGED_NO;
        if (tag && (*word == '#' || memchr(word, ',', (size_t)(p - word))))
            return JUDGED_NO;
        while (p < bar && is_blank(*p))
            p++;
    }
    return JUDGED_YES;
}

/* The shortest feature is " a". */
const struct format_ops format_vw = {.name = "vw",
                                     .line = "label |namespace feature:value",
                                     .fields = 1,
                                     .names = 1,
                                     .feature_bytes = 2,
                                     .row_features = 1,
                                     .judge = judge_vw,
                                     .parse = parse_vw};
