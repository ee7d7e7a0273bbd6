#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char err_buffer[ERR_TEXT_MAX];

paramo_err err_set(paramo_err code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX]; /* the arguments may point into err_buffer */
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(err_buffer, text, sizeof text);
    return code;
}

paramo_err err_errno(paramo_err code, int errno_value, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    char cause[96];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *why = strerror_r(errno_value, cause, sizeof cause);
    if (n >= 0 && (size_t)n < sizeof text)
        (void)snprintf(text + n, sizeof text - (size_t)n, ": %s", why);
    memcpy(err_buffer, text, sizeof text);
    return code;
}

paramo_err err_prefix(paramo_err code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    char joined[2 * ERR_TEXT_MAX + 2];
    (void)snprintf(joined, sizeof joined, "%s: %s", n < 0 ? "" : text, err_buffer);
    joined[ERR_TEXT_MAX - 1] = '\0';
    memcpy(err_buffer, joined, sizeof err_buffer);
    return code;
}

paramo_err err_memory(size_t bytes)
{
    return err_set(PARAMO_E_MEMORY, "out of memory (%zu bytes requested)", bytes);
}

const char *err_text(void)
{
    return err_buffer;
}

void err_text_copy(char dst[ERR_TEXT_MAX])
{
    memcpy(dst, err_buffer, ERR_TEXT_MAX);
}

const char *err_name(paramo_err code)
{
    switch (code) {
#define X(number, name, text)                                                                                \
    case PARAMO_E_##name:                                                                                    \
        return "PARAMO_E_" #name;
        PARAMO_ERRORS(X)
#undef X
    }
    return "PARAMO_E_UNKNOWN";
}

const char *err_sentence(paramo_err code)
{
    switch (code) {
#define X(number, name, text)                                                                                \
    case PARAMO_E_##name:                                                                                    \
        return text;
        PARAMO_ERRORS(X)
#undef X
    }
    return "unknown error";
}

paramo_err err_from_wire(unsigned number)
{
    switch (number) {
#define X(value, name, text)                                                                                 \
    case value:                                                                                              \
        return PARAMO_E_##name;
        PARAMO_ERRORS(X)
#undef X
    default:
        return PARAMO_E_INTERNAL;
    }
}
