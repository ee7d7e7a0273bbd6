/*
 * The file of a search: the result of each training, so that the search can continue after its process has died.
 *
 * Lines of JSON. The first one describes the search; each other line is one training:
 *   {"paramo_tune": 1, "search": "..."}
 *   {"trial": 3, "epochs": 7, "settings": " --alpha 0.12", "loss": 0.41, "best_epoch": 2, "ended": true,
 *    "seconds": 1.2}                                                            (on one line)
 * The loss is null if the training diverged. A line is written by one call and synced. A last line without its end was
 * being written when the process died, and is removed.
 *
 * It never knows what a search does. Tests: test/learn/test_tune.c, test/e2e/tune.sh.
 */
#ifndef LEARN_TUNE_JOURNAL_H
#define LEARN_TUNE_JOURNAL_H

#include "learn/tune/search.h"

struct journal;

/* Opens the file, or creates it. search: a description of the search. INVALID: the file is that of another search.
 * FORMAT with file and line: it is not such a file. IO. */
PARAMO_MUST_USE paramo_err journal_open(const char *path, const char *search, struct journal **journal);
void journal_close(struct journal *journal); /* NULL is allowed */
/* The number of trainings in it. */
size_t journal_count(const struct journal *journal);
/* Finds a training. *found 0: it is not there. INVALID: its line has other settings. */
PARAMO_MUST_USE paramo_err journal_find(const struct journal *journal, size_t trial, uint64_t epochs,
                                        const char *settings, struct tune_outcome *outcome, int *found);
/* Adds a line. IO. */
PARAMO_MUST_USE paramo_err journal_add(struct journal *journal, size_t trial, uint64_t epochs,
                                       const char *settings, const struct tune_outcome *outcome);

#endif
