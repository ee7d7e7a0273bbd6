# paramo run: places, output, exit codes, signals. COMMAND is a shell here, because only the runner is tested.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

# ---- usage ----
expect 0 "--help" "$PARAMO" run --help
check "--help goes to standard output" grep -q '^usage: paramo run' "$OUT"
refused 2 "no servers" "-s SERVERS is missing" "$PARAMO" run -w 1 -- true
refused 2 "no workers" "-w WORKERS is missing" "$PARAMO" run -s 1 -- true
refused 2 "no command" "COMMAND is missing" "$PARAMO" run -s 1 -w 1
refused 2 "zero servers" "from 1 to" "$PARAMO" run -s 0 -w 1 -- true
refused 2 "servers that are no number" "servers .2x. on the command line" "$PARAMO" run -s 2x -w 1 -- true
refused 2 "an unknown option" "unknown option '--bogus'" "$PARAMO" run --bogus
refused 2 "an option without its value" "no value after option '-s'" "$PARAMO" run -s
refused 127 "a command that is not there" "cannot run 'nonesuch'" "$PARAMO" run -s 1 -w 1 -- nonesuch
refused 126 "a command that is not executable" "cannot run" "$PARAMO" run -s 1 -w 1 -- /etc/passwd

# ---- the environment of each node ----
expect 0 "the environment" env PORT=80 PARAMO_NAME=x "$PARAMO" run -s 2 -w 2 -- sh -c \
    'echo "$DMLC_ROLE/$DMLC_RANK/$DMLC_NUM_SERVER/$DMLC_NUM_WORKER/$DMLC_PS_ROOT_URI/${PORT-}${PARAMO_NAME-}/${#PARAMO_TOKEN}"'
check "worker 0 has standard output to itself" test "$(cat "$OUT")" = "worker/0/2/2/127.0.0.1//32"
for line in "[scheduler] scheduler//" "[server 0] server/0/" "[server 1] server/1/" "[worker 1] worker/1/"; do
    check "$line is told its place" grep -qF "${line}2/2/127.0.0.1//32" "$ERR"
done
expect 0 "a token that is set stays" env PARAMO_TOKEN=mine "$PARAMO" run -s 1 -w 1 -- sh -c 'echo "$PARAMO_TOKEN"'
check "a token of the environment is used" test "$(cat "$OUT")" = mine
expect 0 "--scheduler-wait" "$PARAMO" run -s 1 -w 1 --scheduler-wait 7 -- sh -c 'echo "$PARAMO_SCHEDULER_WAIT_MS"'
check "--scheduler-wait is in the environment" test "$(cat "$OUT")" = 7000
refused 2 "--scheduler-wait without a number" "from 0 to" "$PARAMO" run -s 1 -w 1 --scheduler-wait x -- true
expect 0 "worker 0 reads standard input" sh -c 'echo hello | "$0" run -s 1 -w 2 -- cat' "$PARAMO"
check "worker 0 has the whole input" test "$(cat "$OUT")" = hello
expect 0 "'paramo' is this program" "$PARAMO" run -s 1 -w 1 -- paramo --version
check "'paramo' prints this program's version" grep -q '[0-9]\.[0-9]' "$OUT"
expect 0 "a last line without an end, a long line" \
    "$PARAMO" run -s 1 -w 2 -- sh -c 'head -c 10000 /dev/zero | tr "\0" x'
check "the long line of worker 1 is all there" test "$(grep -F '[worker 1] ' "$ERR" | tr -cd x | wc -c)" = 10000

# ---- exit codes ----
expect 5 "a worker's exit code" "$PARAMO" run -s 1 -w 3 -- sh -c '[ "$DMLC_ROLE$DMLC_RANK" != worker2 ] || exit 5'
says "the last line names the failed worker" '^paramo run: worker 2 \(node 13\), pid [0-9]+, ended with exit code 5$'
says "the last line says that the others succeeded" \
    '^paramo run: 2 of 3 workers succeeded; exit code 5 is that of worker 2 \(node 13\)$'
expect 0 "--min-workers: enough have succeeded" \
    "$PARAMO" run -s 1 -w 3 --min-workers 2 -- sh -c '[ "$DMLC_ROLE$DMLC_RANK" != worker2 ] || exit 5'
