/*
 * The slices of a link: their states, and the lists in which they wait to be sent, to be sent again, or for an answer.
 * It never knows when a slice leaves. Tests: test/worker/test_client.c, test/worker/test_client_faults.c.
 */
#ifndef WORKER_SLICES_H
#define WORKER_SLICES_H

#include "worker/client_impl.h"

/* Moves the slice to this state; the lists are the caller's. */
void slice_move(struct slice *p, enum slice_state to);
/* The list of the slice's state. */
struct slice_list *slices_of(struct slice *p);
/* before NULL: at the end. */
void slices_insert(struct slice_list *list, struct slice *before, struct slice *p);
void slices_remove(struct slice_list *list, struct slice *p);
/* A first transmission waits, by priority. */
void slices_queue(struct link *l, struct slice *p);
/* A slice waits to be sent again, by its chunk's number. */
void slices_resend(struct link *l, struct slice *p);
/* Takes the slice out of the link's lists. */
void link_forget(struct slice *p);

#endif
