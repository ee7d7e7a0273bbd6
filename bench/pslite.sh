#!/usr/bin/env bash
# pslite.sh PSLITE BUILD [RUNS] [VAN]: bench/pslite.cc over ps-lite (a tree with include/ and build/libps.a) and over
# Paramo (a build with libparamo.a), in turn; prints for each line the medians in microseconds and ps-lite's over ours.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
pslite=$1 build=$2 runs=${3:-5} van=${4:-tcp}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/../test/ps/lib.sh"
flags="-std=c++14 -O2 -DNDEBUG -w $here/pslite.cc"
# shellcheck disable=SC2086 # flags are words
g++ $flags -I"$pslite/include" "$pslite/build/libps.a" -lzmq -lprotobuf -lpthread -o "$work/theirs"
# shellcheck disable=SC2086
g++ $flags -I"$here/../include" "$build/libparamo.a" -ljansson -lm -ldl -lpthread -o "$work/ours"
export PARAMO_VAN=$van DMLC_NODE_HOST=127.0.0.1 keep_logs=1
for _ in $(seq "$runs"); do
    for which in theirs ours; do
        job 1 1 "$work/$which" 2>&1 | sed -n "s/^\[[0-9]* worker\] \([a-z_0-9]* [0-9.]*\)$/$which \1/p" >>"$work/times"
    done
done
sort -k2,2 -k1,1 -k3,3n "$work/times" | awk '
    { key = $2 " " $1; value[key, ++count[key]] = $3; names[$2] = 1 }
    function median(key) { return count[key] ? value[key, int((count[key] + 1) / 2)] : 0 }
    END { for (n in names) if (median(n " ours"))
        printf "%-28s ps-lite %8.1f us  paramo %8.1f us  ratio %.2f\n", n, median(n " theirs"), median(n " ours"),
            median(n " theirs") / median(n " ours") }' | sort
