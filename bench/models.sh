#!/usr/bin/env bash
# Tunes each model on each set of ../shared/data, measures it on the set's test rows, and writes docs/MODELS.md:
#     bench/models.sh run [SET[:MODEL]...]    runs them (all), a line each in bench/models.tsv, in place of the present
#                                             lines
#     bench/models.sh write                   writes docs/MODELS.md from bench/models.tsv
# PARAMO is the program (build/release/paramo), TRIALS how many settings are tried (36). Idle priority: chrt -i 0.
# Everything is by `paramo tune` alone: it sees the training rows (and frappe's validation rows), and no test row.
set -euo pipefail
cd "$(dirname "$0")/.."
paramo=$(realpath -m "${PARAMO:-build/release/paramo}")
shared=$(realpath -m "${SHARED:-../shared/data}")
tsv=$PWD/bench/models.tsv
trials=${TRIALS:-36}

# set model: all cells of the table, in its order.
cells() {
    local set model
    for set in a9a criteo80k frappe_x1 globo; do
        for model in lr fm ffm fwfm mvm; do
            [ $set = a9a ] && [ $model != lr ] && [ $model != fm ] && continue # libsvm: no fields
            echo "$set $model"
        done
    done
    for set in ml100k-u1 ml100k-u2; do for model in fm mf; do echo "$set $model"; done; done
}

# The files of a set in the current folder: train, test, and valid if it has one.
files_of() {
    case $1 in
    a9a) cp "$shared/a9a.gz" train.gz && cp "$shared/a9a.t.gz" test.gz ;;
    ml100k-*)
        for part in base test; do # rating 0:user:1 1:item:1, items behind the users
            zcat "$shared/ml100k/${1#ml100k-}.$part.gz" | awk '{ print $3, "0:" $1 ":1 1:" 100000 + $2 ":1" }' >"$part"
        done
        mv base train
        ;;
    globo) # its rows are in the order of time: the last tenth measures, and then all are learned
        zstdcat "$shared/$1.train.ffm.zst" >all
        rows=$(wc -l <all)
        head -n $((rows * 9 / 10)) all >train
        tail -n +$((rows * 9 / 10 + 1)) all >valid
        zstdcat "$shared/$1.test.ffm.zst" >"test"
        ;;
    *)
        for part in train valid test; do
            [ ! -e "$shared/$1.$part.ffm.zst" ] || cp "$shared/$1.$part.ffm.zst" "$part.zst"
        done
        ;;
    esac
}

json() { sed -n 's/.*"'"$2"'": "\{0,1\}\([^",]*\).*/\1/p' "$1" | head -n 1; }

run() { # set model
    local scratch train valid command options=() began now loss auc rows
    scratch=$(mktemp -d)
    (
        cd "$scratch"
        files_of "$1"
        train=$(echo train*)
        options=(--model "$2" --data "$train" --trials "$trials" --model-out model -q --json)
        valid=$(echo valid*)
        [ ! -e "$valid" ] || options+=(--valid "$valid")
        case $1 in
        ml100k-*) options+=(--objective squared) ;;
        globo) options+=(--epochs 4) ;; # it is large: one pass is enough for most
        frappe_x1) [ "$2" != lr ] || options+=(--epochs 60) ;; # its validation rows are many, and low rates need long
        esac
        began=$(date +%s.%N)
        "$paramo" tune "${options[@]}" >tune.json || [ $? -eq 5 ]
        command=$(sed -n 's/.*"command": "\(.*\)",*$/\1/p' tune.json)
        if [ -e all ]; then
            rm -r model
            command=${command/--data train/--data all}
            # shellcheck disable=SC2086 # the command has no spaces inside its words
            "$paramo" ${command#paramo } -q >/dev/null
        fi
        now=$(date +%s.%N)
        "$paramo" eval --model-in model --data test* --json >eval.json
        loss=$(json eval.json logloss)
        auc=$(json eval.json auc)
        [ -n "$loss" ] || loss=$(json eval.json rmse)
        # set model loss auc passes seconds bytes trials command
        printf '%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t%s\n' "$1" "$2" "$loss" "${auc:--}" \
            "$(sed 's/.*--epochs \([0-9]*\).*/\1/' <<<"$command")" \
            "$(awk -v a="$began" -v b="$now" 'BEGIN { print b - a }')" \
            "$(du -cb model/*.safetensors | tail -n 1 | cut -f 1)" "$(grep -c '"trial"' tune.json)" "$command"
    ) >"$scratch.line"
    rm -rf "$scratch"
    if [ -e "$tsv" ]; then grep -v "^$1	$2	" "$tsv" >"$tsv.new" || true; fi
    cat "$scratch.line" >>"$tsv.new"
    rm "$scratch.line"
    mv "$tsv.new" "$tsv"
    tail -n 1 "$tsv" | cut -f 1-8
}

