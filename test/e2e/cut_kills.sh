# Four servers, each on a host of its own (network namespaces with veth pairs on a bridge), two copies of each row, two
# workers that push. Servers are killed with SIGKILL, and hosts vanish: the link is gone, without a reset or a refusal.
# Each time a new server takes the place. Every value that is read is right, every sum is exact, and no worker sees an
# error. The time for which rows have no server is judged.
# Sanitizers: address; kills has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
SERVERS=4
hosts=(hub sched s0 s1 s2 s3 w)
. "$TOP/test/e2e/lib_hosts.sh"
export PARAMO_TOKEN=cutkills
SILENT=$((SLOW > 1 ? 6 : 3)) # a node that is silent for this time is declared dead
export PS_HEARTBEAT_TIMEOUT=$SILENT
ROUNDS=$((SLOW > 1 ? 2 : 5))
DEADLINE=$((120 * SLOW))

scheduler=$(address sched):9000
start_on sched sched "$PARAMO" scheduler --listen "$(address sched)" --port 9000 --servers $SERVERS --workers 2 \
    --replicas 2 --verbose
# NAME RANK
server() { start_on "$1" "s$2" "$PARAMO" server --scheduler "$scheduler" --listen "$(address "s$2")" --rank "$2"; }
for ((i = 0; i < SERVERS; i++)); do
    server "s$i-0" "$i"
    present[i]=s$i-0
done
for i in 0 1; do
    start_on "w$i" w "$PARAMO" worker --scheduler "$scheduler" --rank "$i" -- "$ADDER" --until stop --book book \
        --stalls "stalls.$i"
done
for i in 0 1; do check "worker $i is at work" wait_for 30 more pushes "w$i.out" 2; done

workers_go_on() {
    local i pushes
    for i in 0 1; do
        pushes=$(lines pushes "w$i.out")
        check "round $round: worker $i continues" wait_for 20 more pushes "w$i.out" "$pushes"
    done
}

probe_machine
converged='rebalancing is complete'
for ((round = 1; round <= ROUNDS; round++)); do
    rank=$((round % SERVERS)) before=$(lines "$converged" sched.err) deaths=$(lines 'is dead: it was silent' sched.err)
    old=${present[rank]}
    if [ $((round % 2)) -eq 0 ]; then
        echo "${EPOCHREALTIME/[.,]/}000 vanish" >>events
        check "round $round: the host of server $rank vanishes" cut "s$rank"
        check "round $round: the vanished server is declared dead" wait_for $((2 * SILENT + 10)) more \
            'is dead: it was silent' sched.err "$deaths"
        workers_go_on
        kill -KILL "$(job_pid "$old")" 2>/dev/null # it may have given up already
        ends "$old" '4|137' "round $round: the vanished server ends"
        mend "s$rank"
    else
        kill_noted "$old" events kill
        ends "$old" 137 "round $round: server $rank is killed"
    fi
    present[rank]=s$rank-$round
    server "s$rank-$round" "$rank"
    check "round $round: another server takes the place, and all copies are made again" wait_for 60 more "$converged" \
        sched.err "$before"
    workers_go_on # before the next strikes: what they wait for is this one's
    [ "$FAILURES" -eq 0 ] || break
done

probe_ends
touch stop
for i in 0 1; do
    ends "w$i" 0 "worker $i saw no error"
    check "worker $i: every sum is exact, after $(json "$OUT" pushes) pushes" grep -q '"exact": true' "$OUT"
done
ends sched 0 "the job ends in order"
served_after events kill "from a SIGKILL to the first push served" stalls.*
within "from a SIGKILL to the first push served" events.waits 1000 40 500 10
served_after events vanish "from a host's vanishing to the first push served" stalls.*
within "from a host's vanishing to the first push served" events.waits \
    $((1000 * (SILENT + 2))) 40 $((1000 * SILENT + 500)) 10
finish
