#!/usr/bin/env bash
# A user's file that includes the headers compiles without a warning by each compiler that is there and each standard
# from C++11 on, with and without NDEBUG; each header also alone.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0 count=0
try() {
    count=$((count + 1))
    if ! "$@" >"$work/log" 2>&1; then
        echo "FAIL  $*"
        sed 's/^/      | /' "$work/log"
        bad=$((bad + 1))
    fi
}
flags="-Iinclude -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -fsyntax-only"
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2086 # flags are words
    for standard in 11 14 17 20; do
        try $compiler -std=c++$standard $flags -Itest/ps test/ps/many/main.cc
        try $compiler -std=c++$standard $flags -DNDEBUG test/ps/kv_two_apps.cc
    done
done
for header in $(cd include && find ps dmlc -name '*.h'); do
    echo "#include \"$header\"" >"$work/alone.cc"
    # shellcheck disable=SC2086
    try g++ -std=c++14 $flags "$work/alone.cc"
done
# What programs use without naming its header, because ps-lite's headers brought it.
echo '#include "ps/ps.h"
int main() {
  std::queue<int> q; std::unordered_map<int, std::shared_ptr<int>> m; std::thread t([] { usleep(1); }); t.join();
  std::atomic<int> n{0}; std::mutex mu; std::condition_variable cond; std::stringstream text;
  char a[4] = "abc", b[4]; memcpy(b, a, sizeof a); assert(strcmp(a, b) == 0); int64_t x = 1; printf("%" PRId64, x);
  ps::ThreadsafeQueue<int> own; own.Push(static_cast<int>(fabs(-1.5f) + std::sqrt(2.0)));
  std::cout << time(nullptr) << std::endl; sleep(0); exit(std::max(n.load(), getpid() ? 0 : 1));
}' >"$work/uses.cc"
for standard in 11 20; do
    # shellcheck disable=SC2086
    try g++ -std=c++$standard $flags "$work/uses.cc"
done
# Keys of 32 bits; aborting instead of throwing.
echo '#include "dmlc/logging.h"
#include "ps/ps.h"
int main() { ps::KVWorker<float> kv(0, 0); return 0; }' >"$work/user.cc"
# shellcheck disable=SC2086
try g++ -std=c++14 $flags -DUSE_KEY32=1 "$work/user.cc"
# shellcheck disable=SC2086
try g++ -std=c++14 $flags -DDMLC_LOG_FATAL_THROW=0 "$work/user.cc"
echo "$count compiled, $bad failed"
[ "$bad" -eq 0 ]
