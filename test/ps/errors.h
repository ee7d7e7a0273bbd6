/* What a call has thrown, for the programs that look at errors. */
#ifndef TEST_PS_ERRORS_H
#define TEST_PS_ERRORS_H

#include <string>

#include "ps/ps.h"

/* The text of its dmlc::Error; empty: it threw none. */
template <typename F> inline std::string Error(F f)
{
    try {
        f();
    } catch (const dmlc::Error &e) {
        return e.what();
    }
    return std::string();
}

inline bool Has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

#endif
