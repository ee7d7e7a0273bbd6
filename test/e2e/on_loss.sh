# --on-loss restore: the last servers that have some rows die. Those rows, and no others, go back to the last
# checkpoint; other nodes only wait for a while. Without a checkpoint, or without the option, the job ends as before.
# Sanitizers: address; replicas has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
LOSER=$(dirname "$PARAMO")/test/loser
export PARAMO_TOKEN=loss

refused 2 "a scheduler without a folder to restore from is refused" \
    "needs a folder with checkpoints .--checkpoint-dir" \
    "$PARAMO" scheduler --port 1 --servers 1 --workers 1 --on-loss restore
refused 2 "a run without a folder to restore from is refused" "needs --checkpoint-dir" \
    "$PARAMO" run -s 1 -w 1 --on-loss restore -- true
refused 2 "an unknown outcome is refused" "not one of end.restore" "$PARAMO" run -s 1 -w 1 --on-loss perhaps -- true

job() { # NAME SERVERS DIR OPTION...
    local name=$1 servers=$2 dir=$3 i
    shift 3
    free_port
    start "$name-sched" "$PARAMO" scheduler --port "$PORT" --servers "$servers" --workers 1 \
        --checkpoint-dir "$WORK/$name" --on-loss restore --verbose "$@"
    for i in $(seq 0 $((servers - 1))); do start "$name-s$i" \
        "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i"; done
    start "$name" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- "$LOSER" --dir "$dir" --until "$WORK/$name.enough"
    check "$name: the worker is at work" wait_for 30 grep -q ready "$name.out"
}
kill_server() { kill -KILL "$(job_pid "$1-s$2")"; }
known() { grep -Eq -- "$2" "$1-sched.err"; }
times() { [ "$(grep -Ec -- "$2" "$1-sched.err")" -eq "$3" ]; }
counts() { # NAME: as many as there are went back, and as many stayed
    check "$1: no row has another value" test "$(json "$OUT" wrong)" -eq 0
    check "$1: some rows went back, others are as they were" test "$(json "$OUT" back)" -gt 0 -a "$(json "$OUT" kept)" \
        -gt 0
}
back='the last copy is lost \(server [0-9].* died.*\): table t [0-9.]+ % of the keys; they go back to checkpoint 1 in /.*, of 20'

job alone 2 "$WORK/alone"
check "a server without copies is killed" kill_server alone 0
check "the rows of the killed server go back to the checkpoint" wait_for 30 known alone "$back"
check "the lost rows are restored" wait_for 30 known alone 'lost rows are restored'
start alone-again "$PARAMO" server --scheduler "127.0.0.1:$PORT"
check "a new server takes the place of the killed one" wait_for 30 known alone 'joined in a dead'
touch alone.enough
ends alone 0 "the worker ends well"
counts alone
ends alone-sched 0 "the scheduler ends well"

job copies 3 "$WORK/copies" --replicas 1
check "server 0 of three is killed" kill_server copies 0
check "server 2 is killed at once" kill_server copies 2
check "the rows of both servers are restored" wait_for 30 known copies 'lost rows are restored'
check "one line says which rows went back" wait_for 30 known copies "$back"
touch copies.enough
ends copies 0 "the worker ends well"
counts copies

job none 2 -
check "a server is killed, and there is no checkpoint" kill_server none 1
ends none 4 "the job ends"
ends none-sched 4 "the scheduler ends"
says "the last line says that nothing could be restored" \
    'the last copy is lost \(server 1 .*\): table t [0-9.]+ % of the keys; they cannot be restored: .*/none'
finish
