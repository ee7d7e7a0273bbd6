// For test_deaths.sh, as MXNet starts: StartAsync, a barrier unless it takes a dead node's place. argv[1]:
// rounds; argv[2]: what is tried (waits, callbacks: of a worker; together: the server answers when all
// workers have pushed; returns: worker 0 returns from main without Finalize; commands: servers wait in code of
// their own until a worker's command, as MXNet's do, and a push to the last server stays in its handle until
// argv[3], a fifo, is written to; refused: a push with a callback only is refused; told: a wait reports it).
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>

#include "errors.h"
#include "ps/ps.h"

using namespace ps;

enum { STOP = 7, SLOW = 9, REFUSED = 42 };

/* What one thread waits for, and another one makes true. */
class Event
{
  public:
    void Set()
    {
        std::lock_guard<std::mutex> lock(mu_);
        set_ = true;
        cond_.notify_all();
    }
    void Wait()
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return set_; });
    }

  private:
    std::mutex mu_;
    std::condition_variable cond_;
    bool set_ = false;
};

int main(int argc, char *argv[])
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 3;
    const std::string mode = argc > 2 ? argv[2] : "waits";
    const char *const fifo = argc > 3 ? argv[3] : nullptr;
    StartAsync(0);
    std::vector<KVMeta> held;
    Event stopped;
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        static_cast<SimpleApp *>(server)->set_request_handle([&](const SimpleData &req, SimpleApp *app) {
            app->Response(req);
            if (req.head == STOP)
                stopped.Set();
        });
        server->set_request_handle([&](const KVMeta &meta, const KVPairs<float> &, KVServer<float> *self) {
            if (meta.cmd == REFUSED)
                throw dmlc::Error("this push is not for me");
            if (meta.cmd == SLOW) {
                std::cout << "the handle begins" << std::endl;
                std::ifstream(fifo).get();
                std::cout << "the handle ends" << std::endl;
            }
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
    if (IsServer() && mode == "commands") {
        std::cout << "serves as rank " << MyRank() << std::endl;
        stopped.Wait();
    }
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        const std::vector<Key> keys = {1, mode == "commands" ? kMaxKey / 2 : kMaxKey - 1};
        if (fifo != nullptr && MyRank() == 0)
            kv.Push({kMaxKey - 1}, {1}, {}, SLOW);
        for (int i = 0; i < rounds; i++) {
            if (mode != "callbacks") {
                kv.Wait(kv.Push(keys, {1, 1}));
            } else {
                Event done;
                kv.Push(keys, {1, 1}, {}, 0, [&] { done.Set(); });
                done.Wait();
            }
            if (i == 0)
                std::cout << "works" << std::endl;
            if (i == 0 && (mode == "refused" || mode == "told")) {
                Event done;
                const int ts = kv.Push(keys, {1, 1}, {}, REFUSED, [&] { done.Set(); });
                if (mode == "refused")
                    done.Wait();
                CHECK(!Error([&] { kv.Wait(ts); }).empty());
            }
            if (mode == "returns" && MyRank() == 0)
                return 0;
            usleep(10000); /* what a worker computes */
        }
        std::cout << "finished" << std::endl;
        if (mode == "commands")
            Postoffice::Get()->Barrier(0, kWorkerGroup);
        if (mode == "commands" && MyRank() == 0)
            kv.Wait(kv.Request(STOP, "", kServerGroup));
    }
    Finalize(0);
    return 0;
}
