# --cache DIR: the model is the same with and without it, in one process and as processes, also after the folder is
# damaged.
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
    expect 0 "$data: training without a cache" "$PARAMO" "${train[@]}" --data $data --model-out plain
    expect 0 "$data: the first run with a cache" "$PARAMO" "${train[@]}" --data $data --cache kept --model-out first
    check "$data: the first run parses the data" test "$(cached "$OUT" parts_parsed)" -gt 1
    expect 0 "$data: the second run with a cache" "$PARAMO" "${train[@]}" --data $data --cache kept --model-out second
    check "$data: the second run parses nothing" test "$(cached "$OUT" parts_parsed)" = 0
    check "the same model" diff -r plain first
    check "$data: the second run reads the folder" diff -r plain second
done
expect 0 "eval without a cache" "$PARAMO" eval --model-in plain --data log.ffm --json
cp "$OUT" eval.json
for run in first second; do
    expect 0 "eval with a cache, $run run" "$PARAMO" eval --model-in plain --data log.ffm --json --cache kept
    check "eval has the same result" cmp "$OUT" eval.json
done

# Two workers parse different parts; together they have all.
expect 0 "two processes share a cache" "$PARAMO" run -s 1 -w 2 -- paramo "${train[@]}" --epochs 1 --data log.ffm \
    --cache both
expect 0 "one process uses the cache of two" "$PARAMO" "${train[@]}" --data log.ffm --cache both --model-out second
check "one process parses nothing" test "$(cached "$OUT" parts_parsed)" = 0
check "one process saves the same model" diff -r plain second
check "the folder has one file only" test "$(find both -type f | wc -l)" = 1

for file in both/*; do head -c 100000 "$file" >cut && cat cut >"$file"; done
expect 0 "training with a cache file that was cut off" "$PARAMO" "${train[@]}" --data log.ffm --cache both
check "the cut file is reported" grep -q 'paramo train: --cache: both/log.ffm-.*; it is made again' "$ERR"
expect 0 "the cut file is replaced" "$PARAMO" "${train[@]}" --data log.ffm --cache both
check "the new file is whole" test "$(cached "$OUT" parts_parsed)" = 0
expect 0 "a folder that cannot be made" "$PARAMO" "${train[@]}" --data log.ffm --cache log.ffm.gz/x --model-out second
check "the error names the folder" grep -q 'paramo train: --cache: log.ffm.gz/x/.*Not a directory; it is not used' \
    "$ERR"
(ulimit -f 200 && trap '' XFSZ && exec "$PARAMO" "${train[@]}" --data log.ffm --cache full) >"$OUT" 2>"$ERR"
check "training without room for the cache" test $? = 0
check "the missing room is reported" grep -q 'File too large; this run continues without' "$ERR"
finish
