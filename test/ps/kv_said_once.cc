// What a wait throws is in the log once, and Finalize does not report it again, however many requests have failed
// since.
// Sanitizers: address; kv_untold has the same threads.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "errors.h"
#include "ps/ps.h"

using namespace ps;

/* What f writes to standard error. */
template <typename F> static std::string Logged(F f)
{
    std::FILE *const file = std::tmpfile();
    const int before = dup(STDERR_FILENO);
    CHECK(file != nullptr && before >= 0);
    dup2(fileno(file), STDERR_FILENO);
    const std::string thrown = Error(f);
    dup2(before, STDERR_FILENO);
    close(before);
    CHECK(thrown.empty()) << thrown;
    std::string text(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), ' ');
    CHECK_EQ(pread(fileno(file), &text[0], text.size(), 0), static_cast<ssize_t>(text.size()));
    std::fclose(file);
    return text;
}

static int Count(const std::string &text, const std::string &part)
{
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        count++;
    return count;
}

int main()
{
    const int many = 1500; /* more than Paramo's own 1,024 */
    Start(0);
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        server->set_request_handle([](const KVMeta &, const KVPairs<float> &, KVServer<float> *) {
            throw dmlc::Error("this push is not for me");
        });
        auto simple = new SimpleApp(1);
        RegisterExitCallback([=] {
            delete server;
            delete simple;
        });
    }
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        int ts = -1;
        const std::string log = Logged([&] {
            ts = kv.Push({1}, {1});
            CHECK(Has(Error([&] { kv.Wait(ts); }), "this push is not for me"));
            CHECK(Has(Error([&] { kv.Wait(ts); }), "this push is not for me")) << "the second wait";
        });
        CHECK_EQ(Count(log, "request " + std::to_string(ts) + " failed"), 1) << log;
        SimpleApp app(1, 1);
        app.set_response_handle(
            [](const SimpleData &, SimpleApp *) { throw dmlc::Error("not for me either"); });
        CHECK(Has(Error([&] { app.Wait(app.Request(0, "", kServerGroup)); }), "not for me either"));
        const std::string all = Logged([&] {
            std::vector<int> pushed;
            for (int i = 0; i < many; i++)
                pushed.push_back(kv.Push({1}, {1}));
            for (int one : pushed)
                CHECK(Has(Error([&] { kv.Wait(one); }), "this push is not for me")) << one;
        });
        CHECK_EQ(Count(all, ", customer 0: request "), many);
    }
    const std::string error = Error([] { Finalize(0); });
    CHECK(error.empty()) << error;
    return 0;
}
