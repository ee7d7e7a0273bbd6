# paramo serve: every endpoint, rows of each format against `paramo predict`, wrong requests, limits, a slow client,
# reloads and SIGTERM under load. curl is the client.
# shellcheck shell=bash
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1

"$PARAMO" serve --model none >"$OUT" 2>"$ERR"
if grep -q 'built without' "$ERR"; then
    echo "skip: this program was built without libmicrohttpd"
    exit 77
fi
refused 2 "serve without --model-in" '--model-in DIR or --scheduler HOST:PORT is missing' "$PARAMO" serve
refused 2 "not an address" 'listen .* is not HOST:PORT' "$PARAMO" serve --model none --listen 8080
refused 3 "no model" 'no model there' "$PARAMO" serve --model none
refused 3 "no model, by the other name" 'no model there' "$PARAMO" serve --model-in none
refused 2 "both names" 'are one option' "$PARAMO" serve --model-in none --model none

# ---- models, and what predict says of the first 200 rows ----

learn() { # learn NAME FORMAT MODEL [OPTION...]
    "$PARAMO" data synth --rows 600 --features 40 --format "$2" --out "$1.data" >/dev/null 2>&1 &&
        "$PARAMO" train --data "$1.data" --model "$3" --model-out "$1" --epochs 1 --any-quality -q "${@:4}" >/dev/null \
            2>"$ERR" &&
        head -n 200 "$1.data" >"$1.rows" &&
        "$PARAMO" predict --model-in "$1" --data "$1.rows" --out "$1.want" 2>>"$ERR"
}
check "a model of hashed libsvm rows" learn libsvm libsvm lr --hash-bits 18
check "a model of libffm rows" learn libffm libffm fm
check "a model of Criteo rows" learn criteo criteo lr
check "a model of fields" learn fields libffm fwfm
awk 'BEGIN { for (i = 0; i < 600; i++) print i % 3 == 0, "1:" i / 7, "2:" 3.5 - i % 5, (i % 11) ":1" }' >scaled.text
"$PARAMO" train --data scaled.text --model lr --model-out scaled --epochs 1 --any-quality -q --scale std >/dev/null 2>&1
check "a model of scaled values" [ -e scaled/manifest.json ]
head -n 200 scaled.text >scaled.rows
check "the model of scaled values gives scores" "$PARAMO" predict --model-in scaled --data scaled.rows --out scaled.want

# ---- servers and requests ----

serve() { # serve NAME MODEL [OPTION...]: on a port that the kernel deals; sets URL
    start "$1" "$PARAMO" serve --model "$2" --listen 127.0.0.1:0 --timeout 600 "${@:3}"
    wait_for 20 grep -q '^paramo serve: listening on port' "$1.err" || failed "$1: does not listen"
    URL=http://127.0.0.1:$(sed -n 's/^paramo serve: listening on port //p' "$1.err")
}

stop() { # stop NAME TEXT
    kill -TERM "$(job_pid "$1")"
    ends "$1" 0 "$2"
}

get() { curl -s -o body -w '%{http_code}' --max-time "$DEADLINE" "$@"; } # prints the status; the body is in `body`

# answers STATUS TEXT REGEX CURL...: an answer with this status, whose body matches.
answers() {
    local want=$1 text=$2 regex=$3 status
    shift 3
    status=$(get "$@")
    if [ "$status" = "$want" ] && grep -Eq -- "$regex" body; then
        passed "$text"
    else
        failed "$text: status $status, not $want, or nothing matches '$regex'"
        show body
    fi
}

numbers() { tr -d '{}[]" \n' <"$1" | sed 's/predictions://' | tr ',' '\n' && echo; } # of a JSON answer, one a line
to_json() { sed 's/\t/\\t/g; s/.*/"&"/' "$1" | paste -sd, | sed 's/.*/{"rows": [&]}/'; }