says "--min-workers: the last line names the failed worker" \
    '^paramo run: 2 of 3 workers succeeded, which is enough \(--min-workers 2\); exit code 5 was that of worker 2 \(node 13\)$'
expect 5 "--min-workers: too few" "$PARAMO" run -s 1 -w 3 --min-workers 2 -- \
    sh -c '[ "$DMLC_ROLE" != worker ] || [ "$DMLC_RANK" = 0 ] || exit 5'
says "--min-workers: the last line says that too few succeeded" \
    '^paramo run: 1 of 3 workers succeeded; exit code 5 is that of worker 1 \(node 11\)$'
refused 2 "--min-workers beyond the workers" 'min-workers 4 is above --workers 3' \
    "$PARAMO" run -s 1 -w 3 --min-workers 4 -- true
expect 137 "a worker that is killed" "$PARAMO" run -s 1 -w 2 -- \
    sh -c '[ "$DMLC_ROLE$DMLC_RANK" != worker1 ] || kill -9 $$'
says "the last line names worker and signal" \
    '^paramo run: worker 1 \(node 11\), pid [0-9]+, was killed by signal 9 \(Killed\)$'
expect 137 "workers that wait for a dead server forever are stopped" "$PARAMO" run -s 2 -w 2 --grace 1 -- \
    sh -c '[ "$DMLC_ROLE$DMLC_RANK" != server1 ] || kill -9 $$; exec tail -f /dev/null'
says "the server is named" 'server 1 \(node 10\), pid [0-9]+, was killed by signal 9'
says "the stopped worker is named" 'worker 0 \(node 9\) did not end in time, stopping it'
says "the last line names the dead server" \
    '^paramo run: no worker succeeded; exit code 137 is that of server 1 \(node 10\)$'
expect 3 "workers that wait for a scheduler that has failed are stopped: its exit code" \
    "$PARAMO" run -s 1 -w 2 --grace 1 -- \
    sh -c 'case $DMLC_ROLE$DMLC_RANK in scheduler*) exit 3 ;; worker1) exit 0 ;; esac; exec tail -f /dev/null'
says "the last line names the scheduler that failed" '^paramo run: .*the scheduler \(node 1\).*exit code 3'
expect 6 "workers that wait for a server that has failed are stopped: its exit code" \
    "$PARAMO" run -s 1 -w 2 --grace 1 -- \
    sh -c 'case $DMLC_ROLE$DMLC_RANK in server0) exit 6 ;; worker1) exit 0 ;; esac; exec tail -f /dev/null'
says "the last line names the server that failed" \
    '^paramo run: 1 of 2 workers succeeded; exit code 6 is that of server 0 \(node 8\)$'
expect 0 "--min-workers: the stopped worker was not needed" "$PARAMO" run -s 1 -w 2 --min-workers 1 --grace 1 -- \
    sh -c 'case $DMLC_ROLE$DMLC_RANK in server0) exit 6 ;; worker1) exit 0 ;; esac; exec tail -f /dev/null'
expect 3 "a scheduler that does not remove the state of a job that is over" \
    "$PARAMO" run -s 1 -w 1 --grace 1 --state state-left -- \
    sh -c '[ "$DMLC_ROLE" = worker ] || exec tail -f /dev/null'
says "the state that is left is named" \
    'has not removed .* within 1 s \(--grace\); a job with --state state-left would continue'
expect 6 "a server that fails when all workers have succeeded" "$PARAMO" run -s 2 -w 2 -- sh -c \
    '[ "$DMLC_ROLE$DMLC_RANK" != server1 ] || exit 6'
says "the last line names the server" \
    '^paramo run: every worker succeeded; exit code 6 is that of server 1 \(node 10\)$'
expect 134 "a scheduler that crashes at the end" \
    "$PARAMO" run -s 1 -w 1 -- sh -c '[ "$DMLC_ROLE" != scheduler ] || kill -ABRT $$'
