#!/bin/sh
# Installs what Paramo needs from Debian's archive; does nothing, in a few milliseconds, where it is all there.
#   setup.sh          what building and installing need
#   setup.sh --test   also what the tests need
#   setup.sh --all    also what .ci/run needs: clang, clang-format, clang-tidy, lld, patch
set -eu

all=0 test=0
case "${1-}" in
"") ;;
--test) test=1 ;;
--all) all=1 test=1 ;;
*)
    echo "usage: setup.sh [--test | --all]" >&2
    exit 2
    ;;
esac

missing=
need() { # need PACKAGES COMMAND...: the packages are missing if one of the commands is
    packages=$1
    shift
    for command in "$@"; do
        if ! command -v "$command" >/dev/null 2>&1; then
            missing="$missing $packages"
            return 0
        fi
    done
}

need "gcc libc6-dev" gcc
need g++ g++ # the tests of include/ps
need cmake cmake ctest
need ninja-build ninja
need pkg-config pkg-config
need zstd zstd
if [ "$test" = 1 ]; then
    need iproute2 ip      # test/e2e/cut.sh makes hosts of its own
    need etcd-server etcd # test/e2e/etcd.sh
    need curl curl        # test/e2e/serve.sh
    need liblinear-tools liblinear-train # test/e2e/darlin.sh
    # test/ps: programs that include glog before ps/ps.h
    [ -e /usr/include/glog/logging.h ] || missing="$missing libgoogle-glog-dev"
fi
libraries="libxxhash-dev zlib1g-dev libzstd-dev liblz4-dev libjansson-dev libcmocka-dev"
if ! pkg-config --exists libxxhash zlib libzstd liblz4 jansson cmocka 2>/dev/null; then
    missing="$missing $libraries"
fi
if ! pkg-config --exists ucx 2>/dev/null; then # the ucx van; a build without it has the others
    missing="$missing libucx-dev"
fi
if ! pkg-config --exists libcurl 2>/dev/null; then # a scheduler's state in etcd; a build without it has folders
    missing="$missing libcurl4-openssl-dev"
fi
if ! pkg-config --exists libmicrohttpd 2>/dev/null; then # paramo serve; a build without it says so
    missing="$missing libmicrohttpd-dev"
fi
if [ "$all" = 1 ]; then
    need clang clang
    runtime=$(clang -print-resource-dir 2>/dev/null || true)
    if [ -z "$(find "${runtime:-/nowhere}" -name 'libclang_rt.fuzzer-*' 2>/dev/null)" ]; then # sanitizers, libFuzzer
        missing="$missing libclang-rt-14-dev"
    fi
    need patch patch # scripts/mutants
    need lld ld.lld # links the tests in half the time
    need clang-format-14 clang-format-14
    need clang-tidy-14 clang-tidy-14
fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup.sh: missing (Debian's names):$missing; there is no apt-get here, install them by hand" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "setup.sh: missing:$missing; as root, run: apt-get install$missing" >&2
    exit 1
fi
echo "setup.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086 # a list of packages
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup.sh: apt-get could not install$missing (its log: $log)" >&2
    exit 1
fi
rm -f "$log"
