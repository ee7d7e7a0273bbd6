/*
 * Small things that every header of this layer and many programs use. Tests: test/ps/unit_env.cc.
 */
#ifndef PS_INTERNAL_UTILS_H_
#define PS_INTERNAL_UTILS_H_

#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <string>

/* Not for us: what programs get with ps-lite's headers and then use without naming it. */
#include <assert.h>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <queue>
#include <string.h>
#include <unistd.h>
#include <vector>

#include "dmlc/logging.h"
#include "ps/internal/env.h"
#include "ps/internal/fail.h"

namespace ps
{
/* A variable (ps::Environment) as a number, or the default if it is not set. */
template <typename V> inline V GetEnv(const char *key, V default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : static_cast<V>(std::atoll(text));
}
inline std::string GetEnv(const char *key, std::string default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : std::string(text);
}
/* As valid as what Environment::find returns. */
inline const char *GetEnv(const char *key, const char *default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : text;
}
inline const char *GetEnv(const char *key, char *default_val)
{
    return GetEnv(key, static_cast<const char *>(default_val));
}
} // namespace ps

#ifndef DISALLOW_COPY_AND_ASSIGN
#define DISALLOW_COPY_AND_ASSIGN(TypeName)                                                                   \
    TypeName(const TypeName &);                                                                              \
    void operator=(const TypeName &)
#endif

#ifndef LL
#define LL LOG(ERROR)
#endif
#endif
