#!/bin/sh
# Bytes that servers send down their chains in training, each push by itself and once per clock, with 1 to 8 workers:
# bench/aggregate.sh [BUILD] [DATA]    (build/release and rows that it draws, if they are not given)
# The servers log them when they end. A table with one copy; CONSISTENCY.md, section 5, has figures.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
paramo=$(realpath "${1:-$here/build/release}")/paramo
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
data=${2:-$dir/drawn.ffm}
[ -n "${2:-}" ] || "$paramo" data synth --rows 20000 --seed 1 --out "$data" >"$dir/log" 2>&1
export PARAMO_TOKEN=aggregate PS_VERBOSE=2

# WORKERS OPTIONS...: bytes, and how many changes were of several pushes
bytes() {
    workers=$1
    shift
    "$paramo" run -s 2 -w "$workers" --replicas 1 -- "$paramo" train --model lr --data "$data" --epochs 5 --batch 512 \
        --consistency bsp --any-quality -q --model-out "$dir/model" "$@" >"$dir/log" 2>&1 ||
        { tail "$dir/log" >&2; exit 1; }
    rm -rf "$dir/model"
    sed -n 's/.* \([0-9]*\) bytes of changes went to next members; \([0-9]*\) changes were of several.*/\1 \2/p' \
        "$dir/log" |
        awk '{ bytes += $1; several += $2 } END { print bytes + 0, several + 0 }'
}

echo "workers  each push by itself  once a clock  changes of several  ratio  1 / workers"
for workers in 1 2 4 8; do
    alone=$(bytes $workers)
    once=$(bytes $workers --aggregate sum --deterministic) # all workers count in each clock
    echo "$workers $alone $once" | awk \
        '{ printf "%7d %17.3f MB %10.3f MB %19d %6.2f %12.2f\n", $1, $2 / 1e6, $4 / 1e6, $5, $4 / $2, 1 / $1 }'
done
