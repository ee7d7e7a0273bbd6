#!/usr/bin/env bash
# Runs bench/pslite.cc over ps-lite and over Paramo, in turn, and judges. Downloads nothing.
#
# usage: pslite.sh PSLITE BUILD [RUNS] [VAN]
#   PSLITE  a checkout of ps-lite. Without build/libps.a in it, its sources are compiled into a temporary folder, which
#           needs the Debian packages libzmq3-dev, cppzmq-dev, libprotobuf-dev and protobuf-compiler
#   BUILD   a build of Paramo, such as build/release
#   RUNS    of each, 5 by default; the medians count
#   VAN     tcp (default) or ucx
#
# Prints, for each kind of request, microseconds of time and of processor time (worker and server together) with ps-lite
# and with Paramo, and ps-lite's divided by Paramo's. Fails if a ratio of time is below BAR (3), or one of processor time
# below 1. Idle and sparse jobs are judged by processor time only. Both sides send heartbeats each second: Paramo always
# does, and without them ps-lite never learns that a node has died.
set -eu
[ $# -ge 2 ] || {
    sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
pslite=$1 build=$2 runs=${3:-5} van=${4:-tcp} bar=${BAR:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/../test/ps/lib.sh"
[ -f "$pslite/include/ps/ps.h" ] || {
    echo "pslite.sh: $pslite is no checkout of ps-lite: it has no include/ps/ps.h" >&2
    exit 2
}
[ -f "$build/libparamo.a" ] || {
    echo "pslite.sh: $build is no build of Paramo: it has no libparamo.a" >&2
    exit 2
}
library=$pslite/build/libps.a
if [ ! -f "$library" ]; then
    library=$work/libps.a
    echo "pslite.sh: compiling the sources of $pslite" >&2
    protoc -I"$pslite/src" --cpp_out="$work" "$pslite/src/meta.proto"
    for source in "$work/meta.pb.cc" "$pslite"/src/{customer,postoffice,van}.cc; do
        g++ -std=c++14 -O3 -w -I"$work" -I"$pslite/src" -I"$pslite/include" -c "$source" \
            -o "$work/$(basename "$source").o"
    done
    ar rcs "$library" "$work"/*.o
fi
flags="-std=c++14 -O2 -DNDEBUG -w $here/pslite.cc"
# shellcheck disable=SC2086 # flags are words
g++ $flags -I"$pslite/include" "$library" -lzmq -lprotobuf -lpthread -o "$work/theirs"
# shellcheck disable=SC2046,SC2086
g++ $flags -I"$here/../include" "$build/libparamo.a" $(sed -n 's/^Libs.private: //p' "$build/paramo.pc") -lpthread \
    -o "$work/ours"
export PARAMO_VAN=$van DMLC_NODE_HOST=127.0.0.1 PS_HEARTBEAT_INTERVAL=1 PS_HEARTBEAT_TIMEOUT=10 keep_logs=1
for run in $(seq "$runs"); do
    for which in theirs ours; do
        job 1 1 "$work/$which" 2>&1 |
            sed -n "s/^\[[0-9]* [a-z]*\] \(time\|processor\) \([a-z_0-9]* [0-9.]*\)$/$which $run \1 \2/p" >>"$work/said"
    done
done
# Processor time is the sum of both processes.
awk '{ sum[$1 " " $3 " " $4 " " $2] += $5 }
     END { for (k in sum) { split(k, at, " "); print at[1], at[2], at[3], sum[k] } }' "$work/said" |
    sort -k1,3 -k4n | awk -v bar="$bar" -v runs="$runs" '
    { key = $1 " " $2 " " $3; value[key, ++count[key]] = $4; names[$3] = 1 }
    function median(key) { return value[key, int((count[key] + 1) / 2)] }
    function show(what, name, least,  a, b, ratio, missing) {
        a = "theirs " what " " name
        b = "ours " what " " name
        missing = count[a] < runs || count[b] < runs
        ratio = missing ? 0 : median(a) / (median(b) > 0 ? median(b) : 0.01)
        printf("%-5s %-24s %-9s  ps-lite %9.1f us  paramo %9.1f us  ratio %6.2f, bar %.1f%s\n",
            (ratio >= least ? "ok" : "FAIL"), name, what, median(a), median(b), ratio, least,
            missing ? " (runs are missing)" : "")
        bad += (ratio < least)
    }
    END {
        for (n in names) {
            if (n !~ /^(idle|sparse)/)
                show("time", n, bar)
            show("processor", n, 1)
        }
        print "~", bad + 0
    }' >"$work/table" || true
grep -v '^~' "$work/table" | sort -k2,3
[ "$(sed -n 's/^~ //p' "$work/table")" = 0 ]
