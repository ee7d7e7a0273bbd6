# Tables with a header: train, eval and predict, other orders of columns, several workers, and messages about mistakes.
# Sanitizers: address; its threads are those of the other scripts.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

# Half of the sites have delimiters, quotes and newlines in their names. Every third app is clicked.
awk 'BEGIN {
    print "id,click,site name,app,age"; s = 1
    for (i = 0; i < 30000; i++) {
        s = (s * 16807) % 2147483647
        site = s % 20; app = int(s / 7) % 30
        text = site % 2 ? "\"a, \"\"" site "\"\"\n0,1,x,y,7\"" : "s" site
        print i ",", (int(s / 1000) % 100 < 10 + 60 * (app % 3 == 0)) "," text ",app" app "," (i % 5 ? i % 90 : "")
    }
}' | sed 's/^\([0-9]*\), \([01]\),/\1,\2,/' >table.csv
gzip -k table.csv
awk \
    'BEGIN { print "age\tapp\tclick\tsite name" ; for (i = 0; i < 300; i++) print i % 90 "\tapp" i % 30 "\t" (i % 3 == 0) "\ts" i % 20 }' \
    >other.tsv
cut -f 1,2,4 other.tsv >rows.tsv
columns='label=click,cat=site name;app,num=age'

expect 0 "train on csv" "$PARAMO" train --model lr --data table.csv --columns "$columns" --model-out m -q
check "the model keeps its columns" grep -q '"site name"' m/manifest.json
expect 0 "train on the same, compressed" "$PARAMO" train --model lr --data table.csv.gz --columns "$columns" \
    --model-out z -q
check "the compressed file gives the same model" cmp m/manifest.json z/manifest.json
expect 0 "four workers train" "$PARAMO" train --model lr --data table.csv --columns "$columns" --workers 4 --epochs 1 \
    --hold-out 0 --json -q
check "every row was learned once" grep -q '"rows": 30000' "$OUT"
expect 0 "eval by the header" "$PARAMO" eval --model-in m --data other.tsv --json
check "eval of columns in another order" grep -q '"rows": 300' "$OUT"
check "the model finds its columns by name" awk '/"auc"/ { exit !($2 > 0.9) }' "$OUT"
expect 0 "predict without labels" "$PARAMO" predict --model-in m --data rows.tsv --out p.txt
check "predict has a line for each row" test "$(wc -l <p.txt)" -eq 300
expect 0 "training continues with a table" "$PARAMO" train --model-in m --data table.csv --model-out m2 --epochs 1 -q

awk '{ print "{\"age\":" $1 ",\"app\":\"" $2 "\",\"click\":" $3 ",\"site name\":\"s" (NR - 2) % 20 "\"}" }' other.tsv |
    tail -n +2 >other.jsonl
expect 0 "JSON lines, by a model of csv" "$PARAMO" eval --model-in m --data other.jsonl --json
check "the model of csv knows the keys of JSON lines" awk '/"auc"/ { exit !($2 > 0.9) }' "$OUT"
awk -F '\t' 'NR > 1 { print ($3 ? 1 : -1), 1, "'"'"'t" NR, "|user age:" $1 " |where app=" $2, $4 }' other.tsv >other.vw
expect 0 "train on Vowpal Wabbit's format" \
    "$PARAMO" train --model lr --data other.vw --model-out v --epochs 3 --hold-out 0 --any-quality -q
expect 0 "eval on it" "$PARAMO" eval --model-in v --data other.vw --json
check "the model of Vowpal Wabbit's format has learned" awk '/"auc"/ { exit !($2 > 0.9) }' "$OUT"
expect 0 "keep names" "$PARAMO" train --model lr --data other.tsv --columns "$columns" --model-out k --keep-names \
    --epochs 1 --hold-out 0 --any-quality -q
expect 0 "export with names" "$PARAMO" export --model-in k --text --names
check "a category's name" grep -q "$(printf '\tapp\tapp3$')" "$OUT"
check "a number's name" grep -q "$(printf '\tage$')" "$OUT"
refused 3 "a model without names" "m: has no names: train with --keep-names" \
    "$PARAMO" export --model-in m --text --names
printf '%s\n' '1 3:1' '0 5:1' >ids.libsvm
refused 2 "names of ids" "keep-names: ids.libsvm: features of libsvm have no names" \
    "$PARAMO" train --model lr --data ids.libsvm --model-out x --keep-names
check "names of ids are refused before training" test ! -e x
refused 2 "names of standard input" "can be read once" \
    "$PARAMO" train --model lr --data - --columns "$columns" --model-out x --keep-names
refused 3 "JSON lines without --columns" "looks like JSON lines: .*keys of its first line: age, app, click, site name" \
    "$PARAMO" train --model lr --data other.jsonl
refused 3 "csv without --columns" "looks like CSV with a header: use --columns 'label" \
    "$PARAMO" train --model lr --data table.csv
refused 3 "a column that is not there" "has no column 'sight' .cat.; its columns: id, click" \
    "$PARAMO" train --model lr --data table.csv --columns label=click,cat=sight
refused 2 "not a role" "expected label=" "$PARAMO" train --model lr --data table.csv --columns label=click,dog=app
refused 2 "another --columns" "other --columns" \
    "$PARAMO" train --model-in m --data table.csv --columns label=click,cat=app
refused 3 "text where numbers are" "table.csv:2: column 'app': expected a number" \
    "$PARAMO" train --model lr --data table.csv --columns label=click,num=app
{ cat table.csv && echo '1,0,"open,app1,3'; } >open.csv
refused 3 "a quote that is open" "open.csv:$(wc -l <open.csv): a quote that is not closed" \
    "$PARAMO" eval --model-in m --data open.csv

finish
