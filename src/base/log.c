#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static atomic_int level_now = LOG_WARN;
static mtx_t sink_lock;
static once_flag sink_once = ONCE_FLAG_INIT;
static void (*sink_fn)(void *, int, const char *);
static void *sink_arg;

static void sink_init(void)
{
    (void)mtx_init(&sink_lock, mtx_plain);
}

void log_set_level(int level)
{
    atomic_store_explicit(&level_now, level, memory_order_relaxed);
}

int log_level(void)
{
    return atomic_load_explicit(&level_now, memory_order_relaxed);
}

void log_set_sink(void (*sink)(void *arg, int level, const char *line), void *arg)
{
    call_once(&sink_once, sink_init);
    mtx_lock(&sink_lock);
    sink_fn = sink;
    sink_arg = arg;
    mtx_unlock(&sink_lock);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if ((int)level > log_level())
        return;
    char line[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    call_once(&sink_once, sink_init);
    mtx_lock(&sink_lock);
    if (sink_fn)
        sink_fn(sink_arg, (int)level, line);
    else
        (void)fprintf(stderr, "paramo: %s: %s\n", names[level], line);
    mtx_unlock(&sink_lock);
}
