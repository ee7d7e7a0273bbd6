#!/usr/bin/env bash
# The bars of real processes with all that they ask for, which is too long for each change: kill to first push served
# over 60 kills, write pauses of 500 moves, and 300 runs of the drill. The tests beside them (test/e2e) do the same
# for a minute.
#     bench/bars.sh [build/release/paramo]       SEED=N: of the drill
set -u
cd "$(dirname "$0")/.." || exit 1
program=${1:-build/release/paramo} code=0
KILLS=${KILLS:-60} LASTS=60 bash test/e2e/kills.sh "$program" || code=1
MOVES=${MOVES:-500} bash test/e2e/migrations.sh "$program" || code=1
RUNS=${RUNS:-300} bash test/e2e/drill.sh "$program" || code=1
exit $code
