# A whole job is killed in the middle of training and begins again with its last checkpoint (--restore): it does not
# repeat the training before, and the model is as good as that of an undisturbed run.
# Sanitizers: address; train has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

logged() { grep -Eq -- "$2" "$WORK/$1.err"; }
# The last whole checkpoint of a folder, and whether there is one after number N.
last_of() { "$PARAMO" checkpoint list "$1" 2>/dev/null | awk '$2 == "whole" { n = $1 } END { print n + 0 }'; }
later() { [ "$(last_of "$1")" -gt "$2" ]; }
servers() { # NAME COUNT
    for i in $(seq "$2"); do start "$1-server$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT"; done
}
scheduler() { # NAME SERVERS WORKERS OPTION...
    local name=$1 servers=$2 workers=$3
    shift 3
    free_port
    start "$name" "$PARAMO" scheduler --port "$PORT" --servers "$servers" --workers "$workers" \
        --checkpoint-dir "$WORK/taken" --checkpoint-every 1 "$@"
    check "$name: the scheduler listens" wait_for 20 listens "$(job_pid "$name")"
}
# Stopped first: on a busy machine the others would see one of them die, and end by themselves before their own signal.
all_killed() { # JOB...: SIGKILL, at once
    local name pids=()
    for name in "$@"; do pids+=("$(job_pid "$name")"); done
    kill -STOP "${pids[@]}"
    kill -KILL "${pids[@]}"
    for name in "$@"; do ends "$name" 137 "$name is killed" 2>/dev/null; done # without the shell's words
}

# ---- one worker, whose data ends when the script ends it ----
expect 0 "a training log" "$PARAMO" data synth --rows 60000 --features 5000 --seed 1 --out train.ffm
head -n 40000 train.ffm >first.ffm
tail -n 20000 train.ffm >second.ffm
train=(train --model lr --data first.ffm --data - --epochs 1 --hold-out 0 --json -q)
"$PARAMO" "${train[@]}" --model-out quiet <second.ffm >quiet.json
check "the undisturbed job has learned all rows" test "$(json quiet.json rows)" -eq 60000

