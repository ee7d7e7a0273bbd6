/* What every unit test includes: cmocka with the headers it wants before it. */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* How many seeds of n a test of one thread takes: ThreadSanitizer, ten times slower than nothing, has nothing
 * to find in it. */
#ifdef __SANITIZE_THREAD__
#define UNIT_SEEDS(n) (((n) + 7) / 8)
#else
#define UNIT_SEEDS(n) (n)
#endif

#endif
