#!/usr/bin/env bash
# examples/cpp/lr: on a click log drawn from a known model, both optimizers come below the log-loss of the mean click
# rate.
set -eu
paramo=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
synth() {
    "$paramo" data synth --features 100 --format libsvm "$@" >>"$work/synth"
}
synth --rows 20000 --seed 1 --out "$work/train"
synth --rows 5000 --seed 2 --out "$work/test"
mean=$(sed -n 's/^log-loss of the mean click rate \([0-9.]*\)$/\1/p' "$work/synth" | tail -n 1)
bad=0
for optimizer in sgd ftrl; do
    timeout -k 5 120 "$paramo" run -s 2 -w 2 -- "$programs/ps_lr" "$work/train" "$work/test" $optimizer 3 \
        >"$work/out" 2>"$work/err" </dev/null || bad=1
    loss=$(sed -n 's/^test: 5000 rows, log-loss \([0-9.]*\),.*/\1/p' "$work/out")
    if [ -n "$loss" ] && awk -v a="$loss" -v b="$mean" 'BEGIN { exit !(a < b - 0.02) }'; then
        echo "ok    $optimizer: log-loss $loss, of the mean $mean"
    else
        echo "FAIL  $optimizer: log-loss '$loss', of the mean $mean"
        cat "$work/out" "$work/err"
        bad=1
    fi
done
exit $bad
