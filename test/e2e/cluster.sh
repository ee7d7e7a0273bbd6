# Jobs as processes: two at the same time, against the same job in one process, in every order of starting, and with
# unauthenticated connections to every port.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

expect 0 "a training log" "$PARAMO" data synth --rows $((60000 / SLOW)) --seed 1 --model-seed 7 --out train.ffm
train=(train --model lr --data train.ffm --seed 3 --epochs 2)
embedded() { expect 0 "$1" "$PARAMO" "${train[@]}" --model-out "$2"; }
same_model() {
    local file found=1
    for file in "$1"/*.safetensors; do
        cmp -s "$file" "$2/${file##*/}" || return 1
        found=0
    done
    return "$found"
}

# ---- the same bits ----
embedded "in one process" one
embedded "and again" two
check "one process: the same model twice" same_model one two
expect 0 "as processes: 1 server" "$PARAMO" run -s 1 -w 1 -- paramo "${train[@]}" --model-out run1
check "processes, 1 server: the same model" same_model one run1
expect 0 "as processes: 3 servers" "$PARAMO" run -s 3 -w 1 -- paramo "${train[@]}" --model-out run3
check "processes, 3 servers: the same model" same_model one run3
expect 0 "fm in one process" "$PARAMO" "${train[@]}" --model fm --dim 4 --model-out fm1
expect 0 "fm as processes" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model fm --dim 4 --model-out fm2
check "fm: the same model" same_model fm1 fm2
expect 0 "fm through filters" "$PARAMO" run -s 2 -w 1 -- paramo "${train[@]}" --model fm --dim 4 --model-out fm4 \
    --filter push=keycache,lz4 --filter pull=keycache,zstd:2
check "fm through filters: they are counted" grep -Eq '^filter keycache of pushes: .* became .* [1-9][0-9]* messages' \
    "$OUT"
check "fm through filters: the same model" same_model fm1 fm4
skipping=("${train[@]}" --filter push=skip:0.5 --json -q)
expect 0 "a filter of two workers in one process" "$PARAMO" "${skipping[@]}" --workers 2
filtered=$(json "$OUT" bytes_before)
expect 0 "a filter of two worker processes" "$PARAMO" run -s 1 -w 2 -- paramo "${skipping[@]}"
check "its counters are those of both ($filtered bytes)" test "$(json "$OUT" bytes_before)" = "$filtered"
refused 2 "a filter that does not exist" 'there is no filter "x"' "$PARAMO" "${train[@]}" --filter push=x
expect 0 "another seed" "$PARAMO" "${train[@]}" --model fm --dim 4 --seed 4 --model-out fm3
different() { ! same_model "$@"; }
check "fm: another model" different fm1 fm3

# ---- two jobs at once ----
start left "$PARAMO" run -s 2 -w 2 -- paramo "${train[@]}" --model-out left
start right "$PARAMO" run -s 2 -w 2 -- paramo "${train[@]}" --model-out right
ends left 0 "two jobs at once: the first"
ends right 0 "two jobs at once: the second"
check "both have saved a model" test -d left -a -d right

# ---- every order of starting ----
# The process waits for another one.
sleeping() { [ "$(cut -d' ' -f3 "/proc/$(job_pid "$1")/stat")" = S ]; }
begin() { # ROLE
    case $1 in
    scheduler) start scheduler "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 1 ;;
    server) start server "$PARAMO" server --scheduler "127.0.0.1:$PORT" ;;
    worker) start worker "$PARAMO" worker --scheduler "127.0.0.1:$PORT" -- paramo "${train[@]}" --model-out "$order" ;;
    esac
}
export PARAMO_TOKEN=secret
for order in scheduler-server-worker scheduler-worker-server server-scheduler-worker server-worker-scheduler \
    worker-scheduler-server worker-server-scheduler; do
    free_port
    for role in ${order//-/ }; do
        begin "$role"
        # Before the next one starts; the last may be done before we look.
        [ "$role" = "${order##*-}" ] || check "$order: the $role waits" wait_for 20 sleeping "$role"
    done
    for role in worker server scheduler; do ends "$role" 0 "$order: the $role ends well"; done
    check "$order: the same model" same_model one "$order"
done

# ---- unauthenticated connections at every port ----
knock() { # PORT: garbage, half a frame, a huge length, a web browser, silence
    local port=$1
    (
        exec 2>/dev/null
        trap '' PIPE # the server closes the connection in the middle of a word
        head -c 5000 /dev/urandom >"/dev/tcp/127.0.0.1/$port"
        head -c 1000000 /dev/zero >"/dev/tcp/127.0.0.1/$port"
        head -c 200000 /dev/zero | tr '\0' '\377' >"/dev/tcp/127.0.0.1/$port"
        printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' >"/dev/tcp/127.0.0.1/$port"
        for n in 1 7 40 127 128 5000; do # a header that begins well, and what follows is missing or wrong
            { printf 'PRM1\1\1\0\0' && head -c 5000 /dev/zero; } | head -c "$n" >"/dev/tcp/127.0.0.1/$port"
        done
        : >"/dev/tcp/127.0.0.1/$port"
        true
    )
}
start visited "$PARAMO" run --verbose -s 2 -w 2 -- paramo "${train[@]}" --epochs 100000 --model-out visited
check "the job is complete" wait_for 20 node_pid visited worker 1
worker=$(node_pid visited worker 1)
check "the job is at work" wait_for 20 worked "$worker" $((SLOW > 1 ? 40 : 10))
nodes=$(sed -n 's/.* is pid //p' visited.err)
for role in scheduler "server 0" "server 1"; do
    # shellcheck disable=SC2086 # role and rank
    check "$role listens" wait_for 20 listens "$(node_pid visited $role)"
done
ports=$(for pid in $nodes; do ports_of "$pid"; done)
# Two that say nothing, and one with half a header, stay open until the job is over.
silent=()
for port in $ports; do
    if exec {fd}<>"/dev/tcp/127.0.0.1/$port"; then
        silent+=("$fd")
        printf 'PRM1\1\1\0\0' >&"$fd"
    fi
done
rounds=0
for _ in 1 2 3; do
    for port in $ports; do knock "$port" && rounds=$((rounds + 1)); done
done
check "unauthenticated connections came ($rounds times to $(echo "$ports" | wc -w) ports)" test "$rounds" -ge 9
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
check "the job continues" wait_for 20 worked "$worker" $(($(ticks "$worker") + 30))
kill -INT "$(job_pid visited)"
ends visited 130 "unauthenticated connections at every port: the job ends as it is asked to"
for fd in "${silent[@]}"; do exec {fd}>&-; done
check "no node was lost" sh -c '! grep -Eiq "was killed by|did not end in time|died|has left|lost" "$0"' "$ERR"
expect 0 "the job has saved a model" "$PARAMO" eval --model-in visited --data train.ffm
finish
