# Training with three workers: the one that leads (decides rounds, validates, saves) is killed at drawn moments, twice in a
# row, while it validates, while it saves, or is stopped until it is declared dead and continued. Another leads then; the
# model is there and as good.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
RANDOM=${SEED:-$((SRANDOM % 32768))} # bash's own, seeded: what is printed here can be repeated
seed=$RANDOM
RANDOM=$seed
echo "      SEED=$seed"

rows=$((100000 / SLOW)) epochs=40 # so many that the job is still far from its end when it is struck
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
expect 0 "a test log" "$PARAMO" data synth --rows $((rows / 10)) --seed 2 --model-seed 7 --out test.ffm
expect 0 "a long one" "$PARAMO" data synth --rows $rows --seed 3 --model-seed 7 --out long.ffm
job=("$PARAMO" run --verbose -s 2 -w 3 -- paramo train --model lr --data train.ffm --valid test.ffm --seed 1)
fm=("$PARAMO" run --verbose -s 2 -w 3 -- paramo train --model fm --dim 32 --data train.ffm --valid test.ffm --seed 1)

logloss() { "$PARAMO" eval --model-in "$1" --data test.ffm --json >"$1.json" 2>"$ERR" && json "$1.json" logloss; }
expect 0 "the job undisturbed" "${job[@]}" --epochs $epochs --model-out calm
calm=$(logloss calm)

epoch() { grep -q "^\(\[worker [0-9]\] \)\?epoch $2/" "$1.err"; } # JOB NUMBER
leads() { sed -n 's/.*worker \([0-9]\) leads the job now.*/\1/p' "$1.err" | tail -n 1; }
led_by() { [ "$(leads "$1")" = "$2" ]; }
led_by_another() { [ -n "$(leads "$1")" ] && [ "$(leads "$1")" != "$2" ]; }
some_time() { # up to $1 hundredths of a second, drawn
    local n=$((RANDOM % $1 / 2))
    while [ "$n" -gt 0 ]; do pause && n=$((n - 1)); done
}

as_good() { awk -v a="$1" -v b="$calm" -v d="$2" 'BEGIN { exit !(a ~ /^[0-9.]+$/ && a > 0.3 && a <= b + d) }'; }

# whole JOB CODE TEXT [DIFFERENCE]: the job ends with this code; its model is there and as good as the calm one's.
whole() {
    local value
    ends "$1" "$2" "$3"
    check "$3: nobody had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
    check "$3: another led" test -n "$(leads "$1")"
    says "$3: who saved it says so, and that one has died" "^\[worker $(leads "$1")\] .*; model saved to m-$1\$"
    says "$3: so does the last but one line" "[0-9] workers? died; the others have learned their parts, and the model is saved to m-$1\$"
    says "$3: the last line" 'of 3 workers ended well; exit code [0-9]+ is that of worker'
    value=$(logloss "m-$1")
    check "$3: the model is as good as undisturbed ($value, $calm)" as_good "$value" "${4:-0.02}"
}

# ---- at drawn moments ----
for kill in 1 2 3 4; do
    start "drawn$kill" "${job[@]}" --epochs $epochs --model-out "m-drawn$kill"
    after=$((1 + RANDOM % (epochs / 4)))
    check "drawn $kill: epoch $after is over" wait_for 40 epoch "drawn$kill" $after
    some_time 10
    check "drawn $kill: worker 0 is killed" signal_node KILL "drawn$kill" worker 0
    whole "drawn$kill" 137 "drawn $kill"
    # those too whose end it was told by another; where the machine is slow it may miss one
    listed=$(grep -c "^\[worker [12]\] \+[0-9]\+ \+[0-9]\{4,\} .*\.[0-9]" "drawn$kill.err")
    check "drawn $kill: the summary has the epochs ($listed)" at_least "$listed" $((epochs - 8))
done

# ---- the same, when two of three are enough; and all of them, one after the other ----
start enough "${job[@]:0:7}" --min-workers 2 "${job[@]:7}" --epochs $epochs --model-out m-enough
check "enough: epoch 2 is over" wait_for 40 epoch enough 2
check "enough: worker 0 is killed" signal_node KILL enough worker 0
ends enough 0 "enough: the job has succeeded"
says "enough: and says who has died" '^paramo run: 2 of 3 workers ended well, which is enough .*; exit code 137 was that of worker 0 '
check "enough: the model is there" as_good "$(logloss m-enough)" 0.02
nobody() { # JOB OPTION...
    local name=$1 i
    shift
    start "$name" "${job[@]:0:7}" "$@" "${job[@]:7}" --epochs 100000 --model-out "m-$name"
    check "$name: epoch 2 is over" wait_for 40 epoch "$name" 2
    for i in 0 1 2; do check "$name: worker $i is killed" signal_node KILL "$name" worker "$i"; done
    ends "$name" 137 "$name: the job ends"
}
nobody none
says "none: nothing is left, which is said" '^paramo run: no worker ended well; .*; the tables are lost \(see --checkpoint-dir\)$'
nobody kept --checkpoint-dir "$WORK/ck" --checkpoint-every 1
says "kept: what is left is said" "^paramo run: no worker ended well; .*; the tables are lost except for the checkpoints in $WORK/ck\$"

# ---- right at the beginning: while it loads a model, or before it has said that all is ready ----
for kill in 1 2; do
    start "early$kill" "${job[@]}" --model-in calm --epochs $epochs --model-out "m-early$kill"
    check "early $kill: the workers are there" wait_for 20 node_pid "early$kill" worker 2
    some_time 40
    check "early $kill: worker 0 is killed" signal_node KILL "early$kill" worker 0
    if wait_for 1 grep -q 'before the job was complete\|cannot become complete' "early$kill.err"; then
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
check "twice: it is killed, too" signal_node KILL twice worker "$second"
whole twice 137 "twice: the last one saves" 0.05
check "twice: it was the third" led_by twice $((3 - second))

