// For test_deaths.sh, as MXNet starts: StartAsync, a barrier unless it takes a dead node's place. argv[1]: a fifo,
// from which each worker reads a byte after its first round. argv[2]: rounds; 0: until a request fails. argv[3]: what
// is tried (waits, callbacks: of a worker; together: the server answers when all workers have pushed; returns: worker
// 0 returns from main without Finalize; commands: servers wait in code of their own until a worker's command, as
// MXNet's do, and a push to the last server stays in its handle until argv[4], a fifo, is written to; refused: a push
// with a callback only is refused; told: a wait reports it; survives: when a server has died, the workers push to the
// other one until a worker has died, too; deletes: worker 0 deletes its KVWorker in a callback of that; forgets: the
// worker's other customer calls Finalize when the fifo says so).
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "errors.h"
#include "event.h"
#include "ps/ps.h"

using namespace ps;

enum { STOP = 7, SLOW = 9, REFUSED = 42 };

static const int ALL = kScheduler + kServerGroup + kWorkerGroup;

static void ReadByte(const char *path)
{
    char byte = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, &byte, 1) == 1) << path;
    close(fd);
}

/* The one of two servers that has not died gets pushes until a worker has died, too. */
static void PushToTheOther(KVWorker<float> *kv)
{
    std::vector<int> dead = Postoffice::Get()->GetDeadNodes();
    CHECK_EQ(dead.size(), 1u);
    const Key key = dead[0] == Postoffice::ServerRankToID(0) ? kMaxKey - 1 : 1;
    std::cout << "goes on" << std::endl;
    while (dead.size() == 1) {
        kv->Wait(kv->Push({key}, {1}));
        dead = Postoffice::Get()->GetDeadNodes();
    }
    std::cout << "served by the other one" << std::endl;
}

int main(int argc, char *argv[])
{
    if (argc < 4)
        return 2;
    const char *const go = argv[1], *const fifo = argc > 4 ? argv[4] : nullptr;
    const int rounds = atoi(argv[2]);
    const std::string mode = argv[3];
    std::thread other;
    if (IsWorker() && mode == "forgets")
        other = std::thread([go] {
            StartAsync(1);
            Postoffice::Get()->Barrier(1, ALL);
            ReadByte(go);
            Finalize(1);
        });
    StartAsync(0);
    std::vector<KVMeta> held;
    Event stopped("a command to stop");
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
        Postoffice::Get()->Barrier(0, ALL);
    if (IsServer() && mode == "commands") {
        std::cout << "serves as rank " << MyRank() << std::endl;
        stopped.Wait();
    }
    if (IsWorker()) {
        KVWorker<float> kv(0, 0);
        const std::vector<Key> keys = {1, mode == "commands" ? kMaxKey / 2 : kMaxKey - 1};
        if (fifo != nullptr && MyRank() == 0)
            kv.Push({kMaxKey - 1}, {1}, {}, SLOW);
        for (int i = 0; rounds == 0 || i < rounds; i++) {
            if (mode == "survives") {
                if (!Error([&] { kv.Wait(kv.Push(keys, {1, 1})); }).empty()) {
                    PushToTheOther(&kv);
                    break;
                }
            } else if (mode != "callbacks") {
                kv.Wait(kv.Push(keys, {1, 1}));
            } else {
                Event done("the callback of a push");
                kv.Push(keys, {1, 1}, {}, 0, [&] { done.Set(); });
                done.Wait();
            }
            if (i == 0)
                std::cout << "works" << std::endl;
            if (i == 0 && (mode == "refused" || mode == "told")) {
                Event done("the callback of a push");
                const int ts = kv.Push(keys, {1, 1}, {}, REFUSED, [&] { done.Set(); });
                if (mode == "refused")
                    done.Wait();
                CHECK(!Error([&] { kv.Wait(ts); }).empty());
            }
            if (mode == "deletes" && MyRank() == 0) {
                KVWorker<float> *own = new KVWorker<float>(0, 1);
                own->Push({1}, {1}, {}, 0, [own] { delete own; });
                Event("the process's end").Wait();
            }
            if (mode == "returns" && MyRank() == 0)
                return 0;
            if (i == 0 && rounds != 1)
                ReadByte(go);
        }
        std::cout << "finished" << std::endl;
        if (mode == "commands")
            Postoffice::Get()->Barrier(0, kWorkerGroup);
        if (mode == "commands" && MyRank() == 0)
            kv.Wait(kv.Request(STOP, "", kServerGroup));
    }
    Finalize(0);
    if (other.joinable())
        other.join();
    return 0;
}
