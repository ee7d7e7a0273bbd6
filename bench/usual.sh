#!/usr/bin/env bash
# What default settings reach on the sets of ../shared/data: the tables of docs/TRAINING.md, "Several workers" and
# "With default settings", to standard output.
#     bench/usual.sh models     each model, as long as it learns by itself: log-loss (RMSE) on the test rows
#     bench/usual.sh workers    lr and fm with 1, 2, 4 and 8 workers, one pass: progressive / test log-loss
#     bench/usual.sh criteo     criteo80k with one more option: negatives, schedules, class weights, factors, admission,
#                               expiry
# PARAMO is the program (build/release/paramo). ONLY=criteo80k leaves out the other sets.
set -euo pipefail
cd "$(dirname "$0")/.."
paramo=$(realpath -m "${PARAMO:-build/release/paramo}")
shared=$(realpath -m "${SHARED:-../shared/data}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

wanted() { [ -z "${ONLY:-}" ] || [ "$ONLY" = "$1" ]; }
number() { sed -n 's/.*"'"$2"'": \([0-9.e+-]*\).*/\1/p' "$1" | head -n 1; }

# measured TEST MEASURE TRAIN-OPTION...: what a model is on the test rows; train.json has the training.
measured() {
    local test=$1 measure=$2
    shift 2
    rm -rf model
    "$paramo" train -q --any-quality --json --model-out model "$@" >train.json
    [ -z "$test" ] || "$paramo" eval --model-in model --data "$test" --json >eval.json
    [ -z "$test" ] || printf '%.4f' "$(number eval.json "$measure")"
}

models() {
    local set model split part
    for set in criteo80k frappe_x1; do
        wanted $set || continue
        for model in lr fm ffm fwfm mvm; do
            loss=$(measured "$shared/$set.test.ffm.zst" logloss --model $model --data "$shared/$set.train.ffm.zst")
            echo "$set $model $loss"
        done
    done
    wanted ml100k || return 0
    for split in u1 u2; do
        for part in base test; do
            zcat "$shared/ml100k/$split.$part.gz" | awk '{ print $3, "0:" $1 ":1 1:" 1000 + $2 ":1" }' >$part
        done
        echo "ml100k-$split mf $(measured test rmse --model mf --objective squared --data base)"
    done
}

workers() {
    local set train test model many row
    zstdcat "$shared/globo.train.ffm.zst" 2>/dev/null | head -n 400000 >globo || true # the tool ends with the pipe
    for set in a9a raw criteo80k frappe globo; do
        wanted $set || continue
        case $set in
        a9a) train=$shared/a9a.gz test=$shared/a9a.t.gz ;;
        raw) train=$shared/criteo_raw_10k.tsv.gz test= ;;
        frappe) train=$shared/frappe_x1.train.ffm.zst test=$shared/frappe_x1.test.ffm.zst ;;
        globo) train=globo test=$shared/globo.test.ffm.zst ;;
        *) train=$shared/$set.train.ffm.zst test=$shared/$set.test.ffm.zst ;;
        esac
        for model in lr fm; do
            row="$set $model"
            for many in 1 2 4 8; do
                score=$(measured "$test" logloss --model $model --data "$train" --epochs 1 --hold-out 0 --workers $many)
                row="$row | $(printf '%.3f' "$(sed -n '/"epochs"/,$p' train.json >e.json && number e.json logloss)")${score:+ / $score}"
            done
            echo "$row"
        done
    done
}

# by_epoch EPOCHS TRAIN-OPTION...: the log-loss on the test rows after each, of criteo80k.
by_epoch() {
    local epochs=$1
    shift
    rm -rf model
    "$paramo" train -q --any-quality --json --model-out model --epochs "$epochs" \
        --valid "$shared/criteo80k.test.ffm.zst" "$@" >train.json
    sed -n '/"valid"/,/}/p' train.json | sed -n 's/.*"logloss": \([0-9.]*\).*/\1/p' | xargs printf ' %.4f'
}
features() { grep '"keys"' train.json | tail -n 1 | tr -dc 0-9; } # and the bias

criteo() {
    local data=(--data "$shared/criteo80k.train.ffm.zst") all=(--hold-out 0) test=$shared/criteo80k.test.ffm.zst
    local share n rule model
    for share in 1 0.5 0.2; do
        score=$(measured "$test" logloss --model lr "${data[@]}" --negatives $share)
        echo "negatives $share: $score, $(number eval.json auc), $(number eval.json calibration)"
    done
    zstdcat "$shared/criteo80k.train.ffm.zst" >plain
    for rule in constant invsqrt cosine step:0.5; do
        echo "schedule $rule:$(by_epoch 5 --model lr --data plain --schedule $rule)"
    done
    for rule in "" "--calibrate platt"; do
        # shellcheck disable=SC2086
        score=$(measured "$test" logloss --model fm "${data[@]}" --epochs 2 --class-weight balanced $rule)
        echo "balanced $rule: $score, $(number eval.json calibration)"
    done
    for model in fm ffm fwfm; do
        for n in 0 2 10; do
            [ $n != 2 ] || [ $model = fm ] || continue
            echo "factors $model $n:$(by_epoch 2 --model $model "${data[@]}" --factor-after $n)"
            echo "    $(du -sb model | cut -f1) bytes"
        done
    done
    for rule in "" "--admit prob:0.5" "--admit prob:0.2" "--admit count:2" "--admit count:5" \
        "--admit count:2 --max-features 20000" "--admit count:2 --workers 4" "--expire 12" "--expire 6" "--expire 3"; do
        for model in lr fm; do
            # shellcheck disable=SC2086
            score=$(measured "$test" logloss --model $model "${data[@]}" "${all[@]}" --epochs 1 $rule)
            echo "new features, $model $rule: $score, features $(features)"
        done
    done
}

case ${1:-} in
models | workers | criteo) "$1" ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$OLDPWD/bench/usual.sh" >&2
    exit 2
    ;;
esac
