# Files that UCX makes in /dev/shm: those of nodes that were killed are gone when the next node starts, those of
# living nodes stay, and nodes that end remove their own.
# Sanitizers: none; van/test_shmdir and van/test_ucx_ends run the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=files PARAMO_VAN=ucx
NODES=(s0 s1 w)

job() { # NAME
    local i
    free_port
    start "$1-sched" "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1
    for i in 0 1; do start "$1-s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i"; done
    start "$1-w" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- "$ADDER" --until "stop-$1"
}
# The worker's program is a child of 'paramo worker'.
pid_of() { # NAME
    local pid child
    pid=$(job_pid "$1") || return 1
    child=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
    child=${child:-$pid}
    echo "${child% }"
}
# The folder whose lock the process holds.
folder_of() { # NAME
    local fd to
    for fd in /proc/"$(pid_of "$1")"/fd/*; do
        to=$(readlink "$fd") || continue
        case $to in /dev/shm/paramo-ucx-*/lock) echo "${to%/lock}" && return 0 ;; esac
    done
    return 1
}
folders() { # NAME: of its servers and its worker
    local node
    for node in "${NODES[@]}"; do folder_of "$1-$node" || return 1; done >"$1.folders"
}
are_there() { while read -r folder; do [ -d "$folder" ] || return 1; done <"$1"; }
are_gone() { while read -r folder; do [ ! -e "$folder" ] || return 1; done <"$1"; }

job living
if ! wait_for 20 folders living; then
    grep -hq 'UCX' living-*.err && skip "UCX is not here: $(grep -h UCX living-*.err | head -n 1)"
    failed "the first job's nodes have no folder in /dev/shm"
fi
job killed
check "a second job has folders of its own" wait_for 20 folders killed
check "both jobs have six folders" test "$(cat ./*.folders | sort -u | wc -l)" -eq 6
pids=()
for node in sched "${NODES[@]}"; do pids+=("$(pid_of "killed-$node")"); done
kill -KILL "${pids[@]}"
for node in sched "${NODES[@]}"; do ends "killed-$node" 137 "killed: $node" 2>/dev/null; done
job next
check "the nodes of a third job start" wait_for 20 folders next
check "the files of the killed nodes are gone" are_gone killed.folders
check "the files of living nodes are there" are_there living.folders
check "the files of the third job are there" are_there next.folders
for job in living next; do
    touch "stop-$job"
    ends "$job-w" 0 "$job: every sum is exact"
    ends "$job-sched" 0 "$job: ends in order"
    for i in 0 1; do ends "$job-s$i" 0 "$job: server $i ends"; done
    check "$job: its nodes leave no files" are_gone "$job.folders"
done
finish