says "the last line names the scheduler" 'the scheduler \(node 1\)'
expect 0 "a server is killed, and the workers continue without it" "$PARAMO" run -s 2 -w 1 --grace 60 -- bash -c '
    [ "$DMLC_ROLE$DMLC_RANK" != server1 ] || { echo $$ >victim; exec tail -f /dev/null; }
    [ "$DMLC_ROLE" = worker ] || exit 0
    exec 9<>.never
    until [ -s victim ]; do read -r -t 0.05 -u 9 || true; done
    kill -9 "$(cat victim)"
    while [ -d "/proc/$(cat victim)" ]; do read -r -t 0.05 -u 9 || true; done'
expect 0 "servers that stay are stopped, too" "$PARAMO" run -s 1 -w 1 --grace 1 -- \
    sh -c '[ "$DMLC_ROLE" = worker ] || exec tail -f /dev/null'
expect 0 "servers that ignore SIGTERM are stopped, too" "$PARAMO" run -s 1 -w 1 --grace 1 -- \
    sh -c '[ "$DMLC_ROLE" = worker ] || { trap "" TERM; while :; do read -r x <>.never; done; }'

# ---- a node that fails before the job is complete ----
expect 0 "a small log" "$PARAMO" data synth --rows 2000 --out small.ffm
export PROGRAM=$PARAMO
says_nothing_else() {
    if grep -qv "^paramo run: " "$ERR"; then
        failed "$1" && show "$ERR"
    else
        passed "$1"
    fi
}
# without ROLE+RANK HOW: the job, one node of which does HOW instead of joining.
without() {
    expect "$1" "$4" "$PARAMO" run -s 2 -w 2 -- sh -c '[ "$DMLC_ROLE$DMLC_RANK" != '"$2"' ] || { '"$3"'; }
        exec "$PROGRAM" train --model lr --data small.ffm --model-out never'
    check "$4: no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"
    says_nothing_else "$4: and nothing else is said"
}
# Whether the scheduler listens by then decides in which words; the end is the same.
incomplete='(before the job was complete|cannot become complete without'
without 137 worker1 'kill -9 $$' "a worker is killed before"
says "the log names the worker" 'worker 1 \(node 11\), pid [0-9]+, was killed by signal 9'
says "the log says what follows" "$incomplete worker 1 \(node 11\)): ending it"
without 9 worker0 'exit 9' "worker 0 fails before"
says "the log names the worker" 'worker 0 \(node 9\), pid [0-9]+, ended with exit code 9'
says "the log says what follows" "$incomplete worker 0 \(node 9\)): ending it"
without 137 server1 'kill -9 $$' "a server is killed before"
says "the log names the server" 'server 1 \(node 10\), pid [0-9]+, was killed by signal 9'
says "the log says what follows" "$incomplete server 1 \(node 10\)): ending it"
without 137 scheduler 'kill -9 $$' "the scheduler is killed before"
says "the log names the scheduler" 'the scheduler \(node 1\), pid [0-9]+, was killed by signal 9'
says "the log says what follows" "$incomplete the scheduler \(node 1\)): ending it"
without 9 scheduler 'exit 9' "the scheduler fails before it listens"
says "the log says what follows" "cannot become complete without the scheduler \(node 1\): ending it"
check "no model is saved" test -z "$(ls -A never 2>/dev/null)"
start waiting "$PARAMO" run -v -s 2 -w 2 -- sh -c '[ "$DMLC_ROLE$DMLC_RANK" != server1 ] || exec tail -f /dev/null
    exec "$PROGRAM" train --model lr --data small.ffm --model-out never'
check "a job that waits for a server" wait_for 20 node_pid waiting worker 1
check "the scheduler of the waiting job listens" wait_for 20 listens "$(node_pid waiting scheduler)"
check "Ctrl-C" kill -INT "$(job_pid waiting)"
ends waiting '130' "Ctrl-C ends the waiting job at once"
check "no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"

# ---- --workers-only: scheduler and servers are this program's own ----
expect 0 "--workers-only" "$PARAMO" run -s 2 -w 2 --workers-only -- sh -c 'echo "$DMLC_ROLE $DMLC_RANK" >>began
    exec "$PROGRAM" train --model lr --data small.ffm --model-out only'
