# paramo bench: each path runs, each figure has its raw limit beside it, no process or file is left. No figure is judged
# here.
# Sanitizers: none; train and the unit tests run the same code, and no figure of a slow build means anything.
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
assert machine["vectors"] in ("base", "avx2", "avx512"), machine
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

keys=$((SLOW > 1 ? 10000 : 20000)) # 10,000 are the fewest
paths=(dense latency rate table sparse ranges parse embedded memory replicate failover migrate checkpoint)
[ "$SLOW" = 1 ] || paths=(dense embedded checkpoint) # a sanitizer has seen the rest in other tests
[ "$SLOW" = 1 ] && paths+=(darlin)
for path in "${paths[@]}"; do
    pairs=2
    [ $path = darlin ] && pairs=1
    expect 0 "bench $path" "$PARAMO" bench $path --quick --pairs $pairs --keys $keys --count 1000 --connections 3 --json
    check "$path: each figure beside its raw limit" whole_lines
    check "$path: valid JSON, all figures positive and in order" valid_json "$OUT" $path
    check "$path: nothing on standard error" test ! -s "$ERR"
done

if [ "$SLOW" = 1 ]; then
    expect 0 "bench filters" "$PARAMO" bench filters --quick --pairs 1 --json
    check "filters: valid JSON, all figures positive and in order" valid_json "$OUT" filters
    check "filters: its bars are judged" test "$(grep -c '"met": ' "$OUT")" -eq 5
    check "filters: the key cache saves" grep -A4 '"keycache saves' "$OUT"
    check "filters: nothing on standard error" test ! -s "$ERR"
fi

expect 0 "two paths, as a table" "$PARAMO" bench latency rate --quick --pairs 1
check "the table has both, and the raw limits" grep -q "bare ping-pong.*blocking" "$OUT"
check "the table has the second path" grep -q "many messages to a call" "$OUT"
check "the table has no other path" test "$(grep -c '^[a-z][a-z]*$' "$OUT")" -eq 2

expect 0 "settings of the environment do not count" env PARAMO_VAN=nonsense DMLC_ROLE=server DMLC_RANK=7 \
    "$PARAMO" bench latency --quick --pairs 1 --busy 2 --json
check "busy processes are reported" grep -q 'busy processes: 2' "$OUT"
check "the output names the job that does not poll" grep -q 'PARAMO_POLL=0' "$OUT"

refused 2 "data for what does not train" "--data needs the path .filters." "$PARAMO" bench latency --data x.ffm
refused 3 "data that is not there" "no.ffm: cannot open" "$PARAMO" bench filters --quick --data no.ffm
refused 2 "a plot of what is not drawn" "--plot needs the path .straggler." "$PARAMO" bench latency --plot x.svg
refused 3 "a plot that cannot be written" "x.svg" "$PARAMO" bench straggler --quick --pairs 1 --plot missing/x.svg
if [ "$SLOW" = 1 ]; then
    expect 0 "the table of straggler, drawn" "$PARAMO" bench straggler --quick --pairs 1 --plot s.svg
    check "it has each model" sh -c \
        'for m in bsp ssp:1 ssp:4 ssp:16 asp; do grep -Eq "^  $m +[0-9]" "$1" && grep -q ">$m<" s.svg || exit 1; done' \
        . "$OUT"
    check "whole XML" python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("s.svg")'
fi
refused 2 "an unknown path" "unknown path 'fast'" "$PARAMO" bench fast
refused 2 "no pairs" "pairs" "$PARAMO" bench latency --pairs 0

without() { ! grep -q "$1" "$OUT"; }
# An earlier run's document: ratios against it, and what is only in one of the two. (With settings of its own each run
# has other lines: the number of keys is part of them.)
expect 0 "a document to compare with" "$PARAMO" bench latency table --quick --pairs 1 --keys $keys --json
cp "$OUT" then.json
expect 0 "against itself" "$PARAMO" bench table --quick --pairs 1 --keys $keys --compare then.json
check "the document is named, with its version" grep -q "against then.json: version" "$OUT"
check "a known line has both figures" grep \
    -Eq "^  push of known keys +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  M keys/s$" "$OUT"
check "the same machine is recognized" without "another machine"
check "lines of the document that were not run" grep -Eq "^not in this run: [0-9]+ of its [0-9]+ lines" "$OUT"
check "no line is only in this run" without "^only now"
expect 0 "a document with other settings" \
    "$PARAMO" bench table --quick --pairs 1 --keys $((2 * keys)) --compare then.json
check "lines that are only in this run" test "$(grep -c '^only now:  table, ' "$OUT")" -eq 6
sed 's/"processor": "[^"]*"/"processor": "Z80"/' then.json >elsewhere.json
expect 0 "a document of another machine" "$PARAMO" bench table --quick --pairs 1 --keys $keys --compare elsewhere.json
check "the output says that the machine differs" grep -q "another machine" "$OUT"
refused 3 "no document" "missing.json: No such file" "$PARAMO" bench table --quick --compare missing.json
head -c 300 then.json >cut.json
refused 3 "a document that was cut off" "cut.json: line " "$PARAMO" bench table --quick --compare cut.json
echo '{"lines": [], "version": "0", "machine": {}}' >empty.json
refused 3 "a document without lines" "no document of 'paramo bench --json'" \
    "$PARAMO" bench table --quick --compare empty.json
sed 's/"median": [0-9.e+-]*/"median": 0/' then.json >zero.json
refused 3 "figures that cannot be divided by" "a line lacks a name or a figure" \
    "$PARAMO" bench table --quick --compare zero.json
refused 2 "both kinds of output" "exclude each other" "$PARAMO" bench table --quick --json --compare then.json

# Killed in the midst of it, it leaves no process behind.
start midst "$PARAMO" bench dense --pairs 101
children() { cat "/proc/$(job_pid midst)/task/"*/children; }
three_children() { [ "$(children | wc -w)" -ge 3 ]; }
check "scheduler, server and a raw peer run" wait_for 10 three_children
read -r -a pids <<<"$(children | tr '\n' ' ')"
kill -KILL "$(job_pid midst)"
gone() {
    for pid in "${pids[@]}"; do
        [ ! -e "/proc/$pid" ] || grep -q '^State:.Z' "/proc/$pid/status" || return 1
    done
}
check "all three processes end with the bench" wait_for 10 gone

finish
