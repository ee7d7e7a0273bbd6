# paramo checkpoint list and verify, on checkpoints that an earlier build wrote: the format stays. Then save and load,
# of jobs that run: on other numbers of servers, on a disk that fills and one whose fsync fails.
# Sanitizers: address; train and replicas have the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

refused 2 "no subcommand" "a subcommand is missing: 'save', 'load', 'list' or 'verify'" "$PARAMO" checkpoint
refused 2 "another subcommand" "unknown subcommand 'show'" "$PARAMO" checkpoint show
refused 2 "no folder" "DIR is missing" "$PARAMO" checkpoint list
refused 2 "a number to list" "is for verify" "$PARAMO" checkpoint list . --number 1
refused 3 "a folder that is not there" "nonesuch" "$PARAMO" checkpoint list nonesuch
mkdir empty
expect 0 "an empty folder" "$PARAMO" checkpoint list empty
check "the list says that the folder is empty" grep -qx 'no checkpoints' "$OUT"
refused 3 "nothing to verify" "contains no checkpoint" "$PARAMO" checkpoint verify empty

cp -r "$TOP/test/e2e/checkpoints" ckpt
mkdir ckpt/00000003 ckpt/other
expect 0 "a full one, a delta, an attempt" "$PARAMO" checkpoint list ckpt
check "the list has the full checkpoint" grep -Eq '^ +1 +whole +2023-11-14 22:14:20 +full +- +1 +1 +[0-9]+$' "$OUT"
check "the list has its delta" grep -Eq '^ +2 +whole +2023-11-14 22:15:20 +changes +1 +1 +1 +[0-9]+$' "$OUT"
check "the list has the attempt" grep -Eq '^ +3 +unfinished' "$OUT"
check "the list has no more" test "$(wc -l <"$OUT")" -eq 4
expect 0 "as JSON" "$PARAMO" checkpoint list ckpt --json
check "the JSON parses" python3 -c '
import json, sys
a, b, c = json.load(open(sys.argv[1]))
assert (a["state"], b["state"], c["state"]) == ("whole", "whole", "unfinished")
assert (a["kind"], b["kind"]) == ("full", "changes")
assert a["base"] == 0 and b["base"] == 1 and b["files"] == 1 and b["made_at"] == 1700000120
' "$OUT"
expect 0 "the last checkpoint is whole" "$PARAMO" checkpoint verify ckpt
check "verify reads its base, too" grep -q \
    '^checkpoint 2, based on 1: whole; 2 blocks of rows, 2 of other things, 56 bytes' "$OUT"
expect 0 "the first, as JSON" "$PARAMO" checkpoint verify ckpt --number 1 --json
check "the first checkpoint has one block of rows" test "$(json "$OUT" rows_blocks)" -eq 1
refused 3 "a checkpoint that is not complete is refused" "no whole checkpoint 3" \
    "$PARAMO" checkpoint verify ckpt --number 3

flip() { # FILE BYTE: its lowest bit
    python3 -c 'import sys
f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1); f.seek(-1, 1); f.write(bytes([b[0] ^ 1]))' "$@"
}
flip ckpt/00000001/blocks-0 90
refused 3 "a flipped bit in the base is found" "ckpt/00000001/blocks-0: damaged at byte" \
    "$PARAMO" checkpoint verify ckpt
flip ckpt/00000001/blocks-0 90
flip ckpt/00000002/manifest 20
refused 3 "a flipped bit in the manifest is found by verify" "ckpt/00000002/manifest: .*damaged" \
    "$PARAMO" checkpoint verify ckpt
expect 3 "a flipped bit in the manifest is found by list" "$PARAMO" checkpoint list ckpt
check "the list gives the cause" grep -Eq '^ +2 +damaged +.*checksum is wrong' "$OUT"
expect 0 "the first checkpoint is still whole" "$PARAMO" checkpoint verify ckpt --number 1
flip ckpt/00000002/manifest 20
truncate -s -1 ckpt/00000002/blocks-0
refused 3 "a missing byte is found" "blocks-0 has [0-9]* bytes; the manifest says [0-9]*" \
    "$PARAMO" checkpoint verify ckpt
