# --solver darlin reaches the objective of liblinear's -s 6 to 3 digits on real data, with and without a bias. Its model
# works with eval and predict.
# Sanitizers: address; ThreadSanitizer meets the same threads in test_darlin.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
if [ ! -f "$SHARED/a9a.gz" ] || ! command -v liblinear-train >/dev/null; then
    echo "skipped: there is no $SHARED, or no liblinear-train (scripts/setup.sh --test)"
    exit 77
fi

# libffm rows as liblinear wants them: ids ascending from 1 on, each once.
libsvm() {
    awk '{ n = split("", value); printf "%s", $1
        for (i = 2; i <= NF; i++) { split($i, a, ":"); if (!(a[2] in value)) id[++n] = a[2] + 0; value[a[2]] += a[3] }
        for (i = 2; i <= n; i++) { x = id[i]; for (k = i - 1; k > 0 && id[k] > x; k--) id[k + 1] = id[k]; id[k + 1] = x }
        for (i = 1; i <= n; i++) printf " %d:%s", id[i] + 1, value[id[i]]
        printf "\n" }'
}
rows() { zstd -dcq "$SHARED/$1" 2>/dev/null | head -n "$2" | libsvm >"$3"; }
gzip -dc "$SHARED/a9a.gz" >a9a
rows criteo80k.train.ffm.zst $((12000 / SLOW)) criteo
rows frappe_x1.train.ffm.zst $((30000 / SLOW)) frappe

# reaches TEXT FILE L1 LIBLINEAR_BIAS ARGS...: C is 1 / L1, and liblinear's objective C times ours.
reaches() {
    local text=$1 file=$2 l1=$3 bias=$4 c other mine
    shift 4
    c=$(awk -v l="$l1" 'BEGIN { print 1 / l }')
    expect 0 "$text: liblinear" liblinear-train -s 6 -c "$c" -e 0.001 -B "$bias" "$file" liblinear.model
    other=$(sed -n 's/^Objective value = //p' "$OUT" | awk -v l="$l1" '{ print $1 * l }')
    expect 0 "$text: darlin" "$PARAMO" train --model lr --solver darlin --l1 "$l1" --data "$file" --hold-out 0 --json \
        -q "$@"
    mine=$(json "$OUT" objective_value)
    check "$text: objective $mine, liblinear's $other" near "$mine" "$other" \
        "$(awk -v o="$other" 'BEGIN { print o / 1000 }')"
    check "$text: converged" grep -q '"converged": true' "$OUT"
}
reaches 'a9a, bias penalized' a9a 20 1
reaches 'a9a, no bias' a9a 20 -1 --bias none
reaches 'criteo' criteo 2 1
reaches 'frappe' frappe 5 1

expect 0 'a model is saved' "$PARAMO" train --model lr --solver darlin --l1 5 --data a9a --model-out model -q
check 'the held-out rows are measured' grep -q 'converged in .* passes; model saved' "$OUT"
expect 0 'eval takes it' "$PARAMO" eval --model-in model --data "$SHARED/a9a.t.gz" --json
check "its AUC is $(json "$OUT" auc)" at_least "$(json "$OUT" auc)" 0.901
expect 0 'predict takes it' "$PARAMO" predict --model-in model --data "$SHARED/a9a.t.gz" --out scores
check 'all rows have a score' [ "$(wc -l <scores)" = 16281 ]
expect 0 'it can continue' "$PARAMO" train --solver darlin --model-in model --data a9a --model-out model -q

darlin=("$PARAMO" train --solver darlin --data a9a)
refused 2 'another model' '--solver darlin trains --model lr only, not fm' "${darlin[@]}" --model fm --l1 1
refused 2 'another objective' '--solver darlin takes --objective logistic only, not hinge' "${darlin[@]}" --model lr \
    --l1 1 --objective hinge
refused 2 'no penalty' '--solver darlin needs --l1 L above 0' "${darlin[@]}" --model lr
refused 2 'an L2 penalty' '--solver darlin does not take --l2' "${darlin[@]}" --model lr --l1 1 --l2 1
refused 2 'batches' '--solver darlin does not take --batch' "${darlin[@]}" --model lr --l1 1 --batch 64
refused 2 'scaling' '--solver darlin does not scale values' "${darlin[@]}" --model lr --l1 1 --scale std
refused 2 'a filter that holds gradients back' '--solver darlin does not take the filter topk' "${darlin[@]}" --model lr --l1 1 --filter push=keycache pull=lz4 --filter push=topk:0.1,lz4
refused 2 'one in the environment' '--solver darlin does not take the filter skip' env PARAMO_FILTER='pull=lz4;push=skip:0.5' "${darlin[@]}" --model lr --l1 1
refused 2 'its options without it' '--tau needs --solver darlin' "$PARAMO" train --model lr --data a9a --tau 2
refused 1 'FTRL from its model' 'was trained with --solver darlin' "$PARAMO" train --model-in model --data a9a
finish
