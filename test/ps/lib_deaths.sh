# Sourced by the scripts here whose jobs have deaths, after lib.sh and with `program` set: jobs whose workers wait after
# their first round, so that nodes are killed and started at known times.

work=$(mktemp -d) fifos=$(mktemp -d)
trap 'rm -rf "$work" "$fifos"' EXIT
bad=0
check() { # check WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then
        echo "ok    $what"
    else
        echo "FAIL  $what"
        tail -n 5 "$work"/* | sed 's/^/      | /'
        bad=$((bad + 1))
    fi
}
# begin ROUNDS MODE...: two servers, two workers (or as many as `servers` and `workers` say), the scheduler; returns
# when all workers have done their first round. `go` lets them do the rest.
begin() {
    local number=${workers:-2} first=$((${servers:-2} + 1))
    mode=$2
    pick_port || exit 1
    rm -f "$work"/*
    rm -f "$fifos/go"
    mkfifo "$fifos/go"
    exec 4<>"$fifos/go"
    export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$port DMLC_NUM_SERVER=$((first - 1))
    export DMLC_NUM_WORKER=$((number * ${customers:-1}))
    pids=() names=()
    for role in scheduler $(printf 'server %.0s' $(seq 2 "$first")) $(printf 'worker %.0s' $(seq "$number")); do
        start $role "$work/${#pids[@]}" timeout -k 5 90 "$program" "$fifos/go" "$@"
    done
    for ((i = first; i < first + number; i++)); do
        until_says works "$i"
    done
}
go() { printf '%8s' ' ' >&4; } # a byte for each worker, and more
until_says() { # until_says TEXT PROCESS: returns when it has, or has ended
    until grep -q "$1" "$work/$2" 2>/dev/null || ! kill -0 "${pids[$2]}" 2>/dev/null; do
        read -r -t 0.02 <> <(:) || true
    done
}
# ends VICTIM: waits for all; `codes` are the exit codes of the others, in order.
ends() {
    codes=
    for i in "${!pids[@]}"; do
        local code=0
        { wait "${pids[$i]}" || code=$?; } 2>/dev/null
        [ "$i" = "$1" ] || codes="$codes $code"
    done
    grep -q "nothing came in" "$work"/* && check "no process waits in vain ($mode)" false
}
none_well() { [[ " $codes " != *" 0 "* ]]; }
none_stopped() { [[ " $codes " != *" 124 "* ]]; } # by timeout
named() { # named NODE VICTIM: all but the victim say it
    local i
    [ -n "$1" ] || return 1
    for i in "${!pids[@]}"; do
        [ "$i" = "$2" ] || grep -q "$1" "$work/$i" || return 1
    done
}
kill_it() { pkill -KILL -P "${pids[$1]}"; } # timeout's child
rank_of() { # of a process, by what the scheduler has seen die
    sed -n 's/.*\(server\|worker\) [0-9]* (node \([0-9]*\)) is dead.*/node \2/p' "$work/0" | head -n 1
}
