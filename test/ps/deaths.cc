// For test_deaths.sh, as MXNet starts: StartAsync, a barrier unless it takes a dead node's place. argv[1]:
// rounds; argv[2]: what is tried (waits, callbacks: of a worker; together: the server answers when all
// workers have pushed; returns: worker 0 returns from main without Finalize).
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "ps/ps.h"

using namespace ps;

int main(int argc, char *argv[])
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 3;
    const std::string mode = argc > 2 ? argv[2] : "waits";
    StartAsync(0);
    std::vector<KVMeta> held;
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        server->set_request_handle([&](const KVMeta &meta, const KVPairs<float> &, KVServer<float> *self) {
            held.push_back(meta);
            if (mode == "together" && held.size() < static_cast<size_t>(NumWorkers()))
                return;
            for (const KVMeta &one : held)
                self->Response(one);
            held.clear();
        });
        RegisterExitCallback([server] { delete server; });
    }
    if (Postoffice::Get()->is_recovery())
        std::cout << "is_recovery, rank " << MyRank() << std::endl;
    else
        Postoffice::Get()->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        for (int i = 0; i < rounds; i++) {
            if (mode != "callbacks") {
                kv.Wait(kv.Push({1, kMaxKey - 1}, {1, 1}));
            } else {
                std::mutex mu;
                std::condition_variable cond;
                bool done = false;
                kv.Push({1, kMaxKey - 1}, {1, 1}, {}, 0, [&] {
                    std::lock_guard<std::mutex> lock(mu);
                    done = true;
                    cond.notify_all();
                });
                std::unique_lock<std::mutex> lock(mu);
                cond.wait(lock, [&] { return done; });
            }
            if (i == 0)
                std::cout << "works" << std::endl;
            if (mode == "returns" && MyRank() == 0)
                return 0;
            usleep(10000); /* what a worker computes */
        }
        std::cout << "finished" << std::endl;
    }
    Finalize(0);
    return 0;
}
