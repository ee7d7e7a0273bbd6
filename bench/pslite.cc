// One worker, one server: what a request of one key costs when its completion is learned by a callback, or by
// Wait. Compiled against ps-lite and against include/ps by pslite.sh, so it uses what both have. The worker prints NAME
// and microseconds of time for a request; worker and server print NAME and microseconds of processor time.
// pslite [REQUESTS [ONLY]]: of the first kind, the others in proportion; only kinds with ONLY in their name.
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>

#include "ps/ps.h"

using namespace ps;

static const int ALL = kScheduler + kServerGroup + kWorkerGroup;

static std::string only;
static KVWorker<char> *kv;
static SArray<Key> keys;
static SArray<char> vals, room;
static SArray<int> lens;

struct Gate { /* bounds the requests in flight */
    std::mutex mu;
    std::condition_variable cond;
    int out = 0;

    void Enter(int most)
    {
        std::unique_lock<std::mutex> lock(mu);
        cond.wait(lock, [&] { return out < most; });
        out++;
    }
    void Leave()
    {
        std::lock_guard<std::mutex> lock(mu);
        out--;
        cond.notify_one();
    }
    void Drain()
    {
        std::unique_lock<std::mutex> lock(mu);
        cond.wait(lock, [&] { return out == 0; });
    }
};

static void Callbacks(int n, int most)
{
    Gate gate;
    for (int i = 0; i < n; i++) {
        gate.Enter(most);
        kv->ZPush(keys, vals, lens, 0, [&gate] { gate.Leave(); });
    }
    gate.Drain();
}

static void Chained(int n)
{
    Gate gate;
    gate.Enter(1);
    std::function<void()> next = [&] {
        if (--n > 0)
            kv->ZPush(keys, vals, lens, 0, next);
        else
            gate.Leave();
    };
    kv->ZPush(keys, vals, lens, 0, next);
    gate.Drain();
}

static void PushPull(int n)
{
    for (int i = 0; i < n; i++) {
        kv->Wait(kv->ZPush(keys, vals, lens));
        kv->Wait(kv->ZPull(keys, &room, &lens));
    }
}

/* A push a millisecond, as a lightly loaded job has them. */
static void Sparse(int n)
{
    auto next = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i++) {
        std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
        Callbacks(1, 1);
    }
}

static double Processor() /* microseconds */
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* On all nodes; the worker runs it. */
static void Time(const std::string &name, int n, const std::function<void(int)> &run)
{
    using Clock = std::chrono::steady_clock;
    if (name.find(only) == std::string::npos)
        return;
    if (IsWorker())
        run(n / 10 + 1); /* once to get warm */
    Postoffice::Get()->Barrier(0, ALL);
    const double used = Processor();
    const Clock::time_point begin = Clock::now();
    if (IsWorker())
        run(n);
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    Postoffice::Get()->Barrier(0, ALL);
    if (IsWorker())
        std::printf("time %s %.2f\n", name.c_str(), took.count() / n);
    if (!IsScheduler())
        std::printf("processor %s %.2f\n", name.c_str(), (Processor() - used) / n);
}

int main(int argc, char *argv[])
{
    const int n = argc > 1 ? std::atoi(argv[1]) : 4000;
    only = argc > 2 ? argv[2] : "";
    Start(0);
    std::vector<char> kept;
    KVServer<char> *server = nullptr;
    if (IsServer()) {
        server = new KVServer<char>(0);
        server->set_request_handle(
            [&kept](const KVMeta &meta, const KVPairs<char> &data, KVServer<char> *self) {
                KVPairs<char> res;
                if (meta.push)
                    kept.assign(data.vals.data(), data.vals.data() + data.vals.size());
                if (meta.pull) {
                    res.keys = data.keys;
                    res.vals.CopyFrom(kept.data(), kept.size());
                    res.lens.push_back(static_cast<int>(kept.size()));
                }
                self->Response(meta, res);
            });
    }
    Postoffice::Get()->Barrier(0, ALL);
    if (IsWorker()) {
        kv = new KVWorker<char>(0, 0);
        keys.push_back(5);
    }
    Time("idle_second", 1, [](int k) { std::this_thread::sleep_for(std::chrono::seconds(k)); });
    for (int bytes : {4, 400, 1024}) { /* 400: 100 floats */
        vals = SArray<char>(static_cast<size_t>(bytes), 'x');
        room = SArray<char>(static_cast<size_t>(bytes), ' ');
        lens = SArray<int>(1, bytes);
        const std::string size = "_of_" + std::to_string(bytes);
        if (bytes == 400) {
            Time("push_then_pull" + size, n, [](int k) { PushPull(k); });
            continue;
        }
        Time("callback_1" + size, n, [](int k) { Callbacks(k, 1); });
        Time("callback_8" + size, 2 * n, [](int k) { Callbacks(k, 8); });
        Time("callback_64" + size, 8 * n, [](int k) { Callbacks(k, 64); });
        Time("chained" + size, n, [](int k) { Chained(k); });
        Time("push_then_pull" + size, n, [](int k) { PushPull(k); });
        Time("sparse" + size, n / 8, [](int k) { Sparse(k); });
    }
    std::fflush(stdout);
    Finalize(0, true);
    delete kv;
    delete server;
    return 0;
}
