# Two workers with a bound on their distance. With bsp one worker is stopped: the other waits until the death is
# known, and continues alone. With ssp:2 one worker is killed: the other continues; before that no batch is more than
# two clocks ahead.
# Sanitizers: address; ThreadSanitizer meets the same threads in test_clock.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=consistency
export PS_HEARTBEAT_TIMEOUT=$((SLOW > 1 ? 10 : 4)) # a stopped worker is declared dead after it

for i in 1 2; do expect 0 "training log $i" \
    "$PARAMO" data synth --rows $((30000 / SLOW)) --seed $i --model-seed 1 --out $i.ffm; done
# A worker has no clock at the end of a round: rounds are far longer than the test.
many=()
for _ in {1..50}; do many+=(1.ffm 2.ffm); done
# shellcheck disable=SC2016
job=("$PARAMO" run --verbose -s 1 -w 2 -- sh -c 'echo "$DMLC_PS_ROOT_PORT" >port; exec "$0" "$@"' \
    "$PARAMO" train --model lr --data "${many[@]}" --batch 16 --epochs 1000)
ticks() { # PID: hundredths of a second of CPU that it has used
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}
at_work() { # JOB: both workers learn
    local i
    for i in 0 1; do
        check "$1: worker $i is there" wait_for 20 node_pid "$1" worker $i
        check "$1: worker $i is at work" wait_for 30 worked "$(node_pid "$1" worker $i)" $((SLOW > 1 ? 120 : 30))
    done
}
goes_on() { # JOB
    local pid
    pid=$(node_pid "$1" worker 0)
    check "$1: worker 0 continues alone" wait_for 30 worked "$pid" $(($(ticks "$pid") + 20))
}

start bsp "${job[@]}" --consistency bsp
at_work bsp
check 'bsp: worker 1 is stopped' signal_node STOP bsp worker 1
status() { "$PARAMO" status --scheduler "127.0.0.1:$(cat port)" >status.out; }
last() { status && grep -Eq '^worker 1 +1 +[0-9]+ +[0-9]+ +0 +last$' status.out &&
    grep -Eq '^worker 0 +1 +[0-9]+ +[0-9]+ +1 +[0-9.]+ s$' status.out; }
check 'bsp: status names worker 1 as the last, and worker 0 as waiting' wait_for 4 last
dead() { grep -q "worker 1 .*is dead: it was silent" bsp.err; }
check 'bsp: worker 1 is dead after its silence' wait_for 30 dead
goes_on bsp
check 'bsp: worker 1 is killed' signal_node KILL bsp worker 1
kill -INT "$(job_pid bsp)"
ends bsp '130|137' 'bsp: the job is interrupted'
waited=$(sed -n 's/.*consistency bsp: [0-9]* waits of \([0-9.:]*\) *s* in all.*; batches 0.00 clocks .*/\1/p' bsp.out)
stood() { case $waited in *:*) true ;; *) at_least "$waited" $((PS_HEARTBEAT_TIMEOUT - 1)) ;; esac } # 1:02: a minute
check "bsp: worker 0 waited for $waited s" stood

start ssp "${job[@]}" --consistency ssp:2
at_work ssp
check 'ssp: worker 1 is killed' signal_node KILL ssp worker 1
goes_on ssp
kill -INT "$(job_pid ssp)"
ends ssp '130|137' 'ssp: the job is interrupted'

expect 0 'ssp: undisturbed' "$PARAMO" train --model lr --data 1.ffm 2.ffm --batch 128 --workers 2 --epochs 2 \
    --consistency ssp:2 --json -q
staleness() { tr -d ' \n' <"$OUT" | sed -n 's/.*"staleness":\[\([0-9,]*\)\].*/\1/p'; }
bounded() { staleness | awk -F, \
    '{ for (i = 4; i <= NF; i++) late += $i; exit !(NF == 17 && $1 + $2 + $3 > 0 && !late) }'; }
check "ssp: no batch is more than two clocks ahead ($(staleness))" bounded
tables() { tr -d ' \n' <"$OUT" | sed -n 's/.*"table_staleness":{"[a-z]*":\[\([0-9,]*\)\].*/\1/p'; }
young() { tables | awk -F, '{ for (i = 4; i <= NF; i++) late += $i; exit !(NF == 17 && $1 + $2 + $3 > 0 && !late) }'; }
check "ssp: no pull of the weights is more than two clocks old ($(tables))" young
refused 2 'a model that does not exist' "^paramo train: --consistency is asp, bsp or ssp:S with S up to .*, not 'ssp'" \
    "$PARAMO" train --model lr --data 1.ffm --consistency ssp
finish
