# paramo export and import: a C file gives the scores of predict, libffm's text gives them by its formula, a text
# comes back as the same model; what a form cannot have, and broken texts, are refused.
# Sanitizers: address; it starts no threads of its own.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

expect 0 "a log" "$PARAMO" data synth --rows 400 --fields 5 --features 20 --factors 2 --seed 2 --out rows.ffm
# The same with values, missing fields, two features of one field, and features that no model knows.
awk '{ printf "%s", $1
       for (i = 2; i <= NF; i++) { split($i, f, ":"); if ((NR + i) % 7) printf " %d:%s:%g", f[1], f[2], 1 + i * NR % 5 }
       if (NR % 3 == 0) printf " 2:7:2 2:900001:1"; print "" }' rows.ffm >values.ffm
train=(train --data values.ffm --epochs 2 --hold-out 0 --any-quality -q)

# c_scores MODEL TEXT: the C file gives what predict gives.
c_scores() {
    expect 0 "$2: export to C" "$PARAMO" export --model-in "$1" --to c --out m.c
    check "$2: the C file compiles" cc -std=c99 -O1 -ffp-contract=off -Wall -Wextra -Werror -DPARAMO_MAIN m.c \
        -o scorer -lm
    expect 0 "$2: predict" "$PARAMO" predict --model-in "$1" --data values.ffm --out predicted
    ./scorer <values.ffm >scored
    check "$2: the same scores" cmp predicted scored
}

# comes_back MODEL TEXT: through the text, bit for bit.
comes_back() {
    rm -rf back
    expect 0 "$2: export to text" "$PARAMO" export --model-in "$1" --to text --settings --out m.tsv.gz
    expect 0 "$2: import of the text" "$PARAMO" import --data m.tsv.gz --model-out back
    check "$2: the same files" diff -r "$1" back
}

for model in lr fm ffm fwfm mvm mf; do
    expect 0 "$model: train" "$PARAMO" "${train[@]}" --model $model --no-state --model-out $model
    c_scores $model $model
    comes_back $model $model
done
expect 0 "classes" "$PARAMO" "${train[@]}" --model fwfm --objective softmax --classes 2 --no-state --model-out classes \
    --scale maxabs
c_scores classes "classes, maxabs"
comes_back classes "classes, maxabs"
expect 0 "prices" "$PARAMO" "${train[@]}" --model fm --objective squared --model-out prices --scale none
c_scores prices "with state, squared"
expect 0 "with state: to text" "$PARAMO" export --model-in prices --to text --settings --out p.tsv
expect 0 "import of the text with state" "$PARAMO" import --data p.tsv --model-out back2
expect 0 "predict with the imported model" "$PARAMO" predict --model-in back2 --data values.ffm --out again
check "the imported model gives the same scores" cmp predicted again

# ffm_scores MODEL FIELD: by libffm's formula over rows with the two features that its head asks for; fm and lr: all
# in field 0.
ffm_scores() {
    expect 0 "$1: export to libffm" "$PARAMO" export --model-in "$1" --to libffm --out m.txt
    awk -v own="$2" 'FNR == NR { if ($1 ~ /^w/) { at = substr($1, 2); for (k = 2; k <= NF; k++) v[at "," k] = $k; dim = NF } else h[$1] = $2; next }
        { n = 0
          for (i = 2; i <= NF; i++) { split($i, p, ":"); f[++n] = own ? p[1] : 0; j[n] = p[2]; x[n] = p[3] }
          f[++n] = h["m"] - 2; j[n] = h["n"] - 2; x[n] = 1; f[++n] = h["m"] - 1; j[n] = h["n"] - 1; x[n] = 1; s = 0
          for (a = 1; a <= n; a++) for (b = a + 1; b <= n; b++) for (k = 2; k <= dim; k++)
              s += v[j[a] "," f[b] "," k] * v[j[b] "," f[a] "," k] * x[a] * x[b]
          printf "%.9f\n", 1 / (1 + exp(-s)) }' m.txt <(head -n 60 values.ffm) >scored
    "$PARAMO" predict --model-in "$1" --data values.ffm --out predicted
    check "$1: libffm scores the same" awk 'FNR == NR { p[FNR] = $1; next }
        { d = p[FNR] - $1; if (d > 1e-5 || d < -1e-5) exit 1; n++ } END { exit n != 60 }' predicted scored
}
awk '{ gsub(/:900001:/, ":31:"); print }' values.ffm >few.ffm && mv few.ffm values.ffm
for model in lr fm ffm; do
    expect 0 "$model: train" "$PARAMO" "${train[@]}" --model $model --scale none --model-out $model
    own=1
    [ $model = ffm ] || own=0
    ffm_scores $model $own
