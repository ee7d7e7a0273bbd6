# paramo train without options: a tenth of the rows is held out, the best epoch is kept, and training ends when the
# measure does not improve. Also its messages and exit codes for data that is rare, tiny, sorted, or cannot be learned.
# Sanitizers: none; train runs the same code, and it is about numbers.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

train=(train --model lr -q --json --any-quality)
rows=$((20000 / SLOW))
# of FILE FIELD: a field of each epoch's held-out part, or of the document.
held() { python3 -c \
    'import json, sys; print(*[e["held_out"][sys.argv[2]] for e in json.load(open(sys.argv[1]))["epochs"]])' "$@"; }
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

# ---- the same rows on every number of workers, and the best epoch's model ----
expect 0 "a log" "$PARAMO" data synth --rows $rows --features 5000 --seed 1 --format libsvm --out log.svm
expect 0 "one worker" "$PARAMO" "${train[@]}" --hold-out 10 --data log.svm --model-out one
cp "$OUT" one.json
best=$(of one.json best_epoch)
epochs=$(held one.json logloss | wc -w)
check "training ended two epochs after the best ($best of $epochs)" test "$best" -ge 1 -a "$epochs" -eq $((best + 2))
least=$(held one.json logloss | tr ' ' '\n' | sort -g | head -n 1)
check "the best epoch has the least log-loss" test "$(held one.json logloss | cut -d' ' -f"$best")" = "$least"
# of the rows, about
share() { awk -v rows=$rows -v share="$1" '{ d = $1 / rows - share; exit !(d > -0.03 && d < 0.03) }'; }
held one.json rows | share 0.1
check "about a tenth of the rows is held out" test ${PIPESTATUS[1]} -eq 0
check "the other rows are learned" test "$(json one.json rows)" -eq \
    $((epochs * (rows - $(held one.json rows | cut -d' ' -f1))))
expect 0 "as many epochs are trained" "$PARAMO" "${train[@]}" --data log.svm --epochs "$best" --model-out best
check "the model that was saved is the best epoch's" diff -r one best
expect 0 "the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --hold-out 10 --data log.svm \
    --model-out many
check "processes save the same model" diff -r one many
gzip -k log.svm
for many in 2 3; do
    expect 0 "$many workers" "$PARAMO" "${train[@]}" --epochs 2 --workers $many --data log.svm
    for what in rows positives; do
        check "$many workers: the same $what" test "$(held "$OUT" $what)" = "$(held one.json $what | cut -d' ' -f1,2)"
    done
    [ "$SLOW" = 1 ] || continue # a sanitizer learns nothing new
    expect 0 "$many processes, compressed" \
        "$PARAMO" run -s 1 -w $many -- paramo "${train[@]}" --epochs 2 --data log.svm.gz
    check "the same rows" test "$(held "$OUT" positives)" = "$(held one.json positives | cut -d' ' -f1,2)"
done
expect 0 "--hold-out 0" "$PARAMO" "${train[@]}" --hold-out 0 --data log.svm
check "--hold-out 0: one epoch of all rows" test "$(json "$OUT" rows)" -eq $rows
expect 0 "--hold-out 50" "$PARAMO" "${train[@]}" --hold-out 50 --epochs 1 --data log.svm
held "$OUT" rows | share 0.5
check "--hold-out 50: about half of the rows is held out" test ${PIPESTATUS[1]} -eq 0
refused 2 "--patience without held-out rows is refused" "hold-out" \
    "$PARAMO" train --model lr --data log.svm --hold-out 0 --patience 2
refused 2 "--hold-out with --valid is refused" "--valid and --hold-out both name the rows that measure the model" \
    "$PARAMO" train --model lr --data log.svm --valid log.svm --hold-out 5
refused 2 "a --hold-out that is too large is refused" "hold-out" "$PARAMO" train --model lr --data log.svm --hold-out 51

# ---- tiny sets, and held-out rows of one class ----
for few in 1 5; do
    head -n $few log.svm >tiny.svm
    expect 0 "a set of $few" "$PARAMO" train --model lr --data tiny.svm --model-out tiny
    says "nothing is held out of few rows, and the output says so" '^nothing is held out: '
    says "all rows are learned once" "^epoch 1/1  $few rows in "
    expect 0 "the same job without --hold-out" \
        "$PARAMO" train --model lr --data tiny.svm --hold-out 0 --model-out before
    check "both jobs save the same model" diff -r tiny before
done
awk 'BEGIN { for (i = 0; i < 100000; i++) print (i == 7) " " i % 100 ":1 " 200 + i % 37 ":1" }' >single.svm
expect 0 "one positive in 100,000 rows" "$PARAMO" train --model lr --data single.svm --model-out single
says "one positive row: nothing is measured, and the output says so" '^nothing is measured: '
check "one positive row: one epoch" test "$(grep -c '^epoch' "$ERR")" -eq 1
check "one positive row: the model is saved" test -s single/manifest.json

