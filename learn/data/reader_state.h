/*
 * What the files of the reader share: its members, a part, and the threads that read in order. Not for others, which
 * have reader.h. Tests: test/learn/test_reader.c.
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

#define MAX_THREADS 16
#define MAX_AHEAD   (2 * MAX_THREADS + 2)

/* What one thread needs to turn text into a block; taken from a list and given back. */
struct workshop {
    struct workshop *next;
    struct stream_text text;
    struct parse_buffer buffer;
    uint8_t *side; /* [side_cap]: of the rows in buffer (holdout.h) */
    size_t side_cap;
};

/* Reading in order: tickets are drawn in the order of the parts, and each ticket's result goes into its slot
 * of a ring. A slot is free again when its block was delivered, so at most `slots` blocks are ahead of the
 * caller. */
struct slot {
    struct held *held; /* NULL: the stream has ended before that part, or err */
    paramo_err err;
    char text[PARAMO_ERROR_MAX];
    atomic_int full;
};

struct pass {
    int running;
    unsigned threads; /* that were started */
    unsigned slots;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock; /* of the cursor: */
    uint32_t stream;
    uint64_t index;
    uint64_t tickets; /* drawn */
    int drawn_all;
    atomic_int cancelled;
    sem_t free;    /* one per slot that may be filled, and one per thread to wake it for good */
    sem_t ready;   /* at least one per slot that was filled */
    uint64_t head; /* the caller's: ticket delivered next */
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
    struct cache *cache[2];  /* of each side; without a held-out part the first only */
    struct disk_cache *kept; /* NULL: none */
    int stop_fd;
    _Atomic int stop;  /* interrupted */
    atomic_int failed; /* err and err_text are set */
    atomic_ullong bad_lines, parts_parsed, parts_cached, parts_kept, rows_parsed, text_bytes, pairs_made;

    pthread_mutex_t lock; /* of what follows */
    struct workshop *idle;
    struct held *first; /* of a pipe: a part that was looked at and is still to be read */
    paramo_err err;
    char err_text[PARAMO_ERROR_MAX];
    char first_bad[PARAMO_ERROR_MAX];

    struct pass pass;
};

/* The first error stays for good; later calls return it too. */
paramo_err reader_fail(struct reader *reader, paramo_err err);
/* That error, or INTERRUPTED. */
PARAMO_MUST_USE paramo_err reader_state(struct reader *reader);
/* Tells the format of a stream, and matches its header with the columns. */
PARAMO_MUST_USE paramo_err reader_tell_format(struct reader *reader, uint32_t stream);
/* One side of a part, from its cache, from disk or from the text; *held NULL: the stream ends before it. */
PARAMO_MUST_USE paramo_err reader_part_get(struct reader *reader, uint32_t stream, uint64_t index,
                                           enum holdout_side side, struct held **held);
/* Parts of the stream, as far as is known; else UINT64_MAX. */
uint64_t reader_known_parts(struct reader *reader, uint32_t stream);
/* Ends the threads that read in order, if they run. */
void reader_pass_end(struct reader *reader);

#endif
