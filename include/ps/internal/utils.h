/*
 * Small things that every header of this layer and many programs use. Tests: test/ps/unit_env.cc.
 */
#ifndef PS_INTERNAL_UTILS_H_
#define PS_INTERNAL_UTILS_H_

#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

/* Not used here: programs get these with ps-lite's headers, and use them without including them. */
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
namespace internal
{
template <typename V>
typename std::enable_if<std::is_floating_point<V>::value, V>::type ValueOf(const char *text)
{
    return static_cast<V>(std::strtod(text, nullptr));
}
template <typename V>
typename std::enable_if<!std::is_floating_point<V>::value && !std::is_class<V>::value, V>::type ValueOf(
    const char *text)
{
    return static_cast<V>(std::atoll(text));
}
template <typename V> typename std::enable_if<std::is_class<V>::value, V>::type ValueOf(const char *text)
{
    return V(text);
}
} // namespace internal

/* A variable (ps::Environment) as a value of the default's type, or the default if it is not set. A class is made of
 * the text. */
template <typename V> inline V GetEnv(const char *key, V default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : internal::ValueOf<V>(text);
}
/* "true" and numbers other than 0 are true. */
inline bool GetEnv(const char *key, bool default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : std::strcmp(text, "true") == 0 || std::atoll(text) != 0;
}
inline std::string GetEnv(const char *key, std::string default_val)
{
    const char *text = Environment::Get()->find(key);
    return text == nullptr ? default_val : std::string(text);
}
/* Valid as long as the result of Environment::find. */
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
