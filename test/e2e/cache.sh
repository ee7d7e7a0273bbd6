# --cache DIR: the same model with and without, in one process and as processes, whatever happens to the folder.
# Sanitizers: none; test_disk_cache has the damage, and threads are those of the other scripts.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "a log" "$PARAMO" data synth --rows 30000 --features 5000 --seed 1 --format libffm --out log.ffm
gzip -k log.ffm
train=(train --model fm --epochs 2 -q --json --any-quality)
cached() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["cache"][sys.argv[2]])' "$@"; }

for data in log.ffm.gz log.ffm; do
    expect 0 "$data: without" "$PARAMO" "${train[@]}" --data $data --model-out plain
    expect 0 "$data: first" "$PARAMO" "${train[@]}" --data $data --cache kept --model-out first
    check "... parses" test "$(cached "$OUT" parts_parsed)" -gt 1
    expect 0 "$data: second" "$PARAMO" "${train[@]}" --data $data --cache kept --model-out second
    check "... does not" test "$(cached "$OUT" parts_parsed)" = 0
    check "the same model" diff -r plain first
    check "... from the folder" diff -r plain second
done
expect 0 "eval without" "$PARAMO" eval --model-in plain --data log.ffm --json
cp "$OUT" eval.json
for run in first second; do
    expect 0 "eval, $run" "$PARAMO" eval --model-in plain --data log.ffm --json --cache kept
    check "... is the same" cmp "$OUT" eval.json
done

# Two workers parse different parts; together they have all.
expect 0 "two processes" "$PARAMO" run -s 1 -w 2 -- paramo "${train[@]}" --epochs 1 --data log.ffm --cache both
expect 0 "then one" "$PARAMO" "${train[@]}" --data log.ffm --cache both --model-out second
check "... parses nothing" test "$(cached "$OUT" parts_parsed)" = 0
check "... the same model" diff -r plain second
check "one file, nothing else" test "$(find both -type f | wc -l)" = 1

for file in both/*; do head -c 100000 "$file" >cut && cat cut >"$file"; done
expect 0 "a file that was cut off" "$PARAMO" "${train[@]}" --data log.ffm --cache both
check "... is said" grep -q 'paramo train: --cache: both/log.ffm-.*; it is made again' "$ERR"
expect 0 "it was made again" "$PARAMO" "${train[@]}" --data log.ffm --cache both
check "... whole" test "$(cached "$OUT" parts_parsed)" = 0
expect 0 "a folder that cannot be" "$PARAMO" "${train[@]}" --data log.ffm --cache log.ffm.gz/x --model-out second
check "... is said" grep -q 'paramo train: --cache: log.ffm.gz/x/.*Not a directory; it is not used' "$ERR"
(ulimit -f 200 && trap '' XFSZ && exec "$PARAMO" "${train[@]}" --data log.ffm --cache full) >"$OUT" 2>"$ERR"
check "no room: it trains" test $? = 0
check "... and says so" grep -q 'File too large; this run continues without' "$ERR"
finish
