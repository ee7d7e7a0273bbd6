# --factor-after: rare features have weights and no factors, in one process and in several. The model names the rule and
# keeps it.
# Sanitizers: none; train.sh runs the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "a log" "$PARAMO" data synth --rows 6000 --features 4000 --seed 3 --out log.ffm
train=(train --data log.ffm --epochs 2 --hold-out 0 --any-quality -q --json --factor-after 4)
rows() { python3 -c 'import json, sys
print({t["name"]: t["rows"] for t in json.load(open(sys.argv[1] + "/manifest.json"))["tables"]}[sys.argv[2]])' "$@"; }
for m in fm ffm; do
    expect 0 "$m" "$PARAMO" "${train[@]}" --model $m --dim 4 --model-out $m
    check "$m: the JSON names the rule" grep -q '"factor_after": 4' "$OUT"
    check "$m: the table of factors has fewer rows ($(rows $m v) of $(rows $m w))" test $(($(rows $m v) * 2)) \
        -lt "$(rows $m w)"
done
expect 0 "the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model fm --dim 4 --model-out tcp
check "processes save the same model" diff -r fm tcp
expect 0 "two workers" "$PARAMO" run -s 2 -w 2 -- paramo "${train[@]}" --model fm --dim 4 --model-out two
check "two workers count sightings together" test "$(rows two v)" -eq "$(rows fm v)"
expect 0 "inspect" "$PARAMO" inspect fm
check "inspect shows the rule" grep -q 'factor-after 4' "$OUT"
expect 0 "training continues" "$PARAMO" train --model-in fm --data log.ffm --epochs 1 --hold-out 0 --any-quality -q \
    --json --model-out on
check "the continued model keeps the rule" grep -q '"factor_after": 4' on/manifest.json
refused 2 "lr has no factors" "lr has no factors" "$PARAMO" "${train[@]}" --model lr
finish
