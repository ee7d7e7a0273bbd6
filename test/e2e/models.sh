# The models of features with fields. Each learns, gives the same as processes and at every vector level and from files,
# is scored, exported and continued. Data that does not fit is refused with the remedy. Also --negatives.
# Sanitizers: address; the numbers are those of the unit tests.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

expect 0 "a log" "$PARAMO" data synth --rows 2000 --fields 6 --features 40 --factors 3 --seed 2 --out rows.ffm
# The same with values, missing fields, features of one field twice, and the last field only at the end.
awk '{ printf "%s", $1
       for (i = 2; i <= NF; i++) { split($i, f, ":"); if ((NR + i) % 7) printf " %d:%s:%g", f[1], f[2], 1 + i * NR % 5 }
       if (NR % 3 == 0) printf " 2:%s:0.5", NR % 40
       print "" }' rows.ffm >values.ffm
train=(train -q --any-quality --epochs 2 --seed 3)
for model in ffm fwfm mvm mf; do
    for data in rows values; do
        expect 0 "$model, $data" "$PARAMO" "${train[@]}" --model $model --data $data.ffm --model-out one
        expect 0 "$model, $data, as processes" \
            "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model $model --data $data.ffm \
            --model-out many
        check "$model, $data: processes save the same files" diff -r one many
        [ $model = mf ] || check "$model, $data: the manifest counts six fields" grep -q '"fields": 6' one/manifest.json
        rm -rf many
        [ $data = values ] || mv one $model
    done
    PARAMO_CPU=base expect 0 "$model, without vectors" \
        "$PARAMO" "${train[@]}" --model $model --data values.ffm --model-out base
    check "$model: the same files without the option" diff -r one base
    expect 0 "$model: eval" "$PARAMO" eval --model-in $model --data rows.ffm --json
    check "$model: log-loss $(json "$OUT" logloss)" at_most "$(json "$OUT" logloss)" 0.68
    expect 0 "$model: predict" "$PARAMO" predict --model-in one --data values.ffm --out p
    check "$model: predict has every row" test "$(wc -l <p)" -eq 2000
    expect 0 "$model: export" "$PARAMO" export --model-in $model --text --out $model.tsv
    expect 0 "$model: two workers" "$PARAMO" "${train[@]}" --model $model --data rows.ffm --workers 2 --servers 2
    expect 0 "$model: training continues" "$PARAMO" "${train[@]}" --model-in $model --data rows.ffm --model-out more
    option=--fields
    [ $model = mf ] && option=--user-field
    refused 2 "$model: training does not continue with other fields" "was trained with $option [06]" \
        "$PARAMO" train --model-in $model --data rows.ffm \
        $option 7
    expect 0 "$model: softmax" "$PARAMO" "${train[@]}" --model $model --data rows.ffm --objective softmax --classes 2 \
        --dim 2
    rm -rf one base more
done
check "ffm: four factors for each field" test "$(head -n 1 ffm.tsv | wc -w)" -eq $((2 + 4 * 6))
check "mvm: the fields' own factors" test "$(grep -c '^b:[0-5]	' mvm.tsv)" -eq 6
refused 3 "mf: a user's field that is not there" \
    "no feature of the first rows has field 9: name the field with --user-field" \
    "$PARAMO" train --model mf --data rows.ffm --user-field 9
refused 2 "mf: one field as both" "user-field and --item-field are both 1: they must differ" \
    "$PARAMO" train --model mf --data rows.ffm --user-field 1
check "fwfm: the weights of pairs" test "$(grep -c '^r:[0-5]	' fwfm.tsv)" -eq 6

sed 's/ [0-9]*:/ /g' rows.ffm >rows.svm
refused 3 "data without fields" \
    "libsvm format, which has no fields; csv, tsv, jsonl, vw, libffm and criteo have them: give" \
    "$PARAMO" train --model ffm --data rows.svm
refused 3 "too many fields" "has field 5, and the model has the fields 0 to 4: train a new model with --fields 6" \
    "$PARAMO" train --model fwfm --data rows.ffm --fields 5
expect 3 "as processes" "$PARAMO" run -s 1 -w 1 -- paramo train --model fwfm --data rows.ffm --fields 5
check "processes give the reason" grep -q '^paramo train: rows.ffm: has field 5, and the model has the fields 0 to 4' \
    "$ERR"
sed 's/ 5:/ 2000:/g' rows.ffm >far.ffm
refused 3 "a field number that is too large" "has field 2000, and model ffm takes at most 1024" \
    "$PARAMO" train --model ffm --data far.ffm
expect 0 "where it is scored, such a feature has no pairs" "$PARAMO" predict --model-in ffm --data far.ffm --out p

# A share of the negative rows: the same as processes; only of logistic.
expect 0 "a third of the negative rows" "$PARAMO" "${train[@]}" --model lr --data rows.ffm --negatives 0.3 \
    --model-out thin
expect 0 "the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model lr --data rows.ffm \
    --negatives 0.3 --model-out many
check "processes save the same files" diff -r thin many
expect 0 "eval of that model on all rows" "$PARAMO" eval --model-in thin --data rows.ffm --json
check "predictions are for all rows: calibration $(json "$OUT" calibration)" near "$(json "$OUT" calibration)" 1 0.1
refused 2 "a share above 1" "negatives 2: expected a share above 0 and at most 1" \
    "$PARAMO" train --model lr --data rows.ffm --negatives 2
refused 2 "--negatives with another objective" "negatives needs --objective logistic" \
    "$PARAMO" train --model lr --data rows.ffm \
    --objective squared --negatives 0.5
finish
