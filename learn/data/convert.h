/*
 * Writes rows as text of another format. Keys are those of the reader: ids, or hashes of 64 bits. It never knows how
 * rows are parsed. Tests: test/learn/test_raw_rows.c.
 */
#ifndef LEARN_DATA_CONVERT_H
#define LEARN_DATA_CONVERT_H

#include "learn/data/reader.h"

/* The formats that can be written, for an option. */
#define CONVERT_WORDS "libsvm|libffm|vw"

/* Writes all rows to path (learn/io/output.h). For libffm the reader has READER_FIELDS. In vw each field is a
 * namespace, and features without a field are in the one without a name. A row whose label is not known is written
 * without one. INVALID: a row has a weight, which only vw can hold. */
PARAMO_MUST_USE paramo_err convert_reader(struct reader *reader, enum parse_format to, const char *path,
                                          uint64_t *rows);

#endif
