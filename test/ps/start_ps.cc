// A job as BytePS begins and ends one, with what its fork of ps-lite has beside the rest: StartPS and
// Finalize by role, GetRole, and constructors that name an instance. A server keeps a sum for each key and
// answers from another thread's place and time: when all workers have pushed. It gets what they push in memory of its
// own (RegisterRecvBuffer).
#include <map>

#include "expect.h"
#include "ps/ps.h"

using namespace ps;

enum { KEY = 3, PUSHED = 100 };

struct Sum {
    std::vector<char> kept;
    std::map<int, SArray<char>> buffers; /* by worker */
    std::vector<KVMeta> waiting;
    KVPairs<char> answer;
};

static void Add(Sum *sum, const KVMeta &meta, const KVPairs<char> &data, KVServer<char> *server)
{
    if (meta.pull) {
        sum->answer.keys = data.keys;
        sum->answer.lens = {static_cast<int>(sum->kept.size())};
        sum->answer.vals = SArray<char>(sum->kept.data(), sum->kept.size(), false);
        server->Response(meta, sum->answer);
        return;
    }
    EXPECT(data.vals.data() == sum->buffers[meta.sender].data());
    sum->kept.resize(data.vals.size(), 0);
    for (size_t i = 0; i < data.vals.size(); i++)
        sum->kept[i] = static_cast<char>(sum->kept[i] + data.vals[i]);
    sum->waiting.push_back(meta);
    if (sum->waiting.size() < static_cast<size_t>(NumWorkers()))
        return;
    for (const KVMeta &one : sum->waiting)
        server->Response(one);
    sum->waiting.clear();
}

int main()
{
    const Node::Role role = GetRole(GetEnv("DMLC_ROLE", "server"));
    EXPECT(GetRole("worker") == Node::WORKER && GetRole("joint") == Node::JOINT);
    EXPECT_THROW(GetRole("manager"));
    EXPECT_THROW(
        StartPS(0, Node::JOINT, -1, true)); /* what a process cannot be here is said before it starts */
    EXPECT_THROW(StartPS(0, role == Node::WORKER ? Node::SERVER : Node::WORKER, -1, true));
    StartPS(0, role, role == Node::SCHEDULER ? 0 : -1, true, "start_ps\0");
    EXPECT_THROW(KVWorker<char>(0, 1, 1));
    std::map<Key, Sum> sums;
    std::unique_ptr<KVServer<char>> server;
    if (role != Node::WORKER) {
        server.reset(new KVServer<char>(0, role == Node::SCHEDULER, 0));
        server->set_request_handle(
            [&sums](const KVMeta &meta, const KVPairs<char> &data, KVServer<char> *self) {
                Add(&sums[data.keys[0]], meta, data, self);
            });
        EXPECT_THROW(server->RegisterRecvBuffer(9, SArray<Key>(2, 0), SArray<char>(1)));
    }
    if (role == Node::SERVER) {
        const SArray<Key> keys(1, Postoffice::Get()->GetServerKeyRanges()[MyRank()].begin() + KEY);
        for (int rank = 0; rank < NumWorkers(); rank++) {
            SArray<char> &buffer = sums[keys[0]].buffers[Postoffice::WorkerRankToID(rank)];
            buffer.resize(PUSHED);
            server->RegisterRecvBufferWithRank(rank, keys, buffer, SArray<int>(1, PUSHED));
        }
    }
    EXPECT(Postoffice::GetServer() == Postoffice::Get() && Postoffice::GetWorker(0) == Postoffice::Get());
    EXPECT(Postoffice::GetScheduler() == Postoffice::Get() && Postoffice::Get()->group_size() == 1);
    EXPECT(Postoffice::Get()->num_worker_instances() == NumWorkers());
    EXPECT(Postoffice::Get()->num_server_instances() == NumServers());
    EXPECT_THROW(Postoffice::GetWorker(1));
    if (!Postoffice::Get()->is_recovery())
        Postoffice::Get()->Barrier(0, kWorkerGroup + kServerGroup + kScheduler);
    if (role == Node::WORKER) {
        KVWorker<char> kv(0, 0, 0);
        for (const Range &range : Postoffice::Get()->GetServerKeyRanges()) {
            const SArray<Key> keys(1, range.begin() + KEY);
            SArray<char> vals(PUSHED, 2), sum(PUSHED);
            SArray<int> lens(1, PUSHED);
            EXPECT_THROW(kv.Wait(kv.ZPush(keys, SArray<char>(PUSHED + 1, 2))));
            kv.Wait(kv.ZPush(keys, vals, lens));
            kv.Wait(kv.ZPull(keys, &sum, &lens));
            EXPECT(lens[0] == PUSHED && sum[0] == 2 * NumWorkers() && sum[PUSHED - 1] == 2 * NumWorkers());
        }
    }
    Finalize(0, role, true);
    return Failures("start_ps");
}
