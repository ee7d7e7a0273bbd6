# One update for all workers: with --deterministic two runs are equal bit for bit, embedded and in processes, and three
# workers with batches of 32 rows learn what one learns with batches of 96. LR and FM. A worker that dies ends the job.
# Sanitizers: address; ThreadSanitizer meets the same threads in test_aggregate and test_pace.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=aggregate

for i in 1 2; do expect 0 "training log $i" "$PARAMO" data synth --rows 1100 --seed $i --model-seed 1 --out $i.ffm; done
data=(--data 1.ffm 2.ffm --epochs 2 --alpha 0.05 --hold-out 10 --any-quality -q)
together=(--consistency bsp --aggregate sum --deterministic --batch 32)
same() { # A B: the tables of two models are equal bit for bit
    local table
    for table in "$1"/*.safetensors; do cmp "$table" "$2/${table##*/}" || return 1; done # their names have their hashes
}
weights() { "$PARAMO" export --model-in "$1" --text | tr '\t' ' '; }
near_all() { # A B: the same keys, and values that differ by rounding only
    paste -d' ' <(weights "$1") <(weights "$2") | awk '{ n = NF / 2; bad += $1 != $(n + 1)
        for (i = 2; i <= n; i++) { d = $i - $(n + i); bad += d * d > 1e-10 } } END { exit bad || !NR }'
}
for model in lr 'fm --dim 3'; do
    name=${model%% *}
    # shellcheck disable=SC2086
    train=(--model $model "${data[@]}")
    [ "$name" = lr ] || train+=(--factor-alpha 0.05)
    for run in 1 2; do expect 0 "$name: three workers, run $run" \
        "$PARAMO" train "${train[@]}" "${together[@]}" --workers 3 --servers 2 --model-out $name-$run; done
    check "$name: the two runs are equal bit for bit" same $name-1 $name-2
    expect 0 "$name: the same job as processes" "$PARAMO" run -s 2 -w 3 --replicas 1 \
        -- "$PARAMO" train "${train[@]}" "${together[@]}" --model-out $name-run
    check "$name: processes give the same bits" same $name-1 $name-run
    expect 0 "$name: one worker with three times the batch" \
        "$PARAMO" train "${train[@]}" --ahead 0 --batch 96 --model-out $name-one
    check "$name: one worker has the same weights within rounding" near_all $name-1 $name-one
done
expect 0 "mean: parts are dealt as workers ask for them" \
    "$PARAMO" train --model lr "${data[@]}" --consistency bsp --aggregate mean --workers 2 --json
check "mean: all rows are learned" test "$(json "$OUT" rows)" -gt 3900
refused 2 "--aggregate without bsp is refused" '^paramo train: --aggregate needs --consistency bsp' \
    "$PARAMO" train --model lr "${data[@]}" --aggregate sum
refused 2 "--deterministic without --aggregate is refused" \
    '^paramo train: --deterministic needs --consistency bsp and --aggregate' \
    "$PARAMO" train --model lr "${data[@]}" --consistency bsp --deterministic
refused 2 "a filter that holds rows back is refused" \
    '^paramo train: --aggregate and --filter: table w: filter topk cannot be used: the table aggregates' \
    "$PARAMO" train --model lr "${data[@]}" --consistency bsp --aggregate sum --filter push=topk:0.1
refused 2 "features that expire are refused" '^paramo train: --deterministic excludes --admit, --expire' \
    "$PARAMO" train --model lr "${data[@]}" "${together[@]}" --expire 9

# Rounds far longer than the test; one worker is killed.
many=()
for _ in {1..50}; do many+=(1.ffm 2.ffm); done
start dead "$PARAMO" run --verbose -s 1 -w 2 \
    -- "$PARAMO" train --model lr --data "${many[@]}" --epochs 1000 "${together[@]}"
for i in 0 1; do check "worker $i is there" wait_for 30 node_pid dead worker $i; done
for i in 0 1; do
    check "worker $i is at work" wait_for 30 worked "$(node_pid dead worker $i)" $((SLOW > 1 ? 120 : 30))
done
check 'worker 1 is killed' signal_node KILL dead worker 1
ends dead '[1-9]*' 'the job ends'
check 'the error says why' grep -q -e '--deterministic: 1 of 2 workers take part' dead.err
finish
