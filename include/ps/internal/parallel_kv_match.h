/*
 * Merging one sorted list of keys and values into another by matching keys. Tests: test/ps/unit_parallel.cc.
 */
#ifndef PS_INTERNAL_PARALLEL_KV_MATCH_H_
#define PS_INTERNAL_PARALLEL_KV_MATCH_H_

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "ps/internal/assign_op.h"
#include "ps/sarray.h"

namespace ps
{
namespace internal
{
/* Keys [from, to) of dst. Returns how many of them are in src. */
template <typename K, typename V>
size_t MatchPart(const SArray<K> &src_key, const SArray<V> &src_val, const SArray<K> &dst_key, V *dst_val,
                 size_t from, size_t to, size_t k, AssignOp op)
{
    size_t matched = 0;
    const K *src = std::lower_bound(src_key.begin(), src_key.end(), dst_key[from]);
    for (size_t i = from; i < to && src != src_key.end(); i++) {
        while (src != src_key.end() && *src < dst_key[i])
            ++src;
        if (src == src_key.end() || dst_key[i] < *src)
            continue;
        const V *val = src_val.data() + static_cast<size_t>(src - src_key.begin()) * k;
        for (size_t j = 0; j < k; j++)
            AssignFunc(val[j], op, &dst_val[i * k + j]);
        matched++;
    }
    return matched;
}
} // namespace internal

/* For each key that is in both: dst_val op= src_val. Keys are sorted and unique, k values to a key. dst_val
 * (a vector or SArray) gets k * dst_key.size() values: those that were there stay, new ones are 0. Returns
 * the number of keys that matched. */
template <typename K, typename V, typename C>
size_t ParallelOrderedMatch(const SArray<K> &src_key, const SArray<V> &src_val, const SArray<K> &dst_key,
                            C *dst_val, int k = 1, AssignOp op = ASSIGN, int num_threads = 1)
{
    PS_REQUIRE(num_threads > 0);
    PS_REQUIRE(k > 0);
    const size_t width = static_cast<size_t>(k);
    PS_REQUIRE(src_key.size() * width == src_val.size());
    dst_val->resize(dst_key.size() * width);
    if (dst_key.empty())
        return 0;
    V *out = dst_val->data();
    const size_t smallest_part = (1u << 20) / width + 1; /* arbitrary: what makes a thread worth its start */
    const size_t most = static_cast<size_t>(num_threads);
    const size_t parts = std::max<size_t>(1, std::min(most, dst_key.size() / smallest_part));
    std::vector<size_t> matched(parts, 0);
    std::vector<std::thread> threads;
    for (size_t p = 0; p < parts; p++) {
        size_t from = dst_key.size() * p / parts, to = dst_key.size() * (p + 1) / parts;
        auto part = [&, p, from, to] {
            matched[p] = internal::MatchPart(src_key, src_val, dst_key, out, from, to, width, op);
        };
        if (p + 1 < parts)
            threads.emplace_back(part);
        else
            part();
    }
    for (auto &t : threads)
        t.join();
    size_t total = 0;
    for (size_t m : matched)
        total += m;
    return total;
}
} // namespace ps
#endif
