/*
 * A range of keys or indices: from begin on and below end. Tests: test/ps/unit_sarray.cc.
 */
#ifndef PS_RANGE_H_
#define PS_RANGE_H_

#include <cstdint>

#include "ps/internal/utils.h"

namespace ps
{
class Range
{
  public:
    Range() : begin_(0), end_(0)
    {
    }
    Range(uint64_t first, uint64_t past) : begin_(first), end_(past)
    {
    }

    uint64_t begin() const
    {
        return begin_;
    }
    uint64_t end() const
    {
        return end_;
    }
    uint64_t size() const
    {
        return end_ - begin_;
    }

  private:
    uint64_t begin_;
    uint64_t end_;
};

inline bool operator==(const Range &a, const Range &b)
{
    return a.begin() == b.begin() && a.end() == b.end();
}
inline bool operator!=(const Range &a, const Range &b)
{
    return !(a == b);
}
} // namespace ps
#endif
