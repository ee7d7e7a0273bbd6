# Training with three workers. The worker that leads is killed at drawn moments, twice in a row, at the beginning, and
# while it validates; another one leads then, and its model is as good. Also all three are killed.
# Sanitizers: none; leader_hands_over meets the same handlers in less time.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib_leader.sh"

# ---- at drawn moments ----
for kill in 1 2 3 4; do
    start "drawn$kill" "${job[@]}" --epochs $epochs --model-out "m-drawn$kill"
    after=$((1 + RANDOM % (epochs / 4)))
    check "drawn $kill: epoch $after is over" wait_for 40 epoch "drawn$kill" $after
    some_time 10
    check "drawn $kill: worker 0 is killed" signal_node KILL "drawn$kill" worker 0
    whole "drawn$kill" 137 "drawn $kill"
    # also epochs whose end another leader announced; on a slow machine one may be missing
    listed=$(grep -c "^\[worker [12]\] \+[0-9]\+ \+[0-9]\{4,\} .*\.[0-9]" "drawn$kill.err")
    check "drawn $kill: the summary has the epochs ($listed)" at_least "$listed" $((epochs - 8))
done

# ---- the same, when two of three are enough; and all of them, one after the other ----
start enough "${job[@]:0:7}" --min-workers 2 "${job[@]:7}" --epochs $epochs --model-out m-enough
check "enough: epoch 2 is over" wait_for 40 epoch enough 2
check "enough: worker 0 is killed" signal_node KILL enough worker 0
ends enough 0 "enough: the job has succeeded"
says "enough: the last line names the dead worker" \
    '^paramo run: 2 of 3 workers succeeded, which is enough .*; exit code 137 was that of worker 0 '
check "enough: the model is saved" as_good "$(logloss m-enough)" 0.02
all_killed() { # JOB OPTION...
    local name=$1 i
    shift
    start "$name" "${job[@]:0:7}" "$@" "${job[@]:7}" --epochs 100000 --model-out "m-$name"
    check "$name: epoch 2 is over" wait_for 40 epoch "$name" 2
    for i in 0 1 2; do check "$name: worker $i is killed" signal_node KILL "$name" worker "$i"; done
    ends "$name" 137 "$name: the job ends"
}
all_killed none
says "none: the last line says that nothing is left" \
    '^paramo run: no worker succeeded; .*; the tables are lost \(see --checkpoint-dir\)$'
all_killed kept --checkpoint-dir "$WORK/ck" --checkpoint-every 1
says "kept: the last line names the checkpoints" \
    "^paramo run: no worker succeeded; .*; the tables are lost except for the checkpoints in $WORK/ck\$"

# ---- right at the beginning: while it loads a model, or before it has said that all is ready ----
incomplete='before the job was complete\|cannot become complete'
noticed() { grep -q "$incomplete\|worker [12] leads the job now" "$1.err"; } # JOB
for kill in 1 2; do
    start "early$kill" "${job[@]}" --model-in calm --epochs $epochs --model-out "m-early$kill"
    check "early $kill: the workers are there" wait_for 20 node_pid "early$kill" worker 2
    some_time 40
    check "early $kill: worker 0 is killed" signal_node KILL "early$kill" worker 0
    check "early $kill: its death is noticed" wait_for 60 noticed "early$kill"
    if grep -q "$incomplete" "early$kill.err"; then
        ends "early$kill" 137 "early $kill: before the job was complete"
    else
        whole "early$kill" 137 "early $kill" 0.1
    fi
done

# ---- the next one, too: the last worker saves ----
start twice "${job[@]}" --epochs $((epochs * 2)) --model-out m-twice
check "twice: epoch 3 is over" wait_for 40 epoch twice 3
check "twice: worker 0 is killed" signal_node KILL twice worker 0
check "twice: another leads" wait_for 20 led_by_another twice 0
second=$(leads twice)
some_time 50
check "twice: the second leader is killed, too" signal_node KILL twice worker "$second"
whole twice 137 "twice: the last one saves" 0.05
check "twice: the third worker was the last leader" led_by twice $((3 - second))

# ---- while it validates: most of the time is spent on that ----
expect 0 "a long test log" "$PARAMO" data synth --rows $rows --seed 3 --model-seed 7 --out long.ffm
start valid "${job[@]}" --valid long.ffm --epochs 25 --model-out m-valid
check "valid: epoch 2 is over" wait_for 60 epoch valid 2
some_time 60
check "valid: worker 0 is killed" signal_node KILL valid worker 0
whole valid 137 "valid" 0.05
finish