same_scores() { # same_scores NAME: text, text without labels where they may be left out, and JSON
    get --data-binary "@$1.rows" "$URL/predict" >/dev/null && cmp -s body "$1.want" || return 1
    to_json "$1.rows" >json
    get --data-binary @json "$URL/predict" >/dev/null && numbers body | cmp -s - "$1.want" || return 1
    [ "$1" = criteo ] && return 0
    cut -d' ' -f2- "$1.rows" | get --data-binary @- "$URL/predict" >/dev/null && cmp -s body "$1.want"
}

for format in libffm fields criteo scaled; do
    serve "$format" "$format"
    check "$format: every row as predict, in each form" same_scores "$format"
    if [ "$format" = criteo ]; then
        awk -F'\t' \
            '{ for (i = 2; i <= NF; i++) if ($i != "") printf "%s%s=%s", (i > 2 ? " " : ""), (i < 15 ? "I" (i - 1) : "C" (i - 14)), $i; print "" }' \
            criteo.rows >fields.rows
        sed 's/\([^ =]*\)=\([^ ]*\)/"\1":"\2"/g; s/ /,/g; s/.*/{&}/' fields.rows | paste -sd, |
            sed 's/.*/{"rows":[&]}/' >json
        get --data-binary @fields.rows "$URL/predict" >/dev/null
        check "rows of named fields as predict" cmp -s body criteo.want
        get --data-binary @json "$URL/predict" >/dev/null
        check "JSON objects of named fields as predict" cmp -s <(numbers body) criteo.want
        answers 400 "an unknown name: row and field" '"row":2,"field":"C27"|"field":"C27".*"row":2' \
            -d '{"rows":[{"I1":1},{"C27":"a"}]}' "$URL/predict"
        answers 400 "a value that is no integer" '"field":"I2"' --data-binary 'I2=x' "$URL/predict"
    fi
    stop "$format" "$format: SIGTERM ends it with 0"
done

# A model of a table takes objects of its columns, and the lines that data convert writes.
awk \
    'BEGIN { print "click,site,age"; for (i = 0; i < 600; i++) printf "%d,s%d,%g\n", (i % 3 == 0), i % 7, i % 50 / 4 }' \
    >table.csv
"$PARAMO" train --data table.csv --columns 'label=click,cat=site,num=age' --model lr --interactions site:age \
    --model-out table --epochs 1 --any-quality -q >/dev/null 2>&1
head -n 201 table.csv >rows.csv
check "a model of a table" "$PARAMO" predict --model-in table --data rows.csv --out table.want
"$PARAMO" data convert --no-labels --data rows.csv --columns 'cat=site,num=age' --to libffm --out table.lines >/dev/null
awk -F, \
    'NR > 1 { printf "%s{\"site\":\"%s\",\"age\":%s}", (NR == 2 ? "{\"rows\":[" : ","), $2, $3 } END { print "]}" }' \
    rows.csv >json
serve table table
get --data-binary @json "$URL/predict" >/dev/null
check "objects of its columns as predict" cmp -s <(numbers body) table.want
get --data-binary @table.lines "$URL/predict?format=libffm" >/dev/null
check "converted lines as predict" cmp -s body table.want
answers 400 "lines of ids are not its rows" 'the model learned a table: a row is an object of its columns' \
    -d '0 3:1 17:1' "$URL/predict"
answers 400 "a value that is no number: row and column" \
    "\"message\":\"column 'age': expected a number, found 'old'\",\"row\":2" \
    -d '{"rows":[{"age":1},{"age":"old"}]}' "$URL/predict"
stop table "table: SIGTERM ends it with 0"

