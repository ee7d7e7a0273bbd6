#!/usr/bin/env bash
# Processor time of a row in later epochs from memory, beside another build or xLearn, in pairs:
#   bench/ctr.sh DATA [PARAMO [OTHER]]
# DATA is libffm text, not compressed if OTHER is xlearn_train. PARAMO is build/release/paramo if it is not given. OTHER
# is a second paramo, or the xlearn_train of https://github.com/aksnzhy/xlearn. In the environment: MODELS (lr fm ffm),
# PAIRS (5), EPOCHS (10). Factors have dim 4.
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
