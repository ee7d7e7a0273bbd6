/*
 * What the files of the reader share: its members, a part, and the threads that read in order. Other files use
 * reader.h. Tests: test/learn/test_reader.c.
 */
#ifndef LEARN_DATA_READER_STATE_H
#define LEARN_DATA_READER_STATE_H

#include "learn/data/cache.h"
#include "learn/data/disk_cache.h"
#include "learn/data/header.h"
#include "learn/data/holdout.h"
#include "learn/data/interact.h"
#include "learn/data/parse.h"
#include "learn/data/stream.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define MAX_THREADS 16 /* arbitrary */
#define MAX_AHEAD   (2 * MAX_THREADS + 2)

/* What one thread needs to turn text into a block; taken from a list and given back. */
struct parse_scratch {
    struct parse_scratch *next;
    struct stream_text text;
    struct parse_buffer buffer;
    uint8_t *side; /* [side_cap]: of the rows in buffer (holdout.h) */
    size_t side_cap;
};

/* Reading in order: threads draw tickets in the order of the parts, and the result of each ticket goes into its slot
 * of a ring. A slot is free again when its block has been delivered, so at most `slots` blocks are ahead of the
 * caller. */
struct slot {
    struct held *held; /* NULL: the stream ends before this part, or there is an error */
    paramo_err err;
    char text[PARAMO_ERROR_MAX];
    atomic_int full;
};

struct pass {
    int running;
    unsigned threads; /* started */
    unsigned slots;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock; /* of the cursor: */
    uint32_t stream;
    uint64_t index;
    uint64_t tickets; /* drawn */
    int drawn_all;
    atomic_int cancelled;
    sem_t free;    /* a post for each slot that may be filled, and one for each thread that must end */
    sem_t ready;   /* at least one post for each slot that was filled */
    uint64_t head; /* the caller's: the ticket that is delivered next */
    uint64_t rows;
    struct slot slot[MAX_AHEAD];
};

struct reader {
    unsigned hash_bits, threads, hold_out, folds, fold;
    struct label_rule label;
    struct columns *columns;
    struct names *names_of_keys;
    enum reader_fields fields;
    struct interactions interactions;
    uint64_t skip_bad;
    enum parse_format format;
    uint32_t streams;
    char **names;
    struct stream **stream;
    _Atomic int *stream_format; /* [streams], PARSE_AUTO: not detected yet */
    struct table_plan **plan;   /* [streams], of files with a header; known with the format */
    struct stream_recent *recent;
    struct cache *cache[2];  /* of each side; only the first if no rows are held out */
    struct disk_cache *kept; /* NULL: none */
    int stop_fd;
    _Atomic int stop;  /* interrupted */
    atomic_int failed; /* err and err_text are set */
    atomic_ullong bad_lines, parts_parsed, parts_cached, parts_kept, rows_parsed, text_bytes, pairs_made;

    pthread_mutex_t lock; /* of what follows */
    struct parse_scratch *idle;
    struct held *peeked; /* a part of a pipe that reader_peek has read and reader_part has not */
    paramo_err err;
    char err_text[PARAMO_ERROR_MAX];
    char first_bad[PARAMO_ERROR_MAX];

    struct pass pass;
};

/* Keeps the first error, which all later calls return. */
paramo_err reader_fail(struct reader *reader, paramo_err err);
/* The error that is kept, or INTERRUPTED. */
PARAMO_MUST_USE paramo_err reader_state(struct reader *reader);
/* Detects the format of a stream, and matches its header with the columns. */
PARAMO_MUST_USE paramo_err reader_detect_format(struct reader *reader, uint32_t stream);
/* Gets one side of a part, from its cache, from disk or from the text; *held NULL: the stream ends before it. */
PARAMO_MUST_USE paramo_err reader_part_get(struct reader *reader, uint32_t stream, uint64_t index,
                                           enum holdout_side side, struct held **held);
/* The number of parts of the stream; UINT64_MAX: not known yet. */
uint64_t reader_known_parts(struct reader *reader, uint32_t stream);
/* Ends the threads that read in order, if they run. */
void reader_pass_end(struct reader *reader);

#endif
