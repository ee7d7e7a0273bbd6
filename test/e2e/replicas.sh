# paramo run --replicas: servers die, and the job continues. If too many die for the copies, the error names the loss.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

refused 2 "more copies than there can be" "from 0 to 3" "$PARAMO" run -s 2 -w 1 --replicas 4 -- true
expect 0 "a log" "$PARAMO" data synth --rows 20000 --seed 7 --out train.ffm
# One worker: the same sums in the same order, whatever becomes of the servers. Two of them, so that nothing moves
# when one is gone: where partitions move, requests that do not wait for each other may change places. So they may
# where an answer is lost with a server: a pull that is asked again sees pushes that came after it. --ahead 0 pulls a
# batch after the push of the one before.
job=("$PARAMO" run --verbose -s 2 -w 1 --replicas 1 --workers-only \
    -- "$PARAMO" train --model lr --data train.ffm --batch 128 --epochs 60 --hold-out 0 --seed 1 --ahead 0)
expect 0 "a job in which no server dies" "${job[@]}" --model-out quiet
expect 0 "export of its model as text" "$PARAMO" export --model-in quiet --text --out quiet.txt

start deaths "${job[@]}" --model-out survived
check "three epochs are done" wait_for 30 grep -q '^epoch 3/' deaths.err
check "server 1 is killed" signal_node KILL deaths server 1
ends deaths 0 "the job continues without it"
says "the log names the killed server" 'server 1 \(node 10\), pid [0-9]+, was killed'
expect 0 "export of the model as text" "$PARAMO" export --model-in survived --text --out survived.txt
check "both models are equal bit for bit" cmp quiet.txt survived.txt

job[4]=3
start lost "${job[@]}" --model-out never
check "three epochs of the next job are done" wait_for 30 grep -q '^epoch 3/' lost.err
check "server 0 is killed" signal_node KILL lost server 0
check "server 2 is killed at the same time" signal_node KILL lost server 2
ends lost 4 "the death of two servers ends the job"
says "the error names what is lost" 'the last copy is lost .*: table [a-z.]+ [0-9.]+ % of the keys'
check "no model is saved" test ! -e never

# A table with fewer copies than the job: one of the two servers that hold a row dies, another server gets the copy, and
# then the second may die, too. A table without copies: lost rows are an error, not zeros.
export PARAMO_TOKEN=fewer
job() { # NAME REPLICAS: of the table; the job has 2
    local i
    free_port
    start "$1-sched" "$PARAMO" scheduler --port "$PORT" --servers 3 --workers 1 --replicas 2 --verbose
    for i in 0 1 2; do start "$1-s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i"; done
    start "$1" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- "$ADDER" --until "$WORK/enough" --replicas "$2"
}
lines() { [ "$(grep -c -- "$1" "$2")" -ge "$3" ]; } # REGEX FILE LINES
kill_server() { kill -KILL "$(job_pid "$1-s$2")"; }
job many 3
ends many 4 "a table with more copies than the job is refused"
says "the error gives both numbers of copies" 'adder: table sums: replicas is 3, but the job has 2'
job fewer 1
check "pushes go" wait_for 30 grep -q 'pushes$' fewer.out
check "server 1 is killed" kill_server fewer 1
check "the copies are there again, but for the job's second" wait_for 60 grep \
    -q 'nothing is left to move; [0-9]* of 12288 copies are missing: more servers' fewer-sched.err
check "server 2 is killed, too" kill_server fewer 2
check "the scheduler notices the death of server 2" wait_for 20 grep -q 'server 2 .* is dead' fewer-sched.err
check "pushes continue" wait_for 30 lines 'pushes$' fewer.out $(($(grep -c 'pushes$' fewer.out) + 3))
touch enough
ends fewer 0 "the sums are exact"
rm enough
job none 0
check "pushes to a table without copies work" wait_for 30 grep -q 'pushes$' none.out
check "server 0 is killed" kill_server none 0
ends none 4 "the worker ends with an error"
says "the worker's request names the loss" 'adder: .*table sums: a server died with the only copy of some rows'
check "the scheduler says what is lost" grep \
    -Eq 'lost, because the table has no copies: table sums [0-9.]+ % of the keys' none-sched.err
finish
