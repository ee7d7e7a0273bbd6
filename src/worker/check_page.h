/*
 * Checks of the caller's page, in its thread. It never knows how a page comes together. Tests:
 * test/worker/test_pages.c.
 */
#ifndef WORKER_CHECK_PAGE_H
#define WORKER_CHECK_PAGE_H

#include "worker/client_types.h"

/* INVALID, SIZE_MISMATCH: what is wrong with call->page. */
MUST_USE paramo_err check_page(const struct client_call *call);

#endif
