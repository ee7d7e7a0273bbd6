# Servers join a job, are drained and killed while workers push; the sums are exact and nobody sees an error. Copies that died are
# made again, and the next death is survived.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=moves

server() { start "$1" "$PARAMO" server --scheduler "127.0.0.1:$PORT" "${@:2}"; }
ring() { "$PARAMO" ring show --scheduler "127.0.0.1:$PORT" --wait 5 --json >"$1.ring" 2>/dev/null; }

# job NAME SERVERS REPLICAS
job() {
    local i
    name=$1
    free_port
    start "$name-sched" "$PARAMO" scheduler --port "$PORT" --servers "$2" --workers 2 --replicas "$3" --verbose
    for ((i = 0; i < $2; i++)); do server "$name-s$i" --rank "$i"; done
    for i in 0 1; do
        start "$name-w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "$ADDER" --until "stop-$name" --keys 20000
    done
    check "$name: workers push" wait_for 30 grep -q pushes "$name-w0.out"
}
sums_are_exact() {
    touch "stop-$name"
    ends "$name-w0" 0 "$name: worker 0 found every sum exact"
    ends "$name-w1" 0 "$name: worker 1 too"
    ends "$name-sched" 0 "$name: the job ends in order"
}
said() { grep -q "$1" "$name-sched.err"; }

settled() { [ "$(grep -c 'every key is where it is to be' "$name-sched.err")" -gt "$1" ]; } # TIMES
times() { grep -c 'every key is where it is to be' "$name-sched.err" || true; }

for k in 0 1; do
    job "join$k" 2 "$k"
    server "join$k-s2"
    check "join$k: a third server joins" wait_for 20 said 'server 2 .* has joined the running job'
    check "join$k: it gets its share" wait_for 60 settled 0
    check "join$k: server 0 is told to go" kill -TERM "$(job_pid "join$k-s0")"
    check "join$k: what it had is others'" wait_for 60 said 'server 0 .* is drained'
    ends "join$k-s0" 143 "join$k: it has gone"
    server "join$k-s3" --name late
    check "join$k: another comes in its place" wait_for 60 settled "$(times)"
    expect 0 "join$k: server 1 is drained" "$PARAMO" drain 1 --scheduler "127.0.0.1:$PORT"
    ends "join$k-s1" 0 "join$k: it has gone, too"
    refused 2 "join$k: it is not there any more" "no server '1'" "$PARAMO" drain 1 --scheduler "127.0.0.1:$PORT"
    expect 0 "join$k: so is the one of that name" "$PARAMO" drain late --scheduler "127.0.0.1:$PORT"
    refused 4 "join$k: the last one stays" "no other server can take" "$PARAMO" drain 2 --scheduler "127.0.0.1:$PORT"
    sums_are_exact
done

# With one copy: whoever is killed has its copies made again, by those who are left or by one that comes; then the next may be.
job kills 3 1
for round in 1 2 3; do
    before=$(times)
    check "kills: server $round of them is killed" kill -KILL "$(job_pid "kills-s$((round - 1))")"
    check "kills: it is dead" wait_for 20 said "server $((round - 1)) .* is dead"
    server "kills-s$((round + 2))" --rank "$((round - 1))"
    check "kills: another takes its place, and all copies are there again" wait_for 60 settled "$before"
done
sums_are_exact
finish
