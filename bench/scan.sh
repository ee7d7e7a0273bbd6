#!/bin/sh
# Rows per second of a full scan, seconds of a STAT, and the longest wait of a small push beside either:
# bench/scan.sh [BUILD] [ROWS]     (build/release and 10,000,000 if they are not given)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/release}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc -O2 -D_GNU_SOURCE -I"$here/include" -o "$dir/scan" "$here/bench/scan.c" -L"$build" -Wl,-rpath,"$build" -lparamo \
    -lpthread
"$dir/scan" "${2:-10000000}"
