#!/usr/bin/env bash
# The programs that count exactly, with a tenth of all messages lost, and over each transport.
set -eu
here=$(dirname "$0")
. "$here/lib.sh"
programs=$2
bad=0
run() { # run WHAT PROGRAM, with the variables before it
    local customers=1
    [ "$2" != ps_kv_two_customers ] || customers=2
    if job 2 2 "$programs/$2"; then
        echo "ok    $2, $1"
    else
        echo "FAIL  $2, $1"
        bad=$((bad + 1))
    fi
}
for program in ps_kv_two_customers ps_kv_lens ps_simple_groups ps_kv_callbacks; do
    PS_DROP_MSG=10 PARAMO_VAN=tcp run "PS_DROP_MSG=10" $program
done
# ps-lite's users set a timeout in seconds: what is lost is sent again when its answer is overdue all the same (a
# message in ten, each a second late, would take far longer than lib.sh waits).
PS_DROP_MSG=10 PS_RESEND=1 PS_RESEND_TIMEOUT=20000 PARAMO_VAN=tcp run "PS_DROP_MSG=10 PS_RESEND_TIMEOUT=20000" \
    ps_kv_lens
for program in ps_kv_two_customers ps_kv_two_apps ps_simple_groups; do
    PARAMO_VAN=tcp run "tcp" $program
done
if PARAMO_VAN=ucx job 1 1 "$programs/ps_kv_two_apps" >/dev/null 2>&1; then
    for program in ps_kv_two_customers ps_kv_two_apps ps_kv_deferred; do
        PARAMO_VAN=ucx run "ucx" $program
    done
else
    echo "the ucx van does not work here: left out"
fi
[ "$bad" -eq 0 ]
