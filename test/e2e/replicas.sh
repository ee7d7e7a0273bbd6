# paramo run --replicas: servers die, and the job goes on as if they had not; more than there are copies, and it says what is lost.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

refused 2 "more copies than there can be" "from 0 to 3" "$PARAMO" run -s 2 -w 1 --replicas 4 -- true
expect 0 "a log" "$PARAMO" data synth --rows 20000 --seed 7 --out train.ffm
# One worker: the same sums in the same order, whatever becomes of the servers. Two of them, so that nothing moves when one is
# gone: where arcs move, requests that do not wait for each other may change places.
job=("$PARAMO" run --verbose -s 2 -w 1 --replicas 1 --workers-only -- "$PARAMO" train --model lr --data train.ffm --epochs 60 --seed 1)
expect 0 "nobody dies" "${job[@]}" --model-out quiet
expect 0 "its model as text" "$PARAMO" export --model-in quiet --text --out quiet.txt

start deaths "${job[@]}" --model-out survived
check "three epochs are done" wait_for 30 grep -q '^epoch 3/' deaths.err
check "server 1 is killed" signal_node KILL deaths server 1
ends deaths 0 "the job goes on without it"
says "it was killed" 'server 1 \(node 10\), pid [0-9]+, was killed'
expect 0 "the model as text" "$PARAMO" export --model-in survived --text --out survived.txt
check "the same model to the last bit" cmp quiet.txt survived.txt

job[4]=3
start lost "${job[@]}" --model-out never
check "again three epochs are done" wait_for 30 grep -q '^epoch 3/' lost.err
check "server 0 is killed" signal_node KILL lost server 0
check "server 2 is killed at the same time" signal_node KILL lost server 2
ends lost 4 "two at once are too many"
says "what is lost" 'the last copy is lost .*: table [a-z.]+ [0-9.]+ % of the keys'
check "no model" test ! -e never
finish
