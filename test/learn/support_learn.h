/* Small random blocks for the learn tests, drawn from a seed. */
#ifndef TEST_LEARN_SUPPORT_LEARN_H
#define TEST_LEARN_SUPPORT_LEARN_H

#include "learn/data/block.h"
#include "learn/eval/metrics.h"

/* The next number of a small generator (splitmix64). */
uint64_t draw(uint64_t *state);
/* Uniform in [-1, 1). */
float draw_float(uint64_t *state);

/* rows of 0..most features, with keys below `keys` (repeats happen) times `stride`; values other than 1 if
 * wanted. */
struct block random_block(uint64_t seed, size_t rows, size_t most, uint64_t keys, uint64_t stride,
                          int values);

/* Vector levels by name, from "base" up to what this processor has; and their limit put on (NULL: lifted). */
extern const char *const vector_names[3];
size_t vector_count(void);
void vector_limit(const char *name);

/* A new empty directory under TMPDIR; and its removal with all plain files in it. */
char *new_dir(void);
void remove_dir(char *dir);
void write_file(const char *path, const void *bytes, size_t len);
/* The whole file, NUL-terminated; the caller frees it. */
char *read_file(const char *path, size_t *len);

/* What a model's predictions for the rows of one file are worth. It ends the process if the model or the file cannot be
 * read. */
struct metrics_result learn_measure(const char *model, const char *const *file);

/* A table as paramo_table_save writes it: keys seed, seed + 3, ...; state 0 leaves the tensor out. */
void write_table(const char *path, uint64_t seed, size_t n, size_t dim, size_t state);

#endif
