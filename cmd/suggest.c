#include "cmd/suggest.h"

#include <string.h>

enum { LETTERS_MAX = 40 }; /* arbitrary; longer words are not compared */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The distance of optimal string alignment, by its recurrence. Both words have at most LETTERS_MAX letters. */
static unsigned distance_of(const char *a, size_t n, const char *b, size_t m)
{
    unsigned d[LETTERS_MAX + 1][LETTERS_MAX + 1];
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            d[i][j] = least(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

void suggest_begin(struct suggestion *s, const char *word)
{
    *s = (struct suggestion){.word = word, .distance = (unsigned)strlen(word) / 3 + 1};
}

void suggest_try(struct suggestion *s, const char *candidate)
{
    size_t n = strlen(s->word), m = strlen(candidate);
    if (n > LETTERS_MAX || m > LETTERS_MAX)
        return;
    unsigned distance = distance_of(s->word, n, candidate, m);
    if (distance < s->distance) {
        s->distance = distance;
        s->best = candidate;
    }
}
