# paramo serve --scheduler: scores with the model of a job while it trains, follows one job after another, and is no
# part of any. curl is the client.
# Sanitizers: address; cluster and serve have the same threads.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
export PARAMO_TOKEN=live TMPDIR=$WORK/tmp
mkdir tmp

refused 2 "a folder and a job" 'exclude each other' "$PARAMO" serve --model none --scheduler 127.0.0.1:1
refused 2 "a refresh of a folder" 'needs --scheduler' "$PARAMO" serve --model none --refresh 1
refused 2 "an address without a port" 'has no port' "$PARAMO" serve --scheduler nowhere
refused 3 "no file with a token" 'cannot open the token file' "$PARAMO" serve --scheduler 127.0.0.1:1 --token-file none
check "the training data" "$PARAMO" data synth --rows 20000 --features 100 --format libsvm --out data
head -n 50 data >rows

free_port
SCHEDULER=127.0.0.1:$PORT
job() { # job NAME TRAIN-OPTION...: a worker that trains, and one that stays until the file NAME.stop is there
    start "$1-scheduler" "$PARAMO" scheduler --port "$PORT" --servers 1 --workers 2
    wait_for 20 listens "$(job_pid "$1-scheduler")" || failed "$1: no scheduler"
    start "$1-server" "$PARAMO" server --scheduler "$SCHEDULER"
    start "$1-other" "$PARAMO" worker --scheduler "$SCHEDULER" -- "$ADDER" --window 1 --until "$1.stop"
    start "$1-train" "$PARAMO" worker --scheduler "$SCHEDULER" -- "$PARAMO" train --data data --any-quality -q "${@:2}"
}
over() { # over NAME: with 4, because the adder waits for the worker that has left, and so ends in disorder
    touch "$1.stop"
    ends "$1-other" 4 "$1: the other worker ends"
    ends "$1-server" 4 "$1: the server ends"
    ends "$1-scheduler" 4 "$1: the job ends"
}
get() { curl -s -o body -w '%{http_code}' --max-time "$DEADLINE" "$@"; }
status() { [ "$(get "$URL/$2")" = "$1" ]; } # status CODE PATH
predicted() { [ "$(get --data-binary @rows "$URL/predict")" = 200 ] && cmp -s body "$1"; } # predicted FILE

start serve "$PARAMO" serve --scheduler "$SCHEDULER" --listen 127.0.0.1:0 --refresh 1 --timeout 600
check "serve listens before there is a job" wait_for 20 grep -q '^paramo serve: listening on port' serve.err
URL=http://127.0.0.1:$(sed -n 's/^paramo serve: listening on port //p' serve.err)
check "serve is alive" status 200 healthz
check "serve is not ready" status 503 readyz
check "serve has no scores" [ "$(get --data-binary @rows "$URL/predict")" = 503 ]
check "serve says why it has no scores" wait_for 20 grep -q "^paramo serve: .*the job at $SCHEDULER: .*refused" \
    serve.err

job lr --model lr --epochs 3 --hold-out 0 --hash-bits 12 --scale maxabs --model-out lr
ends lr-train 0 "a job trains"
check "serve is ready" wait_for 20 status 200 readyz
"$PARAMO" predict --model-in lr --data rows --out lr.want
check "the scores are those of the model that is saved" wait_for 20 predicted lr.want
"$PARAMO" status --scheduler "$SCHEDULER" >nodes
check "serve is no node of the job" [ "$(grep -c '^worker' nodes)" = 2 ]
over lr
kill -HUP "$(job_pid serve)"
check "serve continues with the model of a job that is over" wait_for 40 grep \
    -q "there is no newer model: the job at $SCHEDULER" serve.err
check "the scores are the same" predicted lr.want

job fm --model fm --dim 3 --epochs 2 --hold-out 0 --snapshot --model-out fm
ends fm-train 0 "another job trains another model"
"$PARAMO" predict --model-in fm --data rows --out fm.want
check "serve has the scores of the other job's model" wait_for 20 predicted fm.want
kill -TERM "$(job_pid serve)"
ends serve 0 "SIGTERM ends serve"
check "serve leaves no files" [ -z "$(ls tmp)" ]
over fm
finish