# ---- sorted labels ----
sort -s -k1,1n log.svm >sorted.svm
expect 0 "sorted labels" "$PARAMO" train --model lr -q --any-quality --hold-out 10 --data sorted.svm --json
says "sorted labels cause one warning" '^warning: the rows are sorted by label, or nearly: '
check "the JSON has the warning of sorted labels" grep -q '"sorted_labels": true' "$OUT"
check "mixed labels are not reported as sorted" grep -q '"sorted_labels": false' one.json

# ---- rare clicks; nothing to learn ----
expect 0 "rare clicks" "$PARAMO" data synth --rows 100000 --features 20 --click-rate 0.001 --spread 2 --seed 1 \
    --out rare.ffm
expect 0 "rare clicks are learned" "$PARAMO" train --model lr -q --json --data rare.ffm
check "rare clicks cause no warning" grep -q '"warning": null' "$OUT"
awk \
    'BEGIN { srand(1); for (i = 0; i < 20000; i++) print (rand() < 0.3) " " int(rand() * 500) ":1 " 1000 + int(rand() * 500) ":1" }' \
    >noise.svm
expect 5 "nothing to learn" "$PARAMO" train --model lr --data noise.svm --hold-out 10 --model-out noise
says "the output says that there is nothing to learn" \
    '^warning: nothing is learned: log-loss 0\.[0-9]+ on the held-out rows, guessing the mean rate gives 0\.[0-9]+'
check "the model is still saved" test -s noise/manifest.json
expect 0 "--any-quality ends with 0" "$PARAMO" train --model lr --data noise.svm --hold-out 10 --any-quality
awk 'BEGIN { srand(2); for (i = 0; i < 5000; i++) print (rand() < 0.3) " " int(rand() * 500) ":1" }' >other.svm
expect 5 "nothing to learn, with --valid" "$PARAMO" train --model lr --data noise.svm --valid other.svm --epochs 1
says "the output with --valid says that there is nothing to learn" \
    '^warning: nothing is learned: .* on the validation data'

# ---- few rows are cross-validated ----
head -n 300 log.svm >few.svm
expect 0 "300 rows" "$PARAMO" "${train[@]}" --data few.svm --model-out few
cp "$OUT" few.json
crossed() { python3 -c \
    'import json, sys; print(*[e["cross_validated"][sys.argv[2]] for e in json.load(open(sys.argv[1]))["epochs"]])' \
    "$@"; }
check "300 rows are measured in ten folds" test "$(of few.json folds)" -eq 10
check "the folds measure each row once" test "$(crossed few.json rows | tr ' ' '\n' | sort -u)" = 300
best=$(of few.json best_epoch)
check "the best epoch ($best) is the last" test "$best" -eq "$(crossed few.json logloss | wc -w)" -a "$best" -gt 0
check "the saved model has learned all rows" test $(($(json few.json rows) % 300)) -eq 0 \
    -a "$(json few.json hold_out)" -eq 0
expect 0 "300 rows: the same job as processes" \
    "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --data few.svm --model-out few-processes
check "300 rows: processes save the same model" diff -r few few-processes
expect 0 "300 rows from a pipe" bash -c 'cat few.svm | "$@" --data - --model-out few-pipe' - "$PARAMO" "${train[@]}"
check "300 rows from a pipe give the same model" diff -r few few-pipe
expect 0 "two files, two workers" "$PARAMO" run -s 1 -w 2 -- paramo "${train[@]}" --data few.svm few.svm
check "600 rows" test "$(crossed "$OUT" rows | tr ' ' '\n' | sort -u)" = 600
expect 5 "300 rows without anything to learn" "$PARAMO" train --model lr --data noise.svm
says "the output says that there is nothing to learn" \
    '^few rows \(20000\): 5-fold cross-validation finds log-loss 0\.[0-9]+ after '
says "the output says what that means" \
    '^warning: nothing is learned: .* in cross-validation, guessing the mean rate gives 0\.[0-9]+'
expect 0 "rows in any order" "$PARAMO" "${train[@]}" --data log.svm
any=$(crossed "$OUT" logloss | tr ' ' '\n' | sort -g | head -n 1)
expect 0 "sorted rows, which are shuffled" "$PARAMO" "${train[@]}" --data sorted.svm
check "shuffled rows are learned as well: $(crossed "$OUT" logloss | tr ' ' '\n' | sort -g | head -n 1) and $any" \
    near "$(crossed "$OUT" logloss | tr ' ' '\n' | sort -g | head -n 1)" "$any" 0.02
check "shuffled rows cause no warning" [ ! -s "$ERR" ]
finish
