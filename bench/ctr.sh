#!/usr/bin/env bash
# Processor time of a row in later epochs from memory, beside another build or xLearn, in pairs:
#   bench/ctr.sh DATA [PARAMO [OTHER]]
# DATA is libffm text, not compressed if OTHER is xlearn_train. PARAMO is build/release/paramo if it is not given. OTHER
# is a second paramo, or the xlearn_train of https://github.com/aksnzhy/xlearn. In the environment: MODELS (lr fm ffm),
# PAIRS (5), EPOCHS (10). Factors have dim 4.
#
# Where perf is there, a second table has the phases of PARAMO's time: `read` and `parse` of the one epoch, the others of
# the EPOCHS that follow. perf samples the stack; the innermost function that a phase names decides (samples below). `wait` has lanes and messages, too; `other` are counts, measures and the system.
#
# A figure is the user and system time of EPOCHS + 1 epochs less that of one, for a row; the median of the pairs. That
# leaves reading and parsing out. Other programs change it only as far as they fill the caches.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || {
    sed -n '2,3p' "$0"
    exit 1
}
data=$1 ours=${2:-$here/build/release/paramo} other=${3:-}
pairs=${PAIRS:-5} epochs=${EPOCHS:-10}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rows=$(wc -l <"$data")
TIMEFORMAT='%U %S'

epochs_of() { # PROGRAM MODEL EPOCHS: seconds of the processor
    local run=("$1" train --model "$2" --data "$data" --hold-out 0 --epochs "$3" --any-quality -q) ok=1
    [ "$2" = lr ] || run+=(--dim 4)
    if [[ $1 == *xlearn_train ]]; then # it needs a name of the user
        local -A task=([lr]=0 [fm]=1 [ffm]=2)
        run=(env USER="${USER:-user}" "$1" "$data" -s "${task[$2]}" -k 4 -e "$3" -nthread 2 --dis-es --quiet -m none)
    fi
    { time "${run[@]}" >"$dir/log" 2>&1 || ok=0; } 2>&1
    [ $ok = 1 ] || {
        cat "$dir/log" >&2
        exit 1
    }
}

row_us() { # PROGRAM MODEL: microseconds of a row
    local one more
    one=$(epochs_of "$1" "$2" 1)
    more=$(epochs_of "$1" "$2" $((epochs + 1)))
    echo "$one $more" | awk -v n="$rows" -v e="$epochs" '{ print ($3 + $4 - $1 - $2) / n / e * 1e6 }'
}

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

phase_names="read parse unique pull compute push wait other"

samples() { # MODEL EPOCHS: how many samples of the stack fell into each phase
    local run=("$ours" train --model "$1" --data "$data" --hold-out 0 --epochs "$2" --any-quality -q)
    [ "$1" = lr ] || run+=(--dim 4)
    perf record -q -F "$hertz" --call-graph dwarf,8192 -e cpu-clock -o "$dir/perf" "${run[@]}" >"$dir/log" 2>&1 || {
        cat "$dir/log" >&2
        return 1
    }
    perf script --no-inline -i "$dir/perf" -F ip,sym 2>/dev/null | awk -v names="$phase_names" '
        BEGIN {
            RS = ""
            of["read"] = "^(input_|decoder_|reader_|cache_)"
            of["parse"] = "^(parse_|sparse_text|number_|label_|raw_rows)"
            of["unique"] = "^(batcher_|unique_|sort_items|block_|keys_of)"
            of["pull"] = "^(paramo_pull|table_.*pull|apply_pull|pull|keyset_|rowcache_offer|table_small_visit)"
            of["compute"] = "^(compute_|lr_|fm_|ffm_|pair_|logistic|objective_|scaled_|sighted_)"
            of["push"] = "^(paramo_push|table_.*push|apply_change|push|optimizer_|all_change|create_missing)"
            of["wait"] = "^(client_|lane_|paramo_wait|paramo_pool|end_run|hook_run|on_frame|loader_|real_)"
            phases = split(names, phase, " ")
        }
        {
            lines = split($0, line, "\n")
            at = "other"
            for (i = 1; i <= lines && at == "other"; i++) {
                split(line[i], word, " ")
                for (k = 1; k < phases && at == "other"; k++)
                    if (word[2] ~ of[phase[k]]) at = phase[k]
            }
            found[at]++
        }
        END { for (k = 1; k <= phases; k++) print found[phase[k]] + 0 }'
}

phases() { # MODEL: microseconds of a row in each phase
    samples "$1" 1 >"$dir/one"
    samples "$1" $((epochs + 1)) >"$dir/more"
    paste "$dir/one" "$dir/more" | awk -v n="$rows" -v e="$epochs" -v hz="$hertz" '
        { printf " %7.3f", (NR <= 2 ? $1 : ($2 - $1) / e) / hz * 1e6 / n }'
}

[ -z "$other" ] || [[ $other != *xlearn_train ]] || epochs_of "$other" lr 1 >/dev/null # converts the text, once
printf '%-5s %12s %12s %6s\n' model 'us a row' "${other:+other}" "${other:+ratio}"
for model in ${MODELS:-lr fm ffm}; do
    : >"$dir/ours"
    : >"$dir/other"
    for ((i = 0; i < pairs; i++)); do
        row_us "$ours" "$model" >>"$dir/ours"
        [ -z "$other" ] || row_us "$other" "$model" >>"$dir/other"
    done
    a=$(median "$dir/ours")
    b=
    [ -z "$other" ] || b=$(median "$dir/other")
    echo "$model $a $b" | awk '{ printf "%-5s %12.2f", $1, $2
        if (NF > 2) printf " %12.2f %6.2f", $3, $3 / $2
        print "" }'
done

command -v perf >/dev/null || exit 0
hertz=1999
printf '\n%-5s' phase
echo " $phase_names" | awk '{ for (k = 1; k <= NF; k++) printf " %7s", $k; print "" }'
for model in ${MODELS:-lr fm ffm}; do
    printf '%-5s%s\n' "$model" "$(phases "$model")"
done