# ---- while it validates: most of the time is spent on that ----
start valid "${job[@]}" --valid long.ffm --epochs 25 --model-out m-valid
check "valid: epoch 2 is over" wait_for 60 epoch valid 2
some_time 60
check "valid: worker 0 is killed" signal_node KILL valid worker 0
whole valid 137 "valid" 0.05

# ---- while it saves: it does so after each epoch that is better ----
saving() { compgen -G "$1/.paramo-tmp-*" >/dev/null; }
catch_saving() { # JOB SIGNAL
    local end=$((SECONDS + 40 * SLOW)) pid
    pid=$(node_pid "$1" worker 0)
    until saving "m-$1"; do [ "$SECONDS" -lt $end ] || return 1; done
    kill -"$2" "$pid"
}
for kill in 1 2; do
    start "saving$kill" "${fm[@]}" --epochs 20 --patience 20 --model-out "m-saving$kill"
    check "saving $kill: the workers are there" wait_for 20 node_pid "saving$kill" worker 2
    check "saving $kill: worker 0 is killed while it saves" catch_saving "saving$kill" KILL
    whole "saving$kill" 137 "saving $kill" 0.05
    check "saving $kill: nothing is left of what it began" test "$(find "m-saving$kill" -type f | wc -l)" -eq 3
done

# ---- stopped for longer than silence is borne, and continued: while it learns, and while it saves ----
export PS_HEARTBEAT_TIMEOUT=$((SLOW > 1 ? 10 : 3))
start stopped "${job[@]}" --epochs $((3 * epochs)) --model-out m-stopped
check "stopped: epoch 3 is over" wait_for 40 epoch stopped 3
some_time 10
check "stopped: worker 0 is stopped" signal_node STOP stopped worker 0
check "stopped: another leads" wait_for 30 led_by_another stopped 0
check "stopped: it goes on" signal_node CONT stopped worker 0
whole stopped 4 "stopped" 0.1
check "stopped: it says nothing of a result" test ! -s "$OUT"
start held "${fm[@]}" --epochs 20 --patience 20 --model-out m-held
check "held: the workers are there" wait_for 20 node_pid held worker 2
check "held: worker 0 is stopped while it saves" catch_saving held STOP
check "held: another leads" wait_for 30 led_by_another held 0
some_time 100
check "held: it goes on" signal_node CONT held worker 0
whole held 4 "held" 0.05
check "held: nothing is left of what it began" test "$(find m-held -type f | wc -l)" -eq 3
unset PS_HEARTBEAT_TIMEOUT

# ---- the leader's own disk fails it: it hands over; a file stands where its folder was ----
handed=("$PARAMO" run --verbose -s 2 -w 3)
export PROGRAM=$PARAMO
command='exec "$PROGRAM" train --model lr --data train.ffm --hold-out 0 --seed 1 --epochs '$epochs' --model-out "$0-$DMLC_RANK"'
start disk "${handed[@]}" -- sh -c "$command" m-disk
check "disk: epoch 2 is over" wait_for 40 epoch disk 2
rm -rf m-disk-0
: >m-disk-0
ends disk 3 "disk: worker 0 ends with its own error"
says "disk: which it says, and that another leads" '^paramo train: m-disk-0: .* \(this worker ends; another leads from now on, and saves the model\)$'
says "disk: so does the last line" '^paramo run: 2 of 3 workers ended well; exit code 3 is that of worker 0 '
second=$(leads disk)
check "disk: another leads (worker $second)" test -n "$second"
check "disk: it has saved the model" as_good "$(logloss "m-disk-$second")" 0.1 # the last epoch's, not the best
start full "${handed[@]}" -- sh -c "$command" m-full
check "full: epoch 2 is over" wait_for 40 epoch full 2
for i in 0 1 2; do rm -rf "m-full-$i" && : >"m-full-$i"; done
ends full 3 "full: nobody can save"
check "full: each says so" test "$(grep -c 'paramo train: m-full-[0-2]: ' "$ERR")" -eq 3
check "full: two hand over, the last has nobody" test "$(grep -c 'another leads from now on' "$ERR")" -eq 2

# ---- another takes the dead leader's place among the nodes, not its part ----
free_port
port=$PORT
export PARAMO_TOKEN=leader
start scheduler "$PARAMO" scheduler --port "$port" --servers 1 --workers 2 --verbose
start server "$PARAMO" server --scheduler "127.0.0.1:$port"
train=("$PARAMO" worker --scheduler "127.0.0.1:$port" -- "$PARAMO" train --model lr --data train.ffm --epochs $((2 * epochs)) --model-out m-late)
start first "${train[@]:0:4}" --rank 0 "${train[@]:4}"
start second "${train[@]:0:4}" --rank 1 "${train[@]:4}"
check "late: epoch 2 is over" wait_for 40 epoch first 2
kill -KILL "$(job_pid first)"
ends first 137 "late: worker 0 is killed"
start third "${train[@]}"
check "late: another leads" wait_for 20 grep -q 'worker [01] leads the job now' second.err third.err
ends third 0 "late: the one that came in its place ends well"
ends second 0 "late: so does the other"
check "late: the one that led last has saved the model" test "$(cat second.out third.out | grep -c '; model saved to m-late$')" -eq 1
ends scheduler '0|4' "late: the scheduler ends"
ends server '0|4' "late: the server ends"
check "late: the model is good" as_good "$(logloss m-late)" 0.05
finish
