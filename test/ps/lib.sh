# Sourced by the scripts here: a job of plain processes, as a cluster's launcher or a shell loop would start it.

port=0
# A port without a listener: below those that the kernel hands out, drawn again for each job.
pick_port() {
    for _ in $(seq 100); do
        port=$((15000 + RANDOM % 15000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
    done
    echo "no free port found" >&2
    return 1
}

# start ROLE LOG PROGRAM...: one process of the job in the background; its id is added to `pids`.
start() {
    local role=$1 log=$2
    shift 2
    DMLC_ROLE=$role "$@" >"$log" 2>&1 </dev/null &
    pids+=($!)
    names+=("$role")
}

# job SERVERS WORKERS PROGRAM...: (WORKERS: processes, each with `customers` customers, 1 by default) runs it in the
# order that `order` says (letters h, s and w; default: all servers, all workers, the scheduler), waits for all, and
# fails with the logs if one does not end with 0 within a minute and a half.
job() {
    local servers=$1 workers=$2 logs bad=0 code i letters=${order:-}
    shift 2
    pick_port || return 1
    logs=$(mktemp -d)
    export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$port DMLC_NUM_SERVER=$servers
    export DMLC_NUM_WORKER=$((workers * ${customers:-1}))
    export PARAMO_TOKEN=${PARAMO_TOKEN:-}
    if [ -z "$letters" ]; then
        letters=$(printf 's%.0s' $(seq "$servers"))$(printf 'w%.0s' $(seq "$workers"))h
    fi
    pids=() names=()
    for ((i = 0; i < ${#letters}; i++)); do
        case ${letters:i:1} in
        h) start scheduler "$logs/$i" timeout -k 5 90 "$@" ;;
        s) start server "$logs/$i" timeout -k 5 90 "$@" ;;
        w) start worker "$logs/$i" timeout -k 5 90 "$@" ;;
        esac
    done
    for i in "${!pids[@]}"; do
        code=0
        wait "${pids[$i]}" || code=$?
        if [ "$code" -ne 0 ]; then
            echo "${names[$i]} (process $i of order $letters) ended with $code" >&2
            bad=1
        fi
    done
    if [ $bad -ne 0 ] || [ -n "${keep_logs:-}" ]; then
        (cd "$logs" && for i in *; do sed "s/^/[$i ${names[$i]}] /" "$i"; done) >&2
    fi
    rm -rf "$logs"
    return $bad
}
