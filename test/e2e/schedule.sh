# --schedule and --warmup: the rate depends on the place of a batch, so one process and several give the same model;
# without them nothing changes.
# Sanitizers: none; train.sh runs the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "a log" "$PARAMO" data synth --rows 40000 --features 2000 --seed 3 --out log.ffm
zstd -q log.ffm -o log.zst
train=(train --model fm --dim 4 --epochs 3 --any-quality -q --json)
same() { cmp -s "$1/manifest.json" "$2/manifest.json"; } # which has the checksums of the tables
expect 0 "training without --schedule" "$PARAMO" "${train[@]}" --data log.ffm --model-out plain
expect 0 "--schedule constant" "$PARAMO" "${train[@]}" --data log.ffm --schedule constant --model-out constant
check "constant gives the same model" same plain constant
cosine=(--schedule cosine:0.1 --warmup 0.2)
expect 0 "--schedule cosine" "$PARAMO" "${train[@]}" --data log.ffm "${cosine[@]}" --model-out cosine
check "cosine gives another model" sh -c '! cmp -s plain/manifest.json cosine/manifest.json'
check "the JSON names the schedule" python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["schedule"] == {"kind": "cosine:0.1", "warmup": 0.2, "within_epochs": True}' "$OUT"
expect 0 "cosine as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --data log.ffm "${cosine[@]}" \
    --model-out tcp
check "processes save the same model" same cosine tcp
expect 0 "cosine on a compressed file" "$PARAMO" train --model lr --epochs 2 --any-quality --data log.zst \
    --schedule linear --json
says "the output says that only epochs count" "changes between epochs only"
check "the JSON says that only epochs count" grep -q '"within_epochs": false' "$OUT"

# A rate of 1e-30 after the first epoch changes no weight, whichever worker learns: each epoch measures the same.
frozen() { python3 -c 'import json, sys
e = json.load(open(sys.argv[1]))["epochs"]
assert len(e) == 3 and e[0]["held_out"] == e[1]["held_out"] == e[2]["held_out"], [x["held_out"] for x in e]' "$OUT"; }
step=(train --model lr --optimizer sgd --epochs 3 --any-quality -q --json --schedule step:1e-30)
expect 0 "two workers" "$PARAMO" "${step[@]}" --data log.ffm --workers 2
check "two workers: the weights stay after an epoch" frozen
expect 0 "the same job as processes" "$PARAMO" run -s 1 -w 2 -- paramo "${step[@]}" --data log.ffm
check "processes: the weights stay after an epoch" frozen

refused 2 "no schedule" "--schedule is constant" "$PARAMO" "${train[@]}" --data log.ffm --schedule step
refused 2 "no warm-up" "--warmup" "$PARAMO" "${train[@]}" --data log.ffm --warmup 0
refused 2 "darlin has no schedule" "does not take --schedule" \
    "$PARAMO" train --model lr --solver darlin --l1 1 --data log.ffm --schedule cosine
finish
