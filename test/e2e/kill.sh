# A job of 3 servers and 4 workers under load, with one of its nodes killed, stopped for a while, or interrupted: it
# ends in time, with a correct model or an error that names the node.
# Sanitizers: address; kills has the same threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

rows=$((200000 / SLOW)) epochs=$((SLOW > 1 ? 16 : 40))
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
expect 0 "a test log" "$PARAMO" data synth --rows 20000 --seed 2 --model-seed 7 --out test.ffm
job=("$PARAMO" run --verbose -s 3 -w 4 -- paramo train --model lr --data train.ffm --batch 128 --epochs $epochs \
    --seed 1)

# logloss NAME: of the model in folder NAME on the test log.
logloss() {
    "$PARAMO" eval --model-in "$1" --data test.ffm --json >"$1.json" 2>"$ERR" && json "$1.json" logloss
}

# at_work JOB ROLE [RANK]: the job has learned for a while (most of its epochs are still to come), and the node is
# there.
at_work() { node_pid "$@" >/dev/null && grep -q "^epoch 2/$epochs" "$WORK/$1.err"; }

expect 0 "the job without deaths" "${job[@]}" --model-out calm
calm=$(logloss calm)
check "the model without deaths is good ($calm)" at_most "$calm" 0.62

# whole TEXT FOLDER: the model is not there at all, or as good as the undisturbed one.
whole() {
    local value
    if [ ! -e "$2" ]; then
        passed "$1: there is no model"
        return
    fi
    value=$(logloss "$2")
    check "$1: the model is as good as undisturbed ($value, $calm)" near "$value" "$calm" 0.01
}

start worker "${job[@]}" --model-out m-worker
check "worker 2 is at work" wait_for 20 at_work worker worker 2
check "worker 2 is killed" signal_node KILL worker worker 2
ends worker 137 "a worker is killed: the job ends"
says "worker 2 is named" 'worker 2 \(node 13\), pid [0-9]+, was killed by signal 9'
says "the scheduler names worker 2 in the same words" '^\[.*scheduler.*worker 2 \(node 13\) is dead'
says "the runner says that the others succeeded" \
    '3 of 4 workers succeeded; exit code 137 is that of worker 2 \(node 13\)'
check "the summary counts the death" grep -q '^1 worker died; ' "$OUT"
whole "a worker was killed" m-worker

start server "${job[@]}" --hold-out 0 --model-out m-server
check "server 1 is at work" wait_for 20 at_work server server 1
before=$SECONDS
check "server 1 is killed" signal_node KILL server server 1
ends server '[1-9][0-9]*' "a server is killed: the job ends with an error"
check "the job ends soon ($((SECONDS - before)) s)" test $((SECONDS - before)) -le $((15 * SLOW))
says "the runner names server 1" 'server 1 \(node 10\), pid [0-9]+, was killed by signal 9'
says "the workers name server 1 in the same words" '^(\[[^]]*worker [0-9][^]]*\] )?paramo.*server 1 \(node 10\) '
check "no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
check "there is no model" test ! -e m-server

start scheduler "${job[@]}" --hold-out 0 --model-out m-scheduler
check "a worker is at work" wait_for 20 at_work scheduler worker 0
check "the scheduler is killed" signal_node KILL scheduler scheduler
ends scheduler 4 "the scheduler is killed: the job ends"
says "the scheduler is named" 'the scheduler \(node 1\), pid [0-9]+, was killed by signal 9'
says "the other nodes notice the scheduler's death" \
    'lost the scheduler at 127\.0\.0\.1:[0-9]+: connection reset; trying to reach it again for up to 10 s$'
says "the other nodes give the scheduler up" 'the scheduler at 127\.0\.0\.1:[0-9]+ is gone: connection refused$'
# Each of the seven others says each of both once: worker 0 without a prefix, the others after their names.
all_said() {
    grep -F -- "$1" "$ERR" | awk '{
        if (!sub(/^\[/, "")) { n++; next }
        sub(/\].*/, "")
        if (match($0, / and [0-9]+ more$/)) { n += substr($0, RSTART + 5) + 0; sub(/ and .*/, "") }
        n += split($0, names, ", ")
    } END { exit n != 7 }'
}
check "each of the other nodes logs the loss once" all_said 'lost the scheduler'
check "each of the other nodes gives up once" all_said 'connection refused'
check "no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
whole "the scheduler was killed" m-scheduler

