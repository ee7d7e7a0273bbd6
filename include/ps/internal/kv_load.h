/*
 * Watches how a KVWorker's keys fall on the servers, and says so once if one server gets nearly all: keys are
 * placed by range over all of [0, kMaxKey], so small numbers all go to server 0. Tests:
 * test/ps/kv_lopsided.cc.
 */
#ifndef PS_INTERNAL_KV_LOAD_H_
#define PS_INTERNAL_KV_LOAD_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ps/internal/utils.h"

namespace ps
{
namespace internal
{
class Load
{
  public:
    template <typename Parts> void Count(Parts &parts, size_t servers)
    {
        if (servers < 2 || decided_.load(std::memory_order_relaxed) || !IsLookedAt(parts))
            return;
        std::lock_guard<std::mutex> lock(mu_);
        keys_.resize(servers, 0);
        for (const auto &part : parts) {
            keys_[static_cast<size_t>(part.rank)] += part.end - part.begin;
            total_ += part.end - part.begin;
        }
        if (total_ < next_look_)
            return;
        next_look_ *= 100;
        auto most = std::max_element(keys_.begin(), keys_.end());
        double share = static_cast<double>(*most) / static_cast<double>(total_);
        /* Arbitrary: nine tenths, or four times its share where there are many. */
        bool lopsided = share >= std::min(0.9, 4.0 / static_cast<double>(servers));
        if (lopsided)
            LOG(WARNING)
                << "server " << most - keys_.begin() << " gets " << static_cast<int>(share * 100)
                << " % of the keys, the other " << servers - 1
                << " the rest: keys are placed by range over [0, kMaxKey]; spread them (multiply, hash or "
                   "reverse their bits), use GetServerKeyRanges, or set a slicer";
        if (lopsided || next_look_ > UINT64_C(10000000))
            decided_ = true;
    }

  private:
    /* One in sixteen of the small requests, and the first: an estimate is enough. (Threads that count at the same
     * time may lose some.) */
    template <typename Parts> bool IsLookedAt(Parts &parts)
    {
        if (parts.size() > 0 && parts[0].end - parts[0].begin >= 64)
            return true;
        const unsigned n = small_.load(std::memory_order_relaxed);
        small_.store(n + 1, std::memory_order_relaxed);
        return n % 16 == 0;
    }

    std::atomic<bool> decided_{false};
    std::atomic<unsigned> small_{0};
    std::mutex mu_;
    std::vector<uint64_t> keys_;
    uint64_t total_ = 0, next_look_ = 1000;
};
} // namespace internal
} // namespace ps
#endif
