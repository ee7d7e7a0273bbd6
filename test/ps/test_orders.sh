#!/usr/bin/env bash
# Every order of starting a scheduler, two servers and two workers (30 of them) ends well.
set -eu
here=$(dirname "$0")
. "$here/lib.sh"
programs=$2
bad=0 count=0

permute() { # permute BEGUN LEFT: all orders of the letters left, each once
    local begun=$1 left=$2 i letter seen=
    if [ -z "$left" ]; then
        count=$((count + 1))
        order=$begun job 2 2 "$programs/ps_kv_two_apps" || bad=$((bad + 1))
        return 0
    fi
    for ((i = 0; i < ${#left}; i++)); do
        letter=${left:i:1}
        case $seen in *"$letter"*) continue ;; esac
        seen=$seen$letter
        permute "$begun$letter" "${left:0:i}${left:i+1}"
    done
}
permute "" hssww
echo "$count orders, $bad failed"
[ "$count" -eq 30 ] && [ "$bad" -eq 0 ]
