/*
 * Plugins: shared objects that add functions (function_types.h) and filters (filter_types.h) to a process of Paramo, for
 * instance to `paramo server --plugin FILE`. A plugin is data: it defines one of these arrays, or both, with NULL behind the
 * last entry, and needs no function of the library. Each process of a job that needs them loads them by itself: no code
 * travels. What they add stays for the life of the process. examples/c/plugin.c is one.
 */
#ifndef PARAMO_PLUGIN_H
#define PARAMO_PLUGIN_H

#include "filter_types.h"
#include "function_types.h"

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

#ifdef __cplusplus
}
#endif
#endif
