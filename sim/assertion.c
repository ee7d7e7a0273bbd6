/*
 * Assertions that fail. The linker gives the program's calls of __assert_fail to this function (CMakeLists.txt). It
 * logs the text as an internal error, which becomes the schedule's result (play.c, overhear()), and then ends the
 * process as libc does.
 * scripts/mutants has planted bugs that are found by it.
 */
#include "base/log.h"

_Noreturn void __real___assert_fail(const char *text, const char *file, unsigned line, const char *function);
_Noreturn void __wrap___assert_fail(const char *text, const char *file, unsigned line, const char *function);

void __wrap___assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
    log_error("internal error: %s: assertion '%s' failed", function, text);
    __real___assert_fail(text, file, line, function);
}