check "COMMAND ran for the workers alone" test "$(sort began | tr '\n' ,)" = "worker 0,worker 1,"
expect 0 "the workers have trained a model" "$PARAMO" eval --model-in only --data small.ffm
expect 9 "--workers-only: a worker that fails before ends the job" "$PARAMO" run -s 2 -w 2 --workers-only -- sh -c \
    '[ "$DMLC_RANK" != 1 ] || exit 9; exec "$PROGRAM" train --model lr --data small.ffm --model-out never'
says "--workers-only: the last line names the worker" 'worker 1 \(node 11\), pid [0-9]+, ended with exit code 9'
check "--workers-only: no model is saved" test -z "$(ls -A never 2>/dev/null)"

# ---- signals, and what is left behind ----
said() { # FILE TEXT TIMES
    [ "$(grep -c -- "$2" "$1")" -eq "$3" ]
}
loop='while :; do read -r -t 0.05 -u 9 || true; done'
start interrupt "$PARAMO" run -v -s 1 -w 2 -- bash -c \
    'exec 9<>.never; [ $DMLC_ROLE = worker ] || exec tail -f /dev/null; trap "echo saved; exit 7" INT; echo ready >&2;'"$loop"
check "both workers are at work" wait_for 20 said interrupt.err ready 2
kill -INT "$(job_pid interrupt)"
ends interrupt 7 "Ctrl-C is passed on to the workers, which end as they like"
check "worker 0 has saved" grep -q '^saved$' interrupt.out
check "worker 1 has saved" grep -q '^\[worker 1\] saved$' interrupt.err
start twice "$PARAMO" run -v -s 1 -w 1 -- bash -c 'exec 9<>.never; trap "echo heard >&2" INT; echo ready >&2;'"$loop"
check "the worker is at work" wait_for 20 said twice.err '^ready' 1
kill -INT "$(job_pid twice)"
check "the worker receives the first Ctrl-C" wait_for 20 said twice.err '^heard' 1
kill -INT "$(job_pid twice)"
ends twice 137 "the second Ctrl-C kills the job"
# The job is ended by a signal, in every phase: the exit code names it, and no process is left.
children_of() { sed -n 's/.* is pid //p' "$1.err"; }
gone() { for pid in $pids; do [ ! -d "/proc/$pid" ] || [ "$(cut -d' ' -f3 "/proc/$pid/stat")" = Z ] || return 1; done; }
ended() { # JOB SIGNAL CODE TEXT: is told now
    check "$4: SIG$2" kill "-$2" "$(job_pid "$1")"
    pids=$(children_of "$1")
    ends "$1" "$3" "$4: ends with $3"
    check "$4: no process of the job is left" gone
}
none_stopped() { check "$1: no process had to be stopped" sh -c '! grep -q "did not end in time" "$0"' "$ERR"; }
expect 0 "a log to train on" "$PARAMO" data synth --rows 20000 --out train.ffm
saving() { compgen -G "$1/.paramo-tmp-*" >/dev/null; }
at_once() { local end=$((SECONDS + 30 * SLOW)) && until "$@"; do [ "$SECONDS" -lt $end ] || return 1; done; }
for how in "TERM 143" "HUP 129" "INT 130"; do
    read -r sig code <<<"$how"
    start "early$sig" "$PARAMO" run -v -s 2 -w 2 -- sh -c '[ "$DMLC_ROLE$DMLC_RANK" != server1 ] || exec tail -f /dev/null
        exec "$PROGRAM" train --model lr --data small.ffm --model-out never'
    check "before it is complete, $sig: a job waits for a server" wait_for 20 node_pid "early$sig" worker 1
    check "before it is complete, $sig: its scheduler listens" wait_for 20 listens "$(node_pid "early$sig" scheduler)"
    ended "early$sig" "$sig" "$code" "before it is complete, $sig"
    none_stopped "before it is complete, $sig"
    start "train$sig" "$PARAMO" run -v -s 2 -w 2 --grace $((15 * SLOW)) -- paramo train --model lr --data train.ffm \
        --epochs 100000 --model-out "m-$sig"
    check "training, $sig: it has begun" wait_for 30 grep -q '^epoch 2/' "train$sig.err"
    ended "train$sig" "$sig" "$code" "training, $sig"
    none_stopped "training, $sig"
    check "training, $sig: the model is saved" test -s "m-$sig/manifest.json"
    start "save$sig" "$PARAMO" run -v -s 2 -w 2 --grace $((15 * SLOW)) -- paramo train --model fm --dim 64 \
        --data train.ffm \
        --valid train.ffm --epochs 1000 --patience 1000 --model-out "s-$sig"
    check "saving, $sig: it does" at_once saving "s-$sig"
    ended "save$sig" "$sig" "$code" "saving, $sig"
    none_stopped "saving, $sig"
    expect 0 "saving, $sig: the model is whole" "$PARAMO" eval --model-in "s-$sig" --data small.ffm
