# Memory of a table that is cleared, or whose rows are deleted: the servers give it back to the system, owners and
# replicas, and the table's statistics report the memory.
# Sanitizers: none; they keep what is freed, and env/test_hugemem and server/test_shard run the code that gives it back.
# shellcheck shell=bash disable=SC2154
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=memory PARAMO_VAN=tcp
FILLER=$(dirname "$PARAMO")/test/filler
ROWS=200000 DIM=64
MB=$((ROWS * DIM * 4 * 2 / 1000000)) # of values, in two copies

free_port
start sched "$PARAMO" scheduler --port "$PORT" --servers 2 --workers 1 --replicas 1
for i in 0 1; do start "s$i" "$PARAMO" server --scheduler "127.0.0.1:$PORT" --rank "$i" --domain "$i"; done
mkfifo orders && exec {orders}<>orders
start worker sh -c 'exec "$0" worker --scheduler "$1" -- "$2" "$3" "$4" <orders' \
    "$PARAMO" "127.0.0.1:$PORT" "$FILLER" $ROWS $DIM

told=0
says_more() { [ "$(wc -l <worker.out)" -gt "$told" ]; }
order() { # VERB TABLE: sets rows and mb, which the table's statistics say afterwards
    echo "$1 $2" >&"$orders"
    wait_for 30 says_more || failed "$1 $2: no answer"
    told=$((told + 1))
    read -r _ _ rows bytes < <(tail -n 1 worker.out)
    mb=$((bytes / 1000000))
}
resident() { # of both servers: megabytes
    local i kb sum=0
    for i in 0 1; do
        kb=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$(job_pid "s$i")/status")
        sum=$((sum + kb))
    done
    echo $((sum * 1024 / 1000000))
}
given_back() { [ "$(resident)" -le "$1" ]; }           # MB
held() { order stat "$1" >/dev/null && [ "$mb" -le "$2" ]; } # TABLE MB

for table in sparse var; do
    order fill $table # what connections need is there after this
    order clear $table
    check "$table: the memory of the table without rows" wait_for 10 held $table $((MB / 10))
    before=$(resident) empty=$mb
    for verb in clear delete; do
        order fill $table
        full=$(resident)
        check "$table: all rows are there, and STAT reports the memory ($mb MB)" test "$rows" -eq $ROWS -a "$mb" -ge $MB
        check "$table: the processes use that memory ($before MB, then $full)" test $((full - before)) -ge \
            $((MB * 3 / 4))
        order $verb $table
        check "$table, $verb: no row is left" test "$rows" -eq 0
        check "$table, $verb: the processes give the memory back" wait_for 10 given_back $((before + MB / 4))
        check "$table, $verb: STAT reports less memory" wait_for 10 held $table $((empty + MB / 20))
        printf '      | %s\n' "$table, $verb: $before MB, with rows $full, now $(resident); STAT $mb MB"
    done
done
echo end >&"$orders"
ends worker 0 "the worker ends"
ends sched 0 "the job ends in order"
finish
