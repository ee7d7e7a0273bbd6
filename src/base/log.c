#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

struct sink {
    void (*fn)(void *arg, int level, const char *line);
    void *arg;
};

static atomic_int level_now = LOG_WARN;
static struct sink sink_given;
static _Atomic(const struct sink *) sink_now; /* NULL: stderr */

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
    atomic_store(&sink_now, NULL);
    if (!sink)
        return;
    sink_given = (struct sink){sink, arg};
    atomic_store(&sink_now, &sink_given);
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
    const struct sink *sink = atomic_load(&sink_now);
    if (sink)
        sink->fn(sink->arg, (int)level, line);
    else
        (void)fprintf(stderr, "paramo: %s: %s\n", names[level], line); /* stdio keeps lines whole */
}
