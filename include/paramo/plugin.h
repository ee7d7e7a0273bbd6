/*
 * Plugins: shared objects that add functions (function_types.h), filters (filter_types.h) and tasks (task_types.h) to
 * a process of Paramo, for instance to `paramo server --plugin FILE`. A plugin is data: it defines one or more of
 * these arrays, with NULL after the last entry. Functions and filters need no function of the library. Tasks call
 * the library's (task.h): the program `paramo` and libparamo.so offer them to a plugin, which is linked without the
 * library. Each process of a job that needs them loads them by itself: no code travels. Their functions, filters and
 * tasks stay for the life of the process. examples/c/plugin.c is one. Tests: test/e2e/plugins.sh.
 */
#ifndef PARAMO_PLUGIN_H
#define PARAMO_PLUGIN_H

#include "filter_types.h"
#include "function_types.h"
#include "task_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PARAMO_PLUGIN __attribute__((visibility("default")))
#else
#define PARAMO_PLUGIN
#endif

extern PARAMO_PLUGIN const paramo_function *const paramo_functions[];
extern PARAMO_PLUGIN const paramo_filter *const paramo_filters[];
extern PARAMO_PLUGIN const paramo_task_function *const paramo_tasks[];

#ifdef __cplusplus
}
#endif
#endif
