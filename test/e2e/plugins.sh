# Plugins: functions and filters that servers and workers load from a shared object.
# Sanitizers: address; the threads are those of functions and filters, which other tests have.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
HERE=$(dirname "$PARAMO")/examples/c
PLUGIN=$HERE/plugin.so

run=("$PARAMO" run -s 2 -w 1 --workers-only)
expect 0 "functions of a plugin" "${run[@]}" --plugin "$PLUGIN" -- "$HERE/function"
cat "$OUT" "$ERR" >said
check "the functions have changed the rows" grep -q '100000 weights: 0 0 37441 12566 12585 12374 25034 0' said
expect 0 "the same plugin twice" "${run[@]}" --plugin "$PLUGIN:$PLUGIN" -- "$HERE/function"
expect 1 "servers without the plugin" "${run[@]}" -- "$HERE/function"
cat "$OUT" "$ERR" >said
check "the message names function and remedy" grep -q 'has no function "histogram".*--plugin' said

# ---- filters of a plugin, in training ----
expect 0 "rows" "$PARAMO" data synth --rows 20000 --seed 1 --model-seed 1 --out train.ffm
train=("$PARAMO" train --model lr --data train.ffm --epochs 1 --filter push=nonzero --model-out model -q --json)
expect 0 "training with a filter of a plugin" "${run[@]}" --plugin "$PLUGIN" -- "${train[@]}"
cat "$OUT" "$ERR" >said
check "the filter has worked" grep -q '"filter": "nonzero"' said
expect 0 "the plugin's filter in one process" "${train[@]}" --plugin "$PLUGIN"
refused 2 "a job without the plugin is refused" 'there is no filter' "${train[@]}"

# ---- what is no plugin ----
refused 3 "a missing file is refused" 'the plugin cannot be loaded: .*missing.so' "${train[@]}" --plugin missing.so
echo 'int nothing;' >other.c
if cc -shared -fPIC other.c -o other.so; then
    refused 3 "a file that is no plugin is refused" 'other.so: it is no plugin: it has no array paramo_functions' \
        "${train[@]}" --plugin other.so
fi
finish
