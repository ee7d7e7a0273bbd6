# One server after the other is killed with SIGKILL during a training run, and a new one takes its place. The model is
# as good as without deaths. Each kill waits until all copies are made again, and one epoch more; how many kills there
# are depends on the speed of the machine.
# Sanitizers: none; kills and replicas meet the same deaths in less time.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=epochs
EPOCHS=15 DEADLINE=$((300 * SLOW))

expect 0 "a training log" "$PARAMO" data synth --rows $((100000 / SLOW)) --seed 1 --model-seed 7 --out train.ffm
expect 0 "a test log" "$PARAMO" data synth --rows 20000 --seed 2 --model-seed 7 --out test.ffm
train=("$PARAMO" train --model lr --data train.ffm --epochs "$EPOCHS" --seed 1)
logloss() { "$PARAMO" eval --model-in "$1" --data test.ffm --json >"$1.json" 2>"$ERR" && json "$1.json" logloss; }

expect 0 "the job without deaths" "$PARAMO" run -s 3 -w 2 -- "${train[@]}" --model-out quiet
quiet=$(logloss quiet)

free_port
server() { start "$1" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$2" --domain "host $2"; } # NAME RANK
start sched "$PARAMO" scheduler --port "$PORT" --servers 3 --workers 2 --replicas 1 --verbose
for i in 0 1 2; do
    server "s$i-0" "$i"
    present[i]="s$i-0"
done
for i in 0 1; do
    start "w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "${train[@]}" --model-out killed
done

times() { grep -c 'rebalancing is complete' sched.err || true; }
epochs() { grep -c '^epoch' w0.err || true; }
over() { ! alive w0 || [ "$(epochs)" -ge $((EPOCHS - 1)) ]; }
ready() { over || { [ "$(epochs)" -gt "$1" ] && [ "$(times)" -gt "$2" ]; }; } # EPOCHS TIMES
whole=yes
for ((kills = 0, at = 0, before = -1; ; kills++)); do
    wait_for 60 ready "$at" "$before" || whole=no
    if over || [ $whole = no ]; then break; fi
    rank=$((kills % 3)) before=$(times) at=$(epochs)
    kill -KILL "$(job_pid "${present[rank]}")"
    ends "${present[rank]}" 137 "death $kills: the server is killed" >/dev/null
    present[rank]=s$rank-$((kills + 1))
    server "${present[rank]}" "$rank"
done
check "all copies were made again after each of $kills deaths" test $whole = yes
check "servers were killed" test "$kills" -ge 2
for i in 0 1; do ends "w$i" 0 "worker $i has seen no error"; done
ends sched 0 "the job ends in order"
killed=$(logloss killed)
check "the model is as good as without deaths ($killed, $quiet)" near "$killed" "$quiet" 0.01
finish
