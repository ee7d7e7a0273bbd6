/*
 * Sorting an array with several threads: halves are sorted side by side, then merged. Tests:
 * test/ps/unit_parallel.cc.
 */
#ifndef PS_INTERNAL_PARALLEL_SORT_H_
#define PS_INTERNAL_PARALLEL_SORT_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <thread>

#include "ps/sarray.h"

namespace ps
{
namespace internal
{
template <typename T, class Less>
void SortPart(T *data, size_t len, size_t smallest_part, int threads, const Less &less)
{
    if (threads < 2 || len <= smallest_part) {
        std::sort(data, data + len, less);
        return;
    }
    size_t half = len / 2;
    std::thread other([=, &less] { SortPart(data, half, smallest_part, threads / 2, less); });
    SortPart(data + half, len - half, smallest_part, threads - threads / 2, less);
    other.join();
    std::inplace_merge(data, data + half, data + len, less);
}
} // namespace internal

/* Sorts the array in place by less, with at most num_threads threads; not stable. */
template <typename T, class Fn = std::less<T>>
void ParallelSort(SArray<T> *arr, int num_threads = 2, const Fn &less = Fn())
{
    PS_REQUIRE(num_threads > 0);
    const size_t smallest_part = 16384; /* arbitrary: a thread costs as much as sorting a few thousand */
    internal::SortPart(arr->data(), arr->size(), smallest_part, num_threads, less);
}
} // namespace ps
#endif