rm ckpt/00000002/blocks-0
refused 3 "a missing file is found" "blocks-0 is missing" "$PARAMO" checkpoint verify ckpt

# ---- live jobs ------------------------------------------------------------------------------------------------------
cp -r "$TOP/test/e2e/checkpoints" baseless
rm -r baseless/00000001
expect 3 "a missing base is found" "$PARAMO" checkpoint list baseless
check "the list names the missing base" grep -Eq '^ +2 +no base +.* changes +1 ' "$OUT"
refused 3 "verify names the missing base" "checkpoint 2 is based on 1, which is missing" \
    "$PARAMO" checkpoint verify baseless

refused 2 "changes to load" "incremental is for save" \
    "$PARAMO" checkpoint load --scheduler 127.0.0.1:1 --dir x --incremental
refused 2 "no scheduler" "scheduler is missing" "$PARAMO" checkpoint save --dir x
refused 2 "no folder to save to" "dir is missing" "$PARAMO" checkpoint save --scheduler 127.0.0.1:1
refused 2 "a folder to list with a scheduler" "not a job" "$PARAMO" checkpoint list ckpt --scheduler 127.0.0.1:1
refused 4 "no scheduler there" "127.0.0.1:1" "$PARAMO" checkpoint save --scheduler 127.0.0.1:1 --dir x --wait 2
refused 2 "how often, but not where" "checkpoint-dir" "$PARAMO" run -s 1 -w 1 --checkpoint-every 1 -- true
expect 0 "a training log" "$PARAMO" data synth --rows 60000 --features 5000 --seed 1 --out train.ffm

# All rows of all blocks of checkpoint folders, each of which must have the same; or must not (--differ). --count: how
# many.
cat >same.py <<'PY'
import struct, sys, glob
def rows(folder):
    all = {}
    for name in sorted(glob.glob(folder + "/blocks-*")):
        data, at = open(name, "rb").read(), 32
        while at < len(data):
            kind, table, partition, partitions, place, size = struct.unpack_from("<IIIIQQ", data, at)
            payload = data[at + 48:at + 48 + size]
            at += 48 + size
            if kind != 1:
                continue
            n, width = struct.unpack_from("<II", payload)
            for i in range(n):
                key = (table,) + struct.unpack_from("<Q", payload, 8 + 8 * i)
                assert key not in all, key
                all[key] = payload[8 + 8 * n + i * width:8 + 8 * n + (i + 1) * width]
    return all
if sys.argv[1] == "--count":
    print(len(rows(sys.argv[2])))
    sys.exit(0)
differ = sys.argv[1] == "--differ"
folders = sys.argv[1 + differ:]
first, second = rows(folders[0]), rows(folders[1])
assert len(first) > 100, len(first)
sys.exit((first != second) != differ)
PY

# job NAME SERVERS OPTION...: one whose worker learns from a pipe, which is descriptor 7 here: it has no end before we
# say so.
job() {
    local name=$1 servers=$2
    shift 2
    free_port
    [ -p "pipe-$name" ] || mkfifo "pipe-$name"
    start "$name" "$PARAMO" scheduler --port "$PORT" --servers "$servers" --workers 1 "$@"
    check "$name: the scheduler listens" wait_for 20 listens "$(job_pid "$name")"
    for i in $(seq "$servers"); do
        start "$name-$i" ${SERVER:+"${SERVER[@]}"} \
            "$PARAMO" server --scheduler "127.0.0.1:$PORT" --shards $((i % 2 + 1))
    done
    start "$name-worker" "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- \
        sh -c \
        'echo $$ >learner && exec "$0" train --model lr --data - --epochs 1 --hold-out 0 -q --model-out "$1" <"$2"' \
        "$PARAMO" "model-$name" "pipe-$name"
    exec 7>"pipe-$name"
}
save() { "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" "$@" >"$OUT" 2>"$ERR"; }
# What was fed is learned when two checkpoints in a row are the same and have rows.
settled() { save --dir settle && local a && a=$(ls settle | tail -n 2) && # shellcheck disable=SC2086
    [ "$(wc -w <<<"$a")" = 2 ] &&
        python3 same.py settle/$(echo "$a" | head -n 1) settle/$(echo "$a" | tail -n 1) 2>/dev/null; }
