// Says which van the process uses: "van tcp" or "van ucx", by whether UCX's library is in its memory after ps::Start,
// and sends more requests than a connection carries before it changes to UCX. Says "few by" and "many by" tcp or ucx,
// by whether UCX's shared memory is there after a few requests and after all. test_van.sh judges.
#include <chrono>
#include <fstream>

#include "expect.h"
#include "ps/ps.h"

using namespace ps;

static bool Maps(const std::string &name)
{
    std::ifstream maps("/proc/self/maps");
    std::string line;
    bool found = false;
    while (std::getline(maps, line))
        found = found || line.find(name) != std::string::npos;
    return found;
}

static void Say(const char *what, const std::string &shows_ucx)
{
    std::fprintf(stderr, "%s %s\n", what, Maps(shows_ucx) ? "ucx" : "tcp");
}

/* UCX is set up beside the requests, at the earliest when the connection has carried much. */
static void AwaitUcx(KVWorker<float> *kv)
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::vector<float> sum;
    while (!Maps("/paramo-ucx-") && std::chrono::steady_clock::now() < deadline)
        kv->Wait(kv->Pull({1}, &sum));
}

int main()
{
    Start(0);
    Say("van", "libucp.so");
    KVServer<float> *server = IsServer() ? new KVServer<float>(0) : nullptr;
    if (server != nullptr)
        server->set_request_handle(KVServerDefaultHandle<float>());
    Postoffice::Get()->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        std::vector<float> none;
        for (int i = 0; i < 10; i++)
            kv.Wait(kv.Pull({1}, &none));
        Say("few by", "/paramo-ucx-");
        for (int i = 0; i < 1200; i++)
            kv.ZPush(SArray<Key>(1, 1), SArray<float>(1, 1), {}, 0, [] {});
        std::vector<float> sum;
        kv.Wait(kv.Pull({1}, &sum));
        Postoffice::Get()->Barrier(0, kWorkerGroup);
        kv.Wait(kv.Pull({1}, &sum));
        EXPECT(sum.size() == 1 && sum[0] == 1200 * static_cast<float>(NumWorkers()));
        if (Maps("libucp.so"))
            AwaitUcx(&kv);
        Say("many by", "/paramo-ucx-");
    }
    Finalize(0);
    delete server;
    return Failures("van_default");
}
