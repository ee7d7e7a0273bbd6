# paramo data synth: formats, repeatability, errors.
# Sanitizers: address; it starts no threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

for format in libsvm libffm criteo; do
    expect 0 "synth writes $format" "$PARAMO" data synth --rows 3000 --seed 1 --format $format --out "$format.txt"
    check "$format: its rows" test "$(wc -l <"$format.txt")" -eq 3000
    "$PARAMO" data synth --rows 3000 --seed 1 --format $format --out again.txt >"$OUT" 2>"$ERR"
    check "$format: the same seed, the same log" cmp -s "$format.txt" again.txt
done
"$PARAMO" data synth --rows 3000 --seed 2 --format libsvm --out again.txt >"$OUT" 2>"$ERR"
check "another seed, another log" sh -c '! cmp -s libsvm.txt again.txt'
refused 2 "synth: no rows given a number" "rows" "$PARAMO" data synth --rows many --out x.txt
refused 3 "synth: a folder that is not there" "nonesuch/x" "$PARAMO" data synth --rows 10 --out nonesuch/x

finish
