/* Errors, log, version: the public names of what base/ has. */
#include <stdarg.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/log.h"
#include "node/node.h"

const char *paramo_err_name(paramo_err code)
{
    return err_name(code);
}

const char *paramo_err_text(paramo_err code)
{
    return err_sentence(code);
}

const char *paramo_last_error(void)
{
    return err_text();
}

paramo_err(paramo_error_set)(paramo_err code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(code, "%s", text);
}

const char *paramo_version(void)
{
    return PARAMO_VERSION;
}

const char *paramo_cpu(void)
{
    return cpu_level_name(cpu_level());
}

paramo_err paramo_cpu_limit(const char *name)
{
    return cpu_limit(name);
}

void paramo_log_level(int level)
{
    log_set_level(level);
}

void paramo_log_sink(void (*sink)(void *arg, int level, const char *line), void *arg)
{
    log_set_sink(sink, arg);
}
