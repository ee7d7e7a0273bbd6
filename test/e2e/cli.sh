# The program itself: help, version, wrong verbs and options.
# Sanitizers: address; it starts no threads.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN
MANUAL=$(dirname "$PARAMO")/man/paramo.1

# in_manual VERB HELP: each option of the verb's help stands in the verb's part of the manual page.
in_manual() {
    local option
    awk -v verb=".SS paramo $1" '/^\.SH OPTIONS/ { options = 1 } /^\.S[SH]/ { of = options && $0 == verb } of' \
        "$MANUAL" >manual
    [ -s manual ] || return 1
    for option in $(sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+).*/\2/p' "$2"); do
        [ "$option" = --help ] || grep -qF -- "\\fB${option//-/\\-}\\fR" manual || return 1
    done
}

# Each environment variable that the library reads stands in the manual page.
variables_in_manual() {
    local name
    for name in $(grep -rhoE '(process_variable|variable_number|settings_variable)\("[A-Z_]+"' "$TOP/src" |
        grep -oE '[A-Z_]{4,}'); do
        grep -qF "\\fB$name\\fR=" "$MANUAL" || return 1
    done
}

expect 0 "--help" "$PARAMO" --help
check "--help: no line has more than 80 columns" awk 'length($0) > 80 { exit 1 }' "$OUT"
for verb in train tune predict eval export import inspect explain serve run scheduler server worker data bench ring \
    checkpoint; do
    check "--help names $verb" grep -qw "$verb" "$OUT"
done
expect 0 "--version" "$PARAMO" --version
check "--version names the vector instructions" grep -qE '^vector instructions: (base|avx2|avx512) ' "$OUT"
expect 0 "PARAMO_CPU=base" env PARAMO_CPU=base "$PARAMO" --version
check "PARAMO_CPU=base limits the vector instructions of --version" grep -q '^vector instructions: base ' "$OUT"
refused 2 "PARAMO_CPU=sse9" "sse9" env PARAMO_CPU=sse9 "$PARAMO" train --model lr --data x
refused 2 "an unknown verb" "^paramo: unknown verb 'bogus' \('paramo --help' lists the verbs\)$" "$PARAMO" bogus
refused 2 "a verb with a slip" "unknown verb 'trian'; did you mean 'train'\?" "$PARAMO" trian --model lr
refused 2 "an option with a slip" \
    "unknown option '--modle=lr'; did you mean '--model'\? \(see 'paramo train --help'\)" \
    "$PARAMO" train --modle=lr
refused 2 "help for no verb" "unknown verb 'evel'; did you mean 'eval'\?" "$PARAMO" help evel
expect 0 "train --help" "$PARAMO" train --help
cp "$OUT" train.help
expect 0 "help train" "$PARAMO" help train
check "'help train' prints the same as 'train --help'" cmp "$OUT" train.help
code=0
"$PARAMO" >"$OUT" 2>"$ERR" || code=$?
check "no verb: usage, exit code 2" test "$code" -eq 2 -a -s "$ERR"
for verb in train tune predict eval export import inspect explain serve run scheduler server worker data ring status \
    drain checkpoint sim bench; do
    expect 0 "$verb --help" "$PARAMO" $verb --help
    check "$verb: help on standard output" grep -q "usage: paramo $verb" "$OUT"
    check "$verb: no line of help has more than 80 columns" awk 'length($0) > 80 { exit 1 }' "$OUT"
    check "$verb: its options are in the manual page" in_manual "$verb" "$OUT"
    refused 2 "$verb: an unknown option" "bogus" "$PARAMO" $verb --bogus
done
check "the library's environment variables are in the manual page" variables_in_manual

wrong='--replicas .4. on the command line: not a whole number from 0 to 3'
refused 2 "a value names option, place and limits" "$wrong" "$PARAMO" run -s 1 -w 1 --replicas 4 -- true
wrong='PARAMO_REPLICAS=4 in the environment: not a whole number from 0 to 3'
refused 2 "the error for a variable names its limits" "$wrong" env PARAMO_REPLICAS=4 "$PARAMO" run -s 1 -w 1 -- true
refused 2 "the error for a node's variable names its limits" "$wrong" env PARAMO_REPLICAS=4 \
    "$PARAMO" scheduler --port 9 --servers 1 --workers 1

for verb in train tune predict eval export import inspect explain serve run scheduler server worker data ring status \
    drain checkpoint sim bench; do
    refused 1 "$verb: too few files may be open" "the limit of open files is 16, and at least 64" \
        bash -c 'ulimit -n 16; exec "$@"' - "$PARAMO" $verb
done
expect 0 "a low soft limit: --help" bash -c 'ulimit -S -n 16; exec "$@"' - "$PARAMO" --help

finish
