# --admit: rare features stay out of the model, in one process and in several; --max-features bounds it on a stream.
# Sanitizers: none; train.sh runs the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "a log" "$PARAMO" data synth --rows 6000 --features 4000 --seed 3 --out log.ffm
train=(train --data log.ffm --epochs 1 --hold-out 0 --any-quality -q --json --model fm --dim 4)
rows() { python3 -c 'import json, sys
print({t["name"]: t["rows"] for t in json.load(open(sys.argv[1] + "/manifest.json"))["tables"]}[sys.argv[2]])' "$@"; }
expect 0 "a model without a rule has all features" "$PARAMO" "${train[@]}" --model-out all
for rule in count:3 prob:0.3; do
    name=${rule%:*}
    expect 0 "$rule" "$PARAMO" "${train[@]}" --admit $rule --model-out "$name"
    check "the JSON names the rule" grep -q "\"rule\": \"$rule\"" "$OUT"
    check "the rule leaves fewer features ($(rows "$name" w) of $(rows all w))" test $(($(rows "$name" w) * 2)) \
        -lt "$(rows all w)"
    check "each feature has factors" test "$(rows "$name" v)" -eq $(($(rows "$name" w) - 1))
    expect 0 "the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --admit $rule \
        --model-out "$name-tcp"
    check "processes save the same model" diff -r "$name" "$name-tcp"
done
# A stream of ids that never come again.
endless() { awk 'BEGIN { for (i = 0; i < 20000; i++) print i % 2, i + 1 ":1", 1000000 + i % 7 ":1" }'; }
bounded() { endless | "$PARAMO" train --model lr --data - --epochs 1 --hold-out 0 --any-quality -q --model-out bounded \
    --admit "$@"; }
bounded prob:0.5 --max-features 500 >"$OUT" 2>"$ERR" || failed "training on a stream"
check "the rule bounds the table of a stream ($(rows bounded w))" test "$(rows bounded w)" -le 501
bounded count:2 >"$OUT" 2>"$ERR" || failed "training on ids that occur once"
check "ids that occur once are not admitted ($(rows bounded w))" test "$(rows bounded w)" -le 600

refused 2 "no rule is refused" "--admit is count:N.prob:P" "$PARAMO" "${train[@]}" --admit count:0
refused 2 "a bound without a rule is refused" "--max-features needs --admit" "$PARAMO" "${train[@]}" --max-features 5
refused 2 "zero counters are refused" "--admit-memory needs --admit count:N" \
    "$PARAMO" "${train[@]}" --admit prob:0.5 --admit-memory 5
finish
