/*
 * The basic vocabulary of ps-lite's programs: the key, the ids of groups. Their numbers are Paramo's own
 * (paramo/types.h). Tests: test/ps/unit_sarray.cc.
 */
#ifndef PS_BASE_H_
#define PS_BASE_H_

#include <cstdint>
#include <limits>

#include "ps/internal/utils.h"

namespace ps
{
#if defined(USE_KEY32) && USE_KEY32
using Key = uint32_t;
#else
using Key = uint64_t;
#endif

/* The greatest key; it may be used like any other, and lives on the last server. */
static const Key kMaxKey = std::numeric_limits<Key>::max();

/* Node and group ids; sums name several groups: kScheduler + kServerGroup + kWorkerGroup is all nodes. */
static const int kScheduler = 1;
static const int kServerGroup = 2;
static const int kWorkerGroup = 4;
} // namespace ps
#endif
