# The drill: servers are drained, killed, stopped and joined under load, while a proxy delays, holds and cuts the
# connections of chains, migrations and clients. The tables have as many copies as the job, one, or none. Each value
# that is read is judged by what was sent and acknowledged before the read, and each sum is exact at the end. A seed
# decides which fault comes when:
#     RUNS=300 SEED=1 bash test/e2e/drill.sh build/release/paramo    (KEEP=DIR: logs of runs that fail go there)
# plays seeds 1 to 300. RUNS=1 SEED=N plays one of them again; real processes repeat a run only nearly.
# shellcheck shell=bash disable=SC2154,SC2034
. "$(dirname "$0")/lib.sh"
RUNS=${RUNS:-$((SLOW > 1 ? 2 : 8))} SEED=${SEED:-$((SRANDOM % 1000000))}
MIXER=$(dirname "$PARAMO")/test/mixer PROXY=$(dirname "$PARAMO")/test/proxy
export PARAMO_VAN=tcp PARAMO_TOKEN=drill
DEADLINE=$((150 * SLOW))
PLACES=8 # the most servers of a run, with those that join later
echo "      SEED=$SEED RUNS=$RUNS"

below() { drawn=$((RANDOM * 32768 + RANDOM)) && drawn=$((drawn % $1)); } # sets drawn
# of real time: the length of a fault is part of the drill
wait_ms() {
    local end=$((${EPOCHREALTIME/./} + $1 * 1000))
    while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do read -r -t 0.005 -u "$NEVER" || true; done
}
some_ms() { below "$1" && wait_ms "$drawn"; } # at most
order() { echo "$*" >&"$orders" && did "proxy: $*"; }
did() { printf '%s %s\n' "$(date +%T.%3N)" "$*" >>story; }

server() { # PLACE [OPTION...]
    start "s$1" "$PARAMO" server --scheduler "127.0.0.1:$port" --domain "host$1" --name "s$1" \
        --listen "127.0.0.$((2 + $1))" \
        --port "$data_port" --advertise "127.0.0.$((102 + $1))" --verbose "${@:2}"
}
joins() { # a new server, in the next place
    did "s$next joins"
    server "$next"
    next=$((next + 1))
}
kills() { # PLACE
    kill -KILL "$(job_pid "s$1")" 2>/dev/null && did "s$1 is killed" && gone[$1]=137
}
drains() { # PLACE
    kill -TERM "$(job_pid "s$1")" 2>/dev/null && did "s$1 is drained" && gone[$1]=143
}
stops() { kill -STOP "$(job_pid "$1")" 2>/dev/null && did "$1 is stopped"; }
goes_on() { kill -CONT "$(job_pid "$1")" 2>/dev/null && did "$1 continues"; }
draw_server() { below "$servers" && victim=$drawn; }
draw_other() { below $((servers - 1)) && other=$(((victim + 1 + drawn) % servers)); } # a server beside the victim

purposes=(chain move data all)
connections_act() { # draws one action of the proxy
    below 4 && local what=${purposes[drawn]}
    below "$next" && local at=$drawn
    below 4
    case $drawn in
    0) order cut "$what" "$at" ;;
    1) below 1200 && order hold "$what" "$at" "$drawn" ;;
    *) below 200 && order delay "$what" "$at" "$drawn" ;;
    esac
}

# ---- plans of faults: after each at most one server is dead, so the copies have all rows ----
drained_and_killed() { draw_server && drains "$victim" && some_ms 900 && kills "$victim"; }
drained_owner_stands_still() { # until orders time out; the scheduler is stopped, too, so it declares no node dead
    draw_server && drains "$victim" && some_ms 60 && stops sched && some_ms 500 && stops "s$victim"
    wait_ms 6200
    goes_on "s$victim" # unless it has left
    some_ms 500 && goes_on sched
}
drained_beside_a_death() { draw_server && draw_other && drains "$victim" && some_ms 900 && kills "$other"; }
joined_and_killed() { joins && some_ms 1500 && draw_server && kills "$victim"; }
target_killed() { joins && some_ms 1500 && kills $((next - 1)); }
drained_onto_one_that_stops() {
    draw_server && draw_other && drains "$victim" && some_ms 300 && stops "s$other" && some_ms 2500
    goes_on "s$other"
}
moves_held() { joins && draw_server && drains "$victim" && below 1500 && order hold move -1 "$drawn" && some_ms 800 &&
    connections_act; }
killed_and_replaced() { draw_server && kills "$victim" && some_ms 1000 && joins && some_ms 1000 && connections_act; }
silent_too_long() { # until it is declared dead; then it continues
    draw_server && stops "s$victim" && gone[$victim]='4|137|143|0'
    wait_ms $((PS_HEARTBEAT_TIMEOUT * 1000 + 2500))
    goes_on "s$victim"
}
cut_off() { order cut all -1 && some_ms 500 && connections_act && some_ms 500 && connections_act; }
all_at_once() { joins && draw_server && draw_other && drains "$victim" && some_ms 400 && connections_act &&
    some_ms 400 && kills "$other"; }
