# Other trainers for bench/ctr.sh, which sources it: where they are, how they are built, how they train and predict.
# shellcheck shell=bash disable=SC2154
#
# A peer is used if its source folder is beside this one, in a folder that PEERS names, or given as XLEARN, LIBFFM or
# VOWPAL_WABBIT: folders `xlearn`, `libffm` and `vowpal_wabbit`. Nothing is fetched. A program that is built in the
# folder, or installed (vw), is taken as it is; else it is built under build/peers with its own cmake or make files.

peers_dir=$here/build/peers

# source_of NAME: the peer's folder, or nothing.
source_of() {
    local at name=$1 given
    given=$(echo "$name" | tr '[:lower:]' '[:upper:]')
    for at in "${!given:-}" "${PEERS:+$PEERS/$name}" "$here/../$name" "$here/../peers/$name"; do
        [ -n "$at" ] && [ -d "$at" ] && (cd "$at" && pwd) && return
    done
    true
}

# built PROGRAM FOLDER...: the first that has it.
built() {
    local at program=$1
    shift
    for at in "$@"; do
        [ -x "$at/$program" ] && [ -f "$at/$program" ] && echo "$at/$program" && return
    done
    return 1
}

by_cmake() { # NAME SOURCE TARGET...
    local name=$1 source=$2
    shift 2
    echo "building $name ($peers_dir/$name.log)" >&2
    mkdir -p "$peers_dir"
    { cmake -S "$source" -B "$peers_dir/$name" -DCMAKE_BUILD_TYPE=Release &&
        cmake --build "$peers_dir/$name" -j "${JOBS:-2}" --target "$@"; } >"$peers_dir/$name.log" 2>&1 || {
        echo "$name cannot be built: see $peers_dir/$name.log" >&2
        return 1
    }
}

find_xlearn() {
    local source
    source=$(source_of xlearn)
    built xlearn_train ${source:+"$source/build"} "$peers_dir/xlearn" && return
    [ -n "$source" ] && by_cmake xlearn "$source" xlearn_train xlearn_predict && built xlearn_train "$peers_dir/xlearn"
}

find_libffm() {
    local source
    source=$(source_of libffm)
    built ffm-train ${source:+"$source"} "$peers_dir/libffm" && return
    [ -n "$source" ] || return 1
    mkdir -p "$peers_dir"
    cp -r "$source" "$peers_dir/libffm"
    echo "building libffm ($peers_dir/libffm.log)" >&2
    make -C "$peers_dir/libffm" >"$peers_dir/libffm.log" 2>&1 || {
        echo "libffm cannot be built: see $peers_dir/libffm.log" >&2
        return 1
    }
    built ffm-train "$peers_dir/libffm"
}

find_vw() {
    local source
    source=$(source_of vowpal_wabbit)
    built vw ${source:+"$source/build/vowpalwabbit/cli" "$source/vowpalwabbit" "$source"} \
        "$peers_dir/vw/vowpalwabbit/cli" &&
        return
    command -v vw && return
    [ -n "$source" ] && by_cmake vw "$source" vw_cli_bin && built vw "$peers_dir/vw/vowpalwabbit/cli"
}

# peers_of MODEL: those that have it, with their bars: NAME, times from text, times in later epochs (-: none).
peers_of() {
    case $1 in
    lr) printf '%s\n' "xlearn - 1.5" "vw 3.5 -" ;;
    fm) echo "xlearn 6 1.5" ;;
    ffm) printf '%s\n' "xlearn 6 1.5" "libffm - -" ;;
    esac
}

# Data as a peer reads it, made once: as_vw FILE NAME
as_vw() {
    [ -f "$2" ] || awk '{ printf "%s |", ($1 > 0 ? 1 : -1)
        for (i = 2; i <= NF; i++) { n = split($i, part, ":"); printf " %s:%s", part[n - 1], part[n] }
        print "" }' "$1" >"$2"
}

# peer_train NAME PROGRAM MODEL EPOCHS [FILE]: from text, with nothing of earlier runs; keeps its model in FILE.
peer_train() {
    local -A task=([lr]=0 [fm]=1 [ffm]=2)
    rm -f "$dir/data.bin" "$dir/data.cache"
    case $1 in
    xlearn) # needs a name of the user; without --no-bin it keeps the parsed text
        USER=${USER:-user} "$2" "$dir/data" -s "${task[$3]}" -k 4 -e "$4" -nthread "$threads" --dis-es --quiet \
            --no-bin \
            -m "${5:-none}"
        ;;
    libffm) (cd "$dir" && "$2" -k 4 -t "$4" -s "$threads" data "${5:-$dir/model}") ;; # data.bin comes where it runs
    vw)
        local passes=()
        [ "$4" = 1 ] || passes=(--passes "$4" --holdout_off --cache_file "$dir/data.cache" -k)
        "$2" --quiet -b 22 --loss_function logistic -d "$dir/data.vw" "${passes[@]}" ${5:+-f "$5"}
        ;;
    esac
}

# peer_loss NAME PROGRAM MODEL-FILE: the log-loss on the test rows; "-" where the program that predicts was not built.
peer_loss() {
    [ "$1" = vw ] || [ -x "${2%train}predict" ] || {
        printf '%6s' -
        return
    }
    case $1 in
    xlearn) USER=${USER:-user} "${2%train}predict" "$dir/test" "$3" -o "$dir/scores" --sigmoid >"$dir/log" 2>&1 ;;
    libffm) "${2%train}predict" "$dir/test" "$3" "$dir/scores" >"$dir/log" 2>&1 ;;
    vw) "$2" --quiet -t -i "$3" -d "$dir/test.vw" -p "$dir/scores" --link logistic >"$dir/log" 2>&1 ;;
    esac
    paste -d ' ' "$dir/scores" <(cut -d ' ' -f 1 "$dir/test") | awk '
        { p = $1 < 1e-15 ? 1e-15 : $1 > 1 - 1e-15 ? 1 - 1e-15 : $1; loss -= $NF > 0 ? log(p) : log(1 - p) }
        END { printf "%.4f", loss / NR }'
}
