/*
 * Assertions that walk lists or sets. They run only in builds for tests: with a sanitizer, or with
 * -DPARAMO_ASSERT_SLOW=1. Cheap assertions are plain assert(), and run in every build. Tests: none; it has no code of
 * its own.
 */
#ifndef BASE_ASSERT_SLOW_H
#define BASE_ASSERT_SLOW_H

#include <assert.h>

#ifndef PARAMO_ASSERT_SLOW
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PARAMO_ASSERT_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PARAMO_ASSERT_SLOW 1
#endif
#endif
#endif
#ifndef PARAMO_ASSERT_SLOW
#define PARAMO_ASSERT_SLOW 0
#endif

/* The condition is compiled in every build, and evaluated only in those. */
#define assert_slow(condition) assert(!PARAMO_ASSERT_SLOW || (condition))

#endif
