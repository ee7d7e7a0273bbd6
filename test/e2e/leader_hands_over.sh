# Training with several workers. The worker that leads hands over because it cannot write any more, or is killed and
# another process takes its place among the nodes. Another worker leads then, and its model is as good.
# Sanitizers: address; workers has the same threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib_leader.sh"

# ---- the leader's own disk fails it: it hands over; a file stands where its folder was ----
handed=("$PARAMO" run --verbose -s 2 -w 3)
export PROGRAM=$PARAMO
command='exec "$PROGRAM" train --model lr --data train.ffm --hold-out 0 --seed 1 --batch 128 --epochs '$epochs' --model-out "$0-$DMLC_RANK"'
start disk "${handed[@]}" -- sh -c "$command" m-disk
check "disk: epoch 2 is over" wait_for 40 epoch disk 2
rm -rf m-disk-0
: >m-disk-0
ends disk 3 "disk: worker 0 ends with its own error"
says "disk: worker 0 logs the error, and that another worker leads" \
    '^paramo train: m-disk-0: .* \(this worker ends; another leads from now on, and saves the model\)$'
says "disk: the last line names worker 0 and its exit code" \
    '^paramo run: 2 of 3 workers succeeded; exit code 3 is that of worker 0 '
second=$(leads disk)
check "disk: another leads (worker $second)" test -n "$second"
# the last epoch's, not the best
check "disk: the second leader has saved the model" as_good "$(logloss "m-disk-$second")" 0.1
start full "${handed[@]}" -- sh -c "$command" m-full
check "full: epoch 2 is over" wait_for 40 epoch full 2
for i in 0 1 2; do rm -rf "m-full-$i" && : >"m-full-$i"; done
ends full 3 "full: no worker can save"
check "full: each worker logs its error" test "$(grep -c 'paramo train: m-full-[0-2]: ' "$ERR")" -eq 3
check "full: two workers hand over, the last cannot" test "$(grep -c 'another leads from now on' "$ERR")" -eq 2

# ---- another takes the dead leader's place among the nodes, not its part ----
free_port
port=$PORT
export PARAMO_TOKEN=leader
start scheduler "$PARAMO" scheduler --port "$port" --servers 1 --workers 2 --verbose
start server "$PARAMO" server --scheduler "127.0.0.1:$port"
train=("$PARAMO" worker --scheduler "127.0.0.1:$port" \
    -- "$PARAMO" train --model lr --data train.ffm --batch 128 --epochs $((2 * epochs)) --model-out m-late)
start first "${train[@]:0:4}" --rank 0 "${train[@]:4}"
start second "${train[@]:0:4}" --rank 1 "${train[@]:4}"
check "late: epoch 2 is over" wait_for 40 epoch first 2
kill -KILL "$(job_pid first)"
ends first 137 "late: worker 0 is killed"
start third "${train[@]}"
check "late: another leads" wait_for 20 grep -q 'worker [01] leads the job now' second.err third.err
ends third 0 "late: the new worker ends well"
ends second 0 "late: the other worker ends well"
check "late: the last leader has saved the model" test \
    "$(cat second.out third.out | grep -c '; model saved to m-late$')" -eq 1
ends scheduler '0|4' "late: the scheduler ends"
ends server '0|4' "late: the server ends"
check "late: the model is good" as_good "$(logloss m-late)" 0.05

# ---- a new worker leads from its start, and has no epoch that is better than the dead leader's best ----
# At this rate the held-out log-loss grows with each epoch after the second; which of the first two is better is chance.
best() { sed -n 's/^epoch \([0-9]*\).*held-out log-loss \([0-9.]*\).*/\2 \1/p' "$1.err" | sort -n |
    sed -n '1s/.* //p'; }
free_port
port=$PORT
start scheduler "$PARAMO" scheduler --port "$port" --servers 1 --workers 2
start server "$PARAMO" server --scheduler "127.0.0.1:$port"
train=("$PARAMO" worker --scheduler "127.0.0.1:$port" -- "$PARAMO" train --model lr --data train.ffm --batch 128
    --alpha 1 --l1 0 --l2 0 --epochs $((2 * epochs)) --model-out m-first)
start dies "${train[@]:0:4}" --rank 0 "${train[@]:4}"
start other "${train[@]:0:4}" --rank 1 "${train[@]:4}"
check "first: epoch 5 is over" wait_for 40 epoch dies 5
kill -STOP "$(job_pid other)" # it does not see that the leader is dead
kill -KILL "$(job_pid dies)"
ends dies 137 "first: worker 0 is killed"
best=$(best dies)
check "first: the best epoch (${best:=none}) is one of the first" test "$best" -le 3
start new "${train[@]}"
check "first: the new worker leads" wait_for 20 grep -q 'worker 0 leads the job now' new.err
kill -CONT "$(job_pid other)"
ends new 0 "first: the new worker ends well"
check "first: epoch $best was the best, and is saved" grep -q "; epoch $best was the best; model saved to m-first\$" \
    "$OUT"
ends other 0 "first: the other worker ends well"
ends scheduler '0|4' "first: the scheduler ends"
ends server '0|4' "first: the server ends"
finish
