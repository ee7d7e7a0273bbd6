// Synchronous SGD that the scheduler drives: every worker is told to compute its gradient - in the handle of
// the request it pulls the weights and pushes, and waits for both - then every server is told to update. The
// result is that of one process with all the data, exactly.
#include <cmath>

#include "ps/ps.h"

using namespace ps;

enum { kComputeGrad = 1, kUpdateWeight = 2 };
const int kIterations = 30, kFeatures = 64,
          kExamples = 32; /* per worker; values are multiples of 2^-k: exact */

static std::vector<Key> Keys()
{
    std::vector<Key> keys;
    for (int f = 0; f < kFeatures; ++f)
        keys.push_back(kMaxKey / (kFeatures - 1) * f);
    keys.back() = kMaxKey; /* the top key is a key like any other */
    return keys;
}

/* The gradient's part of one worker's examples: small integers, so that sums have no rounding. */
static std::vector<float> Gradient(const std::vector<float> &w, int worker)
{
    std::vector<float> g(kFeatures, 0.0f);
    for (int e = 0; e < kExamples; ++e)
        for (int f = 0; f < kFeatures; ++f) {
            float x = static_cast<float>((e * 7 + f * 3 + worker * 5) % 3 - 1);
            g[f] += std::floor(w[f] * 16.0f) / 16.0f * x * x - x;
        }
    for (auto &v : g)
        v = std::floor(v);
    return g;
}

class WeightServer
{
  public:
    WeightServer() : kv_(0)
    {
        kv_.set_request_handle(
            [this](const KVMeta &meta, const KVPairs<float> &data, KVServer<float> *server) {
                KVPairs<float> res;
                for (size_t i = 0; i < data.keys.size(); ++i) {
                    if (meta.push)
                        grad_[data.keys[i]] += data.vals[i];
                    if (meta.pull) {
                        res.keys.push_back(data.keys[i]);
                        res.vals.push_back(weight_[data.keys[i]]);
                    }
                }
                server->Response(meta, res);
            });
        /* The same customer: never at the same time as the handle above, so no lock. */
        static_cast<SimpleApp &>(kv_).set_request_handle([this](const SimpleData &req, SimpleApp *app) {
            CHECK_EQ(req.head, static_cast<int>(kUpdateWeight));
            for (auto &g : grad_)
                weight_[g.first] -= 0.0009765625f * g.second;
            grad_.clear();
            app->Response(req);
        });
    }

  private:
    KVServer<float> kv_;
    std::unordered_map<Key, float> weight_, grad_;
};

class GradientWorker
{
  public:
    GradientWorker() : kv_(0, 0), app_(1, 1)
    {
        app_.set_request_handle([this](const SimpleData &req, SimpleApp *app) {
            std::vector<float> w;
            kv_.Wait(kv_.Pull(Keys(), &w));
            kv_.Wait(kv_.Push(Keys(), Gradient(w, MyRank())));
            app->Response(req, req.body);
        });
    }
    std::vector<float> Result()
    {
        std::vector<float> w;
        kv_.Wait(kv_.Pull(Keys(), &w));
        return w;
    }

  private:
    KVWorker<float> kv_;
    SimpleApp app_;
};

int main()
{
    Start(0);
    std::unique_ptr<WeightServer> server(IsServer() ? new WeightServer() : nullptr);
    std::unique_ptr<GradientWorker> worker(IsWorker() ? new GradientWorker() : nullptr);
    if (IsScheduler()) {
        SimpleApp to_workers(1, 1), to_servers(0, 0);
        for (int t = 0; t < kIterations; ++t) {
            std::vector<int> issued;
            for (int i = 0; i < NumWorkers(); ++i)
                issued.push_back(
                    to_workers.Request(kComputeGrad, std::to_string(t), Postoffice::WorkerRankToID(i)));
            for (int ts : issued)
                to_workers.Wait(ts);
            issued.clear();
            for (int i = 0; i < NumServers(); ++i)
                issued.push_back(to_servers.Request(kUpdateWeight, "", Postoffice::ServerRankToID(i)));
            for (int ts : issued)
                to_servers.Wait(ts);
        }
    }
    Postoffice::Get()->Barrier(0, kScheduler + kServerGroup + kWorkerGroup);
    if (worker) {
        std::vector<float> w(kFeatures, 0.0f), got = worker->Result();
        for (int t = 0; t < kIterations; ++t) {
            std::vector<float> sum(kFeatures, 0.0f);
            for (int i = 0; i < NumWorkers(); ++i) {
                std::vector<float> g = Gradient(w, i);
                for (int f = 0; f < kFeatures; ++f)
                    sum[f] += g[f];
            }
            for (int f = 0; f < kFeatures; ++f)
                w[f] -= 0.0009765625f * sum[f];
        }
        CHECK(w[0] != 0.0f && got == w);
        LL << "w[0] = " << got[0] << ", w[1] = " << got[1];
    }
    worker.reset();
    Finalize(0);
    return 0;
}
