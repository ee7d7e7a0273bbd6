/*
 * Turns the body of a scoring request into rows. A body is lines of text, or JSON:
 *
 *     0 3:1 17:0.5                                   text: a row a line, as in a data file
 *     {"rows": ["0 3:1 17:0.5", "9:1"]}              JSON: the same lines
 *     {"rows": [{"I1": 5, "C3": "68fd1e64"}]}        JSON: values by the names of Criteo's columns
 *     I1=5 C3=68fd1e64                               text: the same
 *     {"rows": [{"site": "a.com", "age": 31}]}       JSON, for a model of a table: values by its columns
 *
 * A body whose first character is '{' is JSON. The rows are parsed by the parsers of data files (learn/data/parse.h),
 * so they give the same features. A row may lack its label, which is ignored. It never knows of HTTP or of models.
 * Tests: test/learn/test_request.c, fuzz/fuzz_request.c.
 */
#ifndef LEARN_SERVE_REQUEST_H
#define LEARN_SERVE_REQUEST_H

#include "learn/data/parse.h"

/* Why a request fails. The message is one line of printable characters. */
struct request_error {
    int status;        /* of HTTP */
    uint64_t row;      /* from 1; 0: the error is not about one row */
    char field[32];    /* its name; "": the error is not about one field */
    char message[256]; /* what is wrong */
};

struct request_model {
    unsigned hash_bits;
    int fields; /* rows must have the field of each feature */
    /* For a model of a table: the columns, whose names are the keys of objects. Its rows are objects, or lines of
     * libsvm or libffm if the request says so. NULL: another model; objects have Criteo's columns. */
    const struct columns *columns;
};

/* Memory of one thread, reused for each request. Zero it before first use. */
struct request {
    int json; /* the body is JSON, and so is the answer */
    struct parse_buffer buffer;
    char *text; /* the rows as lines, with PARSE_PAD bytes after them */
    size_t len, cap;
};

/* Parses body into r->buffer, with at least one row. format: a word of REQUEST_FORMATS or NULL (auto); the "format"
 * of a JSON body overrides it. Returns 1, or 0 with *error set. */
#define REQUEST_FORMATS PARSE_LINE_FORMAT_WORDS "|fields"
int request_parse(struct request *r, const struct request_model *model, const char *format, const char *body,
                  size_t len, struct request_error *error);
void request_free(struct request *r);

/* Sets *error and returns 0. Bytes that are not printable become '?'. */
int request_fail(struct request_error *error, int status, uint64_t row, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
