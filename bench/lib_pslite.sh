# Sourced by pslite*.sh, with `here`, `work`, `pslite` and `build` set: compiles a program over ps-lite and over Paramo.
[ -f "$pslite/include/ps/ps.h" ] || {
    echo "$(basename "$0"): $pslite is no checkout of ps-lite: it has no include/ps/ps.h" >&2
    exit 2
}
[ -f "$build/libparamo.a" ] || {
    echo "$(basename "$0"): $build is no build of Paramo: it has no libparamo.a" >&2
    exit 2
}
library=$pslite/build/libps.a
if [ ! -f "$library" ]; then
    library=$work/libps.a
    echo "$(basename "$0"): compiling the sources of $pslite" >&2
    protoc -I"$pslite/src" --cpp_out="$work" "$pslite/src/meta.proto"
    for source in "$work/meta.pb.cc" "$pslite"/src/{customer,postoffice,van}.cc; do
        g++ -std=c++14 -O3 -w -I"$work" -I"$pslite/src" -I"$pslite/include" -c "$source" \
            -o "$work/$(basename "$source").o"
    done
    ar rcs "$library" "$work"/*.o
fi
# both SOURCE NAME: makes $work/NAME.theirs and $work/NAME.ours of it.
both() {
    local flags="-std=c++14 -O2 -DNDEBUG -w $1"
    # shellcheck disable=SC2086 # flags are words
    g++ $flags -I"$pslite/include" "$library" -lzmq -lprotobuf -lpthread -o "$work/$2.theirs"
    # shellcheck disable=SC2046,SC2086
    g++ $flags -I"$here/../include" "$build/libparamo.a" $(sed -n 's/^Libs.private: //p' "$build/paramo.pc") \
        -lpthread -o "$work/$2.ours"
}