done
check "libffm: the header is right" test "$(head -n 4 m.txt | cut -d ' ' -f 1 | tr '\n' ' ')" = "n m k normalization "
expect 0 "lr: export to vw" "$PARAMO" export --model-in lr --to vw --out m.vw
expect 0 "lr: export to text" "$PARAMO" export --model-in lr --text --out m.tsv
check "vw: the same weights" cmp <(sed '1,/^:0$/d; /^116060:/d' m.vw) \
    <(grep -v ^18446744073709551615 m.tsv | tr '\t' ':')
check "vw: the constant is the bias" test "$(sed -n 's/^Constant:116060://p; s/^116060://p' m.vw)" = \
    "$(sed -n 's/^18446744073709551615\t//p' m.tsv)"

printf '3\t0.5\n17\t-1.25\n18446744073709551615\t0.125\n' >w.tsv
expect 0 "import of another program's weights" "$PARAMO" import --data w.tsv --model lr --model-out other
expect 0 "export of another program's weights" "$PARAMO" export --model-in other --text
check "another program's weights are the same" cmp w.tsv "$OUT"
refused 3 "a text without settings" \
    "^paramo import: w.tsv:1: the text has no settings: export it with --settings, or give --model$" \
    "$PARAMO" import --data w.tsv --model-out none
broken() { # TEXT REGEX LINES: refused, and nothing is made
    printf -- "$3" >broken.tsv
    refused 3 "$1" "^paramo import: broken.tsv:$2" \
        "$PARAMO" import --data broken.tsv --model fm --dim 2 --model-out none
}
broken "a row with too few values" '2: too few values' '3\t1\t1\t1\n4\t1\t1\n'
broken "a row with too many" '1: too many values' '3\t1\t1\t1\t1\n'
broken "keys that do not ascend" '2: the keys are not in ascending order' '3\t1\t1\t1\n3\t1\t1\t1\n'
broken "not a value" '1: expected a finite number' '3\t1\tnan\t1\n'
broken "not a key" '1: expected a key' '-3\t1\t1\t1\n'
broken "a table that is not there" '1: the model has no table of that name' 'r:3\t1\n'
broken "an empty text" ' has no rows of a model' '#\n'
"$PARAMO" export --model-in mvm --to text --settings --out mvm.tsv
grep -v '^b:4' mvm.tsv >short.tsv
refused 3 "a text without a row of a table" "^paramo import: short.tsv: has 4 rows of table b, and the model has 5$" \
    "$PARAMO" import --data short.tsv --model-out none
sed '1s/"model":"[a-z]*"/"model":"bogus"/' p.tsv >bogus.tsv
refused 3 "settings of no model" "^paramo import: bogus.tsv:1: the settings' entry 'model' is missing or not valid" \
    "$PARAMO" import --data bogus.tsv --model-out none
check "failed imports leave no files" test ! -e none
expect 0 "training of a calibrated model" \
    "$PARAMO" train --data rows.ffm --model lr --calibrate platt --epochs 2 --any-quality -q --no-state \
    --model-out calibrated
comes_back calibrated calibrated
refused 1 "C: a calibrated model" "the model is calibrated" "$PARAMO" export --model-in calibrated --to c --out none
expect 0 "training with pairs of fields" "$PARAMO" train --data rows.ffm --model lr --interactions 1:2 --epochs 2 \
    --any-quality -q --no-state --model-out pairs
comes_back pairs pairs
for form in c vw libffm; do
    refused 1 "$form: a model with pairs of fields" "features of pairs of fields" \
        "$PARAMO" export --model-in pairs --to $form --out none
done
refused 1 "libffm: another model" "libffm's form is that of ffm, fm and lr" \
    "$PARAMO" export --model-in mvm --to libffm --out none
refused 1 "vw: another model" "has one weight for each feature" "$PARAMO" export --model-in fm --to vw --out none
refused 2 "export without a form" "to text|libffm|vw|c is missing" "$PARAMO" export --model-in fm
refused 2 "settings of another form" "settings needs --to text" "$PARAMO" export --model-in fm --to c --settings
check "failed exports leave no files" test ! -e none
finish
