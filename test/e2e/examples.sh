# The examples in C, as this build made them: alone, and as processes; their curves side by side.
# Sanitizers: address; train and workers have the same threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
HERE=$(dirname "$PARAMO")/examples/c

# ---- hello ----
expect 0 "hello, alone" "$HERE/hello"
check "one worker's sums" grep -qx 'worker 0 of 1, 1 servers: 1 2 3' "$OUT"
expect 0 "hello as 1 + 2 + 3 processes" "$PARAMO" run -s 2 -w 3 -- "$HERE/hello"
check "hello: the sums of three workers" grep -qx 'worker 0 of 3, 2 servers: 3 6 9' "$OUT"

# ---- a filter of the application ----
expect 0 "a filter, alone" "$HERE/filter"
check "filter, alone: the values are the same" grep -qx 'the values are the same' "$OUT"
check "filter, alone: nothing travels" test "$(wc -l <"$OUT")" = 1
expect 0 "a filter on 1 server and 1 worker" "$PARAMO" run -s 1 -w 1 -- "$HERE/filter"
check "filter: the values are the same" grep -q 'the values are the same' "$OUT"
check "filter: a tenth of the values travels" grep -q 'nonzero: 40000 bytes became 12[0-9][0-9][0-9]$' "$OUT"

# ---- functions that run on the servers ----
expect 0 "norms, alone" "$HERE/norms"
numbers() { grep -Eo '(a|b|mean|half of b|a [*] b|greatest): .*$' "$1"; } # without the runner's prefixes
numbers "$OUT" >alone
check "norms: all lines are printed" test "$(wc -l <alone)" = 8
expect 0 "norms as 3 servers with a copy of each row" "$PARAMO" run -s 3 -w 1 --replicas 1 -- "$HERE/norms"
cat "$OUT" "$ERR" | numbers /dev/stdin >three
check "the same digits on three servers" cmp three alone

# ---- ranges ----
expect 0 "ranges, alone" "$HERE/ranges"
check "ranges: all rows are pulled without keys" grep \
    -qx 'worker 0: 100000 of 100000 rows are right, and no keys have travelled' "$OUT"
expect 0 "ranges as 2 servers and 3 workers" "$PARAMO" run -s 2 -w 3 -- "$HERE/ranges"
check "ranges: one column is pulled" grep -q '80000 of 80000 values of the matrix are right' "$OUT"
check "ranges: pages have all ids" grep -q '20000 of 20000 ids came in order, page by page' "$OUT"
check "ranges: each worker has all rows" test \
    "$(cat "$OUT" "$ERR" | grep -c '100000 of 100000 rows are right, and no keys')" = 3

# ---- functions of the application ----
expect 0 "functions, alone" "$HERE/function"
cp "$OUT" alone
check "functions: all weights are there" grep -qx '100000 weights: 12407 12618 12416 12566 12585 12374 12565 12469' \
    alone
check "functions: no weight is beyond the limit" grep -qx '100000 weights: 0 0 37441 12566 12585 12374 25034 0' alone
expect 0 "functions on 3 servers with a copy of each row" "$PARAMO" run -s 3 -w 1 --replicas 1 -- "$HERE/function"
grep -h -o '100000 weights: .*' "$OUT" "$ERR" >three
check "functions: the counts are the same" cmp three alone

# ---- SGD ----
curve() { grep -Eo '[ 0-9][0-9] [0-9]+\.[0-9]+$' "$1"; } # without the runner's prefixes
expect 0 "synchronous SGD in one process, with the whole batch" "$HERE/sync_sgd"
curve "$OUT" >alone
for nodes in "1 1" "2 3" "3 7"; do
    # shellcheck disable=SC2086
    set -- $nodes
    expect 0 "synchronous SGD on $1 servers and $2 workers" "$PARAMO" run -s "$1" -w "$2" -- "$HERE/sync_sgd"
    cat "$OUT" "$ERR" | curve /dev/stdin >sync
    check "the same curve as one process, digit by digit" cmp sync alone
done
# lost frames come again after a time taken from round trips, which are long on a busy machine
DEADLINE=$((5 * DEADLINE))
expect 0 "synchronous SGD while a tenth of the frames is lost" env PS_DROP_MSG=10 \
    "$PARAMO" run -s 2 -w 3 -- "$HERE/sync_sgd"
cat "$OUT" "$ERR" | curve /dev/stdin >sync
DEADLINE=$((DEADLINE / 5))
check "the same curve again" cmp sync alone
expect 0 "asynchronous SGD, alone" "$HERE/async_sgd"
curve "$OUT" >async1
expect 0 "asynchronous SGD on 2 servers and 3 workers" "$PARAMO" run -s 2 -w 3 -- "$HERE/async_sgd"
curve "$OUT" >async3
echo "epoch: loss of synchronous, asynchronous (1 worker), asynchronous (3 workers)"
paste -d' ' alone async1 async3 | awk '{ print "  " $1 ":", $2, $4, $6 }'
check "each curve has all its epochs" test "$(cat alone async1 async3 | wc -l)" = 93
starts_at_log_2() { awk 'NR == 1 { first = $2 } END { exit !(first > 0.693 && first < 0.6932) }' "$1"; }
for name in alone async1; do # of three workers, the others may have pushed before the first one measures
    check "$name starts at log 2" starts_at_log_2 $name
done
ends_below() { awk -v limit="$2" '{ last = $2 } END { exit !(NR > 0 && last < limit) }' "$1"; }
for name in alone async1 async3; do
    check "$name ends far below" ends_below $name 0.45
done

# ---- without the runner: a shell loop that sets ps-lite's variables, and no token ----
free_port
export DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$PORT
unset PARAMO_TOKEN
roles=(worker worker server server scheduler)
for i in "${!roles[@]}"; do
    start "loop$i" env DMLC_ROLE="${roles[$i]}" "$HERE/sync_sgd"
done
for i in "${!roles[@]}"; do
    ends "loop$i" 0 "${roles[$i]} of a plain shell loop"
done
curve loop4.out >loop
check "the same curve from a plain shell loop" cmp loop alone
finish
