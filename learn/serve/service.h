/*
 * Scoring requests: a body to an answer, with the current model. Any number of threads may call it. It never knows of
 * HTTP connections. Tests: test/e2e/serve.sh.
 */
#ifndef LEARN_SERVE_SERVICE_H
#define LEARN_SERVE_SERVICE_H

#include "learn/serve/live.h"
#include "learn/serve/model_slot.h"
#include "learn/serve/stats.h"

struct service;

/* Opens the model. dir stays the caller's and valid. */
PARAMO_MUST_USE paramo_err service_open(const char *dir, struct service **service);
/* The model of a job that trains, once there is one. live stays the caller's until service_close has returned, and only
 * service_refresh uses it. */
PARAMO_MUST_USE paramo_err service_open_live(struct live *live, struct service **service);
void service_close(struct service *service); /* no call is running; NULL is allowed */

struct stats *service_stats(struct service *service);
/* Any thread: a service_refresh that runs ends within a second. 0: it does not; it loads a model from a folder. */
int service_interrupt(struct service *service);
/* There is a model. */
int service_has_model(struct service *service);
/* Looks for a new model (model_slot_refresh, live_copy), counts it, and reports it on standard error; the same
 * failure of the same manifest once. One thread at a time. */
void service_refresh(struct service *service, int force);

/* An answer: status, type, and text of malloc(), which is the caller's; NULL: out of memory. */
struct answer {
    int status;
    const char *type;
    char *text;
    size_t len;
};
/* The probability of each row. format as in request_parse(). */
void service_score(struct service *service, const char *format, const char *body, size_t len,
                   struct answer *answer);
void service_metrics(struct service *service, int ready, struct answer *answer);
/* {"error": {...}}; row 0 and field "" are left out. */
void answer_error(struct answer *answer, int status, uint64_t row, const char *field, const char *message);

#endif
