# paramo scheduler, server, worker: usage, ports in use, a missing scheduler, tokens, signals.
# Sanitizers: address; run and cluster have the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

for verb in scheduler server worker; do
    expect 0 "$verb --help" "$PARAMO" $verb --help
    check "$verb: help on standard output" grep -q "^usage: paramo $verb" "$OUT"
    refused 2 "$verb: an unknown option" "paramo $verb: unknown option '--bogus'" "$PARAMO" $verb --bogus
    refused 2 "$verb: an option without its value" "no value after option" "$PARAMO" $verb --token
    refused 2 "$verb: a wait that is no number" \
        "--wait .soon. on the command line: not a whole number from 1 to 86400" "$PARAMO" $verb --wait soon
    refused 3 "$verb: a token file that is not there" "cannot open the token file 'nonesuch'" \
        "$PARAMO" $verb --token-file nonesuch
done
: >empty
refused 2 "two secrets" "give one of them" "$PARAMO" server --scheduler 127.0.0.1:1 --token a --token-file empty
refused 2 "two secrets, status" "give one of them" "$PARAMO" status --scheduler 127.0.0.1:1 --token a --token-file empty
refused 3 "an empty token file" "has no token" "$PARAMO" server --token-file empty
refused 2 "a scheduler without a port" "--port is missing" "$PARAMO" scheduler --servers 1 --workers 1
refused 2 "a scheduler without servers" "--servers is missing" "$PARAMO" scheduler --port 9 --workers 1
refused 2 "a scheduler without workers" "--workers is missing" "$PARAMO" scheduler --port 9 --servers 1
refused 2 "a port beyond the last" "from 1 to 65535" "$PARAMO" scheduler --port 65536
refused 2 "a server without a scheduler" "--scheduler is missing" "$PARAMO" server
refused 2 "an argument too many" "unexpected argument 'x'" "$PARAMO" server --scheduler 127.0.0.1:1 x
refused 2 "a worker without a command" "COMMAND is missing" "$PARAMO" worker --scheduler 127.0.0.1:1
for address in somewhere 127.0.0.1 127.0.0.1: :9 127.0.0.1:0 127.0.0.1:65536 127.0.0.1:9x ::1:9 '[]:9' '[::1]'; do
    refused 2 "a server's scheduler '$address'" "HOST:PORT" "$PARAMO" server --scheduler "$address"
    refused 2 "a worker's scheduler '$address'" "HOST:PORT" "$PARAMO" worker --scheduler "$address" -- true
done
refused 2 "a list of schedulers with a hole" "HOST:PORT" "$PARAMO" server --scheduler 127.0.0.1:1,,127.0.0.1:2
expect 0 "a worker has all its schedulers in the environment" env PARAMO_SCHEDULER=old:1 "$PARAMO" worker \
    --scheduler '[::1]:9,b:10' -- sh -c \
    'test "$DMLC_PS_ROOT_URI $DMLC_PS_ROOT_PORT $PARAMO_SCHEDULER" = "::1 9 [::1]:9,b:10"'
expect 0 "or the one" env PARAMO_SCHEDULER=old:1 "$PARAMO" worker --scheduler b:10 -- sh -c \
    'test "$DMLC_PS_ROOT_URI $DMLC_PS_ROOT_PORT ${PARAMO_SCHEDULER-none}" = "b 10 none"'
refused 2 "what is no etcd" "--meta 'foo://x' is not etcd://HOST:PORT" "$PARAMO" scheduler --meta foo://x
refused 2 "what is no etcd, in the environment" "--meta or PARAMO_META.* is not etcd://HOST:PORT" \
    env PARAMO_META=127.0.0.1:2379 "$PARAMO" scheduler --port 9 --servers 1 --workers 1
refused 2 "a port of etcd beyond the last" "--meta.*a:65536.*from 1 to 65535" \
    "$PARAMO" scheduler --port 9 --servers 1 --workers 1 --meta etcd://a:65536
refused 2 "a port of the scheduler beyond the last" "127.0.0.1:99999: the port is not from 1 to 65535" \
    "$PARAMO" ring show --scheduler 127.0.0.1:99999
refused 2 "checkpoints without a folder" "--checkpoint-every.*--checkpoint-dir" \
    "$PARAMO" scheduler --port 9 --servers 1 --workers 1 --checkpoint-every 5
refused 2 "more servers than there may be" "--servers .1025. on the command line: not a whole number from 1 to 1024" \
    "$PARAMO" scheduler --servers 1025
refused 2 "a folder and etcd" "not both" "$PARAMO" scheduler --port 9 --servers 1 --workers 1 --state d \
    --meta etcd://a:1
