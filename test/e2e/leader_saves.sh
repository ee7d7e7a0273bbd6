# Training with three workers. The worker that leads is killed or stopped while it saves, or stopped while it learns
# until it is declared dead, and continued. Another worker leads then, and its model is as good.
# Sanitizers: none; leader_hands_over meets the same handlers in less time.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib_leader.sh"
fm=("$PARAMO" run --verbose -s 2 -w 3 -- paramo train --model fm --dim 32 --data train.ffm --valid test.ffm --seed 1 \
    --batch 128)

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
    check "saving $kill: no file of the killed worker is left" test "$(find "m-saving$kill" -type f | wc -l)" -eq 3
done

# ---- stopped for longer than silence is borne, and continued: while it learns, and while it saves ----
export PS_HEARTBEAT_TIMEOUT=$((SLOW > 1 ? 10 : 3))
start stopped "${job[@]}" --epochs $((3 * epochs)) --model-out m-stopped
check "stopped: epoch 3 is over" wait_for 40 epoch stopped 3
some_time 10
check "stopped: worker 0 is stopped" signal_node STOP stopped worker 0
check "stopped: another leads" wait_for 30 led_by_another stopped 0
check "stopped: worker 0 continues" signal_node CONT stopped worker 0
whole stopped 4 "stopped" 0.1
check "stopped: worker 0 prints no result" test ! -s "$OUT"
start held "${fm[@]}" --epochs 20 --patience 20 --model-out m-held
check "held: the workers are there" wait_for 20 node_pid held worker 2
check "held: worker 0 is stopped while it saves" catch_saving held STOP
check "held: another leads" wait_for 30 led_by_another held 0
some_time 100
check "held: worker 0 continues" signal_node CONT held worker 0
whole held 4 "held" 0.05
check "held: no file of the stopped worker is left" test "$(find m-held -type f | wc -l)" -eq 3
unset PS_HEARTBEAT_TIMEOUT
finish
