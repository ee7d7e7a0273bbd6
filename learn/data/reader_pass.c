#include "learn/data/reader.h"
#include "learn/data/reader_state.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void sem_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert(errno == EINTR);
}

uint64_t reader_known_parts(struct reader *r, uint32_t stream)
{
    const uint64_t parts = stream_parts(r->stream[stream]);
    return parts == UINT64_MAX && r->kept ? disk_cache_parts(r->kept, stream) : parts;
}

/* Draws the next part that may exist; 0: there is none. */
static int draw_ticket(struct reader *r, uint64_t *ticket, uint32_t *stream, uint64_t *index)
{
    struct pass *p = &r->pass;
    (void)pthread_mutex_lock(&p->lock);
    while (p->stream < r->streams && p->index >= reader_known_parts(r, p->stream)) {
        p->stream++;
        p->index = 0;
    }
    int found = p->stream < r->streams;
    if (found) {
        *ticket = p->tickets++;
        *stream = p->stream;
        *index = p->index++;
    } else {
        p->drawn_all = 1;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

static void *pass_thread(void *arg)
{
    struct reader *r = arg;
    struct pass *p = &r->pass;
    for (;;) {
        uint64_t ticket, index;
        uint32_t stream;
        sem_take(&p->free);
        if (atomic_load(&p->cancelled) || atomic_load(&r->stop) || !draw_ticket(r, &ticket, &stream, &index))
            break;
        struct slot *slot = &p->slot[ticket % p->slots];
        slot->held = NULL;
        slot->err = reader_part_get(r, stream, index, HOLDOUT_LEARN, &slot->held);
        if (slot->err != PARAMO_OK)
            (void)snprintf(slot->text, sizeof slot->text, "%s", paramo_last_error());
        atomic_store(&slot->full, 1);
        (void)sem_post(&p->ready);
    }
    (void)sem_post(&p->free); /* so that the next thread ends, too */
    (void)sem_post(&p->ready);
    return NULL;
}

static paramo_err pass_start(struct reader *r)
{
    struct pass *p = &r->pass;
    sigset_t all, old;
    p->slots = 2 * r->threads + 2;
    p->stream = 0;
    p->index = p->tickets = p->head = p->rows = 0;
    p->drawn_all = 0;
    p->threads = 0;
    atomic_store(&p->cancelled, 0);
    /* takes the posts that the last pass has left */
    while (sem_trywait(&p->free) == 0 || sem_trywait(&p->ready) == 0) {
    }
    for (unsigned i = 0; i < p->slots; i++) {
        atomic_store(&p->slot[i].full, 0);
        (void)sem_post(&p->free);
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = 0;
    while (p->threads < r->threads &&
           (rc = pthread_create(&p->thread[p->threads], NULL, pass_thread, r)) == 0)
        p->threads++;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (p->threads == 0)
        return paramo_error_set(PARAMO_E_SYSTEM, "cannot start a thread: %s", strerror(rc));
    p->running = 1;
    return PARAMO_OK;
}

void reader_pass_end(struct reader *r)
{
    struct pass *p = &r->pass;
    if (!p->running)
        return;
    atomic_store(&p->cancelled, 1);
    for (unsigned i = 0; i < p->threads; i++)
        (void)sem_post(&p->free);
    for (unsigned i = 0; i < p->threads; i++)
        (void)pthread_join(p->thread[i], NULL);
    for (unsigned i = 0; i < p->slots; i++)
        if (atomic_load(&p->slot[i].full) && p->slot[i].held)
            held_release(p->slot[i].held);
    p->running = 0;
}

static paramo_err no_rows(const struct reader *r)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s%s: no rows, only empty, comment or bad lines",
                            reader_stream_name(r, 0), r->streams > 1 ? " and the other files" : "");
}

paramo_err reader_next(struct reader *r, const struct block **block)
{
    struct pass *p = &r->pass;
    paramo_err err = reader_state(r);
    if (err == PARAMO_OK && !p->running)
        err = pass_start(r);
    while (err == PARAMO_OK) {
        struct slot *slot = &p->slot[p->head % p->slots];
        if (!atomic_load(&slot->full)) {
            (void)pthread_mutex_lock(&p->lock);
            int done = p->drawn_all && p->head == p->tickets;
            (void)pthread_mutex_unlock(&p->lock);
            if (done) {
                *block = NULL;
                return p->rows > 0 ? PARAMO_OK : reader_fail(r, no_rows(r));
            }
            sem_take(&p->ready);
            if (atomic_load(&r->stop))
                return paramo_error_set(PARAMO_E_INTERRUPTED,
                                        "interrupted: the data has not been read to its end");
            continue;
        }
        if (slot->err != PARAMO_OK)
            return reader_fail(r, paramo_error_set(slot->err, "%s", slot->text));
        struct held *held = slot->held;
        atomic_store(&slot->full, 0);
        p->head++;
        (void)sem_post(&p->free);
        if (held && held->block.rows > 0) {
            p->rows += held->block.rows;
            *block = &held->block;
            return PARAMO_OK;
        }
        if (held)
            held_release(held);
    }
    return err;
}

paramo_err reader_rewind(struct reader *r)
{
    reader_pass_end(r);
    return reader_state(r);
}
