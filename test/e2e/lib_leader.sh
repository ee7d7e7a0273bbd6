# Helpers of the leader*.sh tests: a job of three workers, one of which leads (decides rounds, validates, saves) until
# it is killed or stopped, and what must hold of the job after that.
# shellcheck shell=bash disable=SC2016,SC2034
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
RANDOM=${SEED:-$((SRANDOM % 32768))} # bash's own, seeded: what is printed here can be repeated
seed=$RANDOM
RANDOM=$seed
echo "      SEED=$seed"

rows=$((100000 / SLOW)) epochs=$((SLOW > 1 ? 24 : 40)) # the job is still seconds from its end when it is struck
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
expect 0 "a test log" "$PARAMO" data synth --rows $((rows / 10)) --seed 2 --model-seed 7 --out test.ffm
job=("$PARAMO" run --verbose -s 2 -w 3 -- paramo train --model lr --data train.ffm --valid test.ffm --seed 1 \
    --batch 128)

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
    check "$3: no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
    check "$3: another worker led" test -n "$(leads "$1")"
    says "$3: the leader reports the saved model and names the dead worker" \
        "^\[worker $(leads "$1")\] .*; model saved to m-$1\$"
    says "$3: the last line but one reports the saved model" \
        "[0-9] workers? died; the others have learned their parts, and the model is saved to m-$1\$"
    says "$3: the last line names the failed worker" 'of 3 workers succeeded; exit code [0-9]+ is that of worker'
    value=$(logloss "m-$1")
    check "$3: the model is as good as undisturbed ($value, $calm)" as_good "$value" "${4:-0.02}"
}
