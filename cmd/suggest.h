/*
 * "Did you mean": which of the words that were possible is nearest to one that is unknown. Knows no verbs and no
 * options; its callers try them one by one. Tests: test/cmd/test_options.c.
 */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

struct suggestion {
    const char *word; /* the unknown one */
    const char *best; /* the nearest so far, the first of equals; NULL: none is near enough */
    unsigned distance;
};

/* Near enough: at most one letter in three is wrong, missing, too many, or changed places with the next (Damerau, CACM
 * 1964); so nothing is suggested for one or two letters. */
void suggest_begin(struct suggestion *s, const char *word);
void suggest_try(struct suggestion *s, const char *candidate);

#endif
