# --interactions: a linear model learns pairs of fields. The model has the pairs; processes give the same; eval, predict
# and serve use them.
# Sanitizers: none; train and serve run the same code, and it is about numbers.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

# A click follows from app and site together, and from neither alone.
awk 'BEGIN { s = 7; print "click,site,app,age"
    for (i = 0; i < 12000; i++) { s = (s * 16807) % 2147483647; a = s % 6; b = int(s / 100) % 6
        print (int(s / 10000) % 100 < ((a * 7 + b * b) % 2 ? 85 : 15)) ",s" a ",a" b "," i % 50 } }' >log.csv
(head -n 1 log.csv && tail -n 3000 log.csv) >test.csv
columns='label=click,cat=site;app,num=age'
train=(train --data log.csv --columns "$columns" --epochs 3 --any-quality -q --json)
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

expect 0 "training without pairs" "$PARAMO" "${train[@]}" --model lr --model-out without
expect 0 "training with pairs" "$PARAMO" "${train[@]}" --model lr --interactions site:app --cache kept --model-out with
check "the model names its pairs" grep -q '"interactions"' with/manifest.json
expect 0 "training with pairs from the cache" \
    "$PARAMO" "${train[@]}" --model lr --interactions 0:1 --cache kept --model-out again
check "numbers of fields give the same model" diff -r with again
expect 0 "training with pairs as processes" \
    "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model lr --interactions app:site --model-out tcp
check "processes save the same model" diff -r with tcp
for m in without with; do
    expect 0 "eval $m" "$PARAMO" eval --model-in $m --data test.csv --json
    cp "$OUT" $m.json
done
check "a model without pairs learns nothing ($(of without.json auc))" below "$(of without.json auc)" 0.6
check "a model with pairs learns ($(of with.json auc))" below 0.8 "$(of with.json auc)"
expect 0 "predict" "$PARAMO" predict --model-in with --data test.csv --out with.txt
expect 0 "explain" "$PARAMO" explain --model-in with --data test.csv --row 3 --json
check "explain gives the score of predict" awk -v p="$(of "$OUT" prediction)" \
    'NR == 3 { d = p - $1; exit !(d < 1e-6 && d > -1e-6) }' with.txt
expect 0 "training continues" "$PARAMO" train --model-in with --data log.csv --epochs 1 --model-out on --any-quality -q
check "the continued model keeps its pairs" grep -q '"interactions"' on/manifest.json
refused 2 "training does not continue with other pairs" "other --interactions" \
    "$PARAMO" train --model-in with --data log.csv --interactions site:age
refused 2 "a model with pairs of its own" "model ffm combines fields itself" \
    "$PARAMO" "${train[@]}" --model ffm --interactions site:app
refused 2 "no column" "expected two fields" "$PARAMO" "${train[@]}" --model lr --interactions site:sight
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 2, "0:" i % 7 ":1", "1:" 9 + i % 5 ":1" }' >two.ffm
expect 0 "training with a pair that rows have" \
    "$PARAMO" train --model lr --data two.ffm --interactions 0:1 --any-quality -q
check "a pair that rows have causes no warning" sh -c '! grep -q "adds nothing" "$0"' "$ERR"
expect 0 "training with a pair that no row has" \
    "$PARAMO" train --model lr --data two.ffm --interactions 1:999 --any-quality -q
says "a pair that no row has causes a warning" "interactions adds nothing: no row"
printf '%s\n' '1 3:1' '0 5:1' >ids.libsvm
refused 3 "pairs of rows without fields are refused" "which has no fields; .* or leave out --interactions" \
    "$PARAMO" train --model lr --data ids.libsvm --interactions 0:1
finish
