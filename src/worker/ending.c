#include "worker/ending.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void request_end(struct request *r, paramo_err status, const char *text)
{
    struct client *c = r->client;
    if (r->ended)
        return;
    assert(!c->requests->ended == !c->requests->ended_tail);
    r->ended = true;
    r->status = status;
    if (status)
        tracker_failed(&c->tracker, r->ts, status, text, r->callback != NULL);
    if (status && r->callback && text != r->error_text) {
        free(r->error_text);
        r->error_text = strdup(text);
    }
    r->ended_next = NULL;
    if (c->requests->ended_tail)
        c->requests->ended_tail->ended_next = r;
    else
        c->requests->ended = r;
    c->requests->ended_tail = r;
}

void request_note(struct request *r, paramo_err status, const char *text)
{
    if (r->error)
        return;
    r->error = status;
    r->error_text = strdup(text);
}

void request_close(struct request *r)
{
    request_end(r, r->error, r->error_text ? r->error_text : err_sentence(r->error));
}
