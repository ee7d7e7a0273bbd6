// A server in the manner of a training framework's: pushes of all workers are merged, and answered together
// when the last is there; pulls that come before the first round wait; answers leave from a thread of the
// program's own. What a request brought (SArrays) is kept beyond its answer.
#include <thread>

#include "ps/internal/threadsafe_queue.h"
#include "ps/ps.h"

using namespace ps;

class SyncServer
{
  public:
    SyncServer() : server_(new KVServer<char>(0)), thread_([this] { Loop(); })
    {
        using namespace std::placeholders;
        static_cast<SimpleApp *>(server_)->set_request_handle(
            std::bind(&SyncServer::CommandHandle, this, _1, _2));
        server_->set_request_handle(std::bind(&SyncServer::DataHandle, this, _1, _2, _3));
    }
    ~SyncServer()
    {
        work_.Push(nullptr);
        thread_.join();
        delete server_;
    }

  private:
    struct Merge {
        std::vector<float> sum;
        std::vector<KVMeta> pushes, pulls;
        std::vector<KVPairs<char>> kept;
        int rounds = 0;
    };

    void CommandHandle(const SimpleData &recved, SimpleApp *app)
    {
        if (recved.head == 5)
            scale_ = std::stof(recved.body);
        app->Response(recved);
    }
    void DataHandle(const KVMeta &meta, const KVPairs<char> &data, KVServer<char> *)
    {
        CHECK_EQ(data.keys.size(), 1u);
        Key key = data.keys[0];
        Merge &merge = merges_[key];
        if (meta.push) {
            CHECK_EQ(data.lens.size(), 1u);
            CHECK_EQ(data.vals.size(), static_cast<size_t>(data.lens[0]));
            merge.kept.push_back(data);
            merge.pushes.push_back(meta);
        } else {
            merge.pulls.push_back(meta);
        }
        if (static_cast<int>(merge.pushes.size()) == NumWorkers())
            EndRound(&merge);
        if (merge.rounds > 0)
            Answer(key, &merge);
    }
    void EndRound(Merge *merge)
    {
        for (const auto &kv : merge->kept) { /* arrived in earlier calls */
            SArray<float> values(kv.vals);
            merge->sum.resize(values.size());
            for (size_t i = 0; i < values.size(); ++i)
                merge->sum[i] += scale_ * values[i];
        }
        merge->kept.clear();
        merge->rounds++;
        std::vector<KVMeta> metas;
        metas.swap(merge->pushes);
        work_.Push([this, metas] {
            for (const auto &meta : metas)
                server_->Response(meta);
        });
    }
    void Answer(Key key, Merge *merge)
    {
        for (const auto &meta : merge->pulls) {
            KVPairs<char> res;
            res.keys.push_back(key);
            res.lens.push_back(static_cast<int>(merge->sum.size() * sizeof(float)));
            res.vals.CopyFrom(reinterpret_cast<const char *>(merge->sum.data()),
                              merge->sum.size() * sizeof(float));
            work_.Push([this, meta, res] { server_->Response(meta, res); });
        }
        merge->pulls.clear();
    }
    void Loop()
    {
        for (;;) {
            std::function<void()> f;
            work_.WaitAndPop(&f);
            if (!f)
                return;
            f();
        }
    }

    KVServer<char> *server_;
    float scale_ = 1;
    std::unordered_map<Key, Merge> merges_;
    ThreadsafeQueue<std::function<void()>> work_;
    std::thread thread_;
};

int main()
{
    StartAsync(0, "deferred");
    SyncServer *server = nullptr;
    if (IsServer())
        server = new SyncServer();
    if (!Postoffice::Get()->is_recovery())
        Postoffice::Get()->Barrier(0, kWorkerGroup + kServerGroup + kScheduler);
    if (IsWorker()) {
        KVWorker<char> worker(0, 0);
        if (MyRank() == 0)
            worker.Wait(worker.Request(5, "0.5", kServerGroup));
        Postoffice::Get()->Barrier(0, kWorkerGroup);
        const auto &ranges = Postoffice::Get()->GetServerKeyRanges();
        const size_t sizes[] = {1, 1000, 100000};
        for (int layer = 0; layer < 3; ++layer) {
            SArray<Key> keys{Key(ranges[layer % ranges.size()].begin() + layer)};
            std::vector<float> grad(sizes[layer], 2.0f * (MyRank() + 1)), weight(sizes[layer]);
            const int bytes = static_cast<int>(grad.size() * sizeof(float));
            SArray<char> vals(reinterpret_cast<char *>(grad.data()), bytes);
            SArray<int> lens{bytes};
            float sum = 0.5f * NumWorkers() * (NumWorkers() + 1);
            for (int step = 1; step <= 10; ++step) {
                worker.Wait(worker.ZPush(keys, vals, lens));
                SArray<char> into(reinterpret_cast<char *>(weight.data()), bytes);
                SArray<int> got{bytes};
                worker.Wait(worker.ZPull(keys, &into, &got));
                CHECK_GE(weight[sizes[layer] - 1], sum * step); /* others may be a step ahead */
                CHECK_LE(weight[0], sum * (step + 1));
                Postoffice::Get()->Barrier(0, kWorkerGroup);
            }
            CHECK_EQ(weight[0], sum * 10);
        }
    }
    Finalize(0, true);
    delete server;
    return 0;
}
