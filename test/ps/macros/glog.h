/*
 * What glog does to those that come after it: CHECK is an expression, CHECK_EQ and its like are a `while`,
 * and all of them, as LOG(FATAL), end the process instead of throwing.
 */
#ifndef TEST_PS_GLOG_H
#define TEST_PS_GLOG_H
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

namespace google
{
struct Message {
    std::ostringstream text;
    bool fatal;
    explicit Message(bool is_fatal) : fatal(is_fatal)
    {
    }
    std::ostream &stream()
    {
        return text;
    }
    ~Message()
    {
        std::cerr << text.str() << std::endl;
        if (fatal)
            std::abort();
    }
};
struct Void {
    void operator&(std::ostream &)
    {
    }
};
template <typename T> T NotNull(T t)
{
    if (t == nullptr)
        Message(true).stream() << "must not be null";
    return t;
}
} // namespace google

#define COMPACT_INFO             google::Message(false)
#define COMPACT_WARNING          google::Message(false)
#define COMPACT_ERROR            google::Message(false)
#define COMPACT_FATAL            google::Message(true)
#define LOG(severity)            COMPACT_##severity.stream()
#define LOG_IF(severity, con)    static_cast<void>(0), !(con) ? (void)0 : google::Void() & LOG(severity)
#define LOG_EVERY_N(severity, n) LOG(severity)
#define VLOG(level)              LOG_IF(INFO, (level) < 1)
#define DLOG(severity)           LOG(severity)
#define CHECK(con)               LOG_IF(FATAL, !(con)) << "Check failed: " #con " "
#define CHECK_OP(op, x, y)                                                                                   \
    while (std::string *differ = ((x)op(y)) ? nullptr : new std::string("they differ"))                      \
    COMPACT_FATAL.stream() << *differ
#define CHECK_EQ(x, y)   CHECK_OP(==, x, y)
#define CHECK_NE(x, y)   CHECK_OP(!=, x, y)
#define CHECK_LE(x, y)   CHECK_OP(<=, x, y)
#define CHECK_LT(x, y)   CHECK_OP(<, x, y)
#define CHECK_GE(x, y)   CHECK_OP(>=, x, y)
#define CHECK_GT(x, y)   CHECK_OP(>, x, y)
#define CHECK_NOTNULL(x) google::NotNull(x)
#define DCHECK(x)        CHECK(x)
#endif
