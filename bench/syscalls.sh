#!/bin/sh
# Counts system calls per process of a benchmark run: bench/syscalls.sh PROGRAM bench ARGUMENTS...
# Prints a line for each process that ended in order (server, scheduler, and the program itself as "bench"):
# call=number/came back with nothing, then how often it went to sleep and its processor time.
#   bench/syscalls.sh build/release/paramo bench memory --keys 10000 --count 100000 --connections 1
set -eu
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM bench ARGUMENTS..." >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc -O2 -shared -fPIC -D_GNU_SOURCE -o "$dir/syscalls.so" "$(dirname "$0")/syscalls.c" -ldl
SYSCALLS_OUT="$dir/out" LD_PRELOAD="$dir/syscalls.so" "$@"
cat "$dir/out"
