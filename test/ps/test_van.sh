#!/usr/bin/env bash
# Which transport a program on ps/ps.h uses: TCP where nothing is said or ps-lite's names for it are, else what is said.
set -eu
here=$(dirname "$0")
. "$here/lib.sh"
program=$2/ps_van_default
bad=0
# uses VAN WHAT: a job with the variables before it; each process must use VAN.
uses() {
    local van=$1 what=$2 said
    if said=$(keep_logs=1 job 1 2 "$program" 2>&1) && [ "$(grep -c " van $van\$" <<<"$said")" = 4 ] &&
        [ "$(grep -c " few by tcp\$" <<<"$said")" = 2 ] && [ "$(grep -c " many by $van\$" <<<"$said")" = 2 ]; then
        echo "ok    $what: $van"
    else
        printf 'FAIL  %s: not %s in all four processes\n%s\n' "$what" "$van" "$said"
        bad=$((bad + 1))
    fi
}
unset PARAMO_VAN DMLC_PS_VAN_TYPE
uses tcp "nothing is said"
DMLC_PS_VAN_TYPE=ZMQ uses tcp "DMLC_PS_VAN_TYPE=ZMQ"
PARAMO_VAN=tcp DMLC_PS_VAN_TYPE=ibverbs uses tcp "PARAMO_VAN=tcp wins"
if PARAMO_VAN=ucx job 1 1 "$program" >/dev/null 2>&1; then
    PARAMO_VAN=auto uses ucx "PARAMO_VAN=auto"
    PARAMO_VAN=ucx DMLC_PS_VAN_TYPE=zmq uses ucx "PARAMO_VAN=ucx wins"
    DMLC_PS_VAN_TYPE=ibverbs uses ucx "DMLC_PS_VAN_TYPE=ibverbs"
else
    echo "the ucx van does not work here: left out"
fi
[ "$bad" -eq 0 ]