learner() { # NAME: it learns a file, then what comes from a pipe, which is descriptor 7 here
    rm -f pipe
    mkfifo pipe
    # shellcheck disable=SC2016
    start "$1" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- sh -c 'exec "$0" "$@" <pipe' \
        "$PARAMO" "${train[@]}" --model-out model
    exec 7>pipe
}
scheduler a 2 1
servers a 2
learner a-worker
# The rows that a checkpoint's scheduler counted: the first number of the round's sums.
counted() { python3 -c 'import struct, sys
data = open(sys.argv[1], "rb").read()
at = data.index(b"train/learned/0") + 15
print(int(struct.unpack_from("<Id", data, at)[1]))' "taken/$(printf %08d "$(last_of taken)")/manifest"; }
half_is_learned() { [ "$(counted)" -ge 20000 ]; }
check "a checkpoint has half of the file" wait_for 60 half_is_learned
all_killed a-worker a-server1 a-server2 a
exec 7>&-
expect 0 "the last checkpoint is whole" "$PARAMO" checkpoint verify taken
check "no model is saved" test ! -e model
# What was learned is not even looked at again: it could not be read.
yes 'this was a line' | head -c 500000 | dd of=first.ffm bs=1000 seek=300 conv=notrunc status=none
scheduler b 3 1 --restore "$WORK/taken"
servers b 3
learner b-worker
cat second.ffm >&7
exec 7>&-
ends b-worker 0 "the job ends"
rows=$(json "$OUT" rows)
check "all rows count" test "$rows" -ge 60000
loss() { "$PARAMO" eval --model-in "$1" --data train.ffm --json >"$1.json" && json "$1.json" logloss; }
check "the model is as good as that of the undisturbed job" near "$(loss model)" "$(loss quiet)" 0.005
ends b 0 "the scheduler ends"
for i in 1 2 3; do ends "b-server$i" 0 "server $i ends"; done

# ---- two workers, in a later epoch ----
rm -rf taken
train=(train --model lr --data train.ffm --epochs 100000 --json)
workers() { # NAME MODEL
    for i in 0 1; do
        start "$1-worker$i" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --rank "$i" -- "${train[@]}" --model-out "$2"
    done
}
train=("$PARAMO" "${train[@]}")
scheduler c 2 2
servers c 2
workers c twice
check "some epochs are learned" wait_for 60 logged c-worker0 'epoch 3/'
n=$(last_of taken)
check "checkpoints are taken" wait_for 60 later taken $((n + 1))
expect 0 "list prints the checkpoints" "$PARAMO" checkpoint list taken
check "some checkpoints are based on others" grep -q ' changes ' "$OUT"
all_killed c-worker0 c-worker1 c-server1 c-server2 c
scheduler d 2 2 --restore "$WORK/taken"
servers d 2
workers d twice
check "the restored job continues" wait_for 60 logged d-worker0 'epoch [0-9]*/.*log-loss'
check "the restored job continues after the epochs that were over" test \
    "$(sed -n 's/.*epoch \([0-9]*\)\/.*log-loss.*/\1/p' d-worker0.err | head -n 1)" -ge 3
kill -INT "$(job_pid d-worker0)"
ends d-worker0 130 "Ctrl-C ends the restored job"
check "the restored job saves a model" test -s twice/manifest.json
check "the epochs' numbers continue" test "$(json "$OUT" epoch)" -ge 3
ends d-worker1 '0|130' "the other worker ends"
ends d 0 "the scheduler ends"
for i in 1 2; do ends "d-server$i" 0 "server $i ends"; done

# ---- elsewhere: the best epoch's model is not there, so one of the epochs that follow is saved ----
scheduler e 2 2 --restore "$WORK/taken"
servers e 2
workers e elsewhere
check "e: the worker says that the best model is not in the folder" wait_for 60 logged e-worker0 \
    'the model of epoch [0-9]+, the best so far, is not in elsewhere; later epochs count'
check "e: an epoch is learned" wait_for 60 logged e-worker0 'epoch [0-9]*/.*log-loss'
kill -INT "$(job_pid e-worker0)"
ends e-worker0 130 "e: Ctrl-C ends it"
check "e: a model is saved" test -s elsewhere/manifest.json
check "e: the summary says that a model is saved" test "$(json "$OUT" saved)" = true
ends e-worker1 '0|130' "e: the other worker ends"
ends e 0 "e: the scheduler ends"
for i in 1 2; do ends "e-server$i" 0 "e: server $i ends"; done

# ---- the first epoch is the best, and its model is where it was ----
# (In the jobs before, a better model may have been saved there after the last checkpoint.)
rm -rf taken
long=("$PARAMO" train --model lr --data train.ffm --batch 128 --alpha 1 --l1 0 --l2 0 --epochs 100000 --any-quality)
start f "${long[@]}" --model-out one --checkpoint-dir taken --checkpoint-every 1
check "f: a later epoch is learned" wait_for 60 logged f 'epoch 3/.*log-loss'
n=$(last_of taken)
check "f: a checkpoint is taken" wait_for 60 later taken $((n + 1))
check "f: the first epoch's model is saved" test -s one/manifest.json
all_killed f
start g "${long[@]}" --model-out one --restore taken --json
check "g: the restored job continues" wait_for 60 logged g 'epoch [0-9]*/.*log-loss'
kill -INT "$(job_pid g)"
ends g 130 "g: Ctrl-C ends it"
check "g: the summary says that the first epoch is the best, and saved" test \
    "$(json "$OUT" best_epoch) $(json "$OUT" saved)" = "1 true"
refused 2 "other epochs" "--epochs, --hold-out and the files must be those that the job began with" \
    "${long[@]}" -q --restore taken --epochs 7 --model-out elsewhere
finish
