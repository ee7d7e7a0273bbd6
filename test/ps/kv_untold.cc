// Nothing is lost in silence: timestamps begin at 0, unknown ones are an error and never a hang; a
// KVWorker that goes waits for what it has pushed; a failure for which no call waits makes Finalize
// fail, once; and a handle or callback may throw anything. A request has failed, too, if the server closes
// its app before it answers.
#include <atomic>

#include "errors.h"
#include "event.h"
#include "ps/ps.h"

using namespace ps;

static void Numbers()
{
    KVWorker<float> kv(0, 7);
    SimpleApp app(1, 7);
    CHECK(!Error([&] { kv.Wait(0); }).empty()) << "nothing has been asked for yet";
    CHECK_EQ(kv.Push({1}, {0}), 0);
    kv.Wait(0);
    kv.Wait(0);
    CHECK_EQ(kv.Push({1}, {0}), 1);
    kv.Wait(1);
    CHECK_EQ(app.Request(0, "", kServerGroup), 0);
    app.Wait(0);
    CHECK_EQ(kv.get_customer()->NumResponse(0), 1);
    for (int unknown : {2, 5, 1000, 123456, (1 << 30) - 1, 1 << 30, (1 << 30) + 5, -1, -1000})
        CHECK(!Error([&] { kv.Wait(unknown); }).empty()) << unknown;
    Customer own(2, 7, [](const Message &) {});
    CHECK_EQ(own.NewRequest(kServerGroup), 0);
    CHECK_EQ(own.NewRequest(kServerGroup), 1);
    own.AddResponse(0, NumServers());
    own.AddResponse(1, NumServers());
    own.WaitRequest(0);
    own.WaitRequest(1);
    CHECK(!Error([&] { own.WaitRequest(2); }).empty());
    CHECK_EQ(own.NewRequest(kServerGroup), 2); /* nothing is sent for it: the customer goes all the same */
}

static void Leaving()
{
    std::atomic<int> called{0};
    {
        KVWorker<float> kv(0, 8);
        for (int i = 0; i < 50; i++)
            kv.Push({100 + static_cast<Key>(MyRank())}, {1}, {}, 1, [&called] { called++; });
    }
    CHECK_EQ(called.load(), 50) << "a KVWorker is gone before what it has pushed";
    KVWorker<float> kv(0, 8);
    std::vector<float> got;
    kv.Wait(kv.Pull({100 + static_cast<Key>(MyRank())}, &got));
    CHECK_EQ(got[0], 50);
}

/* Of a server: opens app 3, and closes it when it has got that number of requests, none of which is answered. */
static void CloseUnanswered(size_t requests)
{
    Event all("the requests to an app that is closed");
    std::atomic<size_t> got{0};
    KVServer<float> server(3);
    server.set_request_handle([&](const KVMeta &, const KVPairs<float> &, KVServer<float> *) {
        if (++got == requests)
            all.Set();
    });
    all.Wait();
}

int main()
{
    Start(0);
    auto store = std::make_shared<KVServerDefaultHandle<float>>();
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        auto simple = new SimpleApp(1);
        server->set_request_handle([store](const KVMeta &m, const KVPairs<float> &d, KVServer<float> *s) {
            if (m.cmd == 42)
                throw 42;
            if (m.cmd == 1)
                std::this_thread::yield();
            (*store)(m, d, s);
        });
        simple->set_request_handle([](const SimpleData &req, SimpleApp *app) {
            if (req.head == 42)
                throw std::string("no std::exception either");
            app->Response(req);
        });
        RegisterExitCallback([=] {
            delete server;
            delete simple;
        });
        if (MyRank() == 0)
            CloseUnanswered(2);
    }
    if (IsWorker()) {
        const int rank = MyRank();
        Numbers();
        Leaving();
        KVWorker<float> kv(0, 0);
        SimpleApp app(1, 0);
        app.set_response_handle([](const SimpleData &req, SimpleApp *) {
            if (req.head == 5)
                throw 5;
        });
        CHECK(Has(Error([&] { kv.Wait(kv.Push({1}, {1}, {}, 42)); }), "no std::exception"));
        CHECK(Has(Error([&] { app.Wait(app.Request(42, "", kServerGroup)); }), "no std::exception"));
        CHECK(Has(Error([&] { app.Wait(app.Request(5, "", kServerGroup)); }), "response handle"));
        CHECK(Has(Error([&] { kv.Wait(kv.Push({1}, {1}, {}, 0, [] { throw 1; })); }), "callback"));
        kv.Wait(kv.Push({1}, {1}));
        if (rank == 0) { /* three without a Wait */
            KVWorker<float> *closed = new KVWorker<float>(3, 0);
            closed->Push({1}, {1});
            CHECK(Has(Error([&] { closed->Wait(closed->Push({1}, {1})); }), "closed"));
            RegisterExitCallback([closed] { delete closed; });
            kv.Push({1}, {1}, {}, 42);
            KVWorker<float> gone(0, 9);
            gone.Push({1}, {1}, {}, 42, [] { CHECK(false) << "it has failed"; });
        }
        const std::string error = Error([] { Finalize(0); });
        CHECK_EQ(Has(error, "3 requests have failed"), rank == 0) << error;
        CHECK_EQ(error.empty(), rank != 0) << error;
        return 0;
    }
    Finalize(0);
    return 0;
}
