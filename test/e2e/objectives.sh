# Every objective: learned by default, the same as processes, predicted, measured, continued; labels that are refused.
# Sanitizers: none; test_objective and the train scripts run the same code in seconds.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

# Ten one-hot fields of five values. A score z follows from them; the label, by KIND, from z: a price near 250,000, a
# count, one of three classes, or a click.
rows() { # KIND SEED ROWS
    awk -v kind="$1" -v seed="$2" -v rows="$3" 'BEGIN {
        srand(9)
        for (i = 0; i < 50; i++) { w[i] = rand() + rand() - 1; v[i] = rand() + rand() - 1 }
        srand(seed)
        for (r = 0; r < rows; r++) {
            z = u = 0
            line = ""
            for (f = 0; f < 10; f++) {
                id = f * 5 + int(5 * rand())
                z += w[id]; u += v[id]
                line = line " " id ":1"
            }
            noise = rand() + rand() + rand() - 1.5
            if (kind == "price") y = 250000 + 40000 * z + 40000 * noise
            if (kind == "count") { y = 0; for (p = rand(); p > exp(-exp(z / 2)); y++) p *= rand() }
            if (kind == "class") y = z + noise > 0.5 ? 2 : u + noise > 0 ? 1 : 0
            if (kind == "click") y = rand() < 1 / (1 + exp(-2 * z))
            printf "%.7g%s\n", y, line
        }
    }'
}
for kind in price count class click; do
    rows $kind 1 5000 >$kind.train
    rows $kind 2 2000 >$kind.test
done

# learned OBJECTIVE KIND MEASURE LIMIT [OPTION...]: lr and fm. The least that any constant reaches is far above LIMIT.
# As processes: lr, and fm with several outputs; other tests have fm's.
learned() {
    local objective=$1 kind=$2 measure=$3 limit=$4 model
    shift 4
    for model in lr fm; do
        local train=("$PARAMO" train --json --model $model --objective "$objective" "$@" --data "$kind.train")
        expect 0 "$objective, $model" "${train[@]}" --model-out one
        check "$objective, $model: the manifest names the objective" grep -q "\"objective\": \"$objective\"" "$OUT"
        check "$objective, $model: the summary has its measure" grep -q "\"$measure\"" "$OUT"
        expect 0 "$objective, $model: eval" "$PARAMO" eval --model-in one --data "$kind.test" --json
        check "$objective, $model: $measure $(json "$OUT" "$measure")" at_most "$(json "$OUT" "$measure")" "$limit"
        if [ $model = lr ] || [ "$objective" = softmax ]; then
            expect 0 "$objective, $model, as processes" \
                "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]:1}" --model-out many
            check "$objective, $model: the same files" diff -r one many
            rm -rf many
        fi
        [ $model = fm ] || { rm -rf "$objective" && mv one "$objective"; }
        rm -rf one
    done
}
learned squared price rmse 30000    # a constant: about 55,000; the noise: 20,000
learned quantile price pinball_loss 8000 --quantile 0.9
learned poisson count poisson_loss 0.65
learned softmax class logloss 0.8 --classes 3
learned hinge click hinge_loss 0.7
learned logistic click logloss 0.55

expect 0 "squared, --valid" "$PARAMO" train --json --model lr --objective squared --data price.train \
    --valid price.test --epochs 1 --model-out one
valid=$(grep '"rmse"' "$OUT" | tail -n 1 | sed 's/.*: *//; s/,//')
expect 0 "squared, --valid: measured" "$PARAMO" eval --model-in one --data price.test --json
check "squared: --valid measures $valid, and eval $(json "$OUT" rmse)" near "$valid" "$(json "$OUT" rmse)" 0.001
rm -rf one

