#include "worker/ending.h"

#include "worker/requests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void request_end(struct request *r, paramo_err status, const char *text)
{
    struct client *c = r->client;
    if (r->ended)
        return;
    assert(!r->ts == r->carry.own && !r->ended_next);
    r->ended = true;
    r->status = status;
    if (r->status_to)
        *r->status_to = status;
    assert(!r->error || r->kind == REQUEST_MESSAGE);
    if (status && r->ts)
        tracker_failed(&c->tracker, r->ts, status, text, r->callback != NULL);
    if (status && r->callback && text != r->error_text) {
        free(r->error_text);
        r->error_text = strdup(text);
    }
    requests_note_ended(c, r);
}

void request_note(struct request *r, paramo_err status, const char *text)
{
    assert(status && r->kind == REQUEST_MESSAGE);
    assert(!r->ended && r->unfinished > 0);
    if (r->error)
        return;
    r->error = status;
    r->error_text = strdup(text);
}

void request_close(struct request *r)
{
    assert(r->error && r->kind == REQUEST_MESSAGE);
    assert(r->ts && !r->carry.own);
    request_end(r, r->error, r->error_text ? r->error_text : err_sentence(r->error));
}
