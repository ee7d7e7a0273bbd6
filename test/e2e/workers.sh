# Workers join and leave during a job. Two join beyond the job's number: one is killed, the other stopped until it is
# declared dead, and continued. One of the job's first workers is killed at work. Each part is done exactly once.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
APP=$(readlink -f "$2")
cd "$WORK" || exit 1
unset PARAMO_TOKEN
export PS_HEARTBEAT_TIMEOUT=$((SLOW > 1 ? 10 : 4)) # a stopped worker is declared dead after it

said() { grep -Eq -- "$2" "$WORK/$1.out"; }
logged() { grep -Eq -- "$2" "$WORK/$1.err"; }
joined() { # NAME: joins, as which node
    check "$1 joins" wait_for 20 said "$1" '^joined'
}
at_work() { # NAME
    local pid
    pid=$(job_pid "$1") && wait_for 30 worked "$pid" $((SLOW > 1 ? 40 : 10))
}
worker() { # NAME ARGUMENT...
    local name=$1
    shift
    start "$name" "$PARAMO" worker --scheduler "127.0.0.1:$port" -- "$APP" "$@"
}

free_port
port=$PORT
start scheduler "$PARAMO" scheduler --port "$port" --servers 2 --workers 2 --verbose
check 'the scheduler listens' wait_for 20 listens "$(job_pid scheduler)"
for i in 0 1; do start "server$i" "$PARAMO" server --scheduler "127.0.0.1:$port"; done
parts=40 rounds=20
worker a "$parts" "$rounds" gate open last count
worker b "$parts" "$rounds" gate open last never
joined a
joined b
check 'a has done round 0' wait_for 20 said a '^waiting: gate'
check 'b has done round 0' wait_for 20 said b '^waiting: gate'

worker c "$parts" "$rounds" hold never
joined c
worker d "$parts" "$rounds" hold continue
joined d
check 'two additional workers join' wait_for 20 logged scheduler \
    'worker 3 .*has joined the running job as an additional node'
check 'c holds a part' wait_for 20 said c '^waiting: hold'
check 'd holds a part' wait_for 20 said d '^waiting: hold'
held=$(sed -n 's/^got: //p' "$WORK/d.out")
kill -KILL "$(job_pid c)"
check 'c is dead, and its part is dealt to others' wait_for 20 logged scheduler \
    'worker . .*is dead: its connection was lost; the work it held \(work units: 1\)'
ends c 137 'c was killed'
pid_d=$(job_pid d)
kill -STOP "$pid_d"
: >open
check 'd is dead after its silence' wait_for 30 logged scheduler \
    'is dead: it was silent .*the work it held \(work units: 1\)'
check 'b is at work' wait_for 20 said b '^got: 1'
kill -KILL "$(job_pid b)"
ends b 137 'b was killed'
got_again() { said a "^got: $held\$" || said b "^got: $held\$"; }
check "others have got d's part ($held)" wait_for 30 got_again
check 'a has done all its parts' wait_for 30 said a '^waiting: last'

: >continue
kill -CONT "$pid_d"
ends d 0 'd continues, as a new node'
check 'the late push of d was refused' said d '^late push: PARAMO_E_FENCED'
check 'd has joined again' test "$(grep -c '^joined' d.out)" -eq 2
check 'the old token of d is refused' said d '^stale token: PARAMO_E_NOT_FOUND'
: >count
ends a 0 'a has counted'
check "each of $parts x $rounds parts was done once" said a "^exact: 0 wrong of $((parts * rounds))\$"
ends scheduler 4 'the scheduler says that workers died'
for i in 0 1; do ends "server$i" '0|4' "server $i ends with the job"; done

# ---- training: a worker joins a running job, learns, and dies ----
"$PARAMO" data synth --rows 20000 --out train.ffm >/dev/null
free_port
port=$PORT
start scheduler "$PARAMO" scheduler --port "$port" --servers 1 --workers 1 --verbose
check 'a scheduler for training' wait_for 20 listens "$(job_pid scheduler)"
start server "$PARAMO" server --scheduler "127.0.0.1:$port"
train=("$PARAMO" train --model lr --data train.ffm --epochs 100000 --hold-out 0)
start first "$PARAMO" worker --scheduler "127.0.0.1:$port" -- "${train[@]}" --json --model-out model
check 'training begins' wait_for 30 logged first 'epoch 2/'
check 'no model is saved yet' test ! -e model
start second "$PARAMO" worker --scheduler "127.0.0.1:$port" -- "${train[@]}" --quiet
check 'a second worker joins' wait_for 30 logged scheduler 'worker 1 .*has joined the running job as an additional node'
check 'the second worker works' at_work second
start third "$PARAMO" worker --scheduler "127.0.0.1:$port" -- "${train[@]}" --quiet
check 'a third worker joins' wait_for 30 logged scheduler 'worker 2 .*has joined the running job as an additional node'
check 'the third worker works' at_work third
kill -KILL "$(job_pid third)"
ends third 137 'the third worker is killed'
check 'the death of the third worker is noticed' wait_for 20 logged scheduler 'worker 2 .*is dead'
kill -INT "$(job_pid first)"
ends first 130 'Ctrl-C ends the first worker'
check 'the first worker saves a model' test -s model/manifest.json
epochs=$(grep -c '"epoch":' "$OUT")
check "each of $epochs epochs has learned each row once" test "$(grep -c '"rows": 20000,\?$' "$OUT")" -eq "$epochs"
check 'one worker died' test "$(json "$OUT" dead_workers)" = 1
ends second '0|130' 'the second worker ends with the first'
ends scheduler 4 'the scheduler names the death'
check 'values of rounds that are over are not kept' at_most "$(sed -n 's/.*values still kept: //p' "$ERR")" 10
ends server '0|4' 'the server ends'
finish
