/*
 * CHECK, LOG and their kind, as programs on ps-lite use them (the names are dmlc-core's and glog's).
 *
 * Its guard is dmlc-core's own: a program gets the one of the two headers that it includes first. Macros that are
 * defined already (by glog) are left alone. With DMLC_USE_GLOG glog itself is used.
 *
 * A failed CHECK and LOG(FATAL) write their line to standard error and throw dmlc::Error; with
 * -DDMLC_LOG_FATAL_THROW=0 they abort instead. A line is one write: lines of several threads never mix.
 * Knows nothing of Paramo. Tests: test/ps/unit_logging.cc.
 */
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream> /* not for us: programs take it from here */
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>

#ifndef DMLC_LOG_FATAL_THROW
#define DMLC_LOG_FATAL_THROW 1
#endif

namespace dmlc
{
struct Error : public std::runtime_error {
    explicit Error(const std::string &what) : std::runtime_error(what)
    {
    }
};
} // namespace dmlc

#if defined(DMLC_USE_GLOG) && DMLC_USE_GLOG
#include <glog/logging.h>

namespace dmlc
{
inline void InitLogging(const char *argv0)
{
    google::InitGoogleLogging(argv0);
}
} // namespace dmlc

#else

namespace dmlc
{
/* For programs that call it; there is nothing to set up. */
inline void InitLogging(const char *)
{
}

/* A line of the log while it is composed. */
class LogLine
{
  public:
    LogLine(const char *file, int line)
    {
        char when[16] = "";
        std::time_t now = std::time(nullptr);
        struct tm parts;
        if (localtime_r(&now, &parts))
            std::strftime(when, sizeof when, "%H:%M:%S", &parts);
        text_ << '[' << when << "] " << file << ':' << line << ": ";
    }

    std::ostream &stream()
    {
        return text_;
    }

  protected:
    /* Writes the line, and returns it without the newline. */
    std::string write()
    {
        std::string line = text_.str();
        std::string whole = line + "\n";
        std::fwrite(whole.data(), 1, whole.size(), stderr);
        return line;
    }

  private:
    std::ostringstream text_;
};

/* Writes its line when the statement ends. */
class LogMessage : public LogLine
{
  public:
    LogMessage(const char *file, int line) : LogLine(file, line)
    {
    }
    LogMessage(const LogMessage &) = delete;
    LogMessage &operator=(const LogMessage &) = delete;
    ~LogMessage()
    {
        write();
    }
};

/* Writes its line, then throws an exception or aborts the process. */
class LogMessageFatal : public LogLine
{
  public:
    LogMessageFatal(const char *file, int line) : LogLine(file, line)
    {
    }
    LogMessageFatal(const LogMessageFatal &) = delete;
    LogMessageFatal &operator=(const LogMessageFatal &) = delete;
#if DMLC_LOG_FATAL_THROW
    [[noreturn]] ~LogMessageFatal() noexcept(false)
    {
        throw Error(write());
    }
#else
    [[noreturn]] ~LogMessageFatal()
    {
        write();
        std::abort();
    }
#endif
};

/* Lets both arms of ?: be void; & binds weaker than <<. */
class LogMessageVoidify
{
  public:
    void operator&(std::ostream &)
    {
    }
};
} // namespace dmlc

#ifndef LOG
#define LOG_INFO                    ::dmlc::LogMessage(__FILE__, __LINE__)
#define LOG_WARNING                 LOG_INFO
#define LOG_ERROR                   LOG_INFO
#define LOG_FATAL                   ::dmlc::LogMessageFatal(__FILE__, __LINE__)
#define LOG_QFATAL                  LOG_FATAL
#define LOG(severity)               LOG_##severity.stream()
#define LG                          LOG_INFO.stream()
#define LOG_IF(severity, condition) !(condition) ? (void)0 : ::dmlc::LogMessageVoidify() & LOG(severity)
#ifdef NDEBUG
#define LOG_DFATAL     LOG_ERROR
#define DFATAL         ERROR
#define DLOG(severity) true ? (void)0 : ::dmlc::LogMessageVoidify() & LOG(severity)
#define DLOG_IF(severity, condition)                                                                         \
    (true || !(condition)) ? (void)0 : ::dmlc::LogMessageVoidify() & LOG(severity)
#else
#define LOG_DFATAL                   LOG_FATAL
#define DFATAL                       FATAL
#define DLOG(severity)               LOG(severity)
#define DLOG_IF(severity, condition) LOG_IF(severity, condition)
#endif
#endif

#ifndef VLOG
#define VLOG(level) LOG_INFO.stream()
#endif
#ifndef LOG_EVERY_N
#define LOG_EVERY_N(severity, n) LOG(severity)
#endif

/* An expression, so that `if (a) CHECK(b); else ...` means what it says. */
#ifndef CHECK
#define CHECK(x)                                                                                             \
    (x) ? (void)0                                                                                            \
        : ::dmlc::LogMessageVoidify() & ::dmlc::LogMessageFatal(__FILE__, __LINE__).stream()                 \
                                            << "Check failed: " #x << ' '
#define CHECK_LT(x, y) CHECK((x) < (y))
#define CHECK_GT(x, y) CHECK((x) > (y))
#define CHECK_LE(x, y) CHECK((x) <= (y))
#define CHECK_GE(x, y) CHECK((x) >= (y))
#define CHECK_EQ(x, y) CHECK((x) == (y))
#define CHECK_NE(x, y) CHECK((x) != (y))
#endif

#ifndef CHECK_NOTNULL
namespace dmlc
{
template <typename T> inline T CheckNotNull(T pointer, const char *what, const char *file, int line)
{
    if (pointer == nullptr)
        LogMessageFatal(file, line).stream() << "Check failed: " << what << " is null";
    return pointer;
}
} // namespace dmlc
#define CHECK_NOTNULL(x) ::dmlc::CheckNotNull((x), #x, __FILE__, __LINE__)
#endif

#ifndef DCHECK
#ifdef NDEBUG
#define DCHECK(x)                                                                                            \
    while (false)                                                                                            \
    CHECK(x)
#define DCHECK_LT(x, y) DCHECK((x) < (y))
#define DCHECK_GT(x, y) DCHECK((x) > (y))
#define DCHECK_LE(x, y) DCHECK((x) <= (y))
#define DCHECK_GE(x, y) DCHECK((x) >= (y))
#define DCHECK_EQ(x, y) DCHECK((x) == (y))
#define DCHECK_NE(x, y) DCHECK((x) != (y))
#else
#define DCHECK(x)       CHECK(x)
#define DCHECK_LT(x, y) CHECK((x) < (y))
#define DCHECK_GT(x, y) CHECK((x) > (y))
#define DCHECK_LE(x, y) CHECK((x) <= (y))
#define DCHECK_GE(x, y) CHECK((x) >= (y))
#define DCHECK_EQ(x, y) CHECK((x) == (y))
#define DCHECK_NE(x, y) CHECK((x) != (y))
#endif
#endif

#endif /* DMLC_USE_GLOG */
#endif /* DMLC_LOGGING_H_ */
