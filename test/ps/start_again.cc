// Start ... Finalize several times in one process: with objects that live on, with new ones, with and without
// the barrier at the end, with requests that fail in one round and not in the next. argv[1]: how many times.
#include "errors.h"
#include "ps/ps.h"

using namespace ps;

int main(int argc, char *argv[])
{
    const int times = argc > 1 ? atoi(argv[1]) : 3;
    std::unique_ptr<KVServer<int>> lasting(IsServer() ? new KVServer<int>(0) : nullptr);
    if (lasting)
        lasting->set_request_handle(KVServerDefaultHandle<int>());
    std::unique_ptr<KVWorker<int>> kv(IsWorker() ? new KVWorker<int>(0, 0) : nullptr);
    int exits = 0;
    for (int i = 1; i <= times; ++i) {
        Start(0);
        RegisterExitCallback([&exits] { exits++; });
        RegisterExitCallback([&exits] { exits++; });
        std::unique_ptr<KVServer<float>> other(IsServer() ? new KVServer<float>(1) : nullptr);
        if (other)
            other->set_request_handle(KVServerDefaultHandle<float>());
        if (IsWorker()) {
            /* A server may have another rank this time, so keys are fresh ones. */
            std::vector<Key> keys = {Key(10 * i + MyRank()), kMaxKey - 10 * i - MyRank()};
            std::vector<int> got;
            kv->Wait(kv->Push(keys, {1, 2}));
            kv->Wait(kv->Pull(keys, &got));
            CHECK(got == std::vector<int>({1, 2}));
            const bool right = i % 2 == 0; /* the number of values; the timestamp is the same in each round */
            const int ts = kv->Push(keys, std::vector<int>(right ? 2 : 4, 1));
            CHECK_EQ(Error([&] { kv->Wait(ts); }).empty(), right) << "round " << i << ", request " << ts;
            KVWorker<float> floats(1, 1);
            std::vector<float> out;
            floats.Wait(floats.PushPull(keys, {0.5, 1.5}, &out));
            CHECK(out == std::vector<float>({0.5, 1.5}));
        }
        if (i % 2 == 0)
            Postoffice::Get()->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
        Finalize(0, i % 2 == 1);
        CHECK_EQ(exits, 2 * i);
    }
    return 0;
}
