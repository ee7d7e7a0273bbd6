# The program itself: help, version, wrong verbs and options.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "--help" "$PARAMO" --help
for verb in train predict eval export run scheduler server worker data bench ring checkpoint; do
    check "--help names $verb" grep -qw "$verb" "$OUT"
done
expect 0 "--version" "$PARAMO" --version
check "--version names the vector instructions" grep -qE '^vector instructions: (base|avx2|avx512) ' "$OUT"
expect 0 "PARAMO_CPU=base" env PARAMO_CPU=base "$PARAMO" --version
check "--version: limited" grep -q '^vector instructions: base ' "$OUT"
refused 2 "PARAMO_CPU=sse9" "sse9" env PARAMO_CPU=sse9 "$PARAMO" train --model lr --data x
refused 2 "an unknown verb" "bogus" "$PARAMO" bogus
code=0
"$PARAMO" >"$OUT" 2>"$ERR" || code=$?
check "no verb: usage, exit code 2" test "$code" -eq 2 -a -s "$ERR"
for verb in train predict eval export data bench ring checkpoint; do
    expect 0 "$verb --help" "$PARAMO" $verb --help
    check "$verb: help on standard output" grep -q "usage: paramo $verb" "$OUT"
    refused 2 "$verb: an unknown option" "bogus" "$PARAMO" $verb --bogus
done

for verb in train predict eval export run scheduler server worker data ring status drain checkpoint sim bench; do
    refused 1 "$verb: too few files may be open" "the limit of open files is 16, and at least 64" \
        bash -c 'ulimit -n 16; exec "$@"' - "$PARAMO" $verb
done
expect 0 "a low soft limit: --help" bash -c 'ulimit -S -n 16; exec "$@"' - "$PARAMO" --help

finish
