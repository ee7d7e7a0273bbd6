#!/usr/bin/env bash
# Requests of one row per second and core of `paramo serve`, over connections that are kept, beside libmicrohttpd with
# nothing after it (bench/serve_floor.c) in the same minutes; and the latency at half of the goal, 20,000 rows/s.
#   bench/serve.sh [BUILD] [SECONDS] [PAIRS]     (build/release, 4 and 3 if they are not given)
# Each server has one thread on core 0, and wrk one on core 1. The client is wrk (Debian package wrk); it has no fixed
# rate, so for half of the goal the clients pause.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(readlink -f "${1:-$here/build/release}")
seconds=${2:-4}
pairs=${3:-3}
goal=20000
command -v wrk >/dev/null || {
    echo "bench/serve.sh: wrk is missing (Debian package wrk)" >&2
    exit 1
}
dir=$(mktemp -d)
servers=()
clean_up() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap clean_up EXIT
cd "$dir"

# A model of 390,000 features, and rows of 39: the shape of Criteo's data.
"$build/paramo" data synth --rows 20000 --fields 39 --features 10000 --format libsvm --out rows >/dev/null 2>&1
"$build/paramo" train --data rows --model lr --model-out model --epochs 1 --any-quality -q >/dev/null 2>&1
# shellcheck disable=SC2046 # pkg-config gives words
cc -O2 -D_GNU_SOURCE -o floor "$here/bench/serve_floor.c" $(pkg-config --cflags --libs libmicrohttpd)

server() { # server NAME COMMAND...: sets PORT
    local name=$1
    shift
    taskset -c 0 "$@" 2>"$name.err" &
    servers+=("$!")
    until grep -q 'listening on port' "$name.err"; do
        kill -0 "$!" || exit 1
        sleep 0.05
    done
    PORT=$(sed -n 's/.*listening on port //p' "$name.err")
}
server floor ./floor
floor=http://127.0.0.1:$PORT/predict
server serve "$build/paramo" serve --model model --listen 127.0.0.1:0 --threads 1
serve=http://127.0.0.1:$PORT/predict

# The first 1,000 rows in turn; each client pauses this many milliseconds after an answer.
cat >rows.lua <<'LUA'
local rows, at, pause = {}, 0, 0
function init(args)
    pause = tonumber(args[1])
    for line in io.lines("rows") do
        rows[#rows + 1] = wrk.format("POST", nil, nil, line)
        if #rows == 1000 then break end
    end
end
function request()
    at = at % #rows + 1
    return rows[at]
end
function delay() return pause end
function done(summary, latency)
    local e = summary.errors
    io.write(string.format("result %d %.0f %d %d %d\n", summary.requests, summary.requests / summary.duration * 1e6,
        latency:percentile(50), latency:percentile(99), e.status + e.connect + e.read + e.write + e.timeout))
end
LUA

ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; } # CPU of a process, in hundredths of a second

# load PID URL CONNECTIONS PAUSE: prints rows/s, rows per second of the server's CPU, p50 and p99 in us, errors
load() {
    local before
    before=$(ticks "$1")
    taskset -c 1 wrk -t 1 -c "$3" -d "$seconds" -s rows.lua "$2" -- "$4" | sed -n 's/^result //p' >result
    awk -v cpu=$(($(ticks "$1") - before)) '{ printf "%d %d %d %d %d\n", $2, $1 * 100 / (cpu ? cpu : 1), $3, $4, $5 }' \
        result
}

say() { echo "      | $*"; }
say "one row of 39 features in a request, $seconds s each: rows/s, rows/s of CPU time, p50 and p99 in us, errors"
for ((i = 0; i < pairs; i++)); do
    load "${servers[0]}" "$floor" 32 0 | tee -a floor.all | sed 's/^/      |   libmicrohttpd alone  /'
    load "${servers[1]}" "$serve" 32 0 | tee -a serve.all | sed 's/^/      |   paramo serve         /'
done
best() { sort -n -k "$2" "$1" | tail -n 1 | cut -d' ' -f"$2"; }
for column in 1 2; do
    what="rows/s of one core"
    [ "$column" = 1 ] || what="rows/s of CPU time"
    own=$(best serve.all "$column") alone=$(best floor.all "$column")
    say "$what: $own, $(awk -v a="$own" -v b="$alone" -v g="$goal" \
        'BEGIN { printf "%.2f of libmicrohttpd alone (%d), %.2f of the goal (%d)", a / b, b, a / g, g }')"
done
say "at half of the goal (100 clients that pause 10 ms): rows/s, rows/s of CPU time, p50 and p99 in us, errors"
for ((i = 0; i < pairs; i++)); do
    load "${servers[0]}" "$floor" 100 10 | tee -a floor.half | sed 's/^/      |   libmicrohttpd alone  /'
    load "${servers[1]}" "$serve" 100 10 | tee -a serve.half | sed 's/^/      |   paramo serve         /'
done
low() { sort -n -k 4 "$1" | head -n 1 | cut -d' ' -f4; }
say "p99: $(low serve.half) us, $(awk -v a="$(low serve.half)" -v b="$(low floor.half)" \
    'BEGIN { printf "%.2f of libmicrohttpd alone (%d us); the goal is below 5000", a / b, b }')"
code=0
bar() { # bar TEXT MET: 1 or 0
    [ "$2" = 1 ] || code=1
    say "bar: $1: $([ "$2" = 1 ] && echo met || echo MISSED)"
}
bar "at least $goal rows/s of one core" "$(($(best serve.all 1) >= goal))"
bar "at half of the goal p99 is below 5 ms" "$(($(low serve.half) < 5000))"
bar "no failed request" "$(cat serve.all serve.half | awk '{ bad += $5 } END { print bad == 0 }')"
exit $code
