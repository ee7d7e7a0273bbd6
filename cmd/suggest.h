/*
 * "Did you mean": finds the known word that is nearest to an unknown one. It never knows verbs and options; its callers
 * try them one by one. Tests: test/cmd/test_options.c.
 */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

struct suggestion {
    const char *word; /* the unknown one */
    const char *best; /* the nearest so far, the first of equals; NULL: none is near enough */
    unsigned distance;
};

/* A word is near enough if at most one letter in three (arbitrary) is wrong, missing, extra, or swapped with the next
 * one (Damerau, CACM 1964). So there is no suggestion for a word of one or two letters. */
void suggest_begin(struct suggestion *s, const char *word);
void suggest_try(struct suggestion *s, const char *candidate);

#endif
