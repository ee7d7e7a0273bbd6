# paramo tune: the best trial beats the usual options; a second search gives the same, also after a kill; the printed
# command line gives the model; wrong input.
# Sanitizers: address; its threads are those of the other scripts.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

expect 0 "a log" "$PARAMO" data synth --rows 3000 --fields 6 --features 60 --factors 3 --seed 4 --out 'the rows.ffm'
tune=(tune --model fm --data 'the rows.ffm' --trials 12 --epochs 4 --dim 2)

# results FILE: what a document says, but for times.
results() { grep -vE '"(seconds|resumed)"' "$1"; }

expect 0 "tune" "$PARAMO" "${tune[@]}" --seed 5 --json --model-out best --plot tune.svg --log whole.jsonl -q
check "no progress with -q" test ! -s "$ERR"
results "$OUT" >whole
best=$(json "$OUT" best)
check "the search has twelve trials" test "$(grep -c '"trial"' "$OUT")" -eq 12
lowest=$(awk -F '[:,]' '/"logloss"/ && (!n++ || $2 + 0 < low) { low = $2 + 0 } END { printf "%.9f", low }' "$OUT")
check "the best trial has the least loss" near "$lowest" \
    "$(awk -F '[:,]' -v best="$best" '/"trial"/ { t = $2 + 0 } /"logloss"/ && t == best { printf "%.9f", $2 }' "$OUT")" \
    0
check "the best trial has less loss than the usual options" at_most "$lowest" \
    "$(awk -F '[:,]' '/"trial"/ { t = $2 + 0 } /"logloss"/ && t == 0 { printf "%.9f", $2 - 1e-4 }' "$OUT")"
check "an option that is given is not tuned" test "$(grep -c '"dim"' "$OUT")" -eq 0
check "the plot is XML" bash -c \
    'if command -v xmllint >/dev/null; then xmllint --noout "$1"; else python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$1"; fi' \
    - tune.svg
check "the plot has a chart for each option" grep -q -- '>--factor-alpha<' tune.svg
command=$(sed -n 's/.*"command": "\(.*\)",*$/\1/p' "$OUT")
mv best tuned
check "the printed command line runs" bash -c "\"\$1\" ${command#paramo } -q >/dev/null" - "$PARAMO"
check "the command line gives the model that was saved" diff -r tuned best

expect 0 "the same search again" "$PARAMO" "${tune[@]}" --seed 5 --json --model-out best -q
results "$OUT" >again
check "the same search has the same results" cmp whole again
expect 0 "a search with another seed" "$PARAMO" "${tune[@]}" --seed 6 --json --model-out best -q
results "$OUT" >other
check "another seed has other results" bash -c '! cmp -s whole other'

# A kill after some trainings: the same command continues.
start killed "$PARAMO" "${tune[@]}" --seed 5 --json --model-out best --log log.jsonl -q
has_lines() { [ "$(wc -l <log.jsonl 2>/dev/null || echo 0)" -ge "$1" ]; }
check "some trials are done" wait_for 20 has_lines 5
kill -KILL "$(job_pid killed)" 2>/dev/null
ends killed '137|0' "the search is killed"
printf '{"trial":9,"epo' >>log.jsonl
lines=$(wc -l <log.jsonl)
expect 0 "the search continues" "$PARAMO" "${tune[@]}" --seed 5 --json --model-out best --log log.jsonl -q
check "the search continues where it was" test "$(json "$OUT" resumed)" -eq $((lines - 1))
results "$OUT" >continued
check "the continued search has the same result" cmp whole continued
check "the file is that of a whole search" diff <(sed 's/"seconds":[^,}]*//' whole.jsonl) \
    <(sed 's/"seconds":[^,}]*//' log.jsonl)
expect 0 "a search whose trials are all known" "$PARAMO" "${tune[@]}" --seed 5 --log log.jsonl
check "the table has at most 80 columns" awk 'length($0) > 80 { exit 1 }' "$OUT"
check "the best trial comes first" grep -q "^ *$best\* " "$OUT"
check "the command line can be pasted" grep -q "^paramo train --data 'the rows.ffm'" "$OUT"
refused 2 "a file of another search" \
    "^paramo tune: log.jsonl: is the file of another search: .*--seed 5.*this one is: .*--seed 7" \
    "$PARAMO" "${tune[@]}" --seed 7 --log log.jsonl -q

expect 0 "a search of one second" "$PARAMO" tune --model lr --data 'the rows.ffm' --hold-out 10 --time 1 --json -q
check "the search ends by time, not by trials" grep -q '"cut": true' "$OUT"
expect 0 "another objective, --valid" "$PARAMO" tune --model lr --data 'the rows.ffm' --valid 'the rows.ffm' \
    --objective hinge \
    --trials 3 --epochs 2 --range alpha=0.1:0.2 l2=1:1
check "the best value is in the given range" awk \
    '/--alpha/ && $6 == "--alpha" && $1 != 0 && ($7 < 0.1 || $7 > 0.2) { exit 1 }' "$OUT"
check "the loss is that of the validation rows" grep -q "^The best on the validation rows is trial" "$OUT"

# Few rows are cross-validated, from a pipe, too.
head -n 120 "the rows.ffm" >few.ffm
expect 0 "few rows are tuned" "$PARAMO" tune --model lr --data few.ffm --trials 3 --json --model-out best -q
check "few rows are measured by all rows" grep -q '"measured_on": "rows of all folds"' "$OUT"
results "$OUT" >folds
command=$(sed -n 's/.*"command": "\(.*\)",*$/\1/p' "$OUT")
check "the command line cross-validates, too" bash -c 'case $1 in *--epochs* | *--hold-out*) exit 1 ;; esac' \
    - "$command"
mv best few-tuned
check "the command line runs" bash -c "\"\$1\" ${command#paramo } -q --any-quality >/dev/null" - "$PARAMO"
check "the command line gives the model that was saved" diff -r few-tuned best
expect 0 "few rows from a pipe are tuned" bash -c 'cat few.ffm | "$1" tune --model lr --data - --trials 3 --json -q' \
    - "$PARAMO"
check "a pipe gives the same losses" test "$(grep logloss "$OUT")" = "$(grep logloss folds)"

refused 2 "no data" "^paramo tune: --data is missing" "$PARAMO" tune --model lr
refused 2 "no rows that measure" "hold-out or --valid is missing" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --hold-out 0
refused 2 "standard input" "standard input cannot be read a second time" "$PARAMO" tune --model lr --data - --epochs 2
refused 2 "a range of nothing" "range color=1:2: no option of that name is tuned" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --range color=1:2
refused 2 "not a range" "range alpha=2:1: both ends are above 0, the first at most the second" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --range alpha=2:1
refused 2 "an option of another model" "model lr has no option --dim" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --dim 4
printf '1 1:1\n0 2:1\n' >two.svm
refused 2 "too few rows" "^paramo tune: two.svm: has too few rows to hold out rows of both labels: give --valid$" \
    "$PARAMO" tune --model lr --data two.svm
printf '1 1:1\nx 2:1\n' >bad.svm
refused 3 "bad data" "^paramo tune: bad.svm:2: expected a label" "$PARAMO" tune --model lr --data bad.svm
echo hello >foreign
refused 3 "a foreign file" "^paramo tune: foreign:1: not a line of JSON" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --log foreign
refused 3 "a plot that cannot be" "^paramo tune: no/x.svg" \
    "$PARAMO" tune --model lr --data 'the rows.ffm' --plot no/x.svg
finish
