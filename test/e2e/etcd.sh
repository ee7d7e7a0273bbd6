# A job whose scheduler keeps its state in etcd, with a second scheduler that stands by: the leader is killed, stopped past
# its lease and continued, and etcd itself dies: the job goes on, and the model is that of an undisturbed job. etcd is
# Debian's etcd-server, started here.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
command -v etcd >/dev/null || skip "there is no etcd (Debian: etcd-server)"

rows=$((60000 / SLOW)) epochs=60
expect 0 "a training log" "$PARAMO" data synth --rows $rows --seed 1 --model-seed 7 --out train.ffm
train=("$PARAMO" train --model lr --data train.ffm --epochs $epochs --seed 1)
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
free_port
port_a=$PORT
free_port
port_b=$PORT
meta=etcd://127.0.0.1:1,127.0.0.1:$etcd_port/test # nobody listens at the first: the next is asked

# scheduler NAME PORT
scheduler() { start "$1" "$PARAMO" scheduler --port "$2" --servers 2 --workers 1 --verbose --meta "$meta"; }
# takes_over NAME PORT: it leads, and all three others have found it.
takes_over() {
    check "the one that stood by leads" wait_for 30 grep -q 'leads the job now' "$1.err"
    check "and all three are back" wait_for 40 lines ' is back$' "$1.err" 3
}
epoch_passes() { # an epoch more than there are now
    check "$1" wait_for 40 lines '^epoch' w.err $(($(grep -c '^epoch' w.err) + 1))
}

scheduler a-0 "$port_a"
check "the first scheduler leads" wait_for 20 listens "$(job_pid a-0)"
scheduler b-0 "$port_b"
check "the second stands by, and says so" wait_for 20 grep -q "stands by: 127.0.0.1:$port_a leads the job" b-0.err
if open_port "$port_b"; then failed "it does not listen"; else passed "and does not listen"; fi
for i in 0 1; do start "s$i" "$PARAMO" server --scheduler "127.0.0.1:$port_a,127.0.0.1:$port_b" --rank "$i"; done
start w "$PARAMO" worker --scheduler "127.0.0.1:$port_b,127.0.0.1:$port_a" --rank 0 -- "${train[@]}" --model-out model
check "the job begins" wait_for 30 grep -q '^epoch' w.err

# ---- the leader is killed ----
kill -KILL "$(job_pid a-0)"
ends a-0 137 "the leader is killed"
takes_over b-0
epoch_passes "training goes on"
scheduler a-1 "$port_a"
check "the first, started again, stands by" wait_for 20 grep -q "stands by: 127.0.0.1:$port_b leads the job" a-1.err

# ---- etcd dies, and comes back ----
kill -KILL "$(job_pid etcd-0)"
ends etcd-0 137 "etcd is killed"
check "the leader says so" wait_for 20 grep -q 'its state cannot be saved' b-0.err
etcd_on etcd-1
check "etcd is back, and so is the leader" wait_for 40 grep -q 'its state is saved again' b-0.err
epoch_passes "training goes on"
check "it was said once" test "$(grep -c 'cannot be saved' b-0.err)" -eq 1

# ---- the leader is stopped for longer than its lease, and goes on ----
kill -STOP "$(job_pid b-0)"
takes_over a-1
kill -CONT "$(job_pid b-0)"
ends b-0 4 "whoever led before ends at once"
check "and says why" test "$(grep -c "^paramo scheduler: this scheduler does not lead the job any more: 127.0.0.1:$port_a does, in term 3$" b-0.err)" -eq 1
epoch_passes "training goes on"
scheduler b-1 "$port_b"
check "it stands by when it is started again" wait_for 20 grep -q 'stands by' b-1.err

# ---- the end ----
ends w 0 "the worker ends well"
for i in 0 1; do ends s$i 0 "server $i ends well"; done
ends a-1 0 "and the leader"
ends b-1 0 "and the one that stood by"
check "nobody was taken for dead" sh -c '! grep -Eq "is dead|fenced" w.err s?.err a-?.err'
check "the model is that of the undisturbed job" cmp model-calm/manifest.json model/manifest.json

# ---- what does not begin ----
refused 4 "an etcd that is not there" 'etcd does not answer: http://127.0.0.1:1/' \
    "$PARAMO" scheduler --port "$port_a" --servers 1 --workers 1 --wait 1 --meta etcd://127.0.0.1:1
kill -TERM "$(job_pid etcd-1)"
finish
