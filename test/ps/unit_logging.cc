// Sanitizers: address; it has one thread.
#include "dmlc/logging.h"

#include <fcntl.h>
#include <unistd.h>

#include "expect.h"

/* What f writes to standard error. */
template <typename F> static std::string Captured(F f)
{
    std::fflush(stderr);
    std::FILE *file = std::tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    f();
    std::fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    std::rewind(file);
    char text[1024];
    size_t n = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return std::string(text, n);
}

static bool Has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

int main()
{
    int calls = 0;
    auto one = [&calls] {
        calls++;
        return 1;
    };
    CHECK(one()) << "not " << one();
    CHECK_EQ(one(), 1);
    EXPECT(calls == 2); /* each is evaluated once, a message only if it fails */

    std::string text = Captured([] { LOG(INFO) << "hello " << 5; });
    EXPECT(Has(text, "unit_logging.cc:") && Has(text, "hello 5\n") && text[0] == '[');
    std::string what;
    text = Captured([&what] {
        try {
            int a = 2;
            CHECK_LT(a, 1) << "and more";
        } catch (const dmlc::Error &e) {
            what = e.what();
        }
    });
    EXPECT(Has(text, "Check failed: (a) < (1) and more\n"));
    EXPECT(Has(what, "Check failed: (a) < (1) and more") && !Has(what, "\n"));
    EXPECT_THROW(LOG(FATAL) << "the end");
    EXPECT(Captured([] { LOG_IF(ERROR, false) << "no"; }).empty());
    EXPECT(Has(Captured([] { LOG_IF(WARNING, true) << "yes"; }), "yes"));
    EXPECT(Has(Captured([] { VLOG(1) << "v"; }), "v"));

    /* The else is ours, not the macro's. */
    bool otherwise = false;
    if (calls == 0)
        CHECK(false);
    else
        otherwise = true;
    EXPECT(otherwise);

    int value = 3, *null = nullptr;
    EXPECT(*CHECK_NOTNULL(&value) == 3);
    EXPECT_THROW(CHECK_NOTNULL(null));
    CHECK_NE(null, &value);
    CHECK_GE(value, 3);
    CHECK_LE(value, 3);
    CHECK_GT(value, 2);
#ifdef NDEBUG
    DCHECK_EQ(value, 4) << "not looked at";
#else
    EXPECT_THROW(DCHECK_EQ(value, 4));
#endif
    DLOG(INFO) << "maybe";
    dmlc::InitLogging("name");
    return Failures("logging");
}
