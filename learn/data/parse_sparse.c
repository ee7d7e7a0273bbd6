/* libsvm and libffm: one loop, compiled twice. */
#include "learn/data/parse_line.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* Steps over "qid:N" at p. NULL if it is something else. */
static const char *skip_qid(const char *p)
{
    uint64_t id;
    if (p[0] != 'q' || p[1] != 'i' || p[2] != 'd' || p[3] != ':')
        return NULL;
    return number_u64(p + 4, &id);
}

static const char *bad_id(const char *p, const char *none, const char *big)
{
    return *p >= '0' && *p <= '9' ? big : none;
}

struct feature {
    uint64_t field, id;
    float value;
};

/* The fast path for a feature of digits and at most one point, whose index and value take at most 16 characters: one
 * load shows all their ends. Returns its end, which is a blank or a control character; NULL: it is longer, or has other
 * characters. */
static inline __attribute__((always_inline)) const char *short_feature(const char *p, const int has_field,
                                                                       struct feature *f)
{
    if (has_field) {
        p = number_u64(p, &f->field);
        if (!p || f->field > PARSE_MAX_FIELD || *p != ':')
            return NULL;
        p++;
    }
    unsigned stops = number_stops(p) | 0x70000u;
    unsigned end = (unsigned)__builtin_ctz(stops);
    if (end - 1 > 7 || p[end] != ':')
        return NULL;
    f->id = number_of(p, end);
    const unsigned begin = end + 1;
    stops &= stops - 1;
    end = (unsigned)__builtin_ctz(stops);
    if (end > 15 || end - begin - 1 > 6)
        return NULL;
    if (LIKELY((unsigned char)p[end] <= ' ')) {
        f->value = (float)number_of(p + begin, end - begin); /* exact: below 2^24 */
        return p + end;
    }
    const unsigned point = end;
    stops &= stops - 1;
    end = (unsigned)__builtin_ctz(stops);
    if (p[point] != '.' || end > 15 || (unsigned char)p[end] > ' ' || end - point - 2 > 7 ||
        !number_point(p + begin, point - begin, end - point - 1, 0, &f->value))
        return NULL;
    return p + end;
}

