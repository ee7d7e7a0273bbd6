#include "learn/data/parse_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t parse_mark(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

const char *parse_quote(char out[PARSE_QUOTE_MAX], const char *p, const char *end)
{
    size_t n = 0;
    const char *stop = end - p > PARSE_QUOTED ? p + PARSE_QUOTED : end;
    for (; p < stop; p++)
        if (*p >= ' ' && *p <= '~')
            out[n++] = *p;
        else
            n += (size_t)snprintf(out + n, PARSE_QUOTE_MAX - n, "\\x%02x", (unsigned)(unsigned char)*p);
    out[n] = '\0';
    return out;
}

paramo_err parse_bad_line(const struct parse_job *job, uint64_t line, const char *what, const char *at)
{
    char message[192];
    if (!at) {
        (void)snprintf(message, sizeof message, "%s", what);
    } else if (at >= job->end || *at == '\n' || *at == '\r') {
        (void)snprintf(message, sizeof message, "%s, found the end of the line", what);
    } else if (*at == '\0') {
        (void)snprintf(message, sizeof message, "%s, found a zero byte: this is not text", what);
    } else {
        char word[PARSE_QUOTE_MAX];
        const char *stop = at + 1; /* the rest of the word */
        while (stop < job->end && (unsigned char)*stop > ' ')
            stop++;
        (void)snprintf(message, sizeof message, "%s, found '%s'", what, parse_quote(word, at, stop));
    }
    return job->bad(job->arg, line, message);
}

const char *parse_label_slow(const struct label_rule *rule, const char *p, float *label, const char **what)
{
    const char *end = p, *colon = NULL;
    for (; (unsigned char)*end > ' '; end++)
        if (*end == ':')
            colon = end;
    if (rule->kind == LABEL_NONE && colon) {
        *label = NAN;
        return p;
    }
    *what = label_read(rule, p, (size_t)(end - p), label);
    return *what ? NULL : end;
}

const char *parse_judge_label(const char *line, const char *end)
{
    static const struct label_rule any = {.kind = LABEL_REAL};
    char copy[64]; /* with PARSE_PAD bytes after the word, which number_float reads */
    const char *p = line;
    size_t n = 0;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p + n < end && n < sizeof copy - PARSE_PAD - 1 && p[n] != ' ' && p[n] != '\t') {
        copy[n] = p[n];
        n++;
    }
    memset(copy + n, '\n', sizeof copy - n);
    float label;
    if (!label_read(&any, copy, n, &label))
        return p + n;
    return memchr(copy, ':', n) ? p : NULL;
}

uint64_t parse_hash_id(uint64_t id, unsigned hash_bits)
{
    return parse_mix(id + 0x9e3779b97f4a7c15u) & parse_mask(hash_bits);
}
