/*
 * A request to a USER table or an app, as its handler sees it, and the answers to it. handling.c has the functions.
 * This header never knows how a request arrives. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_SHARD_REQUEST_H
#define SERVER_SHARD_SHARD_REQUEST_H

#include "base/array.h"
#include "base/err.h"
#include "paramo/types.h"
#include "van/van.h"

struct shard_request; /* one request to a USER table, being handled */

struct shard_request_info {
    const char *table; /* NULL: a message to an app */
    paramo_dtype dtype;
    uint32_t to; /* the node that was asked: this one */
    uint32_t sender, customer, app;
    uint64_t ts;
    int32_t cmd;
    bool push, pull;
    const uint64_t *keys;
    size_t n;
    const void *vals;
    size_t vals_len;      /* values, not bytes (of a message: bytes) */
    const uint32_t *lens; /* or NULL */
    /* messages: app is the receiver's, customer the sender's */
    uint32_t for_customer, flags;
    struct van_seg seg[VAN_SEGS];
};

/* Called on the shard's lane for each new request to a USER table or an app. The handler answers exactly
 * once, now or later, from any thread. info and what it points to stay valid until then. */
typedef void (*shard_handler)(void *arg, struct shard_request *request,
                              const struct shard_request_info *info);

/* Any thread. Answer and free the request. vals and lens are copied; lens NULL or one length per key. */
MUST_USE paramo_err shard_answer(struct shard_request *request, const void *vals, size_t vals_len,
                                 const uint32_t *lens);
MUST_USE paramo_err shard_answer_error(struct shard_request *request, paramo_err status, const char *text);
/* Answers with any segments (to a USER table: lens and values only). Where array[i] is given, segment i is
 * the whole array, and the shard takes its own reference; otherwise seg[i] is copied. */
MUST_USE paramo_err shard_answer_segs(struct shard_request *request, const struct van_seg seg[VAN_SEGS],
                                      struct paramo_array *const array[VAN_SEGS]);
/* Before the answer: memory of the request for the handler, of shard_config.request_room bytes. Nothing is in it. */
void *shard_request_room(struct shard_request *request);
/* Before the answer: segment i of the request, as an array without a copy. */
MUST_USE paramo_err shard_request_keep(struct shard_request *request, unsigned i,
                                       struct paramo_array **array);

#endif