# At once, not at the first save or after a wait; also as root, to which the file mode does not apply.
touch file
refused 3 "no folder for the state" "the job's state cannot be kept in $WORK/file/state: .*Not a directory" \
    "$PARAMO" scheduler --port 9 --servers 1 --workers 1 --state "$WORK/file/state"
mkdir readonly
mounts=(unshare -m)
[ "$(id -u)" -eq 0 ] || mounts=(unshare -rm)
refused 3 "the state on a read-only disk" "the job's state cannot be kept in readonly/state: .*Read-only file system" \
    "${mounts[@]}" sh -c 'mount -t tmpfs -o ro tmpfs readonly && exec "$@"' . \
    "$PARAMO" scheduler --port 9 --servers 1 --workers 1 --state readonly/state
refused 3 "a job with its state on a read-only disk is refused, whatever its programs" \
    "paramo run: the job's state cannot be kept in readonly/state: Read-only file system" \
    "${mounts[@]}" sh -c 'mount -t tmpfs -o ro tmpfs readonly && exec "$@"' . \
    "$PARAMO" run -s 1 -w 1 --state readonly/state -- true
refused 3 "a job with its state in a file is refused" \
    "paramo run: the job's state cannot be kept in $WORK/file: Not a directory" \
    "$PARAMO" run -s 1 -w 1 --state "$WORK/file" -- true
refused 2 "a wait for the scheduler that is no number" "scheduler-wait.*not a whole number" \
    "$PARAMO" server --scheduler-wait soon
refused 127 "a worker's command that is not there" "cannot run 'nonesuch'" \
    "$PARAMO" worker --scheduler 127.0.0.1:1 -- nonesuch
refused 2 "a variable that does not parse is named" DMLC_PS_ROOT_PORT env DMLC_PS_ROOT_PORT=x "$PARAMO" server
# shellcheck disable=SC2016
expect 0 "a worker's environment" "$PARAMO" worker --scheduler 10.0.0.1:77 --rank 3 --name n --token t \
    --scheduler-wait 7 -- \
    sh -c \
    'echo "$DMLC_ROLE $DMLC_PS_ROOT_URI $DMLC_PS_ROOT_PORT $DMLC_RANK $PARAMO_NAME $PARAMO_TOKEN $PARAMO_SCHEDULER_WAIT_MS"'
check "its variables" test "$(cat "$OUT")" = "worker 10.0.0.1 77 3 n t 7000"

# ---- a scheduler that is not there ----
free_port
before=$SECONDS
refused 4 "no scheduler: the server says so" "127.0.0.1:$PORT" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --wait 2
check "the server waits for 2 seconds, not a minute ($((SECONDS - before)))" test $((SECONDS - before)) -lt 45
check "the server names the address once" test "$(grep -o "127.0.0.1:$PORT" "$ERR" | wc -l)" -eq 1
refused 4 "a host that does not exist" "nonesuch.invalid" "$PARAMO" server --scheduler nonesuch.invalid:9 \
    --listen 127.0.0.1 --wait 2

# ---- a job that does not become complete, and a port in use ----
free_port
start first "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1
check "the scheduler listens" wait_for 20 listens "$(job_pid first)"
refused 4 "a port in use" "$PORT.*in use" "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1
kill -TERM "$(job_pid first)"
ends first 143 "SIGTERM stops a scheduler that waits"
free_port
start lonely "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1 --wait 3
ends lonely 4 "no node registered in 3 s: the scheduler says so"
check "the scheduler logs one line" test "$(wc -l <"$ERR")" -eq 1
says "the line names what is missing" 'server.*worker'

connected() { # PID PORT: it has a connection to that port
    grep -q " [0-9A-F]*:$(printf %04X "$2") 01 " "/proc/$1/net/tcp"
}
# ---- tokens, a second listener on a server's port, SIGTERM ----
free_port
port=$PORT
start scheduler "$PARAMO" scheduler --port "$port" --servers 1 --workers 1 --token secret
check "the scheduler listens" wait_for 20 listens "$(job_pid scheduler)"
refused 4 "another token is refused" "token" "$PARAMO" server --scheduler "127.0.0.1:$port" --token wrong --wait 20
refused 4 "no token is refused" "token" "$PARAMO" server --scheduler "127.0.0.1:$port" --wait 20
refused 4 "a server cannot listen on the scheduler's port" "$port.*in use" \
    "$PARAMO" server --scheduler "127.0.0.1:$port" --token secret --port "$port" --wait 20