done
start polite "$PARAMO" run -v -s 1 -w 2 -- bash -c \
    'exec 9<>.never; [ $DMLC_ROLE = worker ] || exec tail -f /dev/null; trap "exit 0" TERM; echo ready >&2;'"$loop"
check "workers that end well when they are told to" wait_for 20 said polite.err ready 2
ended polite TERM 143 "workers that end well"
start deaf "$PARAMO" run -v -s 1 -w 1 --grace 1 -- bash -c 'exec 9<>.never; trap "" TERM; echo ready >&2;'"$loop"
check "nodes that do not listen" wait_for 20 said deaf.err ready 3
check "nodes that do not listen: SIGTERM" kill -TERM "$(job_pid deaf)"
pids=$(children_of deaf)
ends deaf 143 "nodes that do not listen: ends with 143"
check "nodes that do not listen: no process is left" gone
start away env --ignore-signal=HUP "$PARAMO" run -v -s 1 -w 1 -- \
    bash -c 'exec 9<>.never; trap "exit 0" TERM; echo ready >&2;'"$loop"
check "a job that ignores SIGHUP" wait_for 20 said away.err ready 3
kill -HUP "$(job_pid away)"
ended away TERM 143 "a job that ignores SIGHUP"
start orphans "$PARAMO" run -v -s 2 -w 2 -- tail -f /dev/null
check "the job runs" wait_for 20 node_pid orphans worker 1
pids=$(sed -n 's/.* is pid //p' orphans.err)
kill -KILL "$(job_pid orphans)"
ends orphans 137 "the runner is killed"
check "no node outlives the runner" wait_for 10 gone
expect 0 "a process that a node started ends with it" \
    "$PARAMO" run -s 1 -w 1 -- sh -c 'tail -f /dev/null & echo $! >$DMLC_ROLE.left'
pids=$(cat ./*.left)
check "no process is left" wait_for 10 gone
# ---- a log file for each node ----
expect 0 "--log-dir" "$PARAMO" run --log-dir logs -s 1 -w 2 -- "$(dirname "$PARAMO")/examples/c/hello"
for node in scheduler server-0 worker-0 worker-1; do
    check "logs/$node.log is there" test -f "logs/$node.log"
done
# shellcheck disable=SC2016
check "each line has its time" awk \
    '!/^20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]*\.[0-9][0-9][0-9]Z (error|warning|info) [0-9]+: ./ { exit 1 }' \
    logs/scheduler.log
check "the logs have the progress of the cluster" grep -q 'complete with 1 servers and 2 workers$' logs/scheduler.log
expect 0 "--log-format json" "$PARAMO" run --log-dir logs2 --log-format json -s 1 -w 1 \
    -- "$(dirname "$PARAMO")/examples/c/hello"
check "the JSON log has an object on each line" awk \
    '!/^{"time":"[^"]*","level":"[a-z]*","pid":[0-9]*,"message":".*"}$/ { exit 1 }' logs2/scheduler.log
refused 2 "--log-format without files" '^paramo run: --log-format needs --log-dir' \
    "$PARAMO" run --log-format json -s 1 -w 1 -- true
refused 3 "a folder that cannot be made" '^paramo run: --log-dir /proc/none cannot be created: ' \
    "$PARAMO" run --log-dir /proc/none -s 1 -w 1 -- true
expect 3 "a log file that cannot be written" env PARAMO_LOG_FILE=/proc/none/log "$PARAMO" train --model lr --data x
finish
