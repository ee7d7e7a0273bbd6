/*
 * Answers requests for scores, with the current model. Any number of threads may call it. It never knows of HTTP
 * connections. Tests: test/e2e/serve.sh.
 */
#ifndef LEARN_SERVE_SERVICE_H
#define LEARN_SERVE_SERVICE_H

#include "learn/serve/live.h"
#include "learn/serve/model_slot.h"
#include "learn/serve/stats.h"

struct service;

/* Opens the model in dir. The caller owns dir, which must stay valid. */
PARAMO_MUST_USE paramo_err service_open(const char *dir, struct service **service);
/* Serves the model of a job that trains, when there is one. The caller owns live, which must stay valid until
 * service_close has returned. */
PARAMO_MUST_USE paramo_err service_open_live(struct live *live, struct service **service);
void service_close(struct service *service); /* no call may be running; NULL is allowed */

struct stats *service_stats(struct service *service);
/* From any thread: a running service_refresh ends within a second. Returns 0 if it does not, because it loads a model
 * from a folder. */
int service_interrupt(struct service *service);
/* Is there a model? */
int service_has_model(struct service *service);
/* Looks for a new model (model_slot_refresh, live_copy), counts it, and reports it on standard error; a repeated
 * failure is reported once. One thread at a time. */
void service_refresh(struct service *service, int force);

/* An answer. text is from malloc(), and the caller frees it; NULL: out of memory. */
struct answer {
    int status;
    const char *type;
    char *text;
    size_t len;
};
/* Answers with the prediction of each row. format as in request_parse(). */
void service_score(struct service *service, const char *format, const char *body, size_t len,
                   struct answer *answer);
void service_metrics(struct service *service, int ready, struct answer *answer);
/* {"error": {...}}; row 0 and field "" are left out. */
void answer_error(struct answer *answer, int status, uint64_t row, const char *field, const char *message);

#endif
