/* A label and features, between commas: "1,17:1,204:0.5". */
#include "learn/data/parse_line.h"

static paramo_err parse_comma(const struct parse_job *job)
{
    struct parse_buffer *b = job->buffer;
    const uint64_t mask = parse_mask(job->settings->hash_bits);
    size_t n = 0;
    for (const char *p = job->text; p < job->end; p++) { /* p: the begin of a line, then its end */
        const size_t row_start = n;
        const int row_not_one = b->not_one;
        const char *what = NULL, *at = p, *q;
        b->lines++;
        if (*p == '\n' || (*p == '\r' && p[1] == '\n'))
            goto next_line;
        while (*p != ',' && *p != '\n' && *p != '\r')
            p++;
        what = label_read(&job->settings->label, at, (size_t)(p - at), &b->label[b->rows]);
        while (what == NULL && *p == ',') {
            uint64_t id;
            at = ++p;
            if ((q = number_u64(p, &id)) == NULL || *q != ':') {
                what = "expected a feature, index:value";
                break;
            }
            if ((q = number_float(q + 1, &b->value[n], &what)) == NULL)
                break;
            p = q;
            b->not_one |= b->value[n] != 1;
            b->key[n++] = job->settings->hash_bits != 0 ? parse_hash_id(id, 0) & mask : id;
        }
        if (what == NULL && *p != '\n' && !(*p == '\r' && p[1] == '\n')) {
            what = "expected a comma";
            at = p;
        }
        if (what == NULL) {
            b->offset[++b->rows] = (uint32_t)n;
        } else {
            n = row_start;
            b->not_one = row_not_one;
            paramo_err err = parse_bad_line(job, b->lines - 1, what, at);
            if (err != PARAMO_OK)
                return err;
        }
    next_line:
        while (*p != '\n')
            p++;
    }
    b->features = n;
    return PARAMO_OK;
}

/* By the first feature. A label alone may be of any format. */
static enum judged judge_comma(const char *line, const char *end)
{
    const char *p = line + 1;
    if (line[0] != '0' && line[0] != '1')
        return JUDGED_NO;
    if (p == end)
        return JUDGED_EMPTY;
    if (*p++ != ',')
        return JUDGED_NO;
    const char *index = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > index && p < end && *p == ':' ? JUDGED_YES : JUDGED_NO;
}

/* The shortest feature is ",1:1". */
const struct format_ops format_comma = {.name = "comma",
                                        .line = "label,index:value",
                                        .feature_bytes = 4,
                                        .row_features = 1,
                                        .judge = judge_comma,
                                        .parse = parse_comma};
