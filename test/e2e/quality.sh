# The results that README.md and docs/TRAINING.md state, held against the targets, on real data that is not ours to ship.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
[ "$SLOW" -eq 1 ] || skip "a sanitizer's build: the same training is tested on smaller logs"
[ -f "$SHARED/README.md" ] || skip "the real data is not here (../shared/data)"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

# reaches NAME LOGLOSS AUC TEST TRAIN ARGS...
reaches() {
    local name=$1 logloss=$2 auc=$3 test=$4 train=$5
    shift 5
    expect 0 "$name: train $*" "$PARAMO" train -q --data "$SHARED/$train" "$@" --model-out "$name"
    "$PARAMO" eval --model-in "$name" --data "$SHARED/$test" --json >"$name.json"
    check "$name: log-loss $(json "$name.json" logloss)" at_most "$(json "$name.json" logloss)" "$logloss"
    check "$name: AUC $(json "$name.json" auc)" at_least "$(json "$name.json" auc)" "$auc"
}
reaches a9a-lr 0.3245 0.9020 a9a.t.gz a9a.gz --model lr --batch 64 --epochs 2
check "a9a-lr: accuracy $(json a9a-lr.json accuracy)" at_least "$(json a9a-lr.json accuracy)" 0.849
reaches criteo80k-lr 0.4455 0.7670 criteo80k.test.ffm.zst criteo80k.train.ffm.zst --model lr --alpha 0.07 --l2 10 --epochs 3
reaches criteo80k-fm 0.4466 0.7660 criteo80k.test.ffm.zst criteo80k.train.ffm.zst --model fm --l2 20 --epochs 2 \
    --factor-alpha 0.01
reaches frappe-lr 0.2840 0.9380 frappe_x1.test.ffm.zst frappe_x1.train.ffm.zst --model lr --alpha 1 --beta 128 --l2 4 \
    --epochs 40
reaches frappe-fm 0.2065 0.9650 frappe_x1.test.ffm.zst frappe_x1.train.ffm.zst --model fm --factor-alpha 0.2 \
    --factor-init 0.1 --valid "$SHARED/frappe_x1.valid.ffm.zst" --epochs 20 --early-stop 1
reaches globo-lr 0.2320 0.9550 globo.test.ffm.zst globo.train.ffm.zst --model lr --beta 4
finish
