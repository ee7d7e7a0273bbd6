# --calibrate and --class-weight: in the model, the same as processes, and used by eval, predict, serve and explain.
# Sanitizers: none; train and serve run the same code, and it is about numbers.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "a log" "$PARAMO" data synth --rows 12000 --features 200 --fields 6 --click-rate 0.1 --seed 1 --format libsvm \
    --out log.svm
expect 0 "rows of the same model" "$PARAMO" data synth --rows 6000 --features 200 --fields 6 --click-rate 0.1 --seed 2 \
    --format libsvm --out test.svm
train=(train --model lr --data log.svm --epochs 2 --any-quality -q --json)
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
near() { awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { exit !(a - b < d && b - a < d) }'; }

expect 0 "classes that weigh alike" "$PARAMO" "${train[@]}" --class-weight balanced --model-out raw
check "the model says so" grep -q '"class_weight"' raw/manifest.json
expect 0 "eval of the model without calibration" "$PARAMO" eval --model-in raw --data test.svm --json
cp "$OUT" raw.json
check "it predicts far more clicks than there are ($(of raw.json calibration))" below 2 "$(of raw.json calibration)"
for method in platt isotonic; do
    expect 0 "$method" "$PARAMO" "${train[@]}" --class-weight balanced --calibrate $method --model-out $method
    check "$method: the summary names it" test "$(of "$OUT" calibration | tr -d '{,')" != ""
    check "$method: the manifest has it" grep -q "\"$method\"" $method/manifest.json
    check "the weights are the same" diff <(cd raw && ls) <(cd $method && ls)
    expect 0 "as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --class-weight balanced \
        --calibrate $method --model-out tcp
    check "the same model" diff -r $method tcp
    expect 0 "$method: eval" "$PARAMO" eval --model-in $method --data test.svm --json
    check "$method: as many clicks are predicted as there are ($(of "$OUT" calibration))" near 1 \
        "$(of "$OUT" calibration)" 0.15
    check "$method: the log-loss is better" below "$(of "$OUT" logloss)" "$(of raw.json logloss)"
    expect 0 "$method: predict" "$PARAMO" predict --model-in $method --data test.svm --out $method.txt
    check "the mean prediction is that of eval" near "$(awk '{ s += $1 } END { print s / NR }' $method.txt)" \
        "$(awk -v c="$(of "$OUT" calibration)" '{ s += $1 > 0 } END { print c * s / NR }' test.svm)" 1
    expect 0 "explain" "$PARAMO" explain --model-in $method --data test.svm --row 7 --json
    check "$method: explain shows the prediction" near "$(of "$OUT" prediction)" "$(sed -n 7p $method.txt)" 1e-6
done
expect 0 "calibration on --valid" "$PARAMO" "${train[@]}" --class-weight 0=1 1=9 --calibrate platt --valid test.svm \
    --model-out valid
expect 0 "eval on the rows of --valid" "$PARAMO" eval --model-in valid --data test.svm --json
check "as many clicks are predicted as the rows of --valid have" near 1 "$(of "$OUT" calibration)" 0.02
expect 0 "training continues from a calibrated model" \
    "$PARAMO" train --model-in platt --data log.svm --epochs 1 --model-out on --any-quality -q
check "the continued training calibrates again" grep -q '"platt"' on/manifest.json
expect 0 "training continues with --calibrate none" \
    "$PARAMO" train --model-in platt --data log.svm --epochs 1 --calibrate none --model-out on --any-quality -q
check "the model is not calibrated any more" test "$(grep -c platt on/manifest.json)" = 0
refused 2 "without rows that measure" "hold-out or --valid" "$PARAMO" "${train[@]}" --hold-out 0 --calibrate platt
refused 2 "another objective" "needs --objective logistic" "$PARAMO" "${train[@]}" --objective hinge --calibrate platt
refused 2 "weights of what has no classes" "logistic, hinge or softmax" \
    "$PARAMO" "${train[@]}" --objective squared --class-weight 1=2
refused 2 "not a weight" "expected LABEL=W" "$PARAMO" "${train[@]}" --class-weight 1=-2
finish
