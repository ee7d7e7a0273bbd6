#!/usr/bin/env bash
# Runs ps-lite's own tests test_kv_app and test_simple_app over ps-lite and over Paramo, in turn, and judges what a
# job of two servers and two workers uses. Downloads nothing.
#
# usage: pslite_usage.sh [PSLITE [BUILD [RUNS [VANS]]]]
#   PSLITE, BUILD, RUNS  as pslite.sh has them
#   VANS                 values of PARAMO_VAN with commas between: tcp,auto by default
#
# Prints the medians of processor time and of memory, each summed over the five processes of a job, and Paramo's part
# divided by ps-lite's. Fails if processor time is above 1.0 times ps-lite's, or memory above 1.2 times, or a run fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
pslite=${1:-$here/../../ps-lite} build=${2:-$here/../build/release} runs=${3:-5} vans=${4:-tcp,auto}
if [ $# -gt 4 ] || [ "${pslite#-}" != "$pslite" ] || ! [ "$runs" -gt 0 ]; then
    sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/../test/ps/lib.sh"
. "$here/lib_pslite.sh"
cc -O1 -o "$work/usage" "$here/usage.c"
export DMLC_NODE_HOST=127.0.0.1 keep_logs=1
# one WHO PROGRAM: adds a line "PROGRAM WHO SECONDS KIB" to `said`.
one() {
    job 2 2 "$work/usage" "$work/$2" 2>&1 | awk -v name="${2%.*}" -v who="$1" '
        $3 == "usage" { seconds += $4; kib += $5; n++ }
        END { if (n == 5) print name, who, seconds, kib }' >>"$work/said"
}
load=$(cut -d' ' -f1 /proc/loadavg)
for program in test_kv_app test_simple_app; do
    both "$pslite/tests/$program.cc" $program
    for _ in $(seq "$runs"); do
        one theirs $program.theirs
        for van in ${vans//,/ }; do
            PARAMO_VAN=$van one "$van" $program.ours
        done
    done
done
# median PROGRAM WHO FIELD
median() {
    awk -v p="$1" -v w="$2" -v f="$3" '$1 == p && $2 == w { print $f }' "$work/said" | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}
bad=0
for program in test_kv_app test_simple_app; do
    for van in ${vans//,/ }; do
        [ "$(awk -v p=$program -v w="$van" '$1 == p && $2 == w' "$work/said" | wc -l)" = "$runs" ] || {
            echo "FAIL $program $van: runs are missing"
            bad=1
        }
        for what in "3 processor_seconds 1.0" "4 memory_kib 1.2"; do
            read -r field name most <<<"$what"
            awk -v a="$(median $program theirs "$field")" -v b="$(median $program "$van" "$field")" -v most="$most" \
                -v text="$program $van $name" 'BEGIN {
                ok = a > 0 && b > 0 && b / a <= most
                printf("%-4s %s: ps-lite %g, paramo %g, ratio %.2f, at most %.1f\n", ok ? "ok" : "FAIL", text, a, b,
                    (a > 0 ? b / a : 0), most)
                exit !ok }' || bad=1
        done
    done
done
echo "load $load to $(cut -d' ' -f1 /proc/loadavg), runs $runs"
exit $bad
