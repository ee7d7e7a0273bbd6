# Helpers of the end-to-end tests: bash test/e2e/NAME.sh PROGRAM. A script makes its checks one after the other, prints
# each, and ends with `finish`, which fails if a check failed. No helper waits for a fixed time: wait_for polls for an
# event up to a deadline, and every program runs under a deadline (a hang is exit code 124).
# shellcheck shell=bash disable=SC2034
set -u

PARAMO=$(readlink -f "$1")
ADDER=$(dirname "$PARAMO")/test/adder
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SHARED=$TOP/../shared/data
WORK=$(mktemp -d)
OUT=$WORK/.out ERR=$WORK/.err
CHECKS=0 FAILURES=0 JOBS=0
SLOW=1 # how much longer things may take
case $PARAMO in */asan/* | */tsan/*) SLOW=6 ;; esac
DEADLINE=$((60 * SLOW)) # for one program, in seconds; far beyond what it needs
declare -A JOB_PID=()

mkfifo "$WORK/.never"
exec {NEVER}<>"$WORK/.never" # a descriptor that never has anything to read: for pauses between polls
pause() { read -r -t 0.02 -u "$NEVER" || true; }

clean_up() { # SIGTERM: timeout passes it on and follows with SIGKILL
    local name
    for name in "${!JOB_PID[@]}"; do kill -TERM "${JOB_PID[$name]}" 2>/dev/null; done
    wait
    rm -rf "$WORK"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

passed() { CHECKS=$((CHECKS + 1)) && echo "ok    $1"; }

failed() {
    CHECKS=$((CHECKS + 1)) FAILURES=$((FAILURES + 1))
    echo "FAIL  $1"
}

REPORT='Sanitizer\|runtime error:' # what a sanitizer's report begins with

show() { # the end of a file, indented; a sanitizer's report from its beginning, and the lines before it
    local from
    [ -s "$1" ] || return 0
    from=$(grep -anm 1 "$REPORT" "$1" | cut -d: -f1)
    if [ -n "$from" ]; then tail -n "+$((from > 12 ? from - 12 : 1))" "$1" | head -n 150; else tail -n 20 "$1"; fi |
        sed 's/^/      | /'
}

# check TEXT COMMAND...: the command succeeds.
check() {
    local text=$1
    shift
    if "$@"; then passed "$text"; else failed "$text: $*"; fi
}

no_sanitizer_report() { ! grep -aq "$REPORT" "$@"; }

# expect CODE TEXT COMMAND...: the command ends with this exit code in time; its output is in $OUT and $ERR afterwards.
expect() {
    local want=$1 text=$2 code=0
    shift 2
    timeout -k 5 "$DEADLINE" "$@" >"$OUT" 2>"$ERR" || code=$?
    if [ "$code" -eq "$want" ] && no_sanitizer_report "$OUT" "$ERR"; then
        passed "$text"
    else
        failed "$text: exit code $code, not $want: $*"
        show "$OUT"
        show "$ERR"
    fi
}

# says TEXT REGEX: the last command's standard error has a line that matches.
says() {
    if grep -Eq -- "$2" "$ERR"; then
        passed "$1"
    else
        failed "$1: nothing on standard error matches '$2'"
        show "$ERR"
    fi
}

# refused CODE TEXT REGEX COMMAND...: ends with CODE, nothing on standard output, one line on standard error, which
# matches.
refused() {
    local want=$1 text=$2 regex=$3 code=0
    shift 3
    timeout -k 5 "$DEADLINE" "$@" >"$OUT" 2>"$ERR" </dev/null || code=$?
    if [ "$code" -eq "$want" ] && [ ! -s "$OUT" ] && [ "$(wc -l <"$ERR")" -eq 1 ] && grep -Eq -- "$regex" "$ERR"; then
        passed "$text"
    else
        failed "$text: exit code $code (wanted $want and one line matching '$regex'): $*"
        show "$OUT"
        show "$ERR"
    fi
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails at the deadline.
wait_for() {
    local end=$((SECONDS + $1 * SLOW))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        pause
    done
}

# start NAME COMMAND...: in the background, under the deadline, output in $WORK/NAME.out and NAME.err. Its own pid is
# $(job_pid NAME).
start() {
    local name=$1
    shift
    env --default-signal=INT timeout --foreground -k 5 "$DEADLINE" "$@" \
        >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    JOB_PID[$name]=$!
    wait_for 10 job_pid "$name" >/dev/null || true
}

job_pid() { # the program itself, a child of timeout
    local pid
    pid=$(cat "/proc/${JOB_PID[$1]}/task/${JOB_PID[$1]}/children" 2>/dev/null)
    [ -n "$pid" ] && [ "$(readlink "/proc/${pid% }/exe")" != "$(readlink -f "$(command -v timeout)")" ] &&
        echo "${pid% }"
}

alive() { kill -0 "${JOB_PID[$1]}" 2>/dev/null; }

# ends NAME CODE TEXT: the job ends by itself with this exit code (a regex) before its deadline.
ends() {
    local name=$1 want=$2 text=$3 code=0
    wait "${JOB_PID[$name]}" 2>/dev/null || code=$?
    unset "JOB_PID[$name]"
    cp "$WORK/$name.out" "$OUT"
    cp "$WORK/$name.err" "$ERR"
    if [[ $code =~ ^($want)$ ]] && no_sanitizer_report "$OUT" "$ERR"; then
        passed "$text"
    else
        failed "$text: exit code $code, not $want"
        show "$OUT"
        show "$ERR"
    fi
}

# node_pid JOB ROLE [RANK]: the pid that 'paramo run --verbose' printed.
node_pid() {
    local pid
    pid=$(sed -n "s/^paramo run: $2${3+ $3} is pid \([0-9]*\)$/\1/p" "$WORK/$1.err")
    [ -n "$pid" ] && echo "$pid"
}

# signal_node SIGNAL JOB ROLE [RANK]: only if the node is still a child of the job: a number may have gone to another.
signal_node() {
    local sig=$1 pid parent
    shift
    pid=$(node_pid "$@") || return 1
    parent=$(sed 's/.*) [A-Za-z] \([0-9]*\) .*/\1/' "/proc/$pid/stat" 2>/dev/null)
    [ "$parent" = "$(job_pid "$1")" ] && kill "-$sig" "$pid"
}

