# paramo inspect and explain: for each model the shares add up to the margin of the prediction; names; wrong input.
# Sanitizers: address; it starts no threads of its own.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

expect 0 "a log" "$PARAMO" data synth --rows 1500 --fields 5 --features 30 --factors 3 --seed 4 --out rows.ffm
train=(train --data rows.ffm --epochs 2 --hold-out 0 --any-quality -q)

# adds_up FILE: bias and shares of the document add up to its margin.
adds_up() {
    awk -F '[:,]' '/"margin"/ { margin = $2 } /"bias"/ || /"share"/ { sum += $2; n++ }
        END { d = sum - margin; exit !(n > 1 && d < 1e-5 && d > -1e-5) }' "$1"
}
for model in lr fm ffm fwfm mvm mf; do
    expect 0 "$model: train" "$PARAMO" "${train[@]}" --model $model --model-out $model
    expect 0 "$model: predict" "$PARAMO" predict --model-in $model --data rows.ffm --out p
    for row in 1 700 1500; do
        expect 0 "$model: explain row $row" "$PARAMO" explain --model $model --data rows.ffm --row $row --json
        check "$model: shares of row $row add up" adds_up "$OUT"
        check "$model: the shares add up to the prediction" near "$(json "$OUT" prediction)" "$(sed -n ${row}p p)" 1e-8
    done
    expect 0 "$model: explain as text" "$PARAMO" explain --model-in $model --data rows.ffm
    check "$model: explain has at most 80 columns" awk 'length($0) > 80 { exit 1 }' "$OUT"
    expect 0 "$model: inspect" "$PARAMO" inspect $model
    check "$model: inspect has at most 80 columns" awk 'length($0) > 80 { exit 1 }' "$OUT"
    check "$model: inspect has its settings" grep -q "^model       $model, " "$OUT"
done
expect 0 "inspect as JSON" "$PARAMO" inspect fm --top 3 --json
check "inspect has three weights" test "$(grep -c '"unit_weight"' "$OUT")" -eq 3
key=$(json "$OUT" key)
expect 0 "export" "$PARAMO" export --model-in fm --text --out fm.tsv
largest=$(grep -v '^18446744073709551615' fm.tsv |
    awk '{ w = $2 < 0 ? -$2 : $2; if (w > most) { most = w; key = $1 } } END { print key }')
check "the first weight is the largest of the export" test "$key" = "$largest"
expect 0 "classes" "$PARAMO" "${train[@]}" --model fm --objective softmax --classes 2 --model-out classes
for class in 0 1; do
    expect 0 "explain class $class" "$PARAMO" explain --model classes --data rows.ffm --class $class --json
    check "the shares of class $class add up" adds_up "$OUT"
done
refused 2 "a class that does not exist is refused" "^paramo explain: --class 2: the model has fewer classes$" \
    "$PARAMO" explain --model classes --data rows.ffm --class 2

expect 0 "calibrated" "$PARAMO" train --data rows.ffm --model fm --calibrate platt --epochs 2 --any-quality -q \
    --model-out calibrated
expect 0 "predict" "$PARAMO" predict --model-in calibrated --data rows.ffm --out p
expect 0 "explain a calibrated model" "$PARAMO" explain --model calibrated --data rows.ffm --row 7 --json
check "the shares add up" adds_up "$OUT"
check "the shares add up to the margin before calibration" near "$(json "$OUT" prediction)" "$(sed -n 7p p)" 1e-8
check "the calibrated margin is that of the prediction" near "$(json "$OUT" prediction)" \
    "$(awk -v m="$(json "$OUT" calibrated_margin)" 'BEGIN { printf "%.17g", 1 / (1 + exp(-m)) }')" 1e-8

printf 'clicked,site,age\n' >t.csv
awk 'BEGIN { for (i = 0; i < 400; i++) print (i % 3 == 0) ",s" i % 3 "," 1000 * (i % 40) }' >>t.csv
expect 0 "names" "$PARAMO" train --model lr --data t.csv --columns label=clicked,cat=site,num=age --epochs 3 \
    --hold-out 0 \
    --keep-names --model-out named -q
expect 0 "inspect: by name" "$PARAMO" inspect named
check "the category that decides comes first" test "$(awk '/ feature$/ { getline; print $NF }' "$OUT")" = site=s0
check "fields are columns" grep -q '1 age (num)$' "$OUT"
expect 0 "explain: by name" "$PARAMO" explain --model named --data t.csv --row 2
check "a category" grep -q ' 1  site=s1$' "$OUT"
check "a number, as it is in the data" grep -q ' 1000  age$' "$OUT"
printf 'site,age\nnew,5\n' >new.csv
expect 0 "a feature that is not known" "$PARAMO" explain --model named --data new.csv
check "explain says that a feature is unknown" grep -q "(unknown)$" "$OUT"

refused 3 "a row that does not exist is refused" "^paramo explain: t.csv: has no row 401: there are 400$" \
    "$PARAMO" explain --model named --data t.csv --row 401
refused 2 "row 0 is refused" "row .0. on the command line: not a whole number from 1" \
    "$PARAMO" explain --model named --data t.csv --row 0
refused 2 "a missing model is refused" "MODEL is missing" "$PARAMO" inspect
refused 3 "a folder without a model is refused" "nowhere: no model there" "$PARAMO" inspect nowhere
printf 'site,age\ns,x\n' >bad.csv
echo 1 2:3 >plain.svm
refused 3 "bad data" "^paramo explain: bad.csv:2: column 'age': expected a number" \
    "$PARAMO" explain --model named --data bad.csv
refused 3 "data without fields" "has no fields" "$PARAMO" explain --model ffm --data plain.svm
cp -r named broken && echo 'x	y' >>broken/names.tsv
refused 3 "damaged names" "broken/names.tsv:[0-9]*: expected a key, a tab and a name" "$PARAMO" inspect broken
finish
