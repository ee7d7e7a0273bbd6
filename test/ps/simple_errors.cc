// A request to several nodes, one of which refuses: all of them have handled it and the others' answers have
// been handled when Wait throws what the one said.
// Sanitizers: address; simple_sync_sgd has the same threads.
#include <atomic>

#include "ps/ps.h"

using namespace ps;

int main()
{
    const int times = 20;
    std::atomic<int> handled{0}, answered{0};
    SimpleApp app(0, 0);
    app.set_request_handle([&handled](const SimpleData &req, SimpleApp *self) {
        ++handled;
        if (IsServer() && MyRank() == req.head)
            throw std::runtime_error("not me");
        self->Response(req, "fine");
    });
    app.set_response_handle([&answered](const SimpleData &res, SimpleApp *) {
        CHECK_EQ(res.body, "fine");
        ++answered;
    });
    Start(0);
    const int others = NumServers() + NumWorkers() - 1;
    for (int i = 0; IsScheduler() && i < times; ++i) {
        std::string error;
        const int ts = app.Request(i % NumServers(), "", kServerGroup + kWorkerGroup);
        try {
            app.Wait(ts);
        } catch (const dmlc::Error &e) {
            error = e.what();
        }
        CHECK_NE(error.find("not me"), std::string::npos) << error;
        CHECK_EQ(answered.load(), (i + 1) * others);
        CHECK_EQ(app.get_customer()->NumResponse(ts), others);
    }
    Postoffice::Get()->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    CHECK_EQ(handled.load(), IsScheduler() ? 0 : times);
    Finalize(0);
    return 0;
}
