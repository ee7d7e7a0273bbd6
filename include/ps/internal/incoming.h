/*
 * A request that has come in, and the memory it came in: what a Customer's thread takes from Paramo and hands
 * to SimpleApp, KVServer or a program's own handle. Tests: test/ps (every program with a server).
 */
#ifndef PS_INTERNAL_INCOMING_H_
#define PS_INTERNAL_INCOMING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "paramo/paramo.h"
#include "ps/internal/blocks.h"
#include "ps/sarray.h"

namespace ps
{
namespace internal
{
/* The flags of our messages. The low bits are ps-lite's request kinds, above them the types of up to three
 * arrays. */
enum : uint32_t { FLAG_PUSH = 1, FLAG_PULL = 2, FLAG_SIMPLE = 4, FLAG_ARRAYS = 8 };
enum { TYPES_SHIFT = 16, TYPES_BITS = 4 };

/* Throws dmlc::Error with Paramo's cause. */
inline void Check(paramo_err err, const char *what)
{
    if (err != PARAMO_OK)
        PS_FAIL() << what << ": " << paramo_last_error() << " (" << paramo_err_name(err) << ")";
}

/* Runs f, on a thread of its own if the caller is in a callback, where Paramo refuses to wait. f must not wait for the
 * request of that callback. No app is PARAMO_ANY, so paramo_app_take only shows whether this is a callback. */
template <typename F> void Outside(paramo_node *node, F &&f)
{
    paramo_request *request = nullptr;
    const paramo_request_info *info = nullptr;
    if (paramo_app_take(node, PARAMO_ANY, PARAMO_ANY, 1, &request, &info) != PARAMO_E_IN_CALLBACK) {
        f();
        return;
    }
    std::string why;
    std::thread([&] { why = Caught(f); }).join();
    if (!why.empty())
        throw ::dmlc::Error(why);
}

/* Timestamps here are ints, Paramo's have 64 bits: we show the low 30, and give messages that programs make
 * themselves numbers of their own above those. */
enum : int { TIME_MASK = (1 << 30) - 1, TIME_OWN = 1 << 30 };
inline int FoldTime(uint64_t ts)
{
    return static_cast<int>((ts - 1) & static_cast<uint64_t>(TIME_MASK)); /* Paramo's begin at 1, ours at 0 */
}

/* The sender and the number of a request: names it among those that wait for their answer. */
struct Asked {
    int sender;
    int customer;
    int timestamp;

    bool operator==(const Asked &other) const
    {
        return sender == other.sender && customer == other.customer && timestamp == other.timestamp;
    }
};
struct AskedHash {
    size_t operator()(const Asked &a) const
    {
        uint64_t h = static_cast<uint32_t>(a.timestamp) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= (static_cast<uint64_t>(static_cast<uint32_t>(a.sender)) << 32) +
             static_cast<uint32_t>(a.customer);
        return static_cast<size_t>(h ^ (h >> 29));
    }
};

/* A request, which the holder of this must answer; info is valid until then. */
struct Claimed {
    paramo_request *request;
    const paramo_request_info *info;
};

/* The request that is in its handle: the thread that claims it answers it, once. The thread that runs the handle sets
 * and ends it; any thread may claim. Without a lock: `state_` is odd while there is one to claim, never the
 * same twice, and the fields change only while it is even. Tests: test/ps/unit_queue.cc. */
class InHand
{
  public:
    void Set(const Asked &asked, const Claimed &claimed)
    {
        sender_.store(asked.sender, std::memory_order_relaxed);
        customer_.store(asked.customer, std::memory_order_relaxed);
        timestamp_.store(asked.timestamp, std::memory_order_relaxed);
        request_.store(claimed.request, std::memory_order_relaxed);
        info_.store(claimed.info, std::memory_order_relaxed);
        state_.store(state_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    /* Without a request: it is another one, or claimed already. */
    Claimed Claim(const Asked &asked)
    {
        uint64_t state = state_.load(std::memory_order_acquire);
        if (state % 2 == 0 || timestamp_.load(std::memory_order_relaxed) != asked.timestamp ||
            sender_.load(std::memory_order_relaxed) != asked.sender ||
            customer_.load(std::memory_order_relaxed) != asked.customer)
            return {nullptr, nullptr};
        return Take(state);
    }
    bool unclaimed() const
    {
        return state_.load(std::memory_order_acquire) % 2 != 0;
    }
    /* Without a request: it has been claimed. */
    Claimed End()
    {
        uint64_t state = state_.load(std::memory_order_acquire);
        return state % 2 != 0 ? Take(state) : Claimed{nullptr, nullptr};
    }

  private:
    /* Of those that have seen this state, one gets it. */
    Claimed Take(uint64_t state)
    {
        const Claimed claimed = {request_.load(std::memory_order_relaxed),
                                 info_.load(std::memory_order_relaxed)};
        return state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel,
                                              std::memory_order_relaxed)
                   ? claimed
                   : Claimed{nullptr, nullptr};
    }

    std::atomic<uint64_t> state_{0};
    std::atomic<int> sender_{0}, customer_{0}, timestamp_{0};
    std::atomic<paramo_request *> request_{nullptr};
    std::atomic<const paramo_request_info *> info_{nullptr};
};

/* References on arrays of Paramo, given back together. */
class Kept
{
  public:
    Kept()
    {
    }
    Kept(const Kept &) = delete;
    Kept &operator=(const Kept &) = delete;
    ~Kept()
    {
        for (paramo_array *array : seg)
            if (array != nullptr)
                paramo_array_unref(array);
    }

