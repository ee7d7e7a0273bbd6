// Two customers in one process, each a thread that starts, works and finalises; servers are made before
// Start.
#include <thread>

#include "ps/ps.h"

using namespace ps;

void RunWorker(int customer_id)
{
    Start(customer_id);
    {
        KVWorker<float> kv(0, customer_id);
        const int num = 10000, repeat = 50;
        std::vector<Key> keys(num);
        std::vector<float> vals(num);
        int rank = MyRank();
        srand(rank + 7);
        for (int i = 0; i < num; ++i) {
            keys[i] = kMaxKey / num * i + 10 * rank + customer_id;
            vals[i] = (rand() % 1000);
        }
        std::vector<int> ts;
        for (int i = 0; i < repeat; ++i) {
            ts.push_back(kv.Push(keys, vals));
            if (i > 10)
                kv.Wait(ts[ts.size() - 10]);
        }
        for (int t : ts)
            kv.Wait(t);
        std::vector<float> rets;
        kv.Wait(kv.Pull(keys, &rets));
        for (int i = 0; i < num; ++i)
            CHECK_EQ(rets[i], vals[i] * repeat);
        for (int i = 0; i < repeat; ++i) {
            std::vector<float> outs;
            kv.Wait(kv.PushPull(keys, vals, &outs));
            CHECK_EQ(outs[num - 1], vals[num - 1] * (repeat + i + 1));
        }
    }
    Finalize(customer_id, true);
}

int main()
{
    if (IsServer()) {
        auto server = new KVServer<float>(0);
        server->set_request_handle(KVServerDefaultHandle<float>());
        RegisterExitCallback([server]() { delete server; });
    }
    if (!IsWorker()) {
        Start(0);
        Finalize(0, true);
        return 0;
    }
    std::thread t0(RunWorker, 0);
    std::thread t1(RunWorker, 1);
    t0.join();
    t1.join();
    return 0;
}
