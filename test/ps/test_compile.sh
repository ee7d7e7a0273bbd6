#!/usr/bin/env bash
# A user's file that includes the headers compiles without a warning by each compiler that is there and each standard
# from C++11 on, with and without NDEBUG; each header also alone.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
# try COMPILER OPTION...: beside others, one for each processor (ctest starts nothing else then).
try() {
    count=$((count + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
    "$@" >"$work/$count.log" 2>&1 || echo "FAIL  $*" >"$work/$count.bad" &
}
# Every function of the headers.
cat >"$work/all.cc" <<'END'
#include "ps/ps.h"
#include "ps/internal/parallel_kv_match.h"
#include "ps/internal/parallel_sort.h"
template <typename Val> static void Use() {
  ps::KVWorker<Val> kv(0, 0);
  std::vector<Val> v; std::vector<int> l; std::vector<ps::Key> k; ps::SArray<Val> sv; ps::SArray<int> sl; ps::SArray<ps::Key> sk;
  kv.Wait(kv.Push(k, v)); kv.Wait(kv.Pull(k, &v, &l)); kv.Wait(kv.PushPull(k, v, &v));
  kv.Wait(kv.ZPush(sk, sv, sl, 0, [] {})); kv.Wait(kv.ZPull(sk, &sv, &sl)); kv.Wait(kv.ZPushPull(sk, sv, &sv));
  kv.set_slicer([](const ps::KVPairs<Val> &, const std::vector<ps::Range> &, typename ps::KVWorker<Val>::SlicedKVs *) {});
  ps::KVServer<Val> server(0);
  server.set_request_handle(ps::KVServerDefaultHandle<Val>());
  ps::ParallelSort(&sk); ps::ParallelOrderedMatch(sk, sv, sk, &sv); ps::AssignFuncInt(1, ps::AND, l.data());
  sk.push_back(1); sk.append(sk); sk.segment(0, 1).front(); sk.back();
}
int main() {
  ps::StartAsync(0); Use<char>();
  ps::SimpleApp app(1); app.Wait(app.Request(1, "", ps::kServerGroup));
  app.set_request_handle([](const ps::SimpleData &d, ps::SimpleApp *a) { a->Response(d); });
  ps::Customer own(2, 0, [](const ps::Message &m) { ps::Postoffice::Get()->van()->Send(m); });
  own.WaitRequest(own.NewRequest(ps::kServerGroup)); own.AddResponse(0); own.Accept(ps::Message());
  ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup); ps::Postoffice::Get()->GetDeadNodes();
  if (ps::IsWorker()) PS_VLOG(1) << ps::GetEnv("A", "b"); else ps::Finalize(0, false);
  return 0;
}
END
flags="-Iinclude -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -fsyntax-only"
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2086 # flags are words
    for standard in 11 14 17 20; do
        try $compiler -std=c++$standard $flags -Itest/ps test/ps/many/main.cc
        try $compiler -std=c++$standard $flags -DNDEBUG test/ps/kv_two_apps.cc
        # With macros of the same names before ours.
        for macros in dmlc glog mxnet; do
            try $compiler -std=c++$standard $flags -Wdangling-else -include test/ps/macros/$macros.h "$work/all.cc"
        done
    done
done
for header in $(cd include && find ps dmlc -name '*.h'); do
    echo "#include \"$header\"" >"$work/alone-${header//\//-}.cc"
    # shellcheck disable=SC2086
    try g++ -std=c++14 $flags "$work/alone-${header//\//-}.cc"
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
wait
failed=("$work"/*.bad)
[ -e "${failed[0]}" ] || failed=()
for file in ${failed[@]+"${failed[@]}"}; do
    cat "$file"
    sed 's/^/      | /' "${file%.bad}.log"
done
echo "$count compiled, ${#failed[@]} failed"
[ "${#failed[@]}" -eq 0 ]
