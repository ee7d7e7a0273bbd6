/*
 * A request that has come in, and the memory it came in: what a Customer's thread takes from Paramo and hands
 * to SimpleApp, KVServer or a program's own handle. Tests: test/ps (every program with a server).
 */
#ifndef PS_INTERNAL_INCOMING_H_
#define PS_INTERNAL_INCOMING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "paramo/paramo.h"
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
        LOG(FATAL) << what << ": " << paramo_last_error() << " (" << paramo_err_name(err) << ")";
}

/* Timestamps here are ints, Paramo's have 64 bits: we show the low 30, and give messages that programs make
 * themselves numbers of their own above those. */
enum : int { TIME_MASK = (1 << 30) - 1, TIME_OWN = 1 << 30 };
inline int FoldTime(uint64_t ts)
{
    return static_cast<int>(ts & static_cast<uint64_t>(TIME_MASK));
}

/* Who asked what: names a request among those that wait for their answer. */
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

/* References on arrays of Paramo, given back together. */
class Kept
{
  public:
    Kept()
    {
    }
    /* A copy of a few bytes is cheaper than references on them. */
    explicit Kept(size_t bytes) : copy(new uint64_t[(bytes + 7) / 8])
    {
    }
    Kept(const Kept &) = delete;
    Kept &operator=(const Kept &) = delete;
    ~Kept()
    {
        for (paramo_array *array : seg)
            paramo_array_unref(array);
    }

    paramo_array *seg[PARAMO_SEGS] = {};
    std::unique_ptr<uint64_t[]> copy;
};

/* Bytes of `kept` as elements; copied if they lie where elements of that type may not. */
template <typename V>
SArray<V> ShareBytes(const std::shared_ptr<Kept> &kept, const paramo_bytes &bytes, const char *what)
{
    CHECK_EQ(bytes.len % sizeof(V), 0u) << what << ": " << bytes.len << " bytes are no array of elements of "
                                        << sizeof(V) << " bytes; do both sides "
                                        << "use the same type?";
    SArray<V> array;
    if (bytes.len == 0)
        return array;
    size_t count = bytes.len / sizeof(V);
    void *data = const_cast<void *>(bytes.data);
    if (reinterpret_cast<uintptr_t>(data) % alignof(V) == 0) {
        array = SArray<V>(std::shared_ptr<V>(kept, static_cast<V *>(data)), count);
    } else {
        array = SArray<V>(std::shared_ptr<V>(new V[count], [](V *p) { delete[] p; }), count);
        std::memcpy(static_cast<void *>(array.data()), data, bytes.len);
    }
    return array;
}

struct Incoming {
    Asked asked;
    const paramo_request_info *info;   /* valid until it is answered */
    paramo_bytes seg[PARAMO_SEG_BODY]; /* its arrays, in kept */
    std::shared_ptr<Kept> kept;

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
    /* It runs on the thread that received the request, without a hand-over, and cannot wait for requests. */
    bool direct = false;
    bool late = false; /* requests wait until Customer::Open is called */
};
} // namespace internal
} // namespace ps
#endif