over() { # NAME SERVERS: it ends in order
    exec 7>&-
    ends "$1-worker" 0 "$1: the worker ends"
    ends "$1" 0 "$1: the scheduler ends"
    for i in $(seq "$2"); do ends "$1-$i" 0 "$1: server $i ends"; done
}

job a 2
head -n 40000 train.ffm >&7
check "the job has learned" wait_for 60 settled
expect 0 "a checkpoint of the job" "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" --dir live
check "the checkpoint is the job's first" grep -qx 'checkpoint 1 saved in live' "$OUT"
expect 0 "the checkpoint is whole" "$PARAMO" checkpoint verify live
tail -n 20000 train.ffm >&7
check "the job has learned more" wait_for 60 sh -c 'exec 7>&-; "$0" checkpoint save --scheduler "$1" --dir more >/dev/null &&
    python3 same.py --differ live/00000001 "more/$(ls more | tail -n 1)"' "$PARAMO" "127.0.0.1:$PORT"
rm -rf settle
check "the job has learned all rows" wait_for 60 settled
expect 0 "a load goes back to a checkpoint" "$PARAMO" checkpoint load --scheduler "127.0.0.1:$PORT" --dir live --json
check "the load goes back to the first checkpoint" test "$(json "$OUT" number)" -eq 1
check "another checkpoint of the same rows" save --dir live
check "both checkpoints have the same rows, bit for bit" python3 same.py live/00000001 live/00000002
refused 3 "a load of a checkpoint that does not exist is refused" "no whole checkpoint 9" \
    "$PARAMO" checkpoint load --scheduler "127.0.0.1:$PORT" --dir live --number 9
refused 3 "a save to a folder that cannot be made is refused" "No such file" \
    "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" --dir "$WORK/none/where"
check "the job continues as before" save --dir live
over a 2

job b 3 --restore "$WORK/live" --checkpoint-dir "$WORK/own" --checkpoint-allow "$WORK/again" --checkpoint-every 1 \
    --checkpoint-full-every 2 --checkpoint-keep 1
check "a job of three servers begins with the checkpoint" wait_for 20 save --dir again
check "three servers have the same rows, bit for bit" python3 same.py live/00000001 again/00000001
# NUMBER: it or a later one was written (a slow machine may not see each one: they come every second, and go)
reached() {
    local manifest
    for manifest in own/[0-9]*/manifest; do
        if [ -e "$manifest" ] && [ "$((10#$(basename "$(dirname "$manifest")")))" -ge "$1" ]; then return 0; fi
    done
    return 1
}
old_ones_go() { reached 3 && [ ! -e own/00000001 ]; }
check "checkpoints come by themselves" wait_for 30 reached 2
check "old checkpoints are removed" wait_for 30 old_ones_go
head -n 5000 train.ffm >&7 # there is no model of nothing
over b 3
expect 0 "the checkpoints that are left are whole" "$PARAMO" checkpoint verify own

