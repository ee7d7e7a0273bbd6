# Five servers, two copies of each row, four workers that push as fast as they can. One server after the other is
# killed with SIGKILL, and a new one takes its place. Every value that is read during this is in its bounds, every sum
# is exact, and no worker sees an error. The time from each kill to the end of the first push that is served is
# judged: 99 % are within 1,000 ms. KILLS=40: continues to this number of kills.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=kills
# seconds; a kill in each, unless copies take longer than that
SERVERS=5 WORKERS=4 LASTS=${LASTS:-$((SLOW > 1 ? 15 : 60))}
KILLS=${KILLS:-0}
DEADLINE=$((600 * SLOW + KILLS * 20))

free_port
server() { start "$1" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$2" --domain "host $2"; } # NAME RANK
start sched "$PARAMO" scheduler --port "$PORT" --servers $SERVERS --workers $WORKERS --replicas 2 --verbose
for ((i = 0; i < SERVERS; i++)); do
    server "s$i-0" "$i"
    present[i]="s$i-0"
done
for ((i = 0; i < WORKERS; i++)); do
    start "w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "$ADDER" --until stop --book book \
        --stalls "stalls.$i"
done
for ((i = 0; i < WORKERS; i++)); do check "worker $i pushes" wait_for 30 grep -q pushes "w$i.out"; done

times() { grep -c 'rebalancing is complete' sched.err || true; }
converged() { [ "$(times)" -gt "$1" ]; } # TIMES
RANDOM=$((SRANDOM % 32768)) # bash's own, seeded: what is printed here can be repeated
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "      seed $seed"

probe_machine
: >kills
end=$((EPOCHSECONDS + LASTS)) whole=yes
for ((kill = 1; EPOCHSECONDS < end || kill <= KILLS; kill++)); do
    second=$EPOCHSECONDS rank=$((RANDOM % SERVERS)) before=$(times)
    kill_noted "${present[rank]}" kills kill
    ends "${present[rank]}" 137 "kill $kill: server $rank" >/dev/null
    present[rank]=s$rank-$kill
    server "s$rank-$kill" "$rank"
    if ! wait_for 60 converged "$before"; then
        whole=no
        show sched.err
        break
    fi
    while [ "$EPOCHSECONDS" -eq "$second" ]; do pause; done
done
check "$(wc -l <kills) servers were killed, and all copies made again" test $whole = yes

probe_ends
touch stop
for ((i = 0; i < WORKERS; i++)); do
    ends "w$i" 0 "worker $i saw no error"
    check "worker $i: every read is right: $(json "$OUT" reads) values" at_least "$(json "$OUT" reads)" 1000
    check "worker $i: every sum is exact, after $(json "$OUT" pushes) pushes" grep -q '"exact": true' "$OUT"
done
ends sched 0 "the job ends in order"

served_after kills kill "from a kill to the first push served" stalls.*
within "from a kill to the first push served" kills.waits 1000 40 500 10
finish
