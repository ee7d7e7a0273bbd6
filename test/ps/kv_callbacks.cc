// Callbacks that issue further requests: each chain of pushes and pulls drives itself, and Wait returns after
// the callback of what it waits for. Requests from several threads, with cmd and priority.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "event.h"
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

/* More requests than can be in flight, each of which issues another, as BytePS pulls when a push is over. In a
 * callback no thread can wait for room: those requests are deferred, and keep their order. */
static void Burst(KVWorker<int64_t> *kv)
{
    const int many = 6000;
    std::atomic<int> pushed{0}, pulled{0};
    std::vector<SArray<int64_t>> got(many);
    const SArray<Key> own_key(1, Key(1000 + MyRank()));
    std::atomic<int> last_ts{-1}, refused{0};
    for (int i = 0; i < many; i++)
        kv->ZPush(own_key, SArray<int64_t>(1, 1), {}, 0, [&, i] {
            pushed++;
            if (i % 2 == 0)
                last_ts = kv->ZPull(own_key, &got[i], nullptr, 0, [&pulled] { pulled++; });
            else
                kv->Push({own_key[0]}, {0}); /* copied, and without a callback */
        });
    Event burst("all requests of one callback");
    kv->ZPush(own_key, SArray<int64_t>(1, 1), {}, 0, [&] {
        for (int i = 0; i < many; i++) {
            std::vector<int64_t> *const into = new std::vector<int64_t>;
            const int64_t least = many + 2 + i;
            kv->Push({own_key[0]}, {1});
            const int ts = kv->Pull({own_key[0]}, into, nullptr, 0, [&, into, least, i] {
                CHECK_GE((*into)[0], least); /* in order: after its push */
                delete into;
                if (i + 1 == many)
                    burst.Set();
            });
            try {
                if (i + 1 == many)
                    kv->Wait(ts);
            } catch (const dmlc::Error &) {
                refused++; /* a wait in a callback of the same customer */
            }
        }
    });
    burst.Wait();
    CHECK_EQ(refused, 1);
    kv->Wait(last_ts);
    std::vector<int64_t> sum;
    kv->Wait(kv->Pull({own_key[0]}, &sum));
    CHECK_EQ(sum[0], 2 * many + 1);
    CHECK(pushed == many && pulled == many / 2);
}

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

        if (GetEnv("PS_DROP_MSG", 0) == 0) /* a message that is sent again is overtaken by others */
            Burst(&kv);

        bool called_at_once = false; /* no keys: nothing to send, the callback is called all the same */
        kv.Wait(kv.Push({}, {}, {}, 0, [&] { called_at_once = true; }));
        CHECK(called_at_once);
    }
    Finalize(0);
    return 0;
}
