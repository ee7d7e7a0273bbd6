#!/bin/sh
# Processor time of the longest steps of a shard: bench/steps.sh [BUILD] [ROWS]
# (build/release and 50,000,000, about 2 GB, if they are not given)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/release}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc -O2 -D_GNU_SOURCE -I"$here/include" -I"$here/src" -I"$here" -o "$dir/steps" "$here/bench/steps.c" -Wl,--start-group \
    "$build/libparamo.a" -Wl,--end-group -lpthread -lm -ldl -llz4 -lzstd
"$dir/steps" "${2:-50000000}"
