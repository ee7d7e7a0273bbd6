# The paper's applications among the examples: alone, as processes, and with a server killed during the work.
# Sanitizers: none; what it runs are examples, and the tests of the library run the same code.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
HERE=$(dirname "$PARAMO")/examples/c

# killed NAME LINE PROGRAM...: a server of three is killed when worker 0 has printed such a line; the job ends as if
# it were not.
killed() {
    local name=$1 line=$2
    shift 2
    start "$name" "$PARAMO" run -v --replicas 1 -s 3 -w 2 -- "$@"
    check "$name: the job is at work" wait_for 60 grep -q "$line" "$name.out"
    check "$name: a server is killed" signal_node KILL "$name" server 1
    ends "$name" 0 "$name: the job continues without it"
}
last() { sed -n "s/$1/\\1/p" "$OUT" | tail -n 1; }

for name in sketch lda mf; do
    check "$name: at most 200 lines" at_most "$(wc -l <"$TOP/examples/c/$name.c")" 200
done

# ---- sketches: sums are exact, estimates within their bounds ----
sketched() { # sketched NAME
    check "$1: each insert is counted once" grep -q 'times the inserts: yes$' "$OUT"
    # four standard errors of 2^14 registers
    check "$1: the estimate of different ids is near" at_most \
        "$(last '.*by the sketch [0-9]* (\([-+][0-9.]*\) %.*' | tr -d '+-')" 3.3
    check "$1: no count is too small, none far too large" at_most \
        "$(last 'largest error of [0-9]* ids: \([0-9a-z]*\);.*')" \
        "$(last '.*; bound \([0-9]*\) .*')"
}
expect 0 "sketches, alone" "$HERE/sketch" 6000000 300000
sketched alone
expect 0 "sketches of two workers" "$PARAMO" run -s 2 -w 2 -- "$HERE/sketch" 6000000 300000
sketched "two workers"
killed sketch '^4 M inserts' "$HERE/sketch" 24000000 300000
sketched "a server killed"

# ---- topics: four of them, of 30 words each; every document has one ----
awk 'BEGIN { srand(7); print 240; print 120; print 240 * 30
    for (d = 1; d <= 240; d++) for (w = 1; w <= 30; w++) print d, d % 4 * 30 + w, 1 + int(3 * rand()) }' >docword
learned() { # learned NAME: a uniform guess is 120, the right topics are 30, with two of them as one 42
    check "$1: perplexity of the last sweep" at_most "$(last 'sweep [0-9]*: perplexity \(.*\)')" 45
    check "$1: every token is in the table" grep -q 'all of them in the table: yes$' "$OUT"
}
expect 0 "topics, alone" "$HERE/lda" docword 4 40
learned alone
check "each topic has its line" test "$(grep -c '^topic [1-4]: [0-9 ]*$' "$OUT")" = 4
expect 0 "topics by three workers" "$PARAMO" run -s 2 -w 3 -- "$HERE/lda" docword 4 40
learned "three workers"
killed lda '^sweep 5:' "$HERE/lda" docword 4 150
learned "a server killed"
echo "1 2" >bad
refused 1 "a malformed file" '^bad: it does not begin with' "$HERE/lda" bad
printf '2\n3\n2\n1 1 1\n1 4 1\n' >bad
refused 1 "a malformed word count" '^bad:5: it is not: document word count' "$HERE/lda" bad

# ---- ratings of two groups of users that like two groups of items; noise of +-0.5 has a deviation of 0.29 ----
awk 'BEGIN { srand(11)
    for (u = 1; u <= 200; u++) for (i = 1; i <= 80; i++) if (rand() < 0.4)
        print u, i, 3 + (u % 2 == i % 2 ? 1 : -1) + rand() - 0.5, 0 > (rand() < 0.2 ? "test" : "train") }'
rmse() { last 'pass 50: RMSE \(.*\)'; }
expect 0 "ratings, alone" "$HERE/mf" train test
check "the error is near the noise (1.04 without factors)" at_most "$(rmse)" 0.4
expect 0 "ratings: three workers" "$PARAMO" run -s 2 -w 3 -- "$HERE/mf" train test
check "ratings: the error of three workers is near the noise" at_most "$(rmse)" 0.4
killed mf '^pass 3:' "$HERE/mf" train test
check "ratings: three workers, and a server is killed" at_most "$(rmse)" 0.4
echo "1 x 3" >bad
refused 1 "a line that is no rating" '^bad:1: it is not: user item rating' "$HERE/mf" bad test
finish
