# paramo bench: each path runs, each figure has its raw limit beside it, nothing is left behind. No figure is judged here.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

count() { grep -c "\"$1\"" "$OUT"; }
whole_lines() { # as many medians of a value, a raw limit and a ratio as there are lines
    local n
    n=$(count raw_name)
    [ "$n" -gt 0 ] && [ "$(count value)" -eq "$n" ] && [ "$(count raw)" -eq "$n" ] && [ "$(count ratio)" -eq "$n" ] &&
        [ "$(count median)" -eq $((3 * n)) ]
}

valid_json() { # FILE PATH...: a document whose lines belong to these paths, all of them, each line whole
    command -v python3 >/dev/null || return 0 # whole_lines has to do
    python3 - "$@" <<'EOF'
import json, math, sys

doc = json.load(open(sys.argv[1]))
machine = doc["machine"]
assert machine["cores"] >= 1 and machine["kernel"] and machine["memcpy_1MiB_GB_per_s"] > 0, machine
assert {line["path"] for line in doc["lines"]} == set(sys.argv[2:]), "paths"
seen = set()
for line in doc["lines"]:
    for key in ("name", "unit", "settings", "raw_name"):
        assert line[key], (key, line)
    assert line["better"] in ("higher", "lower") and line["pairs"] >= 1, line
    for key in ("value", "raw", "ratio"):
        q1, median, q3 = (line[key][k] for k in ("q1", "median", "q3"))
        assert 0 < q1 <= median <= q3 and math.isfinite(q3), (key, line)
    name = (line["path"], line["settings"], line["name"], line["raw_name"])
    assert name not in seen, ("twice", name)
    seen.add(name)
EOF
}

for path in dense latency rate sparse embedded memory; do
    expect 0 "bench $path" "$PARAMO" bench $path --quick --pairs 2 --keys 20000 --count 1000 --connections 3 --json
    check "$path: each figure beside its raw limit" whole_lines
    check "$path: valid JSON, all figures positive and in order" valid_json "$OUT" $path
    check "$path: nothing on standard error" test ! -s "$ERR"
done

expect 0 "two paths, as a table" "$PARAMO" bench latency rate --quick --pairs 1
check "the table has both, and the raw limits" grep -q "bare ping-pong.*blocking" "$OUT"
check "the table has the second" grep -q "many messages to a call" "$OUT"
check "and no other" test "$(grep -c '^[a-z][a-z]*$' "$OUT")" -eq 2

expect 0 "settings of the environment do not count" env PARAMO_VAN=nonsense DMLC_ROLE=server DMLC_RANK=7 \
    "$PARAMO" bench latency --quick --pairs 1 --busy 2 --json
check "busy processes are said" grep -q 'busy processes: 2' "$OUT"
check "then beside a job that never polls" grep -q 'PARAMO_POLL=0' "$OUT"

refused 2 "an unknown path" "there is no path 'fast'" "$PARAMO" bench fast
refused 2 "no pairs" "pairs" "$PARAMO" bench latency --pairs 0

# Killed in the midst of it, it leaves no process behind.
start midst "$PARAMO" bench dense --pairs 101
children() { cat "/proc/$(job_pid midst)/task/"*/children; }
three_children() { [ "$(children | wc -w)" -ge 3 ]; }
check "scheduler, server and a raw peer run" wait_for 10 three_children
read -r -a pids <<<"$(children | tr '\n' ' ')"
kill -KILL "$(job_pid midst)"
gone() { for pid in "${pids[@]}"; do [ ! -e "/proc/$pid" ] || grep -q '^State:.Z' "/proc/$pid/status" || return 1; done; }
check "all end with it" wait_for 10 gone

finish