# The best that another program reaches with the same kind of model (../shared/data/README.md): loss, AUC, program.
reference() {
    case "$1 $2" in
    "a9a lr") echo "0.3241 0.9022 liblinear" ;;
    "criteo80k lr") echo "0.4447 0.7684 liblinear" ;;
    "criteo80k fm") echo "0.4466 0.7654 xLearn" ;;
    "criteo80k ffm") echo "0.4453 0.7674 xLearn" ;;
    "frappe_x1 lr") echo "0.2834 0.9380 liblinear" ;;
    "frappe_x1 fm") echo "0.2065 0.9671 BARS" ;;
    "frappe_x1 ffm") echo "0.1860 0.9786 BARS" ;;
    "globo lr") echo "0.23193 0.95531 VW" ;;
    "ml100k-u1 mf") echo "0.9241 - libFM" ;;
    "ml100k-u2 mf") echo "0.9135 - libFM" ;;
    *) echo "- - -" ;;
    esac
}

bytes() {
    awk -v n="$1" 'BEGIN {
        if (n >= 1e9) printf "%.1f GB", n / 1e9
        else if (n >= 1e6) printf "%.1f MB", n / 1e6
        else printf "%.0f kB", n / 1e3
    }'
}

four() { if [ "$1" = - ]; then echo -; else printf '%.4f' "$1"; fi; }

write() {
    cat <<'HEAD'
# How good the models are

Made by `bench/models.sh`: do not edit it by hand. Each model is tuned by `paramo tune` alone on the training rows of a
set, learns all of them with the settings that were best on held-out rows (frappe_x1: on its validation rows; globo,
whose rows are in the order of time: on the last tenth of them), and is measured on the test rows, which nothing saw
before. Log-loss, or RMSE for ml100k. "Other" is the best that another
program with the same kind of model reached on the same files, after light tuning by hand.

- *passes*: over the training rows, by the final model; *seconds*: of the whole search and the final training, one
  worker, on two cores that were shared with much other work, so they are an upper bound; *trials*: settings that
  were tried; *size*: of the model's files, with the state of the optimizers.
- "not run": that cell was not run when this page was made.

HEAD
    echo "| set        | model  | loss    | AUC    | passes | seconds | trials | size     | other  | AUC    | program   |"
    echo "|------------|--------|---------|--------|--------|---------|--------|----------|--------|--------|-----------|"
    cells | while read -r set model; do
        read -r loss auc program < <(reference "$set" "$model")
        line=$(grep "^$set	$model	" "$tsv" 2>/dev/null || true)
        if [ -z "$line" ]; then
            printf '| %-10s | %-6s | not run |        |        |         |        |          | %-6s | %-6s | %-9s |\n' \
                "$set" "$model" "$(four "$loss")" "$(four "$auc")" "$program"
            continue
        fi
        IFS='	' read -r _ _ own own_auc passes seconds size count _ <<<"$line"
        printf '| %-10s | %-6s | %-7s | %-6s | %6s | %7s | %6s | %8s | %-6s | %-6s | %-9s |\n' "$set" "$model" \
            "$(four "$own")" "$(four "$own_auc")" "$passes" "$seconds" "$count" "$(bytes "$size")" "$(four "$loss")" \
            "$(four "$auc")" "$program"
    done
    cat <<'MIDDLE'

## The settings

What `paramo tune` chose, from `bench/models.tsv`:

MIDDLE
    echo "| set        | model  | options                                                                                      |"
    echo "|------------|--------|----------------------------------------------------------------------------------------------|"
    cells | while read -r set model; do
        line=$(grep "^$set	$model	" "$tsv" 2>/dev/null | cut -f 9 || true)
        [ -n "$line" ] || continue
        sed 's/.* --model [a-z]* //; s/ --hold-out 0.*//; s/--//g; s/factor-/f-/g; s/field-/fd-/g; s/pair-/p-/g' \
            <<<"$line" | fold -s -w 92 |
            while IFS= read -r part; do
                printf '| %-10s | %-6s | %-92s |\n' "$set" "$model" "${part% }"
                set="" model=""
            done
    done
    printf '\n(`f-` stands for `--factor-`, `fd-` for `--field-`, `p-` for `--pair-`.)\n'
}

case ${1:-} in
run)
    shift
    cells | while read -r set model; do
        wanted=$#
        for cell in "$@"; do
            case $cell in "$set" | "$set:$model") wanted=0 ;; esac
        done
        [ "$wanted" -gt 0 ] || run "$set" "$model" </dev/null
    done
    ;;
write) write >docs/MODELS.md ;;
*)
    sed -n '2,7s/^# //p' "$0" >&2
    exit 2
    ;;
esac