static inline __attribute__((always_inline)) paramo_err sparse_text(const struct parse_job *job,
                                                                    const int has_field, const int hashed)
{
    struct parse_buffer *b = job->buffer;
    const uint64_t mask = parse_mask(job->settings->hash_bits);
    const struct label_rule *const rule = &job->settings->label;
    const char *p = job->text, *const end = job->end;
    uint64_t *const key = b->key;
    float *const value = b->value;
    uint16_t *const field = b->field;
    size_t n = 0, rows = 0;
    uint64_t lines = 0;
    /* numbers: the last value was not 1, so the next one is probably not 1 either. */
    int not_one = 0, numbers = 0;
    paramo_err err = PARAMO_OK;

    while (p < end) {
        const size_t row_start = n;
        const int row_not_one = not_one;
        const char *what = NULL;
        float label;
        lines++;
        while (*p == ' ' || *p == '\t')
            p++;
        if (*p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'))
            goto next_line;
        const char *q = parse_label(rule, p, &label, &what);
        if (!q)
            goto bad;
        const char *const bare = q == p ? p : NULL; /* the first feature of a row without label */
        p = q;
        for (;;) {
            struct feature feature;
            while (numbers && *p == ' ' && (q = short_feature(p + 1, has_field, &feature)) != NULL) {
                if (has_field)
                    field[n] = (uint16_t)feature.field;
                key[n] = hashed ? parse_hash_id(feature.id, 0) & mask : feature.id;
                value[n] = feature.value;
                n++;
                p = q;
                numbers = feature.value != 1.0f;
                not_one |= numbers;
            }
            /* p is after the label or a value, or is bare */
            if (LIKELY(*p == ' ' && p[1] > ' ')) {
                p++;
            } else {
                while (*p == ' ' || *p == '\t')
                    p++;
                if (*p == '\n' || (*p == '\r' && p[1] == '\n'))
                    break;
                if (*p != '#' && p != bare && p[-1] != ' ' && p[-1] != '\t') {
                    what = "expected a space after the value";
                    goto bad;
                }
            }
            uint64_t f = 0, id;
            q = number_u64(p, &id);
            if (__builtin_expect(!q, 0)) {
                if (*p == '#')
                    break;
                if ((q = skip_qid(p)) && (*q == ' ' || *q == '\t' || *q == '\n' || *q == '\r')) {
                    p = q;
                    continue;
                }
                what = has_field ? bad_id(p, "expected a field number", "a field number above 65535")
                                 : bad_id(p, "expected an index", "an index above 2^64-1");
                goto bad;
            }
            if (has_field) {
                f = id;
                if (__builtin_expect(f > PARSE_MAX_FIELD, 0)) {
                    what = "a field number above 65535";
                    goto bad;
                }
                p = q;
                if (__builtin_expect(*p != ':', 0)) {
                    what = "expected ':' after the field number";
                    goto bad;
                }
                p++;
                q = number_u64(p, &id);
                if (__builtin_expect(!q, 0)) {
                    what = bad_id(p, "expected an index", "an index above 2^64-1");
                    goto bad;
                }
                field[n] = (uint16_t)f;
            }
            p = q;
            if (__builtin_expect(*p != ':', 0)) {
                what = "expected ':' after the index";
                goto bad;
            }
            p++;
            float v = 1.0f;
            if (LIKELY(p[0] == '1' && p[1] <= ' ' && p[1] >= 0)) {
                p++;
            } else {
                q = number_float(p, &v, &what);
                if (!q)
                    goto bad;
                p = q;
                numbers = v != 1.0f;
                not_one |= numbers;
            }
            key[n] = hashed ? parse_hash_id(id, 0) & mask : id;
            value[n] = v;
            n++;
        }
        b->label[rows] = label;
        b->offset[++rows] = (uint32_t)n;
    next_line:
        /* at the end of the line, or in its comment */
        while (*p != '\n')
            p++;
        p++;
        continue;
    bad:
        n = row_start;
        not_one = row_not_one;
        err = parse_bad_line(job, lines - 1, what, p);
        if (err != PARAMO_OK)
            break;
        goto next_line;
    }
    b->rows = rows;
    b->features = n;
    b->lines = lines;
    b->not_one = not_one;
    return err;
}

static paramo_err parse_libsvm(const struct parse_job *job)
{
    return job->settings->hash_bits != 0 ? sparse_text(job, 0, 1) : sparse_text(job, 0, 0);
}

static paramo_err parse_libffm(const struct parse_job *job)
{
    return job->settings->hash_bits != 0 ? sparse_text(job, 1, 1) : sparse_text(job, 1, 0);
}

/* By the colons of the first feature. */
static enum judged judge(const char *line, const char *end, int want)
{
    const char *p = parse_judge_label(line, end);
    if (!p)
        return JUDGED_NO;
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        if (p == end || *p == '#')
            return JUDGED_EMPTY;
        const char *word = p;
        int colons = 0;
        for (; p < end && *p != ' ' && *p != '\t'; p++)
            colons += *p == ':';
        if (p - word > 4 && memcmp(word, "qid:", 4) == 0)
            continue;
        return *word >= '0' && *word <= '9' && colons == want ? JUDGED_YES : JUDGED_NO;
    }
}

static enum judged judge_libsvm(const char *line, const char *end)
{
    return judge(line, end, 1);
}

static enum judged judge_libffm(const char *line, const char *end)
{
    return judge(line, end, 2);
}

/* The shortest feature is " 1:1". */
const struct format_ops format_libsvm = {.name = "libsvm",
                                         .line = "label index:value",
                                         .feature_bytes = 4,
                                         .row_features = 1,
                                         .judge = judge_libsvm,
                                         .parse = parse_libsvm};

/* The shortest feature is " 1:1:1". */
const struct format_ops format_libffm = {.name = "libffm",
                                         .line = "label field:index:value",
                                         .fields = 1,
                                         .feature_bytes = 6,
                                         .row_features = 1,
                                         .judge = judge_libffm,
                                         .parse = parse_libffm};
