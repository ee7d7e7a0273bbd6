// A program in the manner of ps-lite's own first test: everybody starts, servers add, workers push and pull.
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "ps/ps.h"

using namespace ps;

void StartServer()
{
    if (!IsServer())
        return;
    auto server = new KVServer<float>(0);
    server->set_request_handle(KVServerDefaultHandle<float>());
    RegisterExitCallback([server]() { delete server; });
}

void RunWorker()
{
    if (!IsWorker())
        return;
    KVWorker<float> kv(0, 0);

    int num = 10000;
    std::vector<Key> keys(num);
    std::vector<float> vals(num);
    int rank = MyRank();
    srand(rank + 7);
    for (int i = 0; i < num; ++i) {
        keys[i] = kMaxKey / num * i + rank;
        vals[i] = (rand() % 1000);
    }

    int repeat = 50;
    std::vector<int> ts;
    for (int i = 0; i < repeat; ++i) {
        ts.push_back(kv.Push(keys, vals));
        if (i >= 10)
            kv.Wait(ts[ts.size() - 10]);
    }
    for (int t : ts)
        kv.Wait(t);

    std::vector<float> rets;
    kv.Wait(kv.Pull(keys, &rets));
    CHECK_EQ(rets.size(), keys.size());
    for (int i = 0; i < num; ++i)
        CHECK_EQ(rets[i], vals[i] * repeat) << i;

    std::vector<float> outs;
    for (int i = 0; i < repeat; ++i) {
        outs.clear();
        kv.Wait(kv.PushPull(keys, vals, &outs));
    }
    for (int i = 0; i < num; ++i)
        CHECK_EQ(outs[i], vals[i] * 2 * repeat) << i;
    LL << "worker " << rank << " of " << NumWorkers() << " is done";
}

int main(int argc, char *argv[])
{
    Start(0, argc > 0 ? argv[0] : nullptr);
    StartServer();
    RunWorker();
    Finalize(0, true);
    return 0;
}
