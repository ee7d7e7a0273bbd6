# --expire: features that a stream does not have any more leave the model; the same in one process and in several.
# Sanitizers: none; train.sh runs the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

# 12 parts of text, each with 1,000 rows: an id of its own in each row, and one of seven that always come.
awk 'BEGIN { s = 3; for (i = 0; i < 12000; i++) { s = (s * 16807) % 2147483647
    printf "%d 0:%d:1 1:%d:1%1028s\n", s % 7 < i % 7, 1000000 + i, i % 7, "" } }' >log.ffm
rows() { python3 -c 'import json, sys
print({t["name"]: t["rows"] for t in json.load(open(sys.argv[1] + "/manifest.json"))["tables"]}[sys.argv[2]])' "$@"; }
train=(train --model lr --epochs 1 --hold-out 0 --any-quality -q --json)
expect 0 "training without expiry" "$PARAMO" "${train[@]}" --data log.ffm --model-out all
check "without expiry all features stay" test "$(rows all w)" -eq 12008
expect 0 "training with --expire 4" "$PARAMO" "${train[@]}" --data log.ffm --expire 4 --model-out some
check "the JSON names the rule" grep -q '"expire": 4' "$OUT"
check "a third of the features is left ($(rows some w))" test "$(rows some w)" -gt 3000 -a "$(rows some w)" -lt 6200
expect 0 "the same job as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --data log.ffm --expire 4 \
    --model-out tcp
check "processes save the same model" diff -r some tcp
expect 0 "two workers" "$PARAMO" run -s 2 -w 2 -- paramo "${train[@]}" --data log.ffm --expire 2 --model-out two
check "two workers expire features ($(rows two w))" test "$(rows two w)" -lt 7000
"$PARAMO" "${train[@]}" --data - --expire 1 --admit prob:1 --max-features 3000 --model-out pipe <log.ffm >"$OUT" \
    2>"$ERR" || failed "training on a pipe"
check "the table of a pipe is bounded ($(rows pipe w))" test "$(rows pipe w)" -le 3001
refused 2 "darlin has no expiry" "does not take --expire" \
    "$PARAMO" train --model lr --solver darlin --l1 1 --data log.ffm --expire 3
finish
