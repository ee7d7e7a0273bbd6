# paramo data: synth, stat, head, split, shuffle, convert; formats, repeatability, errors.
# Sanitizers: address; it starts no threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

for format in libsvm libffm criteo; do
    expect 0 "synth writes $format" "$PARAMO" data synth --rows 3000 --seed 1 --format $format --out "$format.txt"
    check "$format: the file has its rows" test "$(wc -l <"$format.txt")" -eq 3000
    "$PARAMO" data synth --rows 3000 --seed 1 --format $format --out again.txt >"$OUT" 2>"$ERR"
    check "$format: the same seed, the same log" cmp -s "$format.txt" again.txt
done
"$PARAMO" data synth --rows 3000 --seed 2 --format libsvm --out again.txt >"$OUT" 2>"$ERR"
check "another seed gives another log" sh -c '! cmp -s libsvm.txt again.txt'
refused 2 "synth: --rows without a number is refused" "rows" "$PARAMO" data synth --rows many --out x.txt
refused 3 "synth: a missing folder is refused" "nonesuch/x" "$PARAMO" data synth --rows 10 --out nonesuch/x

awk \
    'BEGIN { print "y,site,n"; for (i = 0; i < 3000; i++) print (i % 3 == 0) "," (i % 2 ? "\"a,\n" i % 7 "\"" : "s" i % 5) "," i }' \
    >table.csv
columns='label=y,cat=site,num=n'
expect 0 "stat of a table" "$PARAMO" data stat --data table.csv --columns "$columns" --json
check "stat: the number of rows" grep -q '"rows": 3000' "$OUT"
check "stat: the greatest value" grep -q '"value_max": 2999' "$OUT"
check "stat: a field's name" grep -q '"name": "site"' "$OUT"
expect 0 "stat as text" "$PARAMO" data stat --data libffm.txt
check "stat as text: a line for each field" test "$(grep -c 'about .* different  $' "$OUT")" -eq 10
expect 0 "head" "$PARAMO" data head --data table.csv --rows 2
check "head: the header and two rows" test "$(wc -l <"$OUT")" -eq 4
expect 0 "split" "$PARAMO" data split --data table.csv --share 0.3 --seed 4 --out a.csv.gz --rest b.csv --json
check "split: each row is in one file" awk -F '[:,]' '/rows/ { n += $2 } END { exit n != 3000 }' "$OUT"
expect 0 "split: both files have rows" "$PARAMO" data stat --data a.csv.gz b.csv --columns "$columns"
check "split: the files have all rows" grep -q '^rows *3000$' "$OUT"
expect 0 "shuffle" "$PARAMO" data shuffle --data libsvm.txt libffm.txt --memory 1 --out s.txt
check "shuffle: the same rows" cmp <(sort libsvm.txt libffm.txt) <(sort s.txt)
check "shuffle: another order" sh -c '! cat libsvm.txt libffm.txt | cmp -s - s.txt'
expect 0 "convert" "$PARAMO" data convert --data table.csv --columns "$columns" --to libffm --out table.ffm
expect 0 "train on the table" "$PARAMO" train --model lr --data table.csv --columns "$columns" --epochs 1 --hold-out 0 \
    --any-quality --model-out m1 -q
expect 0 "train on the converted file" "$PARAMO" train --model lr --data table.ffm --epochs 1 --hold-out 0 \
    --any-quality --model-out m2 -q
check "the same weights" cmp m1/w-*.safetensors m2/w-*.safetensors
refused 2 "weights, where the format has none" \
    "the rows have weights, which the format libsvm cannot hold: use --to vw" \
    "$PARAMO" data convert --data table.csv --columns label=y,cat=site,weight=n --to libsvm --out x.csv
printf 'site,n\ns1,2\ns2,3\n' >rows.csv
expect 0 "convert: no label is named where rows have none" \
    "$PARAMO" data convert --data rows.csv --columns 'cat=site,num=n' --no-labels --to libsvm --out rows.svm
check "convert: all rows are there" test "$(wc -l <rows.svm)" -eq 2
refused 2 "convert: the output has no label" "label=NAME is missing" \
    "$PARAMO" data convert --data rows.csv --columns 'cat=site,num=n' --to libsvm --out rows.svm
refused 2 "no subcommand is refused" "a subcommand is missing" "$PARAMO" data
refused 2 "an unknown subcommand is refused" "unknown subcommand 'sort'" "$PARAMO" data sort
refused 2 "an option of another subcommand is refused" "'stat' has no option --rows" \
    "$PARAMO" data stat --data table.csv --columns "$columns" --rows 3
refused 2 "--columns of a command that copies rows is refused" "'shuffle' has no option --columns" \
    "$PARAMO" data shuffle --data table.csv --columns "$columns" --out x.csv
refused 2 "split without a share is refused" "share P is missing" "$PARAMO" data split --data table.csv --out x.csv
refused 2 "an output over the data is refused" "is one of the data files" \
    "$PARAMO" data shuffle --data table.csv --out table.csv
refused 3 "stat: a table without --columns" "looks like CSV with a header" "$PARAMO" data stat --data table.csv
refused 3 "stat: a bad value" "table.csv:2: column 'site': expected a number" \
    "$PARAMO" data stat --data table.csv --columns label=y,num=site
{ cat table.csv && echo '1,"x,3'; } >open.csv
refused 3 "head: a quote that is open" "open.csv:[0-9]*: a quote that is not closed" \
    "$PARAMO" data head --data open.csv --rows 5000 --out x.csv
check "a failed command leaves no output file" test ! -e x.csv

finish
