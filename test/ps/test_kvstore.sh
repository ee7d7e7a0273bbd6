#!/usr/bin/env bash
# MXNet's way to use ps/ps.h (kvstore.cc): dist_sync and dist_async, dense, row-sparse and 2-bit compressed values; and
# the way of BytePS' server. A worker that is killed and started again takes its rank, and the values are exact at the
# end. When a server is killed, all others end with a code that is not 0, and a line that names it.
set -u
here=$(dirname "$0")
. "$here/lib.sh"
program=$2/ps_kvstore
. "$here/lib_deaths.sh"

worker_restarts() { # worker_restarts MODE KIND
    local what="$1, $2: a worker is killed and started again"
    begin 20 "$1" "$2"
    kill_it 4
    start worker "$work/5" timeout -k 5 90 "$program" "$fifos/go" 20 "$1" "$2"
    go
    ends 4
    check "$what: all others end well" [ "$codes" = " 0 0 0 0 0" ]
    check "$what: it takes a rank" grep -q "is_recovery, rank [01]" "$work/5"
    check "$what: no push is lost or applied twice" [ "$(grep -l "finished with 40" "$work"/[35] | wc -l)" = 2 ]
}
server_dies() { # server_dies MODE KIND
    local what="$1, $2: a server is killed"
    begin 20 "$1" "$2"
    kill_it 2
    go
    ends 2
    check "$what: no process ends with 0" none_well
    check "$what: all end by themselves" none_stopped
    check "$what: all say which" named "$(rank_of)" 2
}

export PS_HEARTBEAT_INTERVAL=1 PS_HEARTBEAT_TIMEOUT=2
for kind in dense rows bits; do
    for mode in sync async; do
        worker_restarts $mode $kind
    done
done
worker_restarts byteps dense
export PARAMO_PS_GRACE_MS=1000
server_dies sync dense
server_dies byteps dense
server_dies async rows
exit $((bad > 0))
