// Callbacks that issue further requests: each chain of pushes and pulls drives itself, and Wait returns after
// the callback of what it waits for. Requests from several threads, with cmd and priority.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ps/ps.h"

using namespace ps;

class Chain
{
  public:
    Chain(KVWorker<int64_t> *kv, Key key, int steps)
        : kv_(kv), keys_{key}, one_{1}, left_(steps), steps_(steps)
    {
    }
    void Step()
    {
        if (left_-- == 0) {
            got_.clear();
            kv_->ZPull(
                keys_, &got_, nullptr, 0, [this] { Done(); }, 1);
            return;
        }
        kv_->ZPush(
            keys_, one_, {}, 0, [this] { Step(); }, left_ % 3);
    }
    void WaitEnd()
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return done_; });
        CHECK_EQ(got_[0], steps_);
    }

  private:
    void Done()
    {
        std::lock_guard<std::mutex> lock(mu_);
        done_ = true;
        cond_.notify_all();
    }
    KVWorker<int64_t> *kv_;
    SArray<Key> keys_;
    SArray<int64_t> one_, got_;
    int left_, steps_;
    std::mutex mu_;
    std::condition_variable cond_;
    bool done_ = false;
};

int main()
{
    Start(0);
    if (IsServer()) {
        auto server = new KVServer<int64_t>(3);
        server->set_request_handle(KVServerDefaultHandle<int64_t>());
        RegisterExitCallback([server]() { delete server; });
    }
    if (IsWorker()) {
        KVWorker<int64_t> kv(3, 0);
        std::vector<std::unique_ptr<Chain>> chains;
        for (int i = 0; i < 20; ++i)
            chains.emplace_back(new Chain(&kv, kMaxKey / 20 * i + 1 + MyRank(), 100));
        for (auto &chain : chains)
            chain->Step();

        std::vector<std::thread> threads;
        std::atomic<int> called{0};
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                std::vector<Key> keys = {Key(100 + 10 * MyRank() + t), kMaxKey - 100 - 10 * MyRank() - t};
                std::vector<int64_t> vals = {1, 2}, got;
                for (int i = 0; i < 100; ++i) {
                    bool mine = false;
                    kv.Wait(kv.Push(keys, vals, {}, i, [&called, &mine] {
                        called++;
                        mine = true;
                    }));
                    CHECK(mine); /* Wait returns after it */
                }
                kv.Wait(kv.Pull(keys, &got));
                CHECK(got == std::vector<int64_t>({100, 200}));
            });
        for (auto &t : threads)
            t.join();
        CHECK_EQ(called, 400);
        for (auto &chain : chains)
            chain->WaitEnd();

        bool called_at_once = false; /* no keys: nothing to send, the callback is called all the same */
        kv.Wait(kv.Push({}, {}, {}, 0, [&] { called_at_once = true; }));
        CHECK(called_at_once);
    }
    Finalize(0);
    return 0;
}