serve main libsvm --max-body 4096
head -n 20 libsvm.rows >few.rows && head -n 20 libsvm.want >few.want
cp few.rows whole.rows && cp few.want whole.want
check "libsvm, hashed: as predict, in each form" same_scores whole
answers 200 "/healthz" '^ok$' "$URL/healthz"
answers 200 "/readyz" '^ready$' "$URL/readyz"
answers 404 "another path" '"status":404' "$URL/nothing"
answers 405 "another method" '"status":405' "$URL/predict"
answers 405 "another method for /metrics" '"status":405' -d x "$URL/metrics"
answers 400 "a bad row has its number" '"row":2' --data-binary $'1 2:1\n1 x:1\n' "$URL/predict"
answers 400 "... in JSON" '"row":3' -d '{"rows": ["1:1", "2:1", "3:"]}' "$URL/predict?format=libsvm"
answers 400 "not JSON" 'not valid JSON' -d '{"rows": [' "$URL/predict"
answers 400 "no row" 'no row' -d '' "$URL/predict"
answers 400 "an unknown format" 'not one of' -d '1:1' "$URL/predict?format=csv"
head -c 5000 /dev/zero >large
answers 413 "a body that is too large" '"status":413' --data-binary @large "$URL/predict"
answers 413 "... in chunks" '"status":413' -H 'Transfer-Encoding: chunked' --data-binary @large "$URL/predict"
answers 413 "... and the client waits" '"status":413' -H 'Expect: 100-continue' --data-binary @large "$URL/predict"

metric() { sed -n "s/^paramo_serve_$1 //p" body; }
get "$URL/metrics" >/dev/null
check "/metrics counts rows" [ "$(metric rows_total)" = 60 ]
check "/metrics counts statuses" [ "$(metric 'requests_total{status="413"}')" = 3 ]
check "/metrics counts errors" [ "$(metric errors_total)" = 11 ]
check "/metrics has quantiles" at_least "$(metric 'request_seconds{quantile="0.99"}')" \
    "$(metric 'request_seconds{quantile="0.5"}')"
check "/metrics has the model's age" at_least "$(metric 'model_age_seconds{model="lr"}')" 0
check "/metrics is well formed" [ "$(grep -Evc '^(# (HELP|TYPE) |)paramo_serve_[a-z_]+[ {]' body)" = 0 ]

# ---- slow clients, and connections at the limit ----

connect() { eval "exec $1<>/dev/tcp/127.0.0.1/${URL##*:}"; } # connect NUMBER: descriptor NUMBER
MAIN=$URL
serve few libsvm --max-connections 4
for fd in 21 22 23 24; do connect "$fd"; done
full() { [ "$(get "$URL/healthz")" = 503 ]; }
room() { [ "$(get "$URL/healthz")" = 200 ]; }
check "a connection above the limit is answered with 503" wait_for 20 full
check "the answer 503 is JSON" grep -q '"status":503' body
exec 21>&- 22>&- 23>&- 24>&-
check "connections that close make room" wait_for 20 room
stop few "SIGTERM ends that server with 0"
serve slow libsvm --timeout 1
connect 21
printf 'POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n' >&21
while printf 1 >&21; do pause; done 2>/dev/null &
TRICKLE=$!
timeout "$DEADLINE" cat <&21 >trickled 2>/dev/null # until the server closes
check "a client that sends byte by byte is cut off" [ $? != 124 ]
check "the connection of the slow client has no answer" [ ! -s trickled ]
kill "$TRICKLE" 2>/dev/null
exec 21>&-
expired() { get "$URL/metrics" >/dev/null && [ "$(metric timeouts_total)" -ge 1 ]; }
check "the slow client is counted" wait_for 20 expired
stop slow "... and SIGTERM ends it"
serve unsent libsvm --max-unsent 100 # bytes
head -n 100 libsvm.rows >hundred
answers 503 "an answer beyond --max-unsent" 'wait for clients to read them' --data-binary @hundred "$URL/predict"
small() { # an answer of fewer bytes, a hundred times over one connection: what is read counts no more
    [ "$(curl -s --fail --max-time "$DEADLINE" --data-binary 1:1 "$URL/predict?[1-100]" | wc -l)" = 100 ]
}
check "small requests are answered, also a hundred" small
unsent() { get "$URL/metrics" >/dev/null && [ "$(metric unsent_bytes)" = 0 ]; }
check "no connection is left" wait_for 20 unsent
refused 4 "a port in use" 'cannot listen on ' "$PARAMO" serve --model libsvm --listen "${URL#http://}"
stop unsent "... and SIGTERM ends it, too"
URL=$MAIN

# ---- reloads under load ----

