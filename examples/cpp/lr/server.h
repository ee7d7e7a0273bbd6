// The server's side: what a pushed gradient does to a weight. Two handles of our own, SGD and FTRL-proximal;
// each server process has the keys of its range, and a handle is never called by two threads at once, so
// there are no locks.
#ifndef LR_SERVER_H
#define LR_SERVER_H

#include <cmath>
#include <memory>
#include <unordered_map>

#include "ps/ps.h"

namespace lr
{
struct SGD {
    float w = 0;
    void Update(float gradient)
    {
        const float rate = 0.2f;
        w -= rate * gradient;
    }
};

// McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013, Algorithm 1.
struct FTRL {
    float w = 0, z = 0, n = 0;
    void Update(float gradient)
    {
        const float alpha = 0.1f, beta = 1.0f, l1 = 0.1f, l2 = 0.1f;
        const float sigma = (std::sqrt(n + gradient * gradient) - std::sqrt(n)) / alpha;
        z += gradient - sigma * w;
        n += gradient * gradient;
        w = std::fabs(z) <= l1 ? 0 : -(z - std::copysign(l1, z)) / ((beta + std::sqrt(n)) / alpha + l2);
    }
};

template <typename Weight> class Handle
{
  public:
    void operator()(const ps::KVMeta &meta, const ps::KVPairs<float> &data, ps::KVServer<float> *server)
    {
        const size_t n = data.keys.size();
        ps::KVPairs<float> res;
        if (meta.push) {
            CHECK_EQ(data.vals.size(), n);
            for (size_t i = 0; i < n; ++i)
                weights_[data.keys[i]].Update(data.vals[i]);
        }
        if (meta.pull) {
            res.keys = data.keys;
            res.vals.resize(n);
            for (size_t i = 0; i < n; ++i) {
                auto it = weights_.find(data.keys[i]);
                res.vals[i] = it == weights_.end() ? 0.0f : it->second.w;
            }
        }
        server->Response(meta, res);
    }

  private:
    std::unordered_map<ps::Key, Weight> weights_;
};

class Server
{
  public:
    explicit Server(const std::string &optimizer) : kv_(new ps::KVServer<float>(0))
    {
        if (optimizer == "ftrl")
            kv_->set_request_handle(Handle<FTRL>());
        else
            kv_->set_request_handle(Handle<SGD>());
    }

  private:
    std::unique_ptr<ps::KVServer<float>> kv_;
};
} // namespace lr
#endif