echo secret >token
start server "$PARAMO" server --scheduler "127.0.0.1:$port" --token-file token
check "a server with the token waits for the workers" wait_for 20 listens "$(job_pid server)"
kill -TERM "$(job_pid server)"
ends server 143 "SIGTERM stops a server that waits"
check "the server logs nothing" test ! -s "$ERR"
start server "$PARAMO" server --scheduler "127.0.0.1:$port" --token-file token --verbose
check "another server waits" wait_for 20 listens "$(job_pid server)"
check "the scheduler knows the other server" wait_for 20 connected "$(job_pid server)" "$port"
kill -INT "$(job_pid scheduler)"
ends scheduler 130 "SIGINT stops a scheduler that waits"
ends server 4 "the server ends with the scheduler"
says "the worker logs why it ends" "the scheduler was interrupted|is gone: connection refused"

# ---- a scheduler that is killed: the others notice, say so at once, and give it up ----
free_port
expect 0 "a small log" "$PARAMO" data synth --rows 2000 --out small.ffm
export PARAMO_TOKEN=secret
begin_job() { # OPTION...: of server and worker
    start scheduler "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1
    start server "$PARAMO" server --scheduler "127.0.0.1:$PORT" "$@"
    start worker "$PARAMO" worker --scheduler "127.0.0.1:$PORT" "$@" -- paramo train --model lr --data small.ffm \
        --epochs 100000 --quiet --model-out never
}
at_work() { worked "$(job_pid worker)" $((SLOW > 1 ? 40 : 10)); }
begin_job
check "the worker is at work" wait_for 20 at_work
check "the scheduler is killed" kill -KILL "$(job_pid scheduler)"
ends scheduler 137 "the killed scheduler has ended"
for name in server worker; do
    ends $name 4 "the $name ends"
    says "the $name noticed" "lost the scheduler at 127.0.0.1:$PORT: connection reset; trying to reach it again"
    says "the $name says why it ended" "the scheduler at 127.0.0.1:$PORT is gone: connection refused$"
    check "the $name logs nothing else" test "$(wc -l <"$ERR")" -eq 2
done
# With the wait for a scheduler that will be restarted they stay, until it is there (here: another job's).
free_port
begin_job --scheduler-wait 3600
check "the worker is at work" wait_for 20 at_work
check "the scheduler is killed" kill -KILL "$(job_pid scheduler)"
ends scheduler 137 "the killed scheduler has ended"
start scheduler "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1
for name in server worker; do
    ends $name 4 "the $name ends when another answers"
    says "the $name says that another job runs there" "127.0.0.1:$PORT: another job runs here$"
done
kill -INT "$(job_pid scheduler)"
ends scheduler 130 "the second scheduler"
unset PARAMO_TOKEN

# ---- the same program in every role, as ps-lite's users start it: SIGTERM makes a server leave in order ----
free_port
for name in scheduler server worker; do
    start $name env DMLC_ROLE=$name DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT="$PORT" DMLC_NUM_SERVER=1 \
        DMLC_NUM_WORKER=1 \
        PS_VERBOSE=2 "$PARAMO" train --model lr --data small.ffm --epochs 100000 --quiet
done
check "the worker is at work" wait_for 20 at_work
kill -TERM "$(job_pid server)"
ends server 130 "SIGTERM stops it with the documented code"
check "the worker prints only the log" test "$(grep -vc '^paramo: info' "$ERR")" -eq 0
ends worker 4 "the worker ends"
ends scheduler '[0-9]+' "the scheduler ends"
says "the scheduler had a goodbye from the worker" "server 0 \\(node 8\\) has left"

# ---- a whole job by hand, on IPv6 ----
if grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null; then
    free_port
    export PARAMO_TOKEN=secret
    start scheduler "$PARAMO" scheduler --listen ::1 --port "$PORT" --servers 2 --workers 1
    start server0 "$PARAMO" server --scheduler "[::1]:$PORT" --listen ::1 --shards 2
    start server1 "$PARAMO" server --scheduler "[::1]:$PORT" --listen ::1
    expect 0 "a job over IPv6" "$PARAMO" worker --scheduler "[::1]:$PORT" -- \
        paramo train --model lr --data small.ffm --model-out six
    for name in server0 server1 scheduler; do ends $name 0 "IPv6: $name ends well"; done
    # In one that is complete, SIGTERM to a server ends the job with an error.
    free_port
    start scheduler "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1
    start server "$PARAMO" server --scheduler "127.0.0.1:$PORT"
    start worker "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- paramo train --model lr --data small.ffm \
        --epochs 100000 --model-out never
    check "the worker is at work" wait_for 20 at_work
    kill -TERM "$(job_pid server)"
    ends server 143 "SIGTERM stops a server at work"
    ends worker '[1-9][0-9]*' "the worker ends with an error"
    says "the worker's error names the server" "server 0 \\(node 8\\)"
    ends scheduler '[0-9]+' "the scheduler ends"
fi
finish