other() { # other FOLDER: a model of another kind from the same data
    "$PARAMO" train --data libsvm.data --model fm --model-out "$1" --epochs 1 --any-quality -q --hash-bits 20 \
        >/dev/null 2>&1
}
first() { # first FOLDER: the same bits as the model that is served
    "$PARAMO" train --data libsvm.data --model lr --model-out "$1" --epochs 1 --any-quality -q --hash-bits 18 \
        >/dev/null 2>&1
}
check "another model" other other
"$PARAMO" predict --model-in other --data few.rows --out other.want
load() { # load NAME: one row again and again, until the file `enough` is there; each answer is a line
    local i
    for ((i = 1; ; i++)); do
        curl -s -S --fail --max-time "$DEADLINE" --data-binary "@one" "$URL/predict?[1-50]" >>"$1.got" 2>>"$1.failed" ||
            echo "curl: $?" >>"$1.failed"
        echo $((i * 50)) >"$1.sent"
        [ ! -e enough ] || return 0
    done
}
head -n 1 few.rows >one
OLD=$(head -n 1 few.want) NEW=$(head -n 1 other.want)
check "the models differ" [ "$OLD" != "$NEW" ]
LOADS=()
for name in load1 load2; do
    load "$name" &
    LOADS+=("$!")
done
reloads() { get "$URL/metrics" >/dev/null && [ "$(metric reloads_total)" -ge "$1" ]; }
wait_for 20 test -s load1.sent
kill -HUP "$(job_pid main)"
check "SIGHUP loads the model" wait_for 20 reloads 1
served() { get --data-binary @one "$URL/predict" >/dev/null && [ "$(cat body)" = "$1" ]; }
check "a training saves another model over it" other libsvm
check "the second model is served" wait_for 20 served "$NEW"
check "a training saves the first one again" first libsvm
check "the first model is served" wait_for 20 served "$OLD"
echo '{' >libsvm/new && mv libsvm/new libsvm/manifest.json
failures() { get "$URL/metrics" >/dev/null && [ "$(metric reload_failures_total)" -ge 1 ]; }
check "a damaged model is counted" wait_for 20 failures
check "the old model is still served" served "$OLD"
twice() { get "$URL/metrics" >/dev/null && [ "$(metric reload_failures_total)" -ge 2 ]; }
check "the damaged model is tried again" wait_for 30 twice
check "the damaged model is reported once" [ "$(grep -c 'the new model is not used' main.err)" = 1 ]
touch enough
for pid in "${LOADS[@]}"; do wait "$pid"; done
check "no request was lost" [ "$(cat load?.failed | wc -l)" = 0 ]
check "each request has an answer" [ "$(cat load?.got | wc -l)" = $(($(cat load1.sent) + $(cat load2.sent))) ]
check "each answer is one of the two models'" [ "$(cat load?.got | grep -Fvxc -e "$OLD" -e "$NEW")" = 0 ]

# ---- SIGTERM under load ----

rm -f enough load?.*
LOADS=()
for name in load1 load2; do
    load "$name" &
    LOADS+=("$!")
done
wait_for 20 test -s load1.sent && wait_for 20 test -s load2.sent
connect 21 # a request that has begun: its body comes after SIGTERM
printf 'POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %s\r\n\r\n' "$(stat -c %s one)" \
    >&21
read -r -t "$DEADLINE" line <&21
check "a request has begun" grep -q '100 Continue' <<<"$line"
kill -TERM "$(job_pid main)"
no_listener() { ! curl -s -o /dev/null --max-time 5 "$URL/healthz"; }
check "SIGTERM: it accepts no more connections" wait_for 20 no_listener
cat one >&21
timeout "$DEADLINE" cat <&21 >late
check "a request that had begun is answered" grep -qx "$OLD" late
exec 21>&-
ends main 0 "SIGTERM under load ends it with 0"
touch enough
for pid in "${LOADS[@]}"; do wait "$pid"; done
check "every answer was whole" [ "$(cat load?.got | grep -Fvxc "$OLD")" = 0 ]

finish
