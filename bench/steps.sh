#!/bin/sh
# Processor time of the longest steps of a shard, and of the scheduler: bench/steps.sh [BUILD] [ROWS]
# (build/release and 50,000,000, about 2 GB, if they are not given)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/release}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for program in steps_sched steps; do
    cc -O2 -D_GNU_SOURCE -I"$here/include" -I"$here/src" -I"$here" -o "$dir/$program" "$here/bench/$program.c" \
        -Wl,--start-group "$build/libparamo.a" -Wl,--end-group -lpthread -lm -ldl -llz4 -lzstd
done
"$dir/steps_sched"
"$dir/steps" "${2:-50000000}"
