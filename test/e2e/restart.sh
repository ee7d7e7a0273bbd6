# A scheduler that keeps its state (--state) is killed with SIGKILL and started again, ten times in a training run. The
# model is the same to the last bit, and the job ends in order. A scheduler without the state leads another job.
# Sanitizers: address; cluster and etcd have the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

rows=$((60000 / SLOW)) epochs=60
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
train=("$PARAMO" train --model lr --data train.ffm --batch 128 --epochs $epochs --hold-out 0 --seed 1)

# scheduler NAME: of the present job.
scheduler() { start "$1" "$PARAMO" scheduler --port "$PORT" --servers 2 --workers "$workers" --verbose \
    --state "$state"; }

# job NAME WORKERS: starts all of a job; its scheduler is NAME-0.
job() {
    local i
    name=$1 workers=$2 state=state-$1
    free_port
    scheduler "$name-0"
    for i in 0 1; do start "$name-s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i"; done
    for ((i = 0; i < workers; i++)); do
        start "$name-w$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "${train[@]}" \
            --model-out "model-$name"
    done
}

job_ends() { # the scheduler's name
    local i
    for ((i = 0; i < workers; i++)); do ends "$name-w$i" 0 "worker $i ends well"; done
    for i in 0 1; do ends "$name-s$i" 0 "server $i ends well"; done
    ends "$1" 0 "the scheduler ends well"
}

counted() { [ "$(grep -c -- "$1" "$2")" -ge "$3" ]; } # REGEX FILE LINES

# ---- one worker: the same to the last bit ----
expect 0 "the job undisturbed" "$PARAMO" run -s 2 -w 1 -- "${train[@]}" --model-out model-calm
job exact 1
for ((k = 0; k < 10; k++)); do
    lines=$(grep -c '^epoch' exact-w0.err)
    check "kill $((k + 1)): another epoch is done" wait_for 30 counted '^epoch' exact-w0.err $((lines + 1))
    kill -KILL "$(job_pid "exact-$k")"
    ends "exact-$k" 137 "the scheduler is killed"
    scheduler "exact-$((k + 1))"
    check "the next scheduler continues the job, and all three nodes are back" wait_for 20 counted ' is back$' \
        "exact-$((k + 1)).err" 3
done
check "the scheduler was killed before the training was over" test "$(grep -c '^epoch' exact-w0.err)" -lt $epochs
job_ends exact-10
check "no node was declared dead" sh -c '! grep -Eq "is dead|fenced" exact-*.err'
check "the model is that of the undisturbed job" cmp model-calm/manifest.json model-exact/manifest.json

# ---- three workers: every row once in every epoch ----
job many 3
for ((k = 0; k < 10; k++)); do
    if [ "$k" -eq 0 ]; then check "the work has begun" wait_for 30 counted '^epoch' many-w0.err 1; fi
    kill -KILL "$(job_pid "many-$k")"
    ends "many-$k" 137 "kill $((k + 1)): the scheduler is killed"
    scheduler "many-$((k + 1))"
    check "all five nodes are back" wait_for 20 counted ' is back$' "many-$((k + 1)).err" 5
done
job_ends many-10
check "every row was trained once in each epoch" test "$(json model-many/manifest.json rows)" -eq $((rows * epochs))

# ---- 'paramo run' starts it again itself ----
start run "$PARAMO" run -s 2 -w 1 --verbose --state state-run -- "${train[@]}" --model-out model-run
for ((k = 1; k <= 3; k++)); do
    lines=$(grep -c '^epoch' run.err)
    check "an epoch is done" wait_for 30 counted '^epoch' run.err $((lines + 1))
    kill -KILL "$(node_pid run scheduler | tail -n 1)"
    check "kill $k: the scheduler is started again" wait_for 20 counted 'signal 9 .*, and is started again$' run.err $k
done
ends run 0 "the job ends well"
check "the model is the same" cmp model-calm/manifest.json model-run/manifest.json

# ---- what a state is not for ----
workers=1 state=state-other
free_port
scheduler other
check "a scheduler listens" wait_for 20 listens "$(job_pid other)"
mine=$PORT
free_port
refused 4 "a state has one scheduler at a time" 'state-other is in use by a running scheduler' \
    "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1 --state state-other
refused 3 "a state in a folder that does not exist is refused" 'nowhere' \
    "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1 --state nowhere/state
kill -TERM "$(job_pid other)"
ends other 143 "SIGTERM ends the job"
PORT=$mine

job small 1
check "an epoch is done" wait_for 30 counted '^epoch' small-w0.err 1
kill -KILL "$(job_pid small-0)"
ends small-0 137 "a scheduler is killed"
refused 2 "a state of another job is refused" 'with 2 servers and 1 workers, not 2 and 5' \
    "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 5 --state state-small
state=state-fresh
scheduler small-1
for i in w0 s0 s1; do ends small-$i 4 "$i: a scheduler without the job's state is another job's"; done
says "the error says that the jobs differ" 'job'
kill -TERM "$(job_pid small-1)"
ends small-1 143 "SIGTERM ends the other job"
finish