plans=(drained_and_killed drained_and_killed drained_owner_stands_still drained_beside_a_death joined_and_killed \
    target_killed
    drained_onto_one_that_stops moves_held killed_and_replaced silent_too_long cut_off all_at_once)

requests() { cat w?.out 2>/dev/null | grep -c requests || true; }
go_on() { [ "$(requests)" -ge "$1" ]; }
at_work() { local i && for i in 0 1 2; do grep -q requests "w$i.out" || return 1; done; }

# run SEED: returns 0 if no check fails
run() {
    local i before=$FAILURES plan delay judged may_lose=(--may-lose)
    mkdir "run$1" && cd "run$1" || exit 1
    local top=$WORK
    WORK=$PWD OUT=$PWD/.out ERR=$PWD/.err
    RANDOM=$((($1 * 7919 + 13) % 32768)) gone=() next=3
    below 2 && servers=$((3 + drawn)) next=$((3 + drawn))
    below 3 && copies=$((drawn == 2 ? 2 : 1))
    below ${#plans[@]} && plan=${plans[drawn]}
    did "$servers servers, $copies copies: $plan"
    free_port && port=$PORT && free_port && data_port=$PORT
    mkfifo orders && exec {orders}<>orders
    start proxy sh -c 'exec "$0" "$1" "$2" <orders' "$PROXY" "$data_port" $PLACES
    wait_for 10 grep -q ready proxy.out || failed "run $1: the proxy is not ready"
    export PS_HEARTBEAT_TIMEOUT=$((SLOW > 1 ? 12 : 4)) # a process that is stopped for longer is declared dead
    if [ "$plan" = drained_owner_stands_still ]; then
        PS_HEARTBEAT_TIMEOUT=$((10 * SLOW)) # no server dies, so nothing may be lost
        may_lose=()
    fi
    start sched "$PARAMO" scheduler --port "$port" --servers "$servers" --workers 3 --replicas "$copies" --verbose
    for ((i = 0; i < servers; i++)); do server "$i" --rank "$i"; done
    for i in 0 1 2; do
        start "w$i" "$PARAMO" worker --scheduler "127.0.0.1:$port" --rank "$i" -- "$MIXER" --until stop --book book \
            --seed "$1" \
            "${may_lose[@]}"
    done
    wait_for 60 at_work || failed "run $1: the workers do not begin to work"
    for what in chain move data; do
        below 4 && delay=$((drawn * drawn * 17)) # half of the delays are below 20 ms
        below $((2 * servers)) && order delay $what $((drawn < servers ? drawn : -1)) $delay
    done
    some_ms 600
    $plan
    some_ms 1500
    order delay all -1 0 && for what in chain move data; do order delay $what -1 0; done
    wait_for 60 go_on $(($(requests) + 6)) || failed "run $1: the workers do not continue after the faults"
    touch stop
    for i in 0 1 2; do ends "w$i" 0 "run $1: worker $i reads right values and exact sums"; done >results
    ends sched '0|4' "run $1: the job ends in order" >>results
    for ((i = 0; i < next; i++)); do ends "s$i" "0|4|${gone[i]:-0}" "run $1: server $i ends" >>results; done
    grep -v '^ok\|requests$' results
    kill -TERM "$(job_pid proxy)" 2>/dev/null
    ends proxy '143|0' "run $1: the proxy ends" >/dev/null
    exec {orders}>&-
    for i in 0 1 2; do judged=$(json "w$i.out" reads) && reads=$((reads + ${judged:-0})); done
    cd .. && WORK=$top
    if [ "$FAILURES" -gt "$before" ]; then
        sed 's/^/      | /' "run$1/story"
        grep -h 'WRONG\|PARAMO_E_DATA_LOST' "run$1"/*.err | head -5 | sed 's/^/      | /'
        if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP" && cp -r "run$1" "$KEEP/" 2>/dev/null; fi
        echo "      | again: RUNS=1 SEED=$1 bash test/e2e/drill.sh $PARAMO"
        return 1
    fi
    rm -rf "run$1"
}

cd "$WORK" || exit 1
reads=0 well=0
for ((seed = SEED; seed < SEED + RUNS; seed++)); do
    run "$seed" && well=$((well + 1))
    if [ $(((seed - SEED + 1) % 25)) -eq 0 ]; then echo "      | $well of $((seed - SEED + 1))"; fi
done
echo "      | $well of $RUNS runs exact, $reads values read and judged"
check "all runs are exact" test "$well" -eq "$RUNS"
finish
