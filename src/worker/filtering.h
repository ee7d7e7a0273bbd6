/*
 * Filters at the worker: the chains of each table, what they do to a frame that leaves over a link, and to an
 * answer that comes. Only carrying.c knows filter/, too. The rest calls it at these points:
 *
 *     client.c    filtering_begin, filtering_end: a request begins and ends
 *     carrying.c  filtering_select: which rows of a push travel
 *     slicing.c   filtering_chunk_bytes
 *     link.c      filtering_out before a slice is sent; filtering_sent when the van has released the frame;
 *                 filtering_forget when the slice will not be sent again; filtering_reset when the connection ends
 *     answer.c    filtering_in for an answer; filtering_answered; filtering_lacks
 *
 * What a link's filters know ends with its connection. On the lane. Tests: test/worker/test_filtering.c, the
 * simulator.
 */
#ifndef WORKER_FILTERING_H
#define WORKER_FILTERING_H

#include "filter/coding.h"
#include "worker/client_impl.h"

/* An answer whose filters were undone. Its segments are valid until filtering_done. */
struct filtered_answer {
    struct van_seg seg[VAN_SEGS];
    unsigned nseg;
    struct filter_memory memory;
};

struct filter_table filtering_table(const struct client_table *t);
/* Sets the chain of a table and direction. MEMORY; UNSUPPORTED: a filter does not fit the table. */
MUST_USE paramo_err filtering_set(struct client *c, const struct client_table *table,
                                  enum filter_direction direction, const struct filter_chain *chain);
void filtering_fini(struct client *c);
/* Adds what the filters of this client have done. */
void filtering_counts(const struct client *c, struct filter_counts *sum);

/* The request keeps the chains that its table has now until filtering_end. */
void filtering_begin(struct request *r);
void filtering_end(struct request *r);
/* The chains of a request for longer than it lasts, or for another one; NULL: it has none. */
struct table_filters *filtering_ref(struct table_filters *chains);
void filtering_unref(struct table_filters *chains);
/* Does its chain hold rows back? */
bool filtering_selects(const struct request *r);
/* Sets waits[i] of each row that the request's chain holds back; seed and dtype of rows are filled in. */
void filtering_select(const struct request *r, struct filter_rows *rows, uint8_t *waits);
/* The approximate size of the request's chunks. */
uint32_t filtering_chunk_bytes(struct client *c, const struct request *r);

/* Makes the slice's frame as it is to leave. AGAIN: the link has filtered enough in this step, and continues in the
 * next. MEMORY: there is none for the rounded values. */
MUST_USE paramo_err filtering_out(struct link *l, struct slice *p);
void filtering_sent(struct slice *p);
void filtering_forget(struct slice *p);
void filtering_reset(struct link *l);

/* Undoes the filters of an answer to p. NOT_FOUND, MEMORY: as if the answer was lost, and the next one is not
 * filtered. PROTOCOL. */
MUST_USE paramo_err filtering_in(struct link *l, struct slice *p, const struct wire_head *h,
                                 const struct van_seg *seg, unsigned nseg, struct filtered_answer *out);
void filtering_done(struct filtered_answer *answer);
/* An answer to p came: what p brought is known at the other end. */
void filtering_answered(struct slice *p);
/* PROBE_LACKS: the link's filters begin again. True: all slices that were sent must be sent again. */
MUST_USE bool filtering_lacks(struct link *l, const struct wire_head *h);

#endif
