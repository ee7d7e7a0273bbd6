// Values of every arithmetic type, one app for each; the keys at both ends of their range.
// Sanitizers: address; kv_callbacks has the same threads.
#include "ps/ps.h"

template <typename Val> struct App {
    static void Serve(int app)
    {
        auto *server = new ps::KVServer<Val>(app);
        server->set_request_handle(ps::KVServerDefaultHandle<Val>());
        ps::RegisterExitCallback([server] { delete server; });
    }
    static void Work(int app)
    {
        ps::KVWorker<Val> kv(app, app);
        const ps::Key rank = ps::MyRank();
        std::vector<ps::Key> keys = {rank, 1000 + rank, ps::kMaxKey / 2, ps::kMaxKey - 100 - rank,
                                     ps::kMaxKey};
        keys[2] += rank + 1;
        keys[4] -= rank;
        std::vector<Val> vals = {Val(1), Val(0), Val(1), Val(1), Val(1)}, got;
        kv.Wait(kv.Push(keys, vals));
        kv.Wait(kv.Pull(keys, &got));
        CHECK(got == vals) << "app " << app;
        ps::SArray<Val> zvals(vals), zgot(5);
        kv.Wait(kv.ZPushPull(ps::SArray<ps::Key>(keys), zvals, &zgot));
        for (int i = 0; i < 5; ++i)
            CHECK_EQ(zgot[i], Val(vals[i] + vals[i])) << "app " << app;
    }
};

template <> void App<bool>::Work(int app)
{
    ps::KVWorker<bool> kv(app, app);
    ps::SArray<ps::Key> keys{ps::Key(5 + ps::MyRank())};
    ps::SArray<bool> yes(1, true), got;
    kv.Wait(kv.ZPush(keys, yes));
    kv.Wait(kv.ZPull(keys, &got));
    CHECK(got.size() == 1 && got[0]);
}

template <typename F> void ForAll(F f)
{
    f(App<char>(), 0);
    f(App<int8_t>(), 1);
    f(App<uint8_t>(), 2);
    f(App<int16_t>(), 3);
    f(App<uint16_t>(), 4);
    f(App<int32_t>(), 5);
    f(App<uint32_t>(), 6);
    f(App<int64_t>(), 7);
    f(App<uint64_t>(), 8);
    f(App<float>(), 9);
    f(App<double>(), 10);
    f(App<long double>(), 11);
    f(App<bool>(), 12);
}

int main()
{
    ps::Start(0);
    if (ps::IsServer())
        ForAll([](auto type, int app) { decltype(type)::Serve(app); });
    if (ps::IsWorker())
        ForAll([](auto type, int app) { decltype(type)::Work(app); });
    ps::Finalize(0);
    return 0;
}
