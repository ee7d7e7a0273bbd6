/*
 * Text to rows: one parser for each format of FORMATS (formats.h), in parse_<name>.c (libsvm and libffm share
 * parse_sparse.c). What a format defines is struct format_ops (parse_line.h).
 *
 * A parser takes whole lines and writes their rows to a parse_buffer. The arrays are sized from the length of the text
 * beforehand (a feature of each format takes a known least number of bytes), so the inner loops check no capacity. The
 * text is followed by PARSE_PAD readable bytes, the first of which is '\n', so no loop checks for the end of the text,
 * and numbers are read eight bytes at a time. A bad line is reported by its number within the text, and gives no row.
 * It never knows of files, threads or caches. Tests: test/learn/test_parse_*.c.
 */
#ifndef LEARN_DATA_PARSE_H
#define LEARN_DATA_PARSE_H

#include "learn/data/block.h"
#include "learn/data/formats.h"

/* The name of a format in messages and options ("auto", "libsvm", ...); and the format of a name, or -1. */
const char *parse_format_name(enum parse_format format);
int parse_format_find(const char *name);
/* 1 if rows of this format have the field of each feature. Not for PARSE_AUTO. */
int parse_format_fields(enum parse_format format);
/* 1 if its features have names, and keys are their hashes. Not for PARSE_AUTO. */
int parse_format_names(enum parse_format format);
/* Not for PARSE_AUTO. */
enum format_columns parse_format_columns(enum parse_format format);

/* Formats for a message. NAMES: all, "libsvm, libffm or criteo". LINES: those that are not tables, each with what a
 * line looks like. FIELDS: those of them that have fields, joined by "and". */
enum parse_list { PARSE_LIST_NAMES, PARSE_LIST_LINES, PARSE_LIST_FIELDS };
#define PARSE_LIST_MAX 256
const char *parse_format_list(char out[PARSE_LIST_MAX], enum parse_list which);

/* Parses text[0..len) (see the top of this file for what must follow it) into buffer, in place of its earlier
 * content. len is below 4 GiB. */
PARAMO_MUST_USE paramo_err parse_text(const struct parse_settings *settings, const char *text, size_t len,
                                      struct parse_buffer *buffer, parse_bad_fn bad, void *arg);
/* A block of its own with the rows of buffer, and their fields if the block is to have them. */
PARAMO_MUST_USE paramo_err parse_block(const struct parse_buffer *buffer, int fields, struct block *block);
/* Like parse_block(), only for the rows r with side[r] == want. */
PARAMO_MUST_USE paramo_err parse_block_side(const struct parse_buffer *buffer, int fields,
                                            const uint8_t *side, uint8_t want, struct block *block);
void parse_buffer_free(struct parse_buffer *buffer);

/* Detects the format from the first lines of a file. whole: text is the whole file. FORMAT (without a file name) if it
 * looks like none; a text without any feature counts as libsvm. */
PARAMO_MUST_USE paramo_err parse_detect(const char *text, size_t len, int whole, enum parse_format *format);

/* Like parse_detect(), but also finds tables: by the name of the file, otherwise by the text. */
PARAMO_MUST_USE paramo_err parse_detect_file(const char *name, const char *text, size_t len, int whole,
                                             enum parse_format *format);
/* Like parse_detect_file() if --columns is given: csv, tsv or jsonl, by the name of the file (NULL: none), otherwise by
 * the text. */
enum parse_format parse_detect_columns(const char *name, const char *text, size_t len);

#endif
