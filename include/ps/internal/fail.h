/*
 * How this layer fails: one line to the log, then dmlc::Error (with -DDMLC_LOG_FATAL_THROW=0 the process
 * aborts).
 *
 * The headers here never use the CHECK family or LOG(FATAL): a program may have brought its own before ours.
 * dmlc-core's CHECK is a bare `if`, which takes the `else` that follows; glog's ends the process, also for a
 * mistake that another node made. PS_REQUIRE is an expression with any headers. Tests:
 * test/ps/unit_task.cc, built with each of test/ps/macros.
 */
#ifndef PS_INTERNAL_FAIL_H_
#define PS_INTERNAL_FAIL_H_

#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>

#include "dmlc/logging.h"

#ifndef DMLC_LOG_FATAL_THROW
#define DMLC_LOG_FATAL_THROW 1
#endif

namespace ps
{
namespace internal
{
/* For what the log has already. */
[[noreturn]] inline void Throw(const std::string &why)
{
#if DMLC_LOG_FATAL_THROW
    throw ::dmlc::Error(why);
#else
    (void)why;
    std::abort();
#endif
}
[[noreturn]] inline void Fail(const std::string &why)
{
    LOG(ERROR) << why;
    Throw(why);
}

/* The text of a failure while it is gathered: Failing() & (Text() << ...), and << binds stronger than &. */
class Text
{
  public:
    /* broken: the condition, which is the text if no other is given. */
    explicit Text(const char *broken) : broken_(broken)
    {
    }
    template <typename T> Text &operator<<(const T &what)
    {
        text_ << what;
        return *this;
    }
    std::string str() const
    {
        const std::string text = text_.str();
        return text.empty() ? std::string("check failed: ") + broken_ : text;
    }

  private:
    const char *broken_;
    std::ostringstream text_;
};
struct Failing {
    [[noreturn]] void operator&(const Text &text) const
    {
        Fail(text.str());
    }
};

template <typename T> T *NotNull(T *pointer, const char *what)
{
    if (pointer == nullptr)
        Fail(std::string(what) + " is null");
    return pointer;
}

/* Runs a program's function. Returns what it throws, of any type, as a text that is not empty; or
 * nothing. */
template <typename F> std::string Caught(F &&run) noexcept
{
    try {
        run();
        return std::string();
    } catch (const std::exception &e) {
        return *e.what() != '\0' ? e.what() : "an exception without a text";
    } catch (...) {
        return "an exception that is no std::exception";
    }
}
} // namespace internal
} // namespace ps

#define PS_REQUIRE(condition)                                                                                \
    (condition) ? (void)0 : ::ps::internal::Failing() & ::ps::internal::Text(#condition)
#define PS_FAIL() ::ps::internal::Failing() & ::ps::internal::Text("no reason is given")
#endif
