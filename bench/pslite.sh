#!/usr/bin/env bash
# Runs bench/pslite.cc over ps-lite and over Paramo, in turn, and judges. Downloads nothing.
#
# usage: pslite.sh [--json] [PSLITE [BUILD [RUNS [VANS [ONLY]]]]]
# PSLITE  a checkout of ps-lite: by default the folder ps-lite beside this repository. Without build/libps.a in it, its
#           sources are compiled into a temporary folder, which needs the Debian packages libzmq3-dev, cppzmq-dev,
#           libprotobuf-dev and protobuf-compiler
#   BUILD   a build of Paramo: by default build/release
#   RUNS    of each, 5 by default
#   VANS    tcp, ucx, or both with a comma between (the default)
#   ONLY    kinds of requests with this in their name, such as callback; by default all
#
# A run is ps-lite, then Paramo over each van, so that all see the same machine. For each kind of request it prints the
# medians of microseconds of time and of processor time (worker and server together), and the median, the lower and the
# upper quartile of the runs' ratios, ps-lite's part divided by Paramo's. Fails if a median ratio of time is below BAR
# (3), or one of processor time below 1, or if a run or a kind is missing. Idle and sparse jobs are judged by processor
# time only. Both sides send heartbeats each second: Paramo always does, and without them ps-lite never learns that a
# node has died. --json prints the same as one object.
set -eu
json=
if [ "${1:-}" = --json ]; then
    json=1
    shift
fi
here=$(cd "$(dirname "$0")" && pwd)
pslite=${1:-$here/../../ps-lite} build=${2:-$here/../build/release} runs=${3:-5} vans=${4:-tcp,ucx} only=${5:-}
if [ $# -gt 5 ] || [ "${pslite#-}" != "$pslite" ] || ! [ "$runs" -gt 0 ]; then
    sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/../test/ps/lib.sh"
. "$here/lib_pslite.sh"
both "$here/pslite.cc" pslite
export DMLC_NODE_HOST=127.0.0.1 PS_HEARTBEAT_INTERVAL=1 PS_HEARTBEAT_TIMEOUT=10 keep_logs=1
# one WHO PROGRAM: adds lines "WHO RUN WHAT NAME MICROSECONDS" to `said`.
one() {
    job 1 1 "$work/pslite.$2" "${REQUESTS:-4000}" "$only" 2>&1 |
        sed -n "s/^\[[0-9]* [a-z]*\] \(time\|processor\) \([a-z_0-9]* [0-9.]*\)$/$1 $run \1 \2/p" >>"$work/said"
}
load=$(cut -d' ' -f1 /proc/loadavg)
for run in $(seq "$runs"); do
    one theirs theirs
    for van in ${vans//,/ }; do
        PARAMO_VAN=$van one "$van" ours
    done
done
load="$load to $(cut -d' ' -f1 /proc/loadavg)"
kinds=14 # that pslite.cc has
[ -z "$only" ] || kinds=1
awk -v bar="${BAR:-3}" -v kinds="$kinds" -v runs="$runs" -v vans="$vans" -v json="$json" -v load="$load" '
    { value[$1, $2, $3, $4] += $5; there[$1, $2, $3, $4] = 1; names[$4] = 1 } # processor time is of both processes
    function sort(v, n,  i, j, t) {
        for (i = 2; i <= n; i++) {
            t = v[i]
            for (j = i; j > 1 && v[j - 1] > t; j--)
                v[j] = v[j - 1]
            v[j] = t
        }
    }
    function at(v, n, part) { return n ? v[1 + int((n - 1) * part + 0.5)] : 0 }
    function show(van, what, name, least,  i, n, a, b, theirs, ours, ratio, ok) {
        n = 0
        for (i = 1; i <= runs; i++) {
            if (!((("theirs" SUBSEP i SUBSEP what SUBSEP name) in there) &&
                  ((van SUBSEP i SUBSEP what SUBSEP name) in there)))
                continue
            n++
            theirs[n] = value["theirs", i, what, name]
            ours[n] = value[van, i, what, name]
            ratio[n] = theirs[n] / (ours[n] > 0 ? ours[n] : 0.01)
        }
        sort(theirs, n)
        sort(ours, n)
        sort(ratio, n)
        ok = n == runs && at(ratio, n, 0.5) >= least
        bad += !ok
        if (json) {
            printf("%s{\"van\":\"%s\",\"name\":\"%s\",\"what\":\"%s\",\"pslite_us\":%.2f,\"paramo_us\":%.2f," \
                "\"ratio\":%.2f,\"ratio_low\":%.2f,\"ratio_high\":%.2f,\"bar\":%.1f,\"runs\":%d,\"ok\":%s}",
                comma, van, name, what, at(theirs, n, 0.5), at(ours, n, 0.5), at(ratio, n, 0.5), at(ratio, n, 0.25),
                at(ratio, n, 0.75), least, n, ok ? "true" : "false")
            comma = ","
            return
        }
        printf("%-4s %-3s %-22s %-9s  ps-lite %8.1f us  paramo %8.1f us  ratio %5.2f (%.2f to %.2f), bar %.1f%s\n",
            ok ? "ok" : "FAIL", van, name, what, at(theirs, n, 0.5), at(ours, n, 0.5), at(ratio, n, 0.5),
            at(ratio, n, 0.25), at(ratio, n, 0.75), least, n < runs ? " (" runs - n " runs are missing)" : "") | "sort -k2,4"
    }
    END {
        if (json)
            printf("{\"runs\":%d,\"load\":\"%s\",\"results\":[", runs, load)
        count = split(vans, van, ",")
        for (n in names)
            found++
        for (i = 1; i <= count; i++)
            for (n in names) {
                if (n !~ /^(idle|sparse)/)
                    show(van[i], "time", n, bar)
                show(van[i], "processor", n, 1)
            }
        if (json)
            print "]}"
        close("sort -k2,4")
        if (!json)
            print "load " load ", " runs " runs"
        if (found < kinds)
            print "pslite.sh: " found + 0 " kinds of requests were measured, not " kinds >"/dev/stderr"
        exit(bad > 0 || found < kinds)
    }' "$work/said"