# worked PID TICKS: the process has used this many hundredths of a second of CPU: it is at work. (Forty if SLOW: under a
# sanitizer a process uses a fifth of a second before it has registered.)
worked() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # shellcheck disable=SC2086
    set -- "$2" ${stat##*) }
    [ $((${13} + ${14})) -ge "$1" ]
}

# ports_of PID: the TCP ports on which it listens.
ports_of() {
    local link inode
    for link in /proc/"$1"/fd/*; do
        inode=$(readlink "$link") || continue
        case $inode in
        socket:*)
            inode=${inode#socket:[}
            awk -v inode="${inode%]}" '$4 == "0A" && $10 == inode { n = split($2, a, ":"); print a[n] }' \
                "/proc/$1/net/tcp" "/proc/$1/net/tcp6" 2>/dev/null
            ;;
        esac
    done | while read -r hex; do echo $((16#$hex)); done | sort -un
}

listens() { [ -n "$(ports_of "$1")" ]; }

# A port without a listener, outside the range from which the kernel deals; each call another.
NEXT_PORT=$((10000 + $$ % 1100 * 20))
free_port() { # sets PORT
    PORT=$NEXT_PORT
    NEXT_PORT=$((NEXT_PORT + 1))
    while (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do
        PORT=$NEXT_PORT
        NEXT_PORT=$((NEXT_PORT + 1))
    done
}

# json FILE KEY: the value of a number in flat JSON.
json() { sed -n 's/.*"'"$2"'"[[:space:]]*:[[:space:]]*"\{0,1\}\([^",}]*\).*/\1/p' "$1" | head -n 1; }

# near A B LIMIT: |A - B| <= LIMIT, and both are numbers.
near() {
    awk -v a="$1" -v b="$2" -v d="$3" \
        'BEGIN { exit !(a ~ /^[-0-9.e+]+$/ && b ~ /^[-0-9.e+]+$/ && a - b <= d && b - a <= d) }'
}
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a ~ /^[-0-9.e+]+$/ && a + 0 <= b + 0) }'; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a ~ /^[-0-9.e+]+$/ && a + 0 >= b + 0) }'; }

# kill_noted NAME EVENTS KIND: kills the job's process, and adds the line for served_after: when the signal was sent,
# the kind, and the milliseconds until the process was over. Nothing is started between the clock and the signal: on a
# busy machine each process that the shell starts takes tens of milliseconds, and $(job_pid) takes five.
kill_noted() {
    local pid at end
    pid=$(job_pid "$1")
    at=${EPOCHREALTIME/[.,]/}
    kill -KILL "$pid"
    wait "${JOB_PID[$1]}" 2>/dev/null
    end=${EPOCHREALTIME/[.,]/}
    echo "${at}000 $3 $(((end - at) / 1000))" >>"$2"
}

