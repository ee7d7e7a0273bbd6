# A job whose scheduler keeps its state in etcd, with a standby scheduler. The leader is killed, then stopped past its
# lease and continued, and etcd itself is killed. The job continues each time, and the model is that of an undisturbed
# job. etcd is Debian's etcd-server, started here.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
command -v etcd >/dev/null || skip "there is no etcd (Debian: etcd-server)"

rows=$((60000 / SLOW)) epochs=150 # long enough for a leader to die and the next to be stopped
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
train=("$PARAMO" train --model lr --data train.ffm --batch 128 --epochs $epochs --seed 1)
expect 0 "the job undisturbed" "$PARAMO" run -s 2 -w 1 -- "${train[@]}" --model-out model-calm

free_port
etcd_port=$PORT
free_port
peer_port=$PORT
DEADLINE=$((300 * SLOW)) # for all of it
etcd_on() {
    start "$1" etcd --data-dir etcd.data --listen-client-urls "http://127.0.0.1:$etcd_port" \
        --advertise-client-urls "http://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-cluster "default=http://127.0.0.1:$peer_port" --log-level error
}
open_port() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
lines() { [ "$(grep -c -- "$1" "$2")" -ge "$3" ]; } # REGEX FILE LINES

etcd_on etcd-0
check "etcd runs" wait_for 30 open_port "$etcd_port"
for job in a b c d; do
    free_port
    declare "port_$job=$PORT"
done
meta=etcd://127.0.0.1:1,127.0.0.1:$etcd_port # no server listens at the first: the next is asked

# scheduler NAME PORT SERVERS JOB
scheduler() { start "$1" "$PARAMO" scheduler --port "$2" --servers "$3" --workers 1 --verbose --meta "$meta/$4"; }
# takes_over NAME OTHERS: it leads, and all others have found it.
takes_over() {
    check "the standby scheduler leads" wait_for 30 grep -q 'leads the job now' "$1.err"
    check "the $2 other nodes are back" wait_for 40 lines ' is back$' "$1.err" "$2"
}
# begins NAME PORT ..., stands_by NAME PORT LEADER ...
begins() {
    scheduler "$@"
    check "a scheduler leads" wait_for 20 listens "$(job_pid "$1")"
}
stands_by() {
    scheduler "$1" "$2" "$4" "$5"
    check "another scheduler stands by, and logs it" wait_for 20 grep -q "stands by: 127.0.0.1:$3 leads the job" \
        "$1.err"
    if open_port "$2"; then failed "the standby scheduler does not listen"; else passed "and does not listen"; fi
}

# ---- etcd dies, and comes back; then the leader dies ----
both=127.0.0.1:$port_c,127.0.0.1:$port_d
begins c "$port_c" 1 sums
stands_by d "$port_d" "$port_c" 1 sums
start sums "$PARAMO" server --scheduler "$both"
start adder "$PARAMO" worker --scheduler "$both" -- "$ADDER" --until "$WORK/enough"
pushes_pass() { # more of them than there are now
    check "$1" wait_for 20 lines 'pushes$' adder.out $(($(grep -c 'pushes$' adder.out) + 3))
}
pushes_pass "pushes are acknowledged"
kill -KILL "$(job_pid etcd-0)"
ends etcd-0 137 "etcd is killed" 2>/dev/null
check "the leader logs that its state cannot be saved" wait_for 20 grep -q 'its state cannot be saved' c.err
pushes_pass "pushes continue without etcd"
etcd_on etcd-1
check "the leader logs that etcd is back" wait_for 40 grep -q 'its state is saved again' c.err
check "the leader logs each of the two once" test "$(grep -c 'cannot be saved\|saved again' c.err)" -eq 2
kill -KILL "$(job_pid c)"
ends c 137 "the leader is killed"
pushes_pass "pushes continue without a scheduler"
takes_over d 2
: >enough
ends adder 0 "the sums are exact"
ends sums 0 "the server ends well"
ends d 0 "the scheduler ends well"

# ---- the leader dies in training; the next one is stopped for longer than its lease, and continues ----
both=127.0.0.1:$port_a,127.0.0.1:$port_b
begins a-0 "$port_a" 2 train
stands_by b-0 "$port_b" "$port_a" 2 train
for i in 0 1; do start "s$i" "$PARAMO" server --scheduler "$both" --rank "$i"; done
start w "$PARAMO" worker --scheduler "127.0.0.1:$port_b,127.0.0.1:$port_a" --rank 0 -- "${train[@]}" --model-out model
check "training begins" wait_for 30 grep -q '^epoch' w.err
kill -KILL "$(job_pid a-0)"
ends a-0 137 "the leader is killed"
takes_over b-0 3
stands_by a-1 "$port_a" "$port_b" 2 train
kill -STOP "$(job_pid b-0)"
takes_over a-1 3
kill -CONT "$(job_pid b-0)"
ends b-0 4 "the former leader ends at once"
check "the former leader logs why it ends" test \
    "$(grep -c "^paramo scheduler: this scheduler no longer leads the job: 127.0.0.1:$port_a leads it in term 3$" b-0.err)" \
    -eq 1
check "the leader was killed before the training was over" test "$(grep -c '^epoch' w.err)" -lt $epochs
stands_by b-1 "$port_b" "$port_a" 2 train
ends w 0 "the worker ends well"
for i in 0 1; do ends s$i 0 "server $i ends well"; done
ends a-1 0 "the leader ends well"
ends b-1 0 "the standby scheduler ends well"
check "no node was declared dead" sh -c '! grep -Eq "is dead|fenced" w.err s?.err a-?.err'
check "the model is that of the undisturbed job" cmp model-calm/manifest.json model/manifest.json

# ---- what does not begin ----
refused 4 "an etcd that does not answer is an error" 'etcd does not answer: http://127.0.0.1:1/' \
    "$PARAMO" scheduler --port "$port_a" --servers 1 --workers 1 --wait 1 --meta etcd://127.0.0.1:1
kill -TERM "$(job_pid etcd-1)"
finish
