// Weights (app 0) and factors (app 1) of a factorization machine, each with a handle of its own in one server
// process; a worker object with a KVWorker for each. The server object is there before Start.
#include <ctime>
#include <iostream>
#include <unordered_map>

#include "ps/ps.h"

namespace fm
{
const int kDim = 4;

struct SGDEntry {
    SGDEntry(size_t k = 1) : w(k, 0.5f)
    {
    }
    std::vector<float> w;
};

struct WeightHandle {
    void operator()(const ps::KVMeta &req_meta, const ps::KVPairs<float> &req_data,
                    ps::KVServer<float> *server)
    {
        size_t keys_size = req_data.keys.size();
        ps::KVPairs<float> res;
        if (req_meta.push) {
            size_t vals_size = req_data.vals.size();
            CHECK_EQ(keys_size, vals_size);
        } else {
            res.keys = req_data.keys;
            res.vals.resize(keys_size);
        }
        for (size_t i = 0; i < keys_size; ++i) {
            ps::Key key = req_data.keys[i];
            SGDEntry &val = store[key];
            if (req_meta.push)
                val.w[0] -= 0.25f * req_data.vals[i];
            else
                res.vals[i] = val.w[0];
        }
        server->Response(req_meta, res);
    }
    std::unordered_map<ps::Key, SGDEntry> store;
};

class FactorHandle
{
  public:
    void operator()(const ps::KVMeta &req_meta, const ps::KVPairs<float> &req_data,
                    ps::KVServer<float> *server)
    {
        size_t n = req_data.keys.size();
        if (req_meta.push) {
            CHECK_EQ(n * kDim, req_data.vals.size());
            for (size_t i = 0; i < n; ++i)
                for (int d = 0; d < kDim; ++d)
                    Row(req_data.keys[i]).w[d] += req_data.vals[i * kDim + d];
            server->Response(req_meta);
            return;
        }
        ps::KVPairs<float> res;
        res.keys = req_data.keys;
        res.vals.resize(n * kDim);
        for (size_t i = 0; i < n; ++i)
            for (int d = 0; d < kDim; ++d)
                res.vals[i * kDim + d] = Row(req_data.keys[i]).w[d];
        server->Response(req_meta, res);
    }

  private:
    SGDEntry &Row(ps::Key key)
    {
        auto it = store.find(key);
        if (it == store.end())
            it = store.insert(std::make_pair(key, SGDEntry(kDim))).first;
        return it->second;
    }
    std::unordered_map<ps::Key, SGDEntry> store;
};

class Server
{
  public:
    Server()
    {
        server_w_ = new ps::KVServer<float>(0);
        server_w_->set_request_handle(WeightHandle());
        server_v_ = new ps::KVServer<float>(1);
        server_v_->set_request_handle(FactorHandle());
    }
    ~Server()
    {
        delete server_w_;
        delete server_v_;
    }

  private:
    ps::KVServer<float> *server_w_;
    ps::KVServer<float> *server_v_;
};

class Worker
{
  public:
    Worker() : kv_w_(new ps::KVWorker<float>(0, 0)), kv_v_(new ps::KVWorker<float>(1, 1))
    {
    }
    ~Worker()
    {
        delete kv_w_;
        delete kv_v_;
    }
    void Train()
    {
        std::vector<ps::Key> keys;
        for (ps::Key i = 0; i < 1000; ++i)
            keys.push_back(ps::kMaxKey / 1000 * i + ps::MyRank());
        std::vector<float> w, v;
        for (int step = 0; step < 20; ++step) {
            kv_w_->Wait(kv_w_->Pull(keys, &w));
            kv_v_->Wait(kv_v_->Pull(keys, &v));
            CHECK_EQ(w[500], 0.5f - 0.25f * step);
            CHECK_EQ(v[500 * kDim + 3], 0.5f + 2.0f * step);
            std::vector<float> gw(keys.size(), 1.0f), gv(keys.size() * kDim, 2.0f);
            int a = kv_w_->Push(keys, gw), b = kv_v_->Push(keys, gv);
            kv_w_->Wait(a);
            kv_v_->Wait(b);
        }
    }

  private:
    ps::KVWorker<float> *kv_w_;
    ps::KVWorker<float> *kv_v_;
};
} // namespace fm

int main()
{
    fm::Server *server = nullptr;
    if (ps::IsServer())
        server = new fm::Server();
    ps::Start(0);
    if (ps::IsWorker()) {
        fm::Worker worker;
        worker.Train();
    }
    ps::Finalize(0);
    delete server;
    return 0;
}
