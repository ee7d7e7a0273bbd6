# paramo ring show of planned clusters and of a live one, which it does not change.
# Sanitizers: address; cluster has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

refused 2 "no subcommand" "a subcommand is missing: 'show'" "$PARAMO" ring
refused 2 "another subcommand" "unknown subcommand 'draw'" "$PARAMO" ring draw
refused 2 "neither servers nor a scheduler" "either --servers" "$PARAMO" ring show
refused 2 "both servers and a scheduler" "either --servers" "$PARAMO" ring show --servers 2 --scheduler 127.0.0.1:1
refused 2 "a server that is not there" "the servers are 0 to 1" "$PARAMO" ring show --servers 2 --remove 2
refused 2 "no server left" "no server would be left" "$PARAMO" ring show --servers 2 --remove 0 1
refused 2 "no weight" "of the form R=VALUE" "$PARAMO" ring show --servers 2 --weight 1
refused 2 "a weight of 0" "a weight is 1 to" "$PARAMO" ring show --servers 2 --weight 1=0
refused 2 "replicas with a live cluster" "a live one has its own" \
    "$PARAMO" ring show --scheduler 127.0.0.1:1 --replicas 1
refused 4 "no scheduler there" "127.0.0.1:1" "$PARAMO" ring show --scheduler 127.0.0.1:1 --wait 2

expect 0 "eight servers, two replicas, one more" "$PARAMO" ring show --servers 8 --replicas 2 --add 1
check "drawn before and after" test "$(grep -c '^replica 2 |[0-8]\{64\}|$' "$OUT")" -eq 2
check "the ninth joins" grep -q '^8 .* 11.11 %.* joins$' "$OUT"
check "the plan says how many partitions get another owner" grep \
    -q '^other owner: 455 partitions, 11.11 % of all; least possible 455, 1.000 times that$' "$OUT"
check "the plan says how many rows travel" grep -q '^rows travel: 1365 partitions' "$OUT"
check "the plan has no warning" test ! -s "$ERR"
expect 0 "as JSON" "$PARAMO" ring show --servers 8 --replicas 2 --remove 3 --weight 0=2 --json
check "the JSON parses" python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["partitions"] == 4096 and r["replicas"] == 2
for when in "now", "then":
    assert sum(s["owns"] for s in r[when]["shards"]) == 4096
    assert sum(s["holds"] for s in r[when]["shards"]) == 3 * 4096
    assert sum(x["partitions"] for x in r[when]["runs"]) == 4096
    assert all(len({x["owner"], *x["replicas"]}) == 3 for x in r[when]["runs"])
assert r["then"]["shards"][3]["holds"] == 0 and r["now"]["shards"][0]["owns"] in (910, 911)
m = r["transfers"]
assert m["owners"] <= 1.2 * m["owners_least"] and m["copies"] <= 1.2 * m["copies_least"]
' "$OUT"
expect 0 "domains that are too few" "$PARAMO" ring show --servers 4 --replicas 2 --domain 0=a 1=a 2=b 3=b
says "domains that are too few cause a warning" "3 copies of a key are not in different failure domains: there are 2"
expect 0 "servers that are too few" "$PARAMO" ring show --servers 2 --shards 3 --replicas 2
says "servers that are too few cause a warning" "too few servers for 2 replicas of each key: there will be 1"

# ---- a live one ----
expect 0 "a small log" "$PARAMO" data synth --rows 2000 --out small.ffm
free_port
port=$PORT
echo secret >token
LOOK=("$PARAMO" ring show --scheduler "127.0.0.1:$port" --token-file token)
start scheduler "$PARAMO" scheduler --port "$port" --servers 2 --workers 1 --token secret
check "the scheduler listens" wait_for 20 listens "$(job_pid scheduler)"
refused 4 "no node has registered yet" "not complete yet" \
    "$PARAMO" ring show --scheduler "127.0.0.1:$port" --token secret
refused 4 "another token" "token" "$PARAMO" ring show --scheduler "127.0.0.1:$port" --token wrong
start server0 "$PARAMO" server --scheduler "127.0.0.1:$port" --token secret --rank 0 --shards 2
start server1 "$PARAMO" server --scheduler "127.0.0.1:$port" --token secret --rank 1 --weight 2 --domain rack-b
start worker "$PARAMO" worker --scheduler "127.0.0.1:$port" --token secret -- paramo train --model lr \
    --data small.ffm --epochs 100000 --model-out never
check "the ring of a complete job" wait_for 30 "${LOOK[@]}"
expect 0 "the ring of a running job" "${LOOK[@]}"
check "the ring has three shards of two servers" grep -q '^2 servers, view 1\.' "$OUT"
check "the shares follow the weights" test "$(grep -c ' 25.00 % ' "$OUT")$(grep -c '^2 .* rack-b .* 50.00 % ' "$OUT")" \
    = 21
expect 0 "the plan of a further server" "${LOOK[@]}" --add 1 --json
check "a fifth of the partitions would get another owner" test "$(json "$OUT" owners)" -eq 819
expect 0 "the plan of a further server with another weight" "${LOOK[@]}" --weight 1=3
check "the server's share follows its weight" grep -q '^2 .* 60.00 % ' "$OUT"
for _ in 1 2 3 4 5; do "${LOOK[@]}" >looks 2>&1; done
check "no query took a rank" grep -q '^2 servers, view 1\.' looks
check "the job continues" alive worker
kill -INT "$(job_pid worker)"
ends worker 130 "the worker is stopped"
ends server0 0 "server 0 ends"
ends server1 0 "server 1 ends"
ends scheduler 0 "the scheduler ends"
finish
