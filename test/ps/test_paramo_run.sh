#!/usr/bin/env bash
# The same programs under `paramo run`, which sets DMLC_ROLE and the rest for each process; the warning about a
# lopsided load, once for each worker; PS_VERBOSE.
set -eu
paramo=$1 programs=$2
out=$(mktemp)
trap 'rm -f "$out"' EXIT
bad=0
expect() { # expect NAME WHAT...: a command that is to succeed
    local name=$1
    shift
    if "$@"; then
        echo "ok    $name"
    else
        echo "FAIL  $name"
        sed 's/^/      | /' "$out"
        bad=$((bad + 1))
    fi
}
run() {
    timeout -k 5 90 "$paramo" run "$@" >"$out" 2>&1 </dev/null
}
expect "kv_two_customers" run -s 2 -w 2 -- env DMLC_NUM_WORKER=4 "$programs/ps_kv_two_customers"
for program in kv_push_pull simple_sync_sgd many; do
    expect "$program" run -s 2 -w 2 -- "$programs/ps_$program"
done
expect "one server, one worker" run -s 1 -w 1 -- "$programs/ps_kv_push_pull"
expect "three servers, four workers" run -s 3 -w 4 -- "$programs/ps_simple_sync_sgd"
expect "lopsided load" run -s 2 -w 2 -- "$programs/ps_kv_lopsided"
expect "is said once by each worker" test "$(grep -c 'server 0 gets 100 % of the keys' "$out")" -eq 2
expect "an even load" run -s 2 -w 2 -- "$programs/ps_kv_push_pull"
expect "is not" test "$(grep -c 'of the keys' "$out")" -eq 0
export PS_VERBOSE=1
expect "PS_VERBOSE=1" run -s 1 -w 1 -- "$programs/ps_kv_push_pull"
expect "names the nodes" grep -q 'role=server, id=8' "$out"
[ "$bad" -eq 0 ]
