// A handle may wait for another app's handle: each customer of a process has a thread, whichever of them was
// there first, and whether or not it was alone when its handle was set.
#include <condition_variable>
#include <mutex>

#include "ps/ps.h"

using namespace ps;

static std::mutex mu;
static std::condition_variable cond;
static int told; /* handles of the other app that have run */

int main()
{
    Start(0);
    if (IsServer()) {
        auto first = new KVServer<float>(0);
        auto waits = [](const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server) {
            if (meta.cmd == 0) {
                std::unique_lock<std::mutex> lock(mu);
                CHECK(cond.wait_for(lock, std::chrono::seconds(60), [] { return told > 0; }))
                    << "the other app's handle has not run";
                told--;
            }
            KVServerDefaultHandle<float>()(meta, data, server);
        };
        auto tells = [](const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server) {
            {
                std::lock_guard<std::mutex> lock(mu);
                told++;
            }
            cond.notify_all();
            KVServerDefaultHandle<float>()(meta, data, server);
        };
        first->set_request_handle(waits);
        Postoffice::Get()->Barrier(0, kServerGroup +
                                          kWorkerGroup); /* requests have been handled while it was alone */
        auto second = new KVServer<float>(1);
        second->set_request_handle(tells);
        Postoffice::Get()->Barrier(0,
                                   kServerGroup + kWorkerGroup); /* the first may wait for it from here on */
        RegisterExitCallback([=] {
            delete first;
            delete second;
        });
    }
    if (IsWorker()) {
        KVWorker<float> slow(0, 0), quick(1, 1);
        for (int i = 0; i < 20; i++)
            slow.Wait(slow.Push({1, kMaxKey}, {1, 1}, {}, 1));
        Postoffice::Get()->Barrier(0, kServerGroup + kWorkerGroup);
        Postoffice::Get()->Barrier(0, kServerGroup + kWorkerGroup);
        for (int i = 0; i < 20; i++) {
            const int waiting = slow.Push({1, kMaxKey}, {1, 1});
            quick.Wait(quick.Push({1, kMaxKey}, {1, 1}));
            slow.Wait(waiting);
        }
    }
    Finalize(0);
    return 0;
}
