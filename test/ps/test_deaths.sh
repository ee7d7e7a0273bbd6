#!/usr/bin/env bash
# A worker's death does not end the job of the others; one that is started again takes its rank, and all end well. Every
# other death ends all processes with a code that is not 0, and a line that names the node.
set -u
here=$(dirname "$0")
. "$here/lib.sh"
program=$2/ps_deaths
. "$here/lib_deaths.sh"

begin 100 waits
kill_it 3
go
ends 3
check "a worker dies: the other one finishes" grep -q finished "$work/4"
check "a worker dies: no process ends with 0" none_well
check "a worker dies: all say which" named "$(rank_of)" 3

workers=1 begin 100 waits
kill_it 3
go
ends 3
check "the only worker dies: no process ends with 0" none_well
check "the only worker dies: all say which" named "$(rank_of)" 3

export PS_HEARTBEAT_INTERVAL=1 PS_HEARTBEAT_TIMEOUT=2
begin 100 waits
kill_it 3
start worker "$work/5" timeout -k 5 90 "$program" "$fifos/go" 100 waits
go
ends 3
check "a worker is started again: all others end well" [ "$codes" = " 0 0 0 0 0" ]
check "a worker is started again: it takes a rank" grep -q "is_recovery, rank [01]" "$work/5"

workers=1 begin 100 waits
kill_it 3
start worker "$work/4" timeout -k 5 90 "$program" "$fifos/go" 100 waits
go
ends 3
check "the only worker is started again: all others end well" [ "$codes" = " 0 0 0 0" ]
check "the only worker is started again: it takes its rank" grep -q "is_recovery, rank 0" "$work/4"
unset PS_HEARTBEAT_INTERVAL PS_HEARTBEAT_TIMEOUT

begin 100 waits
kill_it 1
go
ends 1
check "a server dies: no process ends with 0" none_well
check "a server dies: all say which" named "$(rank_of)" 1

begin 100 waits
kill_it 0
go
ends 0
check "the scheduler dies: no process ends with 0" none_well
# (A worker may be told by a server that has given up first.)
check "the scheduler dies: all say so" named "the scheduler at .*: connection re" 0

begin 100 survives
kill_it 1
go
until_says "goes on" 3
until_says "goes on" 4
kill_it 3
ends 3
check "a server dies: the other one serves the workers" grep -q "served by the other one" "$work/4"
check "a server dies, and a worker: no process ends with 0" none_well

begin 100 callbacks
kill_it 1
go
ends 1
check "a server dies, workers wait for callbacks: no process ends with 0" none_well

begin 100 together
kill_it 3
go
ends 3
check "a worker dies, the server waits for it: no process ends with 0" none_well

export PARAMO_PS_GRACE_MS=500
workers=1 customers=2 begin 1 forgets
until_says "in ps::Finalize, which customer 1 of this process has not called" 3
check "a customer has not called Finalize: the process goes on" kill -0 "${pids[3]}"
go
ends 9
check "a customer has not called Finalize: one line says so" \
    [ "$(cat "$work"/* | grep -c "has not called")" = 1 ]
check "a customer calls Finalize late: all end well" [ "$codes" = " 0 0 0 0" ]
unset PARAMO_PS_GRACE_MS

# Servers that wait for a command of a worker, as MXNet's do, outside of Finalize.
export PARAMO_PS_GRACE_MS=500
begin 20 commands
go
ends 9
check "servers wait for a command: all end well" [ "$codes" = " 0 0 0 0 0" ]

server_of() { # the process that serves as rank $1
    for i in 1 2 3; do
        until_says "serves as rank" "$i"
        grep -q "serves as rank $1" "$work/$i" && echo "$i"
    done
}
mkfifo "$fifos/slow"
servers=3 begin 1000 commands "$fifos/slow"
slow=$(server_of 2)
until_says "the handle begins" "$slow"
victim=$(server_of 0)
kill_it "$victim"
go
until_says "the job is lost" "$slow"
check "a server dies, others wait for a command: a handle goes on" kill -0 "${pids[$slow]}"
exec 3<>"$fifos/slow"
echo >&3
ends "$victim"
exec 3>&-
check "a server dies, others wait for a command: the handle ends" grep -q "the handle ends" "$work/$slow"
check "a server dies, others wait for a command: no process ends with 0" none_well
check "a server dies, others wait for a command: all end by themselves" none_stopped
check "a server dies, others wait for a command: all say which" named "$(rank_of)" "$victim"

begin 0 callbacks
kill_it 0
go
ends 0
check "the scheduler dies, workers wait for callbacks: no process ends with 0" none_well
check "the scheduler dies, workers wait for callbacks: all end by themselves" none_stopped

begin 100 refused
go
ends 9
check "a push with a callback is refused: no process ends with 0" none_well
check "a push with a callback is refused: all end by themselves" none_stopped
check "a push with a callback is refused: its worker says so" grep -q "ends: .*this push is not for me" "$work/3"

begin 100 told
go
ends 9
check "a wait reports a refused push with a callback: all end well" [ "$codes" = " 0 0 0 0 0" ]
unset PARAMO_PS_GRACE_MS

begin 50 deletes
go
ends 9
check "a KVWorker is deleted in its own callback: no process ends with 0" none_well
check "a KVWorker is deleted in its own callback: one line says so" \
    grep -q "customer 1 is deleted in a callback of its own" "$work/3" "$work/4"

begin 50 returns
go
ends 9
check "a worker returns from main without Finalize: no process ends with 0" none_well
check "a worker returns from main without Finalize: it says so" grep -q "without ps::Finalize" "$work/3" "$work/4"
[ $bad -eq 0 ]
