#!/usr/bin/env bash
# scripts/fuzz prints enough of a failing target to reproduce the failure, also when its log is odd; .ci/run keeps that.
# The targets are stand-ins, because only the script is tested.
# Sanitizers: none; what it runs are scripts.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p "$WORK/tree/scripts" "$WORK/tree/.ci" "$WORK/tree/build/fuzz/fuzz"
cp "$TOP/scripts/fuzz" "$WORK/tree/scripts/"
cp "$TOP/.ci/run" "$WORK/tree/.ci/"
cd "$WORK/tree" || exit 1

# target NAME CODE BODY: a stand-in that ends with CODE.
target() {
    printf '#!/bin/bash\necho "stat::number_of_executed_units: 7"\n%s\nexit %s\n' "$3" "$2" >"build/fuzz/fuzz/fuzz_$1"
    chmod +x "build/fuzz/fuzz/fuzz_$1"
}
target good 0 'echo fine'
target silent 9 'echo "nothing that a pattern knows"'
target input 77 'echo "==1== ERROR: libFuzzer: deadly signal"; printf "a\0b\377" >build/fuzz/found/input-crash-1'

FUZZ_SECONDS=3 expect 0 'a target that holds' scripts/fuzz -k good
FUZZ_SECONDS=3 expect 1 'targets that fail' scripts/fuzz -k good silent input
check 'the log says how each target ended' grep -q 'silent: ended with exit code 9' "$OUT"
check 'the report shows the end of a log that no pattern matches' grep -q 'nothing that a pattern knows' "$OUT"
check 'targets that passed are not among the failed' bash -c "! sed -n '/^====/,\$p' '$OUT' | grep -q '^good'"
sed -n 's/^  or:    echo \([^ ]*\) | base64 -d.*/\1/p' "$OUT" | base64 -d >copy 2>"$ERR" || true
check "the log has the input's bytes" cmp copy build/fuzz/found/input-crash-1

# What .ci/run shows of such a log: the report, however long what came before and the report itself are.
sed '/^all$/,$d' .ci/run >ci.sh
{ seq 100 && echo '==== what failed' && seq 100; } >long
# shellcheck disable=SC2016
expect 1 'a failing step' bash -c '. ./ci.sh; trap - EXIT; step fuzz bash -c "cat \"$0\"; exit 1"' "$PWD/long"
check 'a long report is whole' test "$(sed -n '/==== what failed/,$p' "$OUT" | wc -l)" -eq 101
check 'a long report comes without the rest of the log' test "$(wc -l <"$OUT")" -eq 102
finish
