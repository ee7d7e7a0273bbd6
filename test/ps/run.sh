#!/usr/bin/env bash
# run.sh SERVERS WORKERS PROGRAM...: one job of plain processes (lib.sh).
set -eu
here=$(dirname "$0")
. "$here/lib.sh"
job "$@"