    paramo_array *seg[PARAMO_SEGS] = {};
};
/* A copy of a few bytes, which is cheaper than references. */
struct KeptCopy {
    enum : size_t { FEW = 960 }; /* arbitrary: within what malloc caches */
    KeptCopy()
    {
    }
    uint64_t bytes[FEW / 8]; /* as they come */
};
/* A copy of more bytes, in a block that is used again: three references cost more than to copy a page. */
struct KeptBlock {
    enum : size_t { SOME = 4096 }; /* arbitrary */
    static std::shared_ptr<void> Make()
    {
        return std::shared_ptr<void>(Blocks<SOME>::Get(), [](void *block) { Blocks<SOME>::Put(block); });
    }
};

/* Bytes of `kept` as elements; copied if they lie where elements of that type may not. */
template <typename V>
SArray<V> ShareBytes(const std::shared_ptr<void> &kept, const paramo_bytes &bytes, const char *what)
{
    PS_REQUIRE(bytes.len % sizeof(V) == 0u)
        << what << ": " << bytes.len << " bytes are no array of elements of " << sizeof(V)
        << " bytes; do both sides "
        << "use the same type?";
    if (bytes.len == 0)
        return SArray<V>();
    size_t count = bytes.len / sizeof(V);
    void *data = const_cast<void *>(bytes.data);
    if (reinterpret_cast<uintptr_t>(data) % alignof(V) == 0)
        return SArray<V>(std::shared_ptr<V>(kept, static_cast<V *>(data)), count);
    SArray<V> array(std::shared_ptr<V>(new V[count], [](V *p) { delete[] p; }), count);
    std::memcpy(static_cast<void *>(array.data()), data, bytes.len);
    return array;
}

struct Incoming {
    Asked asked;
    const paramo_request_info *info;   /* valid until it is answered */
    paramo_bytes seg[PARAMO_SEG_BODY]; /* its arrays, in kept */
    std::shared_ptr<void> kept;

    uint32_t flags() const
    {
        return info->flags;
    }
    template <typename V> SArray<V> array(int segment, const char *what) const
    {
        return ShareBytes<V>(kept, seg[segment], what);
    }
    std::string body() const
    {
        const paramo_bytes &b = info->seg[PARAMO_SEG_BODY];
        return b.len == 0 ? std::string() : std::string(static_cast<const char *>(b.data), b.len);
    }
};

/* How an app answers a Customer's requests. */
struct Serving {
    /* One at a time. What it throws is answered as an error. */
    std::function<void(const Incoming &in)> request;
    /* DIRECT: on the thread that received the request, where it cannot wait for requests. */
    enum { THREAD, DIRECT } on = THREAD;
    bool late = false; /* requests wait until Customer::Open is called */
};
} // namespace internal
} // namespace ps
#endif