# served_after EVENTS KIND TEXT STALLS...: how long keys were without a server, in milliseconds, in EVENTS.waits; 0
# where no push shows it. EVENTS: lines of kill_noted, of which those of this kind are printed. STALLS: the output of
# adder --stalls. Nearly every push has keys of every server, and the keys of a dead server have no other one sooner
# than about 400 ms after its death (FAULTS.md). So a push counts that was in progress at the kill or began between it
# and the next kill, took 250 ms, and ended 250 ms after the kill. The first of them to end was the first to be
# served.
served_after() {
    awk -v kind="$2" 'FNR == NR { at[NR] = $1; of[NR] = $2; n = NR; next }
        $2 - $1 >= 250e6 { for (k = 1; k <= n; k++)
            if ($2 >= at[k] + 250e6 && (k == n || $1 < at[k + 1]) && (!(k in first) || $2 - at[k] < first[k])) first[k] = $2 - at[k] }
        END { for (k = 1; k <= n; k++) if (of[k] == kind) print k in first ? first[k] / 1e6 : 0 }' "$1" "${@:4}" | sort -n >"$1.waits"
    awk -v text="$3" '{ ms[NR] = $1 } END {
        printf "      | %s: median %.0f ms, 90 %% %.0f ms, 99 %% %.0f ms, longest %.0f ms (%d times)\n",
            text, ms[int((NR + 1) / 2)], ms[int(NR * 0.9 + 0.999)], ms[int(NR * 0.99 + 0.999)], ms[NR], NR }' "$1.waits"
    awk -v kind="$2" '$2 == kind && $3 > most { most = $3 }
        END { if (most) printf "      | (in these times: up to %d ms until the killed process was over)\n", most }' "$1"
}

# probe_machine begins to measure the speed of the machine itself. probe_ends writes the result to machine.out.
probe_machine() { start machine "$(dirname "$PARAMO")/test/probe" "$WORK/.probe"; }
probe_ends() {
    kill -TERM "$(job_pid machine)"
    ends machine 0 "the machine's own times" >/dev/null
}

# within TEXT WAITS BAR LEAST BASE TIMES: 99 % of the milliseconds in WAITS (sorted) are within BAR. On a busy machine
# they are within BASE plus TIMES times the 99.9th percentile of the machine's own wake-ups: a wait has about ten
# wake-ups, and one late wake-up delays it. (No fsync is in these waits; the machine's are shown beside them.) Fewer
# waits than LEAST cannot tell 99 % from 98 %: one of them may be beyond.
within() {
    local allowed beyond count may
    count=$(wc -l <"$2")
    may=$((count >= $4 ? count / 100 : 1))
    allowed=$(awk -v wake="$(json machine.out wake_p999_ms)" -v bar="$3" -v base="$5" -v times="$6" \
        'BEGIN { own = base + times * wake; printf "%.0f", (own > bar ? own : bar) }')
    beyond=$(awk -v most="$allowed" '$1 + 0 > most + 0' "$2" | wc -l)
    awk -v bar="$3" -v allowed="$allowed" -v wake="$(json machine.out wake_p999_ms)" -v sync="$(json machine.out fsync_p99_ms)" '{ ms[NR] = $1 } END {
        p99 = ms[int(NR * 0.99 + 0.999)]
        printf "      | 99 %% %.1f ms: %.2f of the bar (%d ms), %.1f times a wake-up of this machine (99.9 %% of them in %.1f ms, of its fsyncs 99 %% in %.1f ms); allowed: %d ms\n",
            p99, p99 / bar, bar, p99 / wake, wake, sync, allowed }' "$2"
    if [ "$SLOW" -gt 1 ]; then # a sanitizer's times are not judged
        passed "$1: a sanitizer's times are not judged"
        return
    fi
    check "$1: $beyond of $count take longer than $allowed ms, $may may" test "$beyond" -le "$may"
    check "$1: waits were measured" test "$count" -gt 0
}

skip() { # the whole script: counted as skipped by ctest
    echo "skipped: $1"
    exit 77
}

finish() {
    echo "$((CHECKS - FAILURES)) passed, $FAILURES failed"
    [ "$FAILURES" -eq 0 ] && [ "$CHECKS" -gt 0 ]
    exit
}
