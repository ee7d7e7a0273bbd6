// What a handle or callback may do: wait for another app's handle, even of an app that is made while it runs; make a
// KVWorker, push, pull and wait with it, and delete it; also while its process is in Finalize, where it ends.
#include <atomic>

#include "errors.h"
#include "event.h"
#include "ps/ps.h"

using namespace ps;

enum { ADD = 0, WAITS = 1, FORWARDS = 2, LASTS = 3 };

static Event waits("a request that waits"), second_ran("the handle of app 1");

static void First(const KVMeta &meta, const KVPairs<float> &, KVServer<float> *server)
{
    if (meta.cmd == WAITS) {
        waits.Set();
        second_ran.Wait();
    }
    if (meta.cmd == FORWARDS) {
        KVWorker<float> kv(1, 20);
        kv.Wait(kv.Push({1, kMaxKey}, {1, 1}));
    }
    server->Response(meta);
    if (meta.cmd != LASTS)
        return;
    /* Until the process has left: by then none attaches any more. */
    while (Error([] {
               KVWorker<float> kv(1, 21);
               kv.Wait(kv.Push({static_cast<Key>(MyRank() == 0 ? 1 : kMaxKey)}, {1}));
           }).empty())
        ;
}

int main()
{
    Start(0);
    std::vector<std::unique_ptr<KVServer<float>>> servers;
    auto store = std::make_shared<KVServerDefaultHandle<float>>();
    if (IsServer()) {
        servers.emplace_back(new KVServer<float>(0));
        servers.back()->set_request_handle(First);
        waits.Wait();
        servers.emplace_back(new KVServer<float>(1));
        servers.back()->set_request_handle(
            [store](const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server) {
                second_ran.Set();
                (*store)(meta, data, server);
            });
    }
    if (IsWorker()) {
        KVWorker<float> first(0, 0), second(1, 1);
        const int waiting = first.Push({1, kMaxKey}, {1, 1}, {}, WAITS);
        second.Wait(second.Push({1, kMaxKey}, {1, 1}));
        first.Wait(waiting);
        for (int i = 0; i < 10; i++)
            first.Wait(first.Push({1, kMaxKey}, {1, 1}, {}, FORWARDS));

        Event done("the callback of a push");
        first.Push({1, kMaxKey}, {1, 1}, {}, ADD, [&] {
            std::atomic<int> called{0};
            {
                KVWorker<float> inner(1, 30);
                std::vector<float> got;
                inner.Wait(inner.Pull({1, kMaxKey}, &got));
                CHECK_GE(got[1], 11);
                for (int i = 0; i < 10; i++)
                    inner.Push({3}, {1}, {}, ADD, [&] { called++; });
            }
            CHECK_EQ(called.load(), 10);
            second.Wait(second.Push({2}, {1}));
            done.Set();
        });
        done.Wait();
        SimpleApp simple(1, 31);
        Event answered("the handle of an answer");
        simple.set_response_handle([&](const SimpleData &, SimpleApp *) {
            KVWorker<float> inner(1, 32);
            inner.Wait(inner.Push({2}, {1}));
            answered.Set();
        });
        simple.Request(0, "", Postoffice::ServerRankToID(0));
        answered.Wait();
        Postoffice::Get()->Barrier(
            0, kWorkerGroup); /* LASTS keeps app 0's handle: no worker may need it after that */
        if (MyRank() == 0)
            first.Wait(first.Push({1, kMaxKey}, {1, 1}, {}, LASTS));
        Finalize(0);
        return 0;
    }
    Finalize(0);
    return 0;
}
