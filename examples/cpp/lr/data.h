// Rows of a libsvm file (label feature:value ...), and where their keys fall.
#ifndef LR_DATA_H
#define LR_DATA_H

#include <string>
#include <utility>
#include <vector>

#include "ps/ps.h"

namespace lr
{
struct Row {
    float label; // 0 or 1
    std::vector<std::pair<ps::Key, float>> features;
};

// Servers hold contiguous ranges of keys, so numbers that are small would all go to the first one: a
// bijection spreads them over all 64 bits (the finaliser of SplitMix64, by Steele, Lea and Flood, OOPSLA
// 2014).
inline ps::Key Spread(uint64_t id)
{
    id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9u;
    id = (id ^ (id >> 27)) * 0x94d049bb133111ebu;
    return id ^ (id >> 31);
}

// Every count-th row of the file, from row first on. Throws dmlc::Error if it cannot be read.
std::vector<Row> ReadRows(const std::string &path, int first, int count);
} // namespace lr
#endif
