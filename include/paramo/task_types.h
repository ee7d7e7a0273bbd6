/*
 * User tasks: the parts of a function that other nodes call by its name (task.h). A plugin needs only this header to
 * list its functions (plugin.h). Tests: test/node/test_task.c.
 */
#ifndef PARAMO_TASK_TYPES_H
#define PARAMO_TASK_TYPES_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a function, from its arrival until it is answered. */
typedef struct paramo_task paramo_task;

/* The call: its function, its sender, its payload. Valid until the task is answered. */
typedef struct paramo_task_info {
    size_t size;
    const char *name; /* of the function */
    uint32_t node;    /* id of the node that runs it; embedded: of the part of this process that was called */
    uint32_t sender;  /* id of the node that called */
    uint32_t customer;   /* its customer, ... */
    uint64_t ts;         /* ... and the timestamp of its request */
    const void *payload; /* aligned to 8 if there is any */
    size_t payload_bytes;
} paramo_task_info;

/* One function. run is called on a thread of the node that is for tasks alone: one call at a time for each node, in
 * order of arrival. It may compute for long, but must not wait (IN_CALLBACK): requests that it issues with
 * paramo_request_options.task are its subtasks. The task is answered when run has returned and all its subtasks have
 * completed. run returns OK, or the error that the task ends with; paramo_error_set sets its text. */
typedef struct paramo_task_function {
    size_t size;      /* sizeof */
    const char *name; /* a-z, 0-9, _, - and ., at most 31; copied */
    void *user;       /* for run */
    paramo_err (*run)(void *user, paramo_task *task, const paramo_task_info *info);
} paramo_task_function;

#ifdef __cplusplus
}
#endif
#endif
