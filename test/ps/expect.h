/*
 * What the unit tests of include/ps stand on: EXPECT counts failures and continues; a test's main returns Failures().
 */
#ifndef TEST_PS_EXPECT_H
#define TEST_PS_EXPECT_H

#include <cstdio>
#include <stdexcept>

inline int &FailureCount()
{
    static int count = 0;
    return count;
}

inline int Failures(const char *test)
{
    std::printf("%s: %s\n", test, FailureCount() ? "FAILED" : "passed");
    return FailureCount() ? 1 : 0;
}

#define EXPECT(x)                                                                                            \
    do {                                                                                                     \
        if (!(x)) {                                                                                          \
            std::fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #x);                           \
            FailureCount()++;                                                                                \
        }                                                                                                    \
    } while (0)

#define EXPECT_THROW(statement)                                                                              \
    do {                                                                                                     \
        bool thrown = false;                                                                                 \
        try {                                                                                                \
            statement;                                                                                       \
        } catch (const std::runtime_error &) {                                                               \
            thrown = true;                                                                                   \
        }                                                                                                    \
        EXPECT(thrown &&#statement);                                                                         \
    } while (0)

#endif
