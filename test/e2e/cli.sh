# The program itself: help, version, wrong verbs and options.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

expect 0 "--help" "$PARAMO" --help
for verb in train predict eval export run scheduler server worker data bench; do
    check "--help names $verb" grep -qw "$verb" "$OUT"
done
expect 0 "--version" "$PARAMO" --version
refused 2 "an unknown verb" "bogus" "$PARAMO" bogus
code=0
"$PARAMO" >"$OUT" 2>"$ERR" || code=$?
check "no verb: usage, exit code 2" test "$code" -eq 2 -a -s "$ERR"
for verb in train predict eval export data bench; do
    expect 0 "$verb --help" "$PARAMO" $verb --help
    check "$verb: help on standard output" grep -q "usage: paramo $verb" "$OUT"
    refused 2 "$verb: an unknown option" "bogus" "$PARAMO" $verb --bogus
done

finish
