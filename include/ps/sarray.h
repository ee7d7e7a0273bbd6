/*
 * SArray: an array that is shared by copying. Copies, segments and casts to another element type name the
 * same memory; it is freed with the last of them. CopyFrom and the constructor from a vector copy the
 * elements.
 *
 * Elements are plain data (memcpy is their copy). Like a shared_ptr, one SArray object is for one thread at a
 * time, several that share memory may be used by several. Knows nothing of Paramo. Tests:
 * test/ps/unit_sarray.cc.
 */
#ifndef PS_SARRAY_H_
#define PS_SARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/range.h"

namespace ps
{
template <typename V> class SArray
{
  public:
    using value_type = V;

    SArray()
    {
    }

    /* size elements, each val. */
    explicit SArray(size_t size, V val = V())
    {
        resize(size, val);
    }

    /* The same memory seen as elements of another type; its bytes must divide evenly. */
    template <typename W> explicit SArray(const SArray<W> &arr)
    {
        *this = arr;
    }
    template <typename W> void operator=(const SArray<W> &arr)
    {
        size_t bytes = arr.size() * sizeof(W);
        PS_REQUIRE(bytes % sizeof(V) == 0u)
            << "an array of " << bytes << " bytes cannot be divided into elements of " << sizeof(V);
        size_ = bytes / sizeof(V);
        capacity_ = arr.capacity() * sizeof(W) / sizeof(V);
        ptr_ = std::shared_ptr<V>(arr.ptr(), reinterpret_cast<V *>(arr.data()));
    }

    /* The caller's memory, without a copy; deletable: freed with delete[] by the last that shares it. */
    SArray(V *data, size_t size, bool deletable = false)
    {
        if (deletable)
            reset(data, size, [](V *p) { delete[] p; });
        else
            reset(data, size, [](V *) {});
    }

    /* A copy of the vector's elements. */
    explicit SArray(const std::vector<V> &vec)
    {
        CopyFrom(vec.data(), vec.size());
    }
    /* The vector's own elements, without a copy; the vector lives as long as they are shared, and must not
     * grow. */
    explicit SArray(const std::shared_ptr<std::vector<V>> &vec)
        : size_(vec->size()), capacity_(vec->size()), ptr_(vec, vec->data())
    {
    }

    /* Memory that is shared already. */
    SArray(std::shared_ptr<V> data, size_t size) : size_(size), capacity_(size), ptr_(std::move(data))
    {
    }

    template <typename W, typename = typename std::enable_if<std::is_convertible<W, V>::value>::type>
    SArray(const std::initializer_list<W> &list)
    {
        CopyFrom(list.begin(), list.end());
    }
    template <typename W> void operator=(const std::initializer_list<W> &list)
    {
        CopyFrom(list.begin(), list.end());
    }

    /* Copies. If the new elements do not fit into the old memory, other arrays that share it keep it as it was. */
    void CopyFrom(const V *data, size_t size)
    {
        if (capacity_ < size)
            allocate(size);
        size_ = size;
        if (size > 0)
            std::memmove(this->data(), data, size * sizeof(V));
    }
    void CopyFrom(const SArray<V> &other)
    {
        if (this != &other)
            CopyFrom(other.data(), other.size());
    }
    template <typename ForwardIt> void CopyFrom(const ForwardIt &first, const ForwardIt &last)
    {
        size_t size = static_cast<size_t>(std::distance(first, last));
        allocate(size);
        size_ = size;
        V *to = data();
        for (ForwardIt it = first; it != last; ++it)
            *to++ = static_cast<V>(*it);
    }

    /* Takes over the memory: del(data) is called when the last that shares it goes. */
    template <typename Deleter> void reset(V *data, size_t size, Deleter del)
    {
        size_ = size;
        capacity_ = size;
        ptr_.reset(data, del);
    }

    /* Keeps the elements; new ones are val. New memory is taken only if the capacity does not do. */
    void resize(size_t size, V val = V())
    {
        size_t old = size_;
        reserve(size);
        size_ = size;
        if (size > old)
            std::fill(data() + old, data() + size, val);
    }

    /* Room for size elements without further allocation. */
    void reserve(size_t size)
    {
        if (capacity_ >= size)
            return;
        std::shared_ptr<V> before = ptr_;
        allocate(size);
        if (size_ > 0)
            std::memcpy(static_cast<void *>(ptr_.get()), before.get(), size_ * sizeof(V));
    }

    /* Releases the memory. */
    void clear()
    {
        size_ = capacity_ = 0;
        ptr_.reset();
    }

    bool empty() const
    {
        return size_ == 0;
    }
    size_t size() const
    {
        return size_;
    }
    size_t capacity() const
    {
        return capacity_;
    }

    V *begin()
    {
        return data();
    }
    const V *begin() const
    {
        return data();
    }
    V *end()
    {
        return data() + size_;
    }
    const V *end() const
    {
        return data() + size_;
    }

    V *data() const
    {
        return ptr_.get();
    }
    std::shared_ptr<V> &ptr()
    {
        return ptr_;
    }
    const std::shared_ptr<V> &ptr() const
    {
        return ptr_;
    }

    V back() const
    {
        PS_REQUIRE(!empty());
        return data()[size_ - 1];
    }
    V front() const
    {
        PS_REQUIRE(!empty());
        return data()[0];
    }
    V &operator[](size_t i)
    {
        return data()[i];
    }
    const V &operator[](size_t i) const
    {
        return data()[i];
    }

    void push_back(const V &val)
    {
        V copy = val; /* it may be one of ours */
        if (size_ == capacity_)
            reserve(size_ * 2 + 5);
        data()[size_++] = copy;
    }
    void pop_back()
    {
        if (size_ > 0)
            --size_;
    }
    void append(const SArray<V> &arr)
    {
        if (arr.empty())
            return;
        SArray<V> from = arr; /* it may be this one */
        size_t old = size_;
        reserve(old + from.size());
        size_ = old + from.size();
        std::memmove(static_cast<void *>(data() + old), from.data(), from.size() * sizeof(V));
    }

    /* Elements [begin, end), sharing the memory. */
    SArray<V> segment(size_t begin, size_t end) const
    {
        PS_REQUIRE(end >= begin);
        PS_REQUIRE(end <= size_);
        SArray<V> part;
        part.ptr_ = std::shared_ptr<V>(ptr_, data() + begin);
        part.size_ = end - begin;
        part.capacity_ = end - begin;
        return part;
    }

    /* Memory that SArray itself has taken, and that no other SArray shares. */
    bool sole() const
    {
        return ptr_.use_count() == 1 && std::get_deleter<Free>(ptr_) != nullptr;
    }

  private:
    struct Free {
        void operator()(V *p) const
        {
            delete[] p;
        }
    };

    void allocate(size_t size)
    {
        ptr_ = std::shared_ptr<V>(new V[size], Free());
        capacity_ = size;
    }

    size_t size_ = 0;
    size_t capacity_ = 0;
    std::shared_ptr<V> ptr_;
};

/* The indices of the elements in [lower, upper) of an ascending array. */
template <typename V> Range FindRange(const SArray<V> &arr, V lower, V upper)
{
    if (upper <= lower)
        return Range(0, 0);
    const V *first = std::lower_bound(arr.begin(), arr.end(), lower);
    const V *past = std::lower_bound(first, arr.end(), upper);
    return Range(static_cast<uint64_t>(first - arr.begin()), static_cast<uint64_t>(past - arr.begin()));
}

/* "[n]: a b c ... x y z": all of a short array, m from each end of a long one. */
template <typename V> inline std::string DebugStr(const V *data, int n, int m = 5)
{
    std::ostringstream text;
    text << '[' << n << "]: ";
    for (int i = 0; i < n; i++) {
        if (n >= 2 * m && i == m) {
            text << "... ";
            i = n - m;
        }
        text << data[i] << ' ';
    }
    return text.str();
}
template <typename V> std::ostream &operator<<(std::ostream &os, const SArray<V> &arr)
{
    return os << DebugStr(arr.data(), static_cast<int>(arr.size()));
}
} // namespace ps
#endif
