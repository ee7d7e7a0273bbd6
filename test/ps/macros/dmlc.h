/*
 * What dmlc-core's dmlc/logging.h does to those that come after it: its guard, its Error, and macros of the
 * same semantics. CHECK is a bare `if`, so that an `else` after it binds to it; LOG(FATAL) throws, and the
 * compiler does not know that it never returns.
 */
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#define DMLC_LOG_FATAL_THROW 1
namespace dmlc
{
struct Error : public std::runtime_error {
    explicit Error(const std::string &s) : std::runtime_error(s)
    {
    }
};
struct Line {
    std::ostringstream text;
    std::ostream &stream()
    {
        return text;
    }
    ~Line()
    {
        std::cerr << text.str() << std::endl;
    }
};
struct FatalLine {
    std::ostringstream text;
    std::ostream &stream()
    {
        return text;
    }
    ~FatalLine() noexcept(false)
    {
        throw Error(text.str());
    }
};
struct Void {
    void operator&(std::ostream &)
    {
    }
};
inline void InitLogging(const char *)
{
}
template <typename X, typename Y> std::unique_ptr<std::string> Differ(bool fine, const X &, const Y &)
{
    return std::unique_ptr<std::string>(fine ? nullptr : new std::string("they differ"));
}
} // namespace dmlc

#define CHECK(x)                                                                                             \
    if (!(x))                                                                                                \
    dmlc::FatalLine().stream() << "Check failed: " #x << ": "
#define CHECK_OP(op, x, y)                                                                                   \
    if (auto check_err = dmlc::Differ((x)op(y), x, y))                                                       \
    dmlc::FatalLine().stream() << *check_err
#define CHECK_LT(x, y)   CHECK_OP(<, x, y)
#define CHECK_GT(x, y)   CHECK_OP(>, x, y)
#define CHECK_LE(x, y)   CHECK_OP(<=, x, y)
#define CHECK_GE(x, y)   CHECK_OP(>=, x, y)
#define CHECK_EQ(x, y)   CHECK_OP(==, x, y)
#define CHECK_NE(x, y)   CHECK_OP(!=, x, y)
#define CHECK_NOTNULL(x) ((x) == nullptr ? dmlc::FatalLine().stream() << #x, (x) : (x))
#define DCHECK(x)                                                                                            \
    while (false)                                                                                            \
    CHECK(x)
#define LOG_INFO              dmlc::Line()
#define LOG_ERROR             LOG_INFO
#define LOG_WARNING           LOG_INFO
#define LOG_FATAL             dmlc::FatalLine()
#define VLOG(x)               LOG_INFO.stream()
#define LOG(severity)         LOG_##severity.stream()
#define LG                    LOG_INFO.stream()
#define LOG_IF(severity, con) !(con) ? (void)0 : dmlc::Void() & LOG(severity)
#define DLOG(severity)        true ? (void)0 : dmlc::Void() & LOG(severity)
#endif