# A node that is stopped for a while (well below the 10 s of silence that count as death): the others wait for it.
for node in "server 1" "worker 3"; do
    start still "${job[@]}" --model-out "m-still ${node% *}"
    # shellcheck disable=SC2086 # role and rank
    check "$node is at work" wait_for 20 at_work still $node
    # shellcheck disable=SC2086
    check "$node is stopped" signal_node STOP still $node
    end=$((SECONDS + 4))
    while [ "$SECONDS" -lt $end ] && alive still; do pause; done
    # shellcheck disable=SC2086
    check "$node continues" signal_node CONT still $node
    ends still 0 "$node stood still for 4 s and continued: the job ends well"
    check "no node declared $node dead" sh -c '! grep -Eiq "dead|lost|killed|fenced" "$0"' "$ERR"
    whole "$node stood still" "m-still ${node% *}"
done

# A scheduler that stood still for longer than the allowed silence declares no node dead: the silence was its own. (Each
# node has its own settings here: only the scheduler is impatient.)
export PROGRAM=$PARAMO PATIENCE=$((SLOW > 1 ? 5 : 2)) # seconds
start stood "$PARAMO" run --verbose -s 2 -w 2 -- sh -c '[ "$DMLC_ROLE" != scheduler ] || export PS_HEARTBEAT_TIMEOUT=$PATIENCE
    exec "$PROGRAM" train --model lr --data train.ffm --batch 128 --epochs "$0" --seed 1 --model-out m-stood' $epochs
check "the scheduler is there" wait_for 20 node_pid stood scheduler
check "worker 1 is at work" wait_for 20 at_work stood worker 1
check "the scheduler is stopped" signal_node STOP stood scheduler
end=$((SECONDS + PATIENCE + 2))
while [ "$SECONDS" -lt $end ]; do pause; done
check "the scheduler continues" signal_node CONT stood scheduler
ends stood 0 "the scheduler stood still for $((PATIENCE + 2)) s and continued: the job ends well"
check "no node was declared dead" sh -c '! grep -Eiq "dead|lost|killed|fenced" "$0"' "$ERR"
whole "the scheduler stood still" m-stood

# Four workers add and read. One is killed at work; another one and a server are stopped for a while. Each read has all
# values that were acknowledged before, and none that was not sent.
start adders "$PARAMO" run --verbose -s 3 -w 4 --workers-only -- "$ADDER" --until enough --book book
pushes() { [ "$(grep -c 'pushes$' "$WORK/adders.err")" -ge "$1" ]; }
check "adders are at work" wait_for 30 pushes 3
check "worker 2 is killed" signal_node KILL adders worker 2
for node in "worker 1" "server 1"; do
    # shellcheck disable=SC2086
    check "$node is stopped" signal_node STOP adders $node
    end=$((SECONDS + 2))
    while [ "$SECONDS" -lt $end ]; do pause; done
    # shellcheck disable=SC2086
    check "$node continues" signal_node CONT adders $node
    count=$(grep -c 'pushes$' adders.err)
    check "the others push on" wait_for 20 pushes $((count + 3))
done
touch enough
ends adders 137 "every read was right, and every sum is exact"
check "three workers report exact sums" test "$(cat "$OUT" "$ERR" | grep -c '"wrong": 0, "exact": true')" -eq 3

# Ctrl-C saves what there is.
start interrupt "${job[@]}" --epochs 100000 --model-out m-interrupt
check "three epochs are done" wait_for 20 grep -q '^epoch 3/' interrupt.err
kill -INT "$(job_pid interrupt)"
ends interrupt '[0-9]+' "Ctrl-C: the job ends"
check "no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
value=$(logloss m-interrupt)
check "the saved model has learned something ($value)" at_most "$value" 0.69
finish
