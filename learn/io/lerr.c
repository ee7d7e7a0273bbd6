#include "learn/io/lerr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[LERR_MAX];

paramo_err(lerr)(paramo_err code, const char *fmt, ...)
{
    /* through a buffer: an argument may be lerr_text() itself */
    char next[LERR_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(next, sizeof next, fmt, args);
    va_end(args);
    memcpy(text, next, sizeof next);
    return code;
}

const char *lerr_text(void)
{
    return text;
}
