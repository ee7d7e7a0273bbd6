#!/usr/bin/env bash
# Paramo beside other trainers, in pairs in one run: processor time of a row from text and in later epochs from
# memory, and the log-loss after the same passes:
#   bench/ctr.sh DATA [PARAMO [OTHER]]
# DATA is libffm text, also compressed. PARAMO is build/release/paramo if it is not given. OTHER is a second paramo.
# xLearn, libffm and Vowpal Wabbit are built and timed where their sources lie beside this folder
# (bench/ctr_peers.sh). In the environment: MODELS (lr fm ffm), PAIRS (5), EPOCHS (10), THREADS (1: workers, and the
# peers' threads), TEST (rows for the log-loss, libffm text), PASSES (1 3: after which it is measured), TIME (cpu, or
# wall for the time on the clock). Factors have dim 4; all else is each program's default.
#
# Where perf is there, a second table has the phases of PARAMO's time: `read` and `parse` of the one epoch, the others
# of the EPOCHS that follow. perf samples the stack; the innermost function that a phase names decides (samples
# below). `wait` has lanes and messages, too; `other` are counts, measures and the system.
#
# A pair is a run of one epoch, and one of EPOCHS + 1, by each program. From text: the first. Later epochs: the
# difference. Both are user and system time for a row, and the ratios are medians of the pairs' ratios: other programs
# change those only as far as they fill the caches. A ratio is that of the other to PARAMO: above 1, PARAMO is faster.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || {
    sed -n '2,4p' "$0"
    exit 1
}
data=$1 ours=${2:-$here/build/release/paramo} other=${3:-}
pairs=${PAIRS:-5} epochs=${EPOCHS:-10} threads=${THREADS:-1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck source=bench/ctr_peers.sh
. "$here/bench/ctr_peers.sh"

# place FILE NAME: as text, without compression
place() {
    case $1 in
    *.zst) zstdcat "$1" >"$dir/$2" ;;
    *.gz) zcat "$1" >"$dir/$2" ;;
    *) ln -s "$(realpath "$1")" "$dir/$2" ;;
    esac
}
place "$data" data
[ -z "${TEST:-}" ] || place "$TEST" test
data=$dir/data
rows=$(wc -l <"$data")
TIMEFORMAT='%U %S'
[ "${TIME:-cpu}" = cpu ] || TIMEFORMAT='%R 0'

train() { # NAME PROGRAM MODEL EPOCHS [FILE]
    local run=("$2" train --model "$3" --data "$data" --hold-out 0 --epochs "$4" --any-quality -q --workers "$threads")
    [ "$3" = lr ] || run+=(--dim 4)
    [ -z "${5:-}" ] || run+=(--model-out "$5")
    case $1 in
    paramo | other) "${run[@]}" ;;
    *) peer_train "$@" ;;
    esac
}

timed() { # NAME PROGRAM MODEL EPOCHS: seconds
    local ok=1
    { time train "$@" >"$dir/log" 2>&1 || ok=0; } 2>&1
    [ $ok = 1 ] || {
        cat "$dir/log" >&2
        exit 1
    }
}

pair() { # NAME PROGRAM MODEL: microseconds of a row from text, and in later epochs
    local one more
    one=$(timed "$1" "$2" "$3" 1)
    more=$(timed "$1" "$2" "$3" $((epochs + 1)))
    echo "$one $more" | awk -v n="$rows" -v e="$epochs" '
        { print ($1 + $2) / n * 1e6, ($3 + $4 - $1 - $2) / n / e * 1e6 }'
}

loss() { # NAME PROGRAM MODEL PASSES: on the test rows
    rm -rf "$dir/model"
    train "$1" "$2" "$3" "$4" "$dir/model" >"$dir/log" 2>&1
    case $1 in
    paramo | other) "$2" eval --json --model-in "$dir/model" --data "$dir/test" |
        awk -F '[:,]' '/"logloss"/ { printf "%.4f", $2 }' ;;
    *) peer_loss "$1" "$2" "$dir/model" ;;
    esac
}

# median COLUMN OTHER-COLUMN: of column / other column; OTHER-COLUMN 0: of the column
median() {
    awk -v a="$1" -v b="$2" '{ print b ? $a / $b : $a }' | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
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

declare -A program=([paramo]=$ours)
[ -z "$other" ] || program[other]=$other
for peer in xlearn libffm vw; do
    at=$(find_$peer) || at=
    [ -z "$at" ] || program[$peer]=$at
done
[ -z "${program[vw]:-}" ] || {
    as_vw "$data" "$dir/data.vw"
    [ -z "${TEST:-}" ] || as_vw "$dir/test" "$dir/test.vw"
}

shown() { # FILE MODEL NAME BAR BAR: a line of the table; FILE has the pairs: ours, ours later, theirs, theirs later
    local bar=("$4" "$5") k at line
    line=$(printf '%-5s %-8s' "$2" "$3")
    for k in 0 1; do
        if [ "$3" = paramo ]; then
            line+=$(printf ' %8.3f %6s %5s %-4s' "$(median $((k + 1)) 0 <"$1")" "" "" "")
            continue
        fi
        at=$(median $((k + 3)) $((k + 1)) <"$1")
        line+=$(printf ' %8.3f %6.2f %5s %-4s' "$(median $((k + 3)) 0 <"$1")" "$at" "${bar[k]}" \
            "$(awk -v at="$at" -v bar="${bar[k]}" 'BEGIN { print (bar == "-" ? "" : at + 0 >= bar + 0 ? "met" : "not") }')")
    done
    [ -z "${TEST:-}" ] || for k in ${PASSES:-1 3}; do
        line+=" $(loss "$3" "${program[$3]}" "$2" "$k")"
    done
    echo "${line%"${line##*[! ]}"}"
}

printf '%-5s %-8s %-26s %-26s%s\n' "" "" " from text" " later epochs" "${TEST:+log-loss after ${PASSES:-1 3}}"
printf '%-5s %-8s %8s %6s %5s %-4s %8s %6s %5s\n' model program "us a row" ratio bar "" "us a row" ratio bar
for model in ${MODELS:-lr fm ffm}; do
    : >"$dir/ours"
    others=()
    while read -r peer text later; do
        [ -z "${program[$peer]:-}" ] || others+=("$peer $text $later")
    done < <(echo "other - -" && peers_of "$model")
    rm -f "$dir"/pairs.*
    for ((i = 0; i < pairs; i++)); do
        a=$(pair paramo "$ours" "$model")
        echo "$a" >>"$dir/ours"
        for line in "${others[@]}"; do
            read -r peer text later <<<"$line"
            echo "$a $(pair "$peer" "${program[$peer]}" "$model")" >>"$dir/pairs.$peer"
        done
    done
    shown "$dir/ours" "$model" paramo - -
    for line in "${others[@]}"; do
        read -r peer text later <<<"$line"
        shown "$dir/pairs.$peer" "$model" "$peer" "$text" "$later"
    done
done

command -v perf >/dev/null || exit 0
hertz=1999
printf '\n%-5s' phase
echo " $phase_names" | awk '{ for (k = 1; k <= NF; k++) printf " %7s", $k; print "" }'
for model in ${MODELS:-lr fm ffm}; do
    printf '%-5s%s\n' "$model" "$(phases "$model")"
done