# Predictions are in the units of the labels; the measures follow from them.
for objective in squared poisson quantile; do
    kind=$([ $objective = poisson ] && echo count || echo price)
    expect 0 "$objective: predictions" "$PARAMO" predict --model-in $objective --data $kind.test --out p.txt
    expect 0 "$objective: measures" "$PARAMO" eval --model-in $objective --data $kind.test --json
    mae=$(awk \
        'NR == FNR { p[FNR] = $1; next } { d = $1 - p[FNR]; sum += d < 0 ? -d : d } END { printf "%.9g", sum / FNR }' \
        p.txt $kind.test)
    check "$objective: the mean absolute error is $(json "$OUT" mae)" near "$mae" "$(json "$OUT" mae)" 0.001
done
check "nine of ten prices are below their 0.9-quantile: $(json "$OUT" coverage)" near "$(json "$OUT" coverage)" 0.9 0.05
expect 0 "softmax: predictions" "$PARAMO" predict --model-in softmax --data class.test --out p.txt
check "softmax: three probabilities a row, with the sum 1" \
    awk -F'\t' \
    'NF != 3 || $1 + $2 + $3 < 0.999999 || $1 + $2 + $3 > 1.000001 { bad = 1 } END { exit bad || NR != 2000 }' p.txt
expect 0 "softmax: measures" "$PARAMO" eval --model-in softmax --data class.test --json
right=$(paste p.txt class.test | awk \
    '{ best = 0; for (c = 1; c < 3; c++) if ($(c + 1) > $(best + 1)) best = c; sum += best == $4 } END { print sum / NR }')
check "softmax: the accuracy is $(json "$OUT" accuracy)" near "$right" "$(json "$OUT" accuracy)" 0.000001

# Going on keeps the objective and its settings.
expect 0 "training continues" "$PARAMO" train -q --model-in squared --data price.train --epochs 1 --model-out more
expect 0 "the continued model is evaluated" "$PARAMO" eval --model-in more --data price.test --json
check "the continued model is as good: $(json "$OUT" rmse)" at_most "$(json "$OUT" rmse)" 30000
refused 2 "training does not continue with another objective" "squared was trained with another objective: squared" \
    "$PARAMO" train --model-in squared --objective poisson --data price.train
refused 2 "training does not continue with other classes" "softmax was trained with --classes 3" \
    "$PARAMO" train --model-in softmax --classes 4 --data class.train

refused 2 "softmax without classes" "softmax needs --classes" \
    "$PARAMO" train --model lr --objective softmax --data class.train
refused 2 "classes without softmax" "logistic has no --classes" \
    "$PARAMO" train --model lr --classes 3 --data click.train
refused 2 "a quantile of 1" "between 0 and 1" \
    "$PARAMO" train --model lr --objective quantile --quantile 1 --data price.train
refused 3 "prices as clicks" "price.train:1: expected a label, 0 or 1.*; numbers are learned with --objective squared" \
    "$PARAMO" train --model lr --data price.train
printf '1 1:1\nyes 2:1\n' >word.train
refused 3 "a word as a label" "word.train:2: expected a label, 0 or 1 .*found 'yes'$" \
    "$PARAMO" train --model lr --data word.train
echo "-1 3:1" >bad.train
refused 3 "a negative count" "bad.train:1: expected a label" \
    "$PARAMO" train --model lr --objective poisson --data bad.train
refused 3 "a class too many" "class that the model does not have" \
    "$PARAMO" train --model lr --objective softmax --classes 2 --data class.train

# A constant target is a target: nothing is learned, and nothing breaks.
awk 'BEGIN { for (i = 0; i < 500; i++) print "7 " i % 10 ":1" }' >same.train
expect 0 "the same label everywhere" "$PARAMO" train -q --any-quality --model lr --objective squared --data same.train \
    --model-out same
expect 0 "predict with the same label everywhere" "$PARAMO" predict --model-in same --data same.train --out p.txt
check "the label is predicted: $(head -n 1 p.txt)" near "$(head -n 1 p.txt)" 7 0.01
finish
