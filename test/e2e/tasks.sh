# Tasks: a plugin's on servers and workers; each call runs once, while a server and a worker are killed.
# Sanitizers: address; the threads are those of test/node/test_task.c.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
HERE=$(dirname "$PARAMO")/examples/c
BUMPER=$(dirname "$PARAMO")/test/bumper

expect 0 "tasks, alone" "$HERE/task"
check "tasks, alone: one total" grep -qx 'node 8: total 30000' "$OUT"
run=("$PARAMO" run -s 3 -w 1 --workers-only)
expect 0 "tasks of a plugin" "${run[@]}" --plugin "$HERE/tasks.so" -- "$HERE/task"
cat "$OUT" "$ERR" >said
check "tasks of a plugin: one total, and one of each server" test "$(grep -c 'node [0-9]*: total 30000$' said)" = 4
expect 1 "servers without the plugin" "${run[@]}" -- "$HERE/task"
cat "$OUT" "$ERR" >said
check "the message names node, task and remedy" grep -q 'server 0.*has no task "total".*--plugin' said

# ---- an order that the servers keep ----
for tau in 0 4; do
    expect 0 "iterations with bounded delay, alone" "$HERE/chain" $tau
    check "iterations, alone: all are within the bound" grep \
        -Eqx "tau $tau: 200 notes, 0 beyond the bound, at most [0-$tau] ahead" "$OUT"
    expect 0 "iterations on two servers" "$PARAMO" run -s 2 -w 1 -- "$HERE/chain" $tau
    check "iterations on two servers: all are within the bound" grep \
        -Eq "tau $tau: 400 notes, 0 beyond the bound, at most [0-$tau] ahead" "$OUT"
done

# ---- a server and a worker are killed ----
export PARAMO_TOKEN=tasks
free_port
start sched "$PARAMO" scheduler --port "$PORT" --servers 3 --workers 2 --replicas 1
for i in 0 1 2; do
    start "s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i" --domain "host $i" --plugin "$BUMPER.so"
done
for i in 0 1; do
    start "w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "$BUMPER" "$WORK/until"
done
bumped() { grep -q " bumps, $1 dead" w0.out; } # DEAD
check "tasks run" wait_for 30 bumped 0
kill -KILL "$(job_pid s1)"
ends s1 137 "server 1 is killed"
check "tasks run on the other servers" wait_for 30 bumped 1
kill -KILL "$(job_pid w1)"
ends w1 137 "worker 1 is killed"
check "tasks run on the other nodes" wait_for 30 bumped 2
touch until
ends w0 0 "each call has run once on each node that answered"
check "the calls of the killed worker have ended" grep -q '^right, [1-9][0-9]* lost, 2 dead$' "$OUT"
ends sched 4 "the job ends, and names worker 1"
ends s0 4 "server 0 ends"
ends s2 4 "server 2 ends"
finish
