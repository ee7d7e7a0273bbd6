/*
 * HTTP requests: one POST and its answer, with bounds on time and size. http_create uses libcurl, which is
 * loaded at the first use; sim/env/simetcd.h answers in memory. A request blocks: never call it on a lane;
 * env/blocking_job.h runs it beside one. One thread at a time per http. This module never knows the meaning
 * of a request. Tests: test/env/test_http.c.
 */
#ifndef ENV_HTTP_H
#define ENV_HTTP_H

#include "base/cursor.h"

struct http;

struct http_request {
    const char *url;
    const struct writer *body; /* JSON */
    uint32_t timeout_ms;       /* for the whole request */
    size_t answer_max;         /* bytes */
};

struct http_ops {
    paramo_err (*post)(struct http *http, const struct http_request *http_request, unsigned *status,
                       struct writer *answer);
    void (*destroy)(struct http *http);
};

/* Every kind of http embeds this. */
struct http {
    const struct http_ops *ops;
};

/* UNSUPPORTED without libcurl. */
MUST_USE paramo_err http_create(struct http **http);
/* OK: an answer arrived, with any status. CONNECT: nothing answers at the address. TIMEOUT, DISCONNECTED:
 * the request may or may not have been executed. TOO_LARGE: the answer is too long. answer: an empty
 * writer, which the caller frees in any case. */
MUST_USE static inline paramo_err http_post(struct http *http, const struct http_request *http_request,
                                            unsigned *status, struct writer *answer)
{
    return http->ops->post(http, http_request, status, answer);
}
/* NULL is allowed. */
static inline void http_destroy(struct http *http)
{
    if (http)
        http->ops->destroy(http);
}

#endif
