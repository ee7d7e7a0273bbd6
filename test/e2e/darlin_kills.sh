# --solver darlin with several workers, as processes: a server is killed, then the worker that leads. The other nodes
# take over their rows and blocks, and the result is that of an undisturbed job. A stopped job saves its model.
# Sanitizers: address; ThreadSanitizer meets the same threads in test_darlin.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

for i in 1 2 3 4; do
    expect 0 "training log $i" "$PARAMO" data synth --rows $((8000 / SLOW)) --features 100 --seed $i --model-seed 1 \
        --out $i.ffm
done
train=(train --model lr --solver darlin --l1 4 --blocks 8 --data 1.ffm 2.ffm 3.ffm 4.ffm --hold-out 0)
expect 0 'one process, no delay' "$PARAMO" "${train[@]}" --tolerance 1e-6 --epochs 2000 --json -q --model-out alone
best=$(json "$OUT" objective_value)

passes() { [ "$(grep -cE '(^| )pass [0-9]' "$WORK/$1.err")" -ge "$2" ]; }
start killed "$PARAMO" run --verbose -s 2 -w 3 --replicas 1 -- paramo "${train[@]}" --tau 3 --tolerance 1e-6 \
    --epochs 2000 --model-out killed
check 'the job is at work' wait_for 30 passes killed 2
check 'server 1 is killed' signal_node KILL killed server 1
check 'passes follow' wait_for 30 passes killed 4
check 'worker 0, which leads, is killed' signal_node KILL killed worker 0
ends killed 137 'the job tells of the death of worker 0'
says 'another worker leads' 'worker [12] leads the job now'
says 'the model is saved' '1 worker died; the others have learned their parts, and the model is saved to killed'
expect 0 'what it reached' "$PARAMO" "${train[@]}" --model-in killed --epochs 1 --json -q --no-kkt
mine=$(json "$OUT" objective_value)
check "objective $mine, undisturbed $best" near "$mine" "$best" "$(awk -v b="$best" 'BEGIN { print b / 10000 }')"

start stopped "$PARAMO" run -s 1 -w 2 -- paramo "${train[@]}" --tolerance 1e-12 --epochs 100000 --model-out stopped
check 'the job is at work' wait_for 30 passes stopped 2
kill -INT "$(job_pid stopped)"
ends stopped '130' 'it is interrupted'
expect 0 'and has saved a model' "$PARAMO" eval --model-in stopped --data 1.ffm
finish
