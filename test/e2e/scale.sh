# Raw numeric columns of different scale: learned by default, the same as processes, in files, exported, and continued.
# Sanitizers: none; train runs the same code, and it is about numbers.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

# Sums of uniform numbers, in columns of sizes from 1e-3 to 1e6; the label follows them.
numbers() { # SEED ROWS
    awk -v seed="$1" -v rows="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < rows; i++) {
            for (k = 1; k <= 4; k++) x[k] = rand() + rand() + rand() - 1.5
            m = 3 * x[1] - 3 * x[2] + 2 * x[3] - 2 * x[4]
            printf "%d 1:%.6g 2:%.6g 3:%.6g 4:%.6g\n", rand() < 1 / (1 + exp(-m)), x[1] * 1e6, x[2] * 1e-3, x[3], x[4] * 100
        }
    }'
}
numbers 1 6000 >train.txt
numbers 2 2000 >test.txt
train=("$PARAMO" train -q --data train.txt --epochs 3)
measured() { # NAME MODEL-FOLDER: its log-loss on the test file
    expect 0 "$1: measured" "$PARAMO" eval --model-in "$2" --data test.txt --json
}
for model in lr fm; do
    expect 0 "$model" "${train[@]}" --model $model --model-out one
    measured "$model" one
    check "$model: log-loss $(json "$OUT" logloss) (the mean rate's is 0.69)" at_most "$(json "$OUT" logloss)" 0.5
    expect 0 "$model as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]:1}" --model $model --model-out many
    check "$model: the same files" diff -r one many
    rm -rf many
    for scale in maxabs std; do
        expect 0 "$model, $scale" "${train[@]}" --model $model --scale $scale --model-out other
        measured "$model, $scale" other
        check "$model, $scale: log-loss $(json "$OUT" logloss)" at_most "$(json "$OUT" logloss)" 0.6
        rm -rf other
    done
    [ $model = fm ] || mv one lr
    rm -rf one
done

# lr's exported weights are for the values as they are.
expect 0 "export" "$PARAMO" export --model-in lr --text --out w.txt
expect 0 "predict" "$PARAMO" predict --model-in lr --data test.txt --out p.txt
worst=$(awk 'NR == FNR { w[$1] = $2; next }
    FILENAME == "p.txt" { p[FNR] = $1; next }
    { m = w["18446744073709551615"]
      for (i = 2; i <= NF; i++) { split($i, f, ":"); m += w[f[1]] * f[2] }
      d = p[FNR] - 1 / (1 + exp(-m)); d = d < 0 ? -d : d; most = d > most ? d : most }
    END { print most }' w.txt p.txt test.txt)
check "its weights give the predictions (to $worst)" at_most "$worst" 0.0001

expect 0 "training continues" "$PARAMO" train -q --model-in lr --data train.txt --alpha 0.01 --model-out more
measured "going on" more
check "the continued model is no worse: log-loss $(json "$OUT" logloss)" at_most "$(json "$OUT" logloss)" 0.5
refused 2 "training does not continue with another scale" "lr was trained with --scale auto" \
    "$PARAMO" train --model-in lr --data train.txt \
    --scale none

# Columns far from 0 are centred: by default, in processes too, in files, and in exported weights.
for part in train test; do
    awk '{ for (i = 2; i <= NF; i++) { split($i, f, ":"); v[i - 1] = f[2] }
        printf "%d 1:%.9g 2:%.9g 3:%.9g 4:%.9g\n", $1, 1e7 + v[1], 0.01 + v[2], 2000 + 9 * v[3], 300 - v[4] }' $part.txt >far.$part
done
far=(train -q --data far.train --model lr --epochs 3)
expect 0 "training on values far from 0" "$PARAMO" "${far[@]}" --model-out far
check "columns far from 0 are centred" grep -q '"scale": "centred"' far/manifest.json
expect 0 "eval of the centred model" "$PARAMO" eval --model-in far --data far.test --json
centred=$(json "$OUT" logloss)
expect 0 "far from 0, std" "$PARAMO" "${far[@]}" --scale std --model-out far.std
expect 0 "eval of the std model" "$PARAMO" eval --model-in far.std --data far.test --json
check "centred: log-loss $centred, with std $(json "$OUT" logloss)" at_most "$centred" \
    "$(awk -v x="$(json "$OUT" logloss)" 'BEGIN { print x - 0.02 }')"
expect 0 "centred: the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${far[@]}" --model-out far.many
check "centred: processes save the same files" diff -r far far.many
expect 0 "export of the centred model" "$PARAMO" export --model-in far --text --settings --out far.tsv
expect 0 "import of the centred model" "$PARAMO" import --data far.tsv --model-out far.back
for model in far far.back; do expect 0 "predict with the imported model" \
    "$PARAMO" predict --model-in $model --data far.test --out $model.p; done
check "the imported model predicts the same" cmp far.p far.back.p
expect 0 "export of the centred model to C" "$PARAMO" export --model-in far --to c --out far.c
check "the C file subtracts the means" grep -q '(value - model_mean\[at\]) / model_scale\[at\]' far.c
expect 0 "export of the centred weights alone" "$PARAMO" export --model-in far --text --out w.txt
worst=$(awk 'NR == FNR { w[$1] = $2; next }
    FILENAME == "far.p" { p[FNR] = $1; next }
    { m = w["18446744073709551615"]
      for (i = 2; i <= NF; i++) { split($i, f, ":"); m += w[f[1]] * f[2] }
      d = p[FNR] - 1 / (1 + exp(-m)); d = d < 0 ? -d : d; most = d > most ? d : most }
    END { print most }' w.txt far.p far.test)
check "the centred weights give the predictions (to $worst)" at_most "$worst" 0.001
expect 0 "training of the centred model continues" \
    "$PARAMO" train -q --model-in far --data far.train --alpha 0.01 --model-out far.more
expect 0 "eval of the continued centred model" "$PARAMO" eval --model-in far.more --data far.test --json
check "the continued centred model is no worse: log-loss $(json "$OUT" logloss)" at_most "$(json "$OUT" logloss)" \
    "$(awk -v x="$centred" 'BEGIN { print x + 0.02 }')"

# One-hot rows: the tables are those without.
expect 0 "a one-hot log" "$PARAMO" data synth --rows 2000 --format libsvm --out hot.txt
for scale in none auto; do expect 0 "one-hot, $scale" \
    "$PARAMO" train -q --model lr --data hot.txt --scale $scale --model-out $scale; done
check "one-hot: both scales give the same tables" diff <(cd none && sha256sum ./*.safetensors) \
    <(cd auto && sha256sum ./*.safetensors)
finish
