# Servers join a job, are drained and killed while workers push; the sums are exact and no worker sees an error.
# During 200,000 pushes servers are drained and replaced one after the other. The pauses of writes are judged: 99 % of
# the migrations hold writes for at most 50 ms (MOVES=500: until there were 500 of them); 'paramo status' reports the
# pauses, too. The scheduler is killed while partitions move. Lost copies are made again, and the next death is
# survived.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=moves
MOVES=${MOVES:-0}
DEADLINE=$((180 * SLOW + MOVES * 2))

server() { start "$1" "$PARAMO" server --verbose --scheduler "127.0.0.1:$PORT" --domain "$1" "${@:2}"; }

scheduler() { # NAME: of the present job, which has its options
    sched=$1
    start "$sched" "$PARAMO" scheduler --port "$PORT" --workers 2 --verbose "${options[@]}"
}

# job NAME SERVERS REPLICAS [OPTION...]
job() {
    local i
    name=$1 options=(--servers "$2" --replicas "$3" "${@:4}")
    free_port
    scheduler "$name-sched"
    for ((i = 0; i < $2; i++)); do server "$name-s$i" --rank "$i"; done
    for i in 0 1; do
        start "$name-w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "$ADDER" --until "stop-$name" \
            --book "book-$name" --keys 20000 --window 64
    done
    for i in 0 1; do check "$name: worker $i pushes" wait_for 30 grep -q pushes "$name-w$i.out"; done
}
sums_are_exact() {
    touch "stop-$name"
    ends "$name-w0" 0 "$name: worker 0 found every sum exact"
    ends "$name-w1" 0 "$name: worker 1 found every sum exact"
    ends "$sched" 0 "$name: the job ends in order"
}
said() { grep -q "$1" "$sched.err"; }
times() { grep -c 'rebalancing is complete' "$sched.err" || true; }
converged() { [ "$(times)" -gt "$1" ]; } # TIMES
status() { "$PARAMO" status --scheduler "127.0.0.1:$PORT" --json >status && grep -q "$1" status; } # REGEX

job join 2 0
server join-s2
check "join: a third server joins" wait_for 20 said 'server 2 .* has joined the running job'
check "join: the third server gets its share" wait_for 60 converged 0
check "join: server 0 is drained by SIGTERM" kill -TERM "$(job_pid join-s0)"
check "join: server 0 has no rows left" wait_for 60 said 'server 0 .* is drained'
ends join-s0 143 "join: server 0 ends"
before=$(times)
server join-s3 --name late
check "join: a new server takes the place of server 0" wait_for 60 converged "$before"
expect 0 "join: server 1 is drained" "$PARAMO" drain 1 --scheduler "127.0.0.1:$PORT"
ends join-s1 0 "join: server 1 ends"
refused 2 "join: a second drain of server 1 is refused" "no running server '1'" \
    "$PARAMO" drain 1 --scheduler "127.0.0.1:$PORT"
expect 0 "join: a server is drained by its name" "$PARAMO" drain late --scheduler "127.0.0.1:$PORT"
refused 4 "join: the last server cannot be drained" "no other server can take" \
    "$PARAMO" drain 2 --scheduler "127.0.0.1:$PORT"
sums_are_exact

# Servers come and go in turn: the oldest is drained, another comes in its place.
WANTED=$((SLOW > 1 ? 20000 : 200000))
pushes() { echo $((1000 * $(cat "$name"-w?.out | grep -c 'pushes$'))); } # each says so after a thousand
job turn 3 1
drains=0 whole=yes
held() { cat turn-s*.err | sed -n 's/.* paused for \([0-9.]*\) ms .*/\1/p' | sort -n; }
moved() { held | wc -l; }
probe_machine
while [ "$drains" -lt 3 ] || [ "$(pushes)" -lt $WANTED ] || [ "$(moved)" -lt "$MOVES" ]; do
    before=$(times)
    kill -TERM "$(job_pid "turn-s$drains")"
    ends "turn-s$drains" 143 "turn: server $drains ends" >/dev/null
    drains=$((drains + 1))
    server "turn-s$((drains + 2))"
    wait_for 60 converged "$before" && [ "$FAILURES" -eq 0 ] || { whole=no && break; }
done
check "turn: $drains servers were drained, and new servers took their places" test $whole = yes
check "turn: status reports that rebalancing is complete" wait_for 60 status '"converged": true'
cp status turn.status
probe_ends
sums_are_exact
check "turn: status counts at least one move for each drained server" test "$(json turn.status count)" -ge "$drains"
told() { json turn.status "$1"; }
printf '      | %s\n' "$(pushes) pushes, $drains servers drained, $drains joined, $(told count) moves" \
    "writes held, ms: median $(told p50_ms), 99 % $(told p99_ms), longest $(told max_ms)"
held >held
within "writes are held for a move" held 50 500 0 5

# The scheduler is killed and started again while partitions move. Before the first kill their target is stopped, so the
# migration cannot end too early.
job again 3 1 --state state
for ((k = 0; k < (SLOW > 1 ? 2 : 4); k++)); do
    check "again: server $k is drained by SIGTERM" kill -TERM "$(job_pid "again-s$k")"
    if [ "$k" -eq 0 ]; then
        stopped=$(job_pid again-s1)
        kill -STOP "$stopped"
    fi
    check "again: the scheduler begins the drain" wait_for 20 said "server .* will be drained"
    if [ "$k" -eq 0 ]; then check "again: partitions move" wait_for 20 status \
        '"state": "\(planned\|copying\|full\|paused\)"'; fi
    kill -KILL "$(job_pid "$sched")"
    ends "$sched" 137 "again: kill $((k + 1)): the scheduler is killed" >/dev/null
    scheduler "again-sched$k"
    if [ "$k" -eq 0 ]; then kill -CONT "$stopped"; fi
    ends "again-s$k" 143 "again: kill $((k + 1)): the drained server has no rows left, and ends"
    server "again-s$((k + 3))"
    check "again: a new server takes the place of the drained one" wait_for 60 status '"converged": true'
done
check "again: no node was declared dead" sh -c '! grep -Eq "is dead|fenced" again-sched*.err'
sums_are_exact

# With one copy: the copies of a killed server are made again, by the servers that are left or by a new one; then the
# next is killed.
job kills 3 1
for round in 1 2 3; do
    before=$(times)
    check "kills: server $((round - 1)) is killed" kill -KILL "$(job_pid "kills-s$((round - 1))")"
    check "kills: server $((round - 1)) is declared dead" wait_for 20 said "server $((round - 1)) .* is dead"
    server "kills-s$((round + 2))" --rank "$((round - 1))"
    check "kills: a new server takes the place, and all copies are made again" wait_for 60 converged "$before"
done
sums_are_exact
finish
