# paramo checkpoint list and verify, on checkpoints that an earlier build wrote: the format stays.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

refused 2 "no subject" "There are 'list' and 'verify'" "$PARAMO" checkpoint
refused 2 "another subject" "unknown subject 'show'" "$PARAMO" checkpoint show
refused 2 "no folder" "DIR is missing" "$PARAMO" checkpoint list
refused 2 "a number to list" "is for verify" "$PARAMO" checkpoint list . --number 1
refused 3 "a folder that is not there" "nonesuch" "$PARAMO" checkpoint list nonesuch
mkdir empty
expect 0 "an empty folder" "$PARAMO" checkpoint list empty
check "says so" grep -qx 'no checkpoints' "$OUT"
refused 3 "nothing to verify" "there is no checkpoint" "$PARAMO" checkpoint verify empty

cp -r "$TOP/test/e2e/checkpoints" ckpt
mkdir ckpt/00000003 ckpt/other
expect 0 "a full one, a delta, an attempt" "$PARAMO" checkpoint list ckpt
check "the full one" grep -Eq '^ +1 +whole +2023-11-14 22:14:20 +- +1 +1 +[0-9]+$' "$OUT"
check "its delta" grep -Eq '^ +2 +whole +2023-11-14 22:15:20 +1 +1 +1 +[0-9]+$' "$OUT"
check "the attempt" grep -Eq '^ +3 +unfinished' "$OUT"
check "no more" test "$(wc -l <"$OUT")" -eq 4
expect 0 "as JSON" "$PARAMO" checkpoint list ckpt --json
check "it parses" python3 -c '
import json, sys
a, b, c = json.load(open(sys.argv[1]))
assert (a["state"], b["state"], c["state"]) == ("whole", "whole", "unfinished")
assert a["base"] == 0 and b["base"] == 1 and b["files"] == 1 and b["made_at"] == 1700000120
' "$OUT"
expect 0 "the last is whole" "$PARAMO" checkpoint verify ckpt
check "with its base" grep -q '^checkpoint 2, based on 1: whole; 2 blocks of rows, 2 of other things, 56 bytes' "$OUT"
expect 0 "the first, as JSON" "$PARAMO" checkpoint verify ckpt --number 1 --json
check "one block of rows" test "$(json "$OUT" rows_blocks)" -eq 1
refused 3 "one that has not ended" "no whole checkpoint 3" "$PARAMO" checkpoint verify ckpt --number 3

flip() { # FILE BYTE: its lowest bit
    python3 -c 'import sys
f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1); f.seek(-1, 1); f.write(bytes([b[0] ^ 1]))' "$@"
}
flip ckpt/00000001/blocks-0 90
refused 3 "a flipped bit in the base" "ckpt/00000001/blocks-0: damaged at byte" "$PARAMO" checkpoint verify ckpt
flip ckpt/00000001/blocks-0 90
flip ckpt/00000002/manifest 20
refused 3 "in the manifest" "ckpt/00000002/manifest: .*damaged" "$PARAMO" checkpoint verify ckpt
expect 3 "and in the list" "$PARAMO" checkpoint list ckpt
check "with its cause" grep -Eq '^ +2 +damaged +.*checksum is wrong' "$OUT"
expect 0 "the first is whole all the same" "$PARAMO" checkpoint verify ckpt --number 1
flip ckpt/00000002/manifest 20
truncate -s -1 ckpt/00000002/blocks-0
refused 3 "a byte is missing" "blocks-0 has [0-9]* bytes, not [0-9]*" "$PARAMO" checkpoint verify ckpt
rm ckpt/00000002/blocks-0
refused 3 "a file is missing" "blocks-0: it is missing" "$PARAMO" checkpoint verify ckpt
finish
