# paramo eval --plot and train --plot: valid SVG whose texts do not overlap; a plot that cannot be drawn leaves no file.
# Sanitizers: address; its threads are those of the other scripts.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

# valid FILE: well-formed XML, by the tool that is there.
valid() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$1"
    else
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
    fi
}

# apart FILE: no two texts overlap, each is within the document, by the width that letters have at most.
apart() {
    awk -F '"' '/^<svg / { width = $6 + 0; height = $8 + 0 }
        /^<text / {
            x = $2; y = $4; size = $8; text = $0
            sub(/^[^>]*>/, "", text); sub(/<.*/, "", text); gsub(/&[a-z]*;/, "x", text)
            wide = length(text) * size * 0.6; from = $6 == "start" ? 0 : $6 == "middle" ? wide / 2 : wide
            n++; of[n] = text
            if (/rotate/) { l[n] = x - size; r[n] = x + size / 4; t[n] = y - wide / 2; b[n] = y + wide / 2 }
            else { l[n] = x - from; r[n] = x - from + wide; t[n] = y - size; b[n] = y + size / 4 }
            if (l[n] < 0 || t[n] < 0 || r[n] > width || b[n] > height) { print "beyond the edge: " text; bad = 1 }
            for (k = 1; k < n; k++)
                if (l[n] < r[k] && l[k] < r[n] && t[n] < b[k] && t[k] < b[n]) { print of[k] " and " text " overlap"; bad = 1 }
        }
        END { exit bad || n < 10 }' "$1"
}

# is_plot FILE TITLE...: such a document, with these texts.
is_plot() {
    local file=$1
    check "$file: is XML" valid "$file"
    check "$file: texts are apart" apart "$file"
    shift
    for text in "$@"; do check "$file: the plot has $text" grep -qF ">$text<" "$file"; done
}

expect 0 "a log" "$PARAMO" data synth --rows 3000 --fields 5 --features 40 --seed 4 --out rows.ffm
expect 0 "train --plot" "$PARAMO" train --model lr --data rows.ffm --epochs 4 --model-out m --plot train.svg -q
is_plot train.svg "loss by epoch" "epoch" "mean log-loss of a row" "held-out rows" "rows learned, before each batch"
expect 0 "eval --plot" "$PARAMO" eval --model-in m --data rows.ffm --plot eval.svg --json
is_plot eval.svg ROC "precision and recall" reliability lift "model, AUC $(printf %.4f "$(json "$OUT" auc)")" \
    "mean label (rate)" "false positives (% of label 0)" "lift (times the mean rate)"
expect 0 "eval without --plot" "$PARAMO" eval --model-in m --data rows.ffm
cp "$OUT" plain
expect 0 "eval --plot as text" "$PARAMO" eval --model-in m --data rows.ffm --plot again.svg
check "eval prints the same with and without --plot" cmp plain "$OUT"
check "eval draws the same plot" cmp eval.svg again.svg

cp rows.ffm 'a <long> & "odd" name, longer than a line of the heading has room for: at most 80 letters or so.ffm'
expect 0 "an odd name" "$PARAMO" eval --model-in m --data 'a <long>'* --plot odd.svg
is_plot odd.svg
printf '1 1:1\n0 2:1\n' >two.svm
expect 0 "hinge, two rows" "$PARAMO" train --model lr --data two.svm --objective hinge --model-out h --hold-out 0 \
    --any-quality -q \
    --plot one.svg
is_plot one.svg "mean hinge loss of a row"
expect 0 "eval of two rows" "$PARAMO" eval --model-in h --data two.svm --plot two.svg
is_plot two.svg "mean margin" "model, 2 bins of rows, 95 %"
expect 0 "--valid, 30 epochs" "$PARAMO" train --model fm --data rows.ffm --valid rows.ffm --epochs 30 --plot valid.svg \
    -q
is_plot valid.svg "validation rows"

refused 3 "a folder that is not there" "^paramo eval: nowhere/x.svg" \
    "$PARAMO" eval --model-in m --data rows.ffm --plot nowhere/x.svg
refused 3 "a plot of train that cannot be written is refused before the training" "^paramo train: nowhere/x.svg" \
    "$PARAMO" train --model lr --data rows.ffm --plot nowhere/x.svg
printf '2.5 1:1\n-1 2:1\n' >real.svm
expect 0 "training with another objective" \
    "$PARAMO" train --model lr --data real.svm --objective squared --model-out s --hold-out 0 --any-quality -q
expect 0 "eval --plot of two numbers" "$PARAMO" eval --model-in s --data real.svm --plot real.svg
is_plot real.svg "labels by prediction" "mean of 2 bins, 80 % of rows"
awk 'BEGIN { s = 5; for (i = 0; i < 3000; i++) { s = (s * 16807) % 2147483647; a = s % 20; b = int(s / 20) % 4
    print a * 1000 + b * 300 + int(s / 100) % 500, a ":1", 20 + b ":1" >"numbers.svm"
    print (a + (s % 7 == 0)) % 13, a ":1", 20 + b ":1" >"classes.svm" } }'
for o in squared poisson quantile; do
    expect 0 "$o" "$PARAMO" train --model lr --data numbers.svm --objective $o --alpha 0.05 --model-out n \
        --any-quality -q
    expect 0 "$o: eval --plot" "$PARAMO" eval --model-in n --data numbers.svm --plot numbers.svg
    is_plot numbers.svg "labels by prediction" "residuals by prediction" "residuals" "predictions near the label"
done
for c in 13 200; do
    expect 0 "$c classes" "$PARAMO" train --model lr --data classes.svm --objective softmax --classes $c --model-out c \
        --epochs 3 --any-quality -q
    expect 0 "$c classes: eval --plot" "$PARAMO" eval --model-in c --data classes.svm --plot classes.svg
    is_plot classes.svg confusion reliability "recall and precision" "the label is among the best" predicted
done
awk '$1 < 5' classes.svm >five.svm
expect 0 "5 classes" "$PARAMO" train --model lr --data five.svm --objective softmax --classes 5 --model-out f \
    --epochs 3 --any-quality -q
expect 0 "5 classes: eval --plot" "$PARAMO" eval --model-in f --data five.svm --plot five.svg
is_plot five.svg "% of the rows of a label"
printf '1 1:1\n1 2:1\n' >ones.svm
refused 2 "rows of one label" "^paramo eval: all rows have the same label: there are no curves to draw$" \
    "$PARAMO" eval --model-in m --data ones.svm --plot s.svg
cp ones.svm kept.svm
refused 2 "a plot over the data is refused by train" "ones.svm is one of the data files" \
    "$PARAMO" train --model lr --data ones.svm --plot ones.svm
refused 2 "a plot over the data is refused by eval" "ones.svm is one of the data files" \
    "$PARAMO" eval --model-in m --data 'on*.svm' --plot ones.svm
check "the data is unchanged" cmp ones.svm kept.svm
check "refused plots leave no files" test -z "$(find . -name 's.svg*' -o -name '*tmp*')"
finish