# Of what has changed: while the job learns, and after a third server has come.
last() { ls "$1" | tail -n 1; }
kind() { "$PARAMO" checkpoint list inc | awk -v n="$1" '$1 == n { print $5 }'; } # NUMBER
rows() { python3 same.py --count "inc/$(last inc)"; }
learns() { save --incremental --dir inc && [ "$(rows)" -gt 0 ]; }
at_rest() { save --incremental --dir inc && [ "$(rows)" = 0 ]; }
still() { # what incremental ones make of it, and a full one of the same moment: the learner stands still
    kill -STOP "$(cat learner)"
    check "a save of the changes" wait_for 60 at_rest
    check "a save of all rows" save --dir whole
    kill -CONT "$(cat learner)"
}
export PS_HEARTBEAT_TIMEOUT=60 # it may stand still
job i 2 --checkpoint-full-every 1000 --verbose
head -n 40000 train.ffm >&7
check "the job learns" wait_for 60 learns
still
n=$((10#$(last inc)))
check "the first checkpoint is a full one" test "$(kind 1)" = full
check "the last checkpoint has changes" test "$(kind $n)" = changes
check "the changes are few" test $((10 * $(cat "inc/$(last inc)/"* | wc -c))) -lt "$(cat whole/00000001/* | wc -c)"
check "a checkpoint after one in another folder" save --incremental --dir inc
check "a checkpoint after one in another folder is full" test "$(kind $((n + 1)))" = full
start i-3 "$PARAMO" server --scheduler "127.0.0.1:$PORT" 7>&-
check "a third server gets its share" wait_for 60 grep -q 'rebalancing is complete' i.err
tail -n 20000 train.ffm >&7
check "the job learns more" wait_for 60 learns
still
check "the last checkpoint has the blocks of three servers, one of two shards" test \
    "$(ls "inc/$(last inc)" | grep -c blocks)" = 4
over i 3
unset PS_HEARTBEAT_TIMEOUT
expect 0 "all checkpoints are whole" "$PARAMO" checkpoint verify inc
check "the last checkpoint is based on others" grep -Eq ", based on .* $((n + 1)): whole" "$OUT"
job j 1 --restore "$WORK/inc"
check "a job of one server begins with the checkpoint" wait_for 20 save --dir begun
check "one server has the same rows, bit for bit" python3 same.py whole/00000002 begun/00000001
expect 0 "a load of a checkpoint from before the third server" \
    "$PARAMO" checkpoint load --scheduler "127.0.0.1:$PORT" --dir inc --number "$n"
check "a save after that load" save --dir begun
check "the older rows are the same, bit for bit" python3 same.py whole/00000001 begun/00000002
head -n 5000 train.ffm >&7
over j 1

# One that is damaged is not begun with.
cp -r live torn
flip torn/00000003/blocks-1 500
job c 1 --restore "$WORK/torn"
exec 7>&-
ends c '[1-9][0-9]*' "a damaged checkpoint: the job ends"
says "the scheduler says why" 'blocks-1: damaged at byte'

# A disk that fills, and one whose fsync fails, in the middle of a save: the servers continue.
if [ "$SLOW" = 1 ] && command -v cc >/dev/null; then
    cat >fsync.c <<'C'
#include <errno.h>
#include <unistd.h>
int fsync(int fd) { (void)fd; if (access("fsync-fails", F_OK)) return 0; errno = EIO; return -1; }
C
    check "a library whose fsync fails" cc -shared -fPIC -o fsync.so fsync.c
    SERVER=(env LD_PRELOAD="$WORK/fsync.so")
    job d 2
    SERVER=()
    head -n 40000 train.ffm >&7
    check "the job has learned" wait_for 60 settled
    check "a checkpoint" save --dir sync
    touch fsync-fails
    refused 3 "fsync fails" "Input/output error" "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" --dir sync
    rm fsync-fails
    expect 0 "the checkpoint before the failure is the last" "$PARAMO" checkpoint verify sync --json
    check "the checkpoint before the failure is whole" test "$(json "$OUT" number)" -eq 1
    tail -n 20000 train.ffm >&7
    check "the next checkpoint is saved" save --dir sync
    expect 0 "the next checkpoint is whole" "$PARAMO" checkpoint verify sync --json
    check "the next checkpoint is the last" test "$(json "$OUT" number)" -gt 1
    over d 2
fi
mkdir -p small
if unshare -rm mount -t tmpfs -o size=64k small small 2>/dev/null; then
    SERVER=(unshare -rm sh -c 'mount -t tmpfs -o size=64k small small && exec "$@"' sh)
    job e 1
    SERVER=()
    head -n 40000 train.ffm >&7
    check "the job has learned" wait_for 60 settled
    refused 3 "the disk is full" "No space left" "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" --dir small
    check "a save to another disk works" save --dir roomy
    over e 1
fi
finish
