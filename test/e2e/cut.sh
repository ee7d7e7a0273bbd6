# A job on four hosts (network namespaces with veth pairs on a bridge): links are cut in both directions, in one and
# in the other, and come back: pushes wait, no node is declared dead, and every sum is exact. A server's address that
# stops answering for good (no reset, no refusal) ends the job in time, with an error that names it.
# Sanitizers: address; kills has the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
hosts=(hub sched s0 s1 w)
. "$TOP/test/e2e/lib_hosts.sh"
export PARAMO_TOKEN=cut

# job NAME: scheduler, two servers and two workers, each on its host; the workers share one.
job() {
    local i
    name=$1
    scheduler=$(address sched):9000
    start_on "$name-sched" sched "$PARAMO" scheduler --listen "$(address sched)" --port 9000 --servers 2 --workers 2 \
        --verbose
    for i in 0 1; do
        start_on "$name-s$i" "s$i" "$PARAMO" server --scheduler "$scheduler" --listen "$(address "s$i")" --rank "$i"
        start_on "$name-w$i" w "$PARAMO" worker --scheduler "$scheduler" --rank "$i" -- "$ADDER" --until "stop-$name" \
            --book "book-$name"
    done
}

# disturbed TEXT DO UNDO: until both workers say that they wait; then they continue.
disturbed() {
    local i waits=() pushes=()
    for i in 0 1; do waits[i]=$(lines waiting "long-w$i.out"); done
    check "$1" "${@:2:1}" "${@:4}"
    for i in 0 1; do check "worker $i waits" wait_for 20 more waiting "long-w$i.out" "${waits[i]}"; done
    for i in 0 1; do pushes[i]=$(lines pushes "long-w$i.out"); done
    check "the link is mended" "${@:3:1}" "${@:4}"
    for i in 0 1; do check "worker $i continues" wait_for 20 more pushes "long-w$i.out" "${pushes[i]}"; done
}

job long
for i in 0 1; do check "worker $i is at work" wait_for 20 more pushes "long-w$i.out" 2; done
disturbed "the workers' host is cut off" cut mend w
disturbed "server 1 is cut off" cut mend s1
disturbed "what the workers send to server 0 is lost" cut_way mend_way w s0
disturbed "what server 0 sends to the workers is lost" cut_way mend_way s0 w
disturbed "server 1 is cut off again" cut mend s1
touch stop-long
for i in 0 1; do
    ends "long-w$i" 0 "worker $i ends well"
    check "every sum is exact after $(json "$OUT" pushes) pushes (slowest: $(json "$OUT" slowest_ms) ms)" grep \
        -q '"exact": true' "$OUT"
done
for i in 0 1; do ends "long-s$i" 0 "server $i ends well"; done
ends long-sched 0 "the scheduler ends well"
check "no node was declared dead" sh -c '! grep -q "is dead" "$0"' "$ERR"

job gone
for i in 0 1; do check "worker $i is at work" wait_for 20 more pushes "gone-w$i.out" 2; done
check "server 1 stops answering" cut s1
ends gone-sched 4 "the job ends"
says "server 1 is named" 'server 1 \(node 10, [0-9.]+\) is dead: it was silent'
for i in 0 1; do
    ends "gone-w$i" 4 "worker $i ends with an error"
    says "worker $i names server 1" 'server 1 \(node 10, [0-9.]+\) has died'
done
ends gone-s0 4 "server 0 ends"
ends gone-s1 4 "server 1, which is alone, ends in time"
finish
