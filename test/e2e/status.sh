# paramo status prints the nodes, migrations, write pauses, applied windows and checkpoints of a live cluster, as text
# and as JSON.
# Sanitizers: address; cluster has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=status

free_port
status=("$PARAMO" status --scheduler "127.0.0.1:$PORT")
refused 4 "no scheduler answers" . "${status[@]}" --wait 1
refused 2 "a status without a scheduler is refused" "is missing" "$PARAMO" status
refused 2 "an argument that is no option is refused" "unexpected argument 'now'" "$PARAMO" status now

start sched "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1 --replicas 1
check "the scheduler listens" wait_for 20 listens "$(job_pid sched)"
refused 1 "the job is not complete" "not complete yet" "${status[@]}"
for i in 0 1; do
    start "s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i" --name "box$i" --domain "host $i" --shards 2
done
start w0 "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- "$ADDER" --until stop
check "the worker pushes" wait_for 30 grep -q pushes w0.out

expect 0 "status as text" "${status[@]}"
cp "$OUT" text
check "rebalancing is complete" grep -q '1 replicas: rebalancing is complete: every key has all its copies' text
check "status shows the scheduler" grep -Eq "^scheduler +127\.0\.0\.1 +joined" text
check "status shows each server, with its name, address and shards" grep \
    -Eq '^server 1 +box1 +127\.0\.0\.1:[0-9]+ +joined +[0-9.]+ s +2$' text
check "status shows the worker" grep -Eq '^worker 0 .*joined' text
check "status shows what a server owns and keeps" grep -Eq '^0 +2048 +2048 +0 +[1-9][0-9]+ +[1-9][0-9]+ ' text
check "status shows no checkpoint" grep -q 'this scheduler has taken none' text

expect 0 "a checkpoint is taken" "$PARAMO" checkpoint save --scheduler "127.0.0.1:$PORT" --dir "$WORK/ckpt"
start s2 "$PARAMO" server --scheduler "127.0.0.1:$PORT" --name box2 --domain "host 2"
# NAME
converged_with() { "${status[@]}" --json >json.out && grep -q '"converged": true' json.out &&
    grep -q "\"name\": \"$1\"" json.out; }
check "a third server joins, and gets its share" wait_for 60 converged_with box2
expect 0 "server 0 is drained" "$PARAMO" drain 0 --scheduler "127.0.0.1:$PORT"
check "rebalancing is complete again" wait_for 60 converged_with box2
expect 0 "status as JSON" "${status[@]}" --json
cp "$OUT" json
check "the JSON is whole" python3 -c 'import json, sys; json.load(open("json"))'
cat >look.py <<'END'
import json

s = json.load(open("json"))
node = {n["name"]: n for n in s["nodes"] if n["role"] == "server"}
assert node["box0"]["state"] == "left" and node["box0"]["server"]["owns"] == 0, node["box0"]
assert sum(n["server"]["owns"] for n in node.values()) == 4096 and s["partitions_lacking"] == 0
assert sum(n["server"]["copies"] for n in node.values()) == 4096
here = [node["box1"]["server"], node["box2"]["server"]]
for n in here:
    assert n["rows"] > 0 and n["bytes"] > 0 and n["requests"] > 0, n
    # Each shard has one record of the worker. Notes that came with partitions are gone with the pushes that followed.
    c = n["applied_windows"]
    assert 1 <= c["senders"] <= 8 and c["bytes"] < 1 << 20 and c["applied_notes"] < 1024, c
p = s["write_pauses"] # of the one that has left, too
assert p["count"] > sum(n["write_pauses"]["count"] for n in here), p
assert 0 <= p["p50_ms"] <= p["p99_ms"] <= p["max_ms"], p
assert s["checkpoint"]["last"] == 1 and s["checkpoint"]["dir"].endswith("/ckpt") and s["checkpoint"]["at"] > 1e9
assert s["checkpoint"]["now"] == "none" and s["migrations"] == []
END
check "the numbers of the JSON add up" python3 look.py

check "server 1 is stopped" kill -STOP "$(job_pid s1)"
expect 0 "status of the other servers does not wait for server 1" "${status[@]}"
check "status shows the last report of server 1, with its age" grep -Eq '^1 .* \([0-9.]+ s ago\)$' "$OUT"
check "server 1 continues" kill -CONT "$(job_pid s1)"
touch stop
ends w0 0 "every sum is exact"
ends sched 0 "the job ends in order"

# ---- converged: the next server may be taken down, and only then ----
free_port
status=("$PARAMO" status --scheduler "127.0.0.1:$PORT")
scheduler() { start "$1" "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1 --replicas 1 --state state \
    --verbose; }
server() { start "$1" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --name "$1" --domain "$1"; } # NAME
rm -f stop
scheduler k0
server k-s0
server k-s1
start k-w "$PARAMO" worker --scheduler "127.0.0.1:$PORT" --scheduler-wait 60 -- "$ADDER" --until stop
check "the worker pushes" wait_for 30 grep -q pushes k-w.out
kill -KILL "$(job_pid k0)"
ends k0 137 "the scheduler is killed"
kill -KILL "$(job_pid k-s1)"
ends k-s1 137 "server 0 was killed before"
scheduler k1
few() { # every answer until the death is known says what is missing
    "${status[@]}" >"$OUT" 2>"$ERR" || return 1
    if grep -q 'with all its copies' "$OUT"; then touch wrong; fi
    grep -q '1 replicas: not converged, 4096 copies missing: not enough servers (1 more needed); 0 migrations' "$OUT"
}
check "status says that one server is too few for the copies" wait_for 30 few
check "status never said that all copies are there" sh -c '! test -e wrong && ! grep -q "with all its copies" k1.err'
expect 0 "status as JSON" "${status[@]}" --json
check "the JSON says how many copies are missing" \
    sh -c \
    'grep -q "\"converged\": false" "$1" && grep -q "\"copies_missing\": 4096" "$1" && grep -q "\"servers_missing\": 1" "$1"' \
    . "$OUT"
server k-s2
check "a new server takes the place: rebalancing is complete" wait_for 60 converged_with k-s2
kill -KILL "$(job_pid k-s0)"
ends k-s0 137 "the first server is killed"
touch stop
ends k-w 0 "every sum is exact"
ends k1 0 "the job ends in order"
finish
