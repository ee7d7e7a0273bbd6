#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

struct sink {
    void (*fn)(void *arg, int level, const char *line);
    void *arg;
};

static atomic_int level_now = LOG_WARN;
static struct sink sink_given;
static _Atomic(const struct sink *) sink_now; /* NULL: stderr */
static _Atomic(log_recorder) recorder_now;

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

void log_set_recorder(log_recorder recorder)
{
    atomic_store(&recorder_now, recorder);
}

const char *log_level_name(int level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    return names[level];
}

void log_line(enum log_level level, const char *fmt, ...)
{
    bool shown = (int)level <= log_level();
    log_recorder recorder =
        level <= LOG_INFO ? atomic_load_explicit(&recorder_now, memory_order_relaxed) : NULL;
    if (!shown && !recorder)
        return;
    char line[LOG_LINE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (recorder)
        recorder((int)level, line);
    if (!shown)
        return;
    const struct sink *sink = atomic_load(&sink_now);
    if (sink)
        sink->fn(sink->arg, (int)level, line);
    else
        (void)fprintf(stderr, "paramo: %s: %s\n", log_level_name((int)level),
                      line); /* stdio keeps lines whole */
}
