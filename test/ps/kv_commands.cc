// Commands to a KVServer, as a key-value store's controller sends them: its SimpleApp side is served as soon
// as that handle is set, also on a node that has no other; pushes that come before their handle is set
// wait for it, in order.
#include "ps/ps.h"

using namespace ps;

namespace
{
enum Command { kHello = 1, kServe = 2 };

class Commands
{
  public:
    void operator()(const SimpleData &req, SimpleApp *app)
    {
        app->Response(req, req.head == kHello ? "hello " + req.body : "");
        if (req.head != kServe)
            return;
        std::lock_guard<std::mutex> lock(mu_);
        asked_ = true;
        cond_.notify_all();
    }
    void WaitForServe()
    {
        std::unique_lock<std::mutex> lock(mu_);
        cond_.wait(lock, [this] { return asked_; });
    }

  private:
    std::mutex mu_;
    std::condition_variable cond_;
    bool asked_ = false;
};

void RunServer()
{
    Commands commands;
    std::vector<float> order;
    KVServer<float> server(0);
    static_cast<SimpleApp *>(&server)->set_request_handle(std::ref(commands));
    Start(0);
    if (IsServer()) {
        commands.WaitForServe(); /* the pushes before it are there */
        server.set_request_handle(
            [&order](const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *self) {
                CHECK_LT(data.vals[0], 100) << "refused";
                order.push_back(data.vals[0]);
                self->Response(meta);
            });
    }
    Finalize(0, true);
    if (IsServer()) {
        const std::vector<float> handled = {0, 1, 2, 4, 5};
        CHECK(order == handled);
    }
}

void RunWorker()
{
    KVWorker<float> kv(0, 0);
    Start(0);
    std::vector<std::string> answers;
    kv.set_response_handle([&answers](const SimpleData &res, SimpleApp *) { answers.push_back(res.body); });
    kv.Wait(kv.Request(kHello, "you", kScheduler + kServerGroup));
    CHECK_EQ(answers.size(), static_cast<size_t>(1 + NumServers()));
    for (const std::string &answer : answers)
        CHECK_EQ(answer, "hello you");
    if (MyRank() == 0) {
        const std::vector<Key> keys = {0, kMaxKey};
        std::vector<int> ts;
        for (float i = 0; i < 5; i++)
            ts.push_back(kv.Push(keys, {i == 3 ? 100 : i, i == 3 ? 100 : i}));
        kv.Wait(kv.Request(kServe, "", kServerGroup));
        for (size_t i = 0; i < ts.size(); i++) {
            bool failed = false;
            try {
                kv.Wait(ts[i]);
            } catch (const dmlc::Error &) {
                failed = true;
            }
            CHECK_EQ(failed, i == 3);
        }
        kv.Wait(kv.Push(keys, {5, 5}));
    }
    Finalize(0, true);
}
} // namespace

int main()
{
    if (IsWorker())
        RunWorker();
    else
        RunServer();
    return 0;
}
