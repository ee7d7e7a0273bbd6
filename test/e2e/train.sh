# paramo train, eval, predict, export: good input in every format and form, wrong flags, missing and damaged files.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
unset PARAMO_TOKEN

for format in libsvm libffm criteo; do
    expect 0 "a log as $format" "$PARAMO" data synth --rows 3000 --seed 1 --format $format --out "$format.txt"
done
# ---- train, eval, predict, export in every format and form ----
gzip -k libsvm.txt
zstd -q libffm.txt
head -n 1500 libsvm.txt >part-1.txt
tail -n 1500 libsvm.txt >part-2.txt
trained() { # TEXT FOLDER ARGS...
    local text=$1 folder=$2
    shift 2
    expect 0 "$text" "$PARAMO" train --any-quality --model lr --seed 1 --model-out "$folder" "$@"
    check "$text: a manifest and tables" sh -c 'ls "$0"/*.json && ls "$0"/*.safetensors' "$folder" >/dev/null
}
same() { cmp -s "$1"/*.safetensors "$2"/*.safetensors; } # lr has one table
for format in libsvm libffm criteo; do trained "train on $format" "m-$format" --data "$format.txt"; done
trained "measured on a file" m-valid --data part-1.txt --valid part-2.txt
trained "libsvm, gzip" m-gz --data libsvm.txt.gz
trained "libffm, zstd" m-zst --data libffm.txt.zst
check "gzip makes no difference" same m-libsvm m-gz
check "zstd makes no difference" same m-libffm m-zst
expect 0 "from standard input" sh -c \
    '"$0" train --model lr --seed 1 --hold-out 10 --model-out m-stdin --data - <libsvm.txt' "$PARAMO"
trained "the same file, a tenth held out" m-tenth --hold-out 10 --data libsvm.txt
check "standard input makes no difference" same m-tenth m-stdin
trained "several files" m-two --data part-1.txt part-2.txt
trained "a pattern" m-glob --data 'part-*.txt'
check "training by a pattern of files" same m-two m-glob
trained "fm" m-fm --model fm --dim 3 --data libffm.txt
trained "fm with all vector instructions" m-wide --model fm --dim 21 --data libffm.txt
PARAMO_CPU=base trained "fm without vector instructions" m-base --model fm --dim 21 --data libffm.txt
check "a pattern makes no difference" diff -r m-wide m-base
trained "two workers in one process" m-workers --workers 2 --servers 2 --data libsvm.txt
trained "continue from a model" m-more --model-in m-libsvm --data libsvm.txt
expect 0 "train --json" "$PARAMO" train --model lr --data libsvm.txt --epochs 1 --hold-out 0 --json
check "one JSON object with the rows" test "$(json "$OUT" rows)" -eq 3000

expect 0 "eval" "$PARAMO" eval --model-in m-libsvm --data libsvm.txt
for word in rows positives logloss auc accuracy calibration; do
    check "eval prints $word" grep -qi "$word" "$OUT"
done
expect 0 "eval --json" "$PARAMO" eval --model-in m-libsvm --data libsvm.txt --json
cp "$OUT" eval.json
check "eval --json has all rows" test "$(json eval.json rows)" -eq 3000
check "the model has learned something" at_most "$(json eval.json logloss)" 0.69
expect 0 "predict" "$PARAMO" predict --model-in m-libsvm --data libsvm.txt --out p.txt
check "one probability a row" test "$(grep -cE '^(0|1|0\.[0-9]+|[0-9.]+e-[0-9]+)$' p.txt)" -eq 3000
logloss=$(paste -d' ' p.txt <(cut -d' ' -f1 libsvm.txt) |
    awk '{ s -= $2 > 0 ? log($1) : log(1 - $1) } END { print s / NR }')
check "in the order of the rows: their log-loss is eval's ($logloss)" near "$logloss" "$(json eval.json logloss)" 1e-4
expect 0 "predict to standard output" "$PARAMO" predict --model-in m-libsvm --data libsvm.txt --out -
check "predict to standard output gives the same" cmp -s p.txt "$OUT"
expect 0 "export" "$PARAMO" export --model-in m-libsvm --text
check "key, tab, value, sorted by key" sh -c \
    'test -s "$0" && ! grep -qvE "^[0-9]+	[-0-9.e+]+" "$0" && sort -c -n -k1,1 "$0"' "$OUT"
expect 0 "export to a file" "$PARAMO" export --model-in m-libsvm --text --out e.txt
check "export to a file gives the same" sh -c '"$0" export --model-in m-libsvm --text --out - | cmp -s e.txt -' \
    "$PARAMO"

# ---- messages during training ----
expect 0 "train --quiet" "$PARAMO" train -q --model lr --data libsvm.txt
check "--quiet prints no progress" test ! -s "$ERR"
check "--quiet prints the summary" grep -q 'rows by 1 worker' "$OUT"
expect 0 "train without --quiet" "$PARAMO" train --model lr --epochs 2 --data libsvm.txt
check "train prints a line for each epoch" test "$(grep -cE '^epoch [12]/2 .* rows in .* pushed .* pulled ' "$ERR")" \
    -eq 2
check "train prints no warning" sh -c '! grep -q warning "$0" "$1"' "$OUT" "$ERR"
expect 5 "a rate much too high" "$PARAMO" train -q --model lr --optimizer sgd --alpha 5 --epochs 3 --data libsvm.txt
check "the rate causes one warning" test \
    "$(grep -cE '^warning: training diverges: log-loss .*mean rate gives' "$ERR")" -eq 1
check "the summary has the warning" test "$(grep -c '^warning: training diverges' "$OUT")" -eq 1
expect 0 "a rate much too high, with --json and --any-quality" \
    "$PARAMO" train -q --json --any-quality --model lr --optimizer sgd --alpha 5 --epochs 3 --data libsvm.txt
check "the JSON has the warning" grep -q '"warning": "training diverges' "$OUT"
expect 0 "a good rate, with --json" "$PARAMO" train -q --json --model lr --workers 4 --data libsvm.txt
check "the JSON has no warning" grep -q '"warning": null' "$OUT"
check "four workers, smaller batches" test "$(json "$OUT" batch)" -eq 64
check "log-loss $(json "$OUT" logloss), of the mean rate $(json "$OUT" mean_logloss)" at_most 0.4 \
    "$(json "$OUT" mean_logloss)"
expect 0 "--batch is given" "$PARAMO" train -q --json --model lr --workers 4 --batch 100 --data libsvm.txt
check "--batch is used as it is given" test "$(json "$OUT" batch)" -eq 100

# A worker dies: the others learn its parts, and the summary reports it.
start dying "$PARAMO" run --verbose -s 1 -w 3 -- paramo train --model lr --epochs 100000 --data part-1.txt part-2.txt \
    libsvm.txt
check "the job trains" wait_for 30 grep -q '^epoch 3/.* rows in' dying.err
check "worker 1 is killed" signal_node KILL dying worker 1
check "the death of worker 1 is noticed" wait_for 30 grep -q 'worker 1 (node 11) is dead' dying.err
was=$(grep -c 'rows in' dying.err)
after() { [ "$(grep -c 'rows in' dying.err)" -ge $((was + 3)) ]; }
check "the job continues" wait_for 30 after
kill -INT "$(job_pid dying)"
ends dying '130|137' "Ctrl-C ends the job"
check "the summary names the dead worker, and the work that was dealt again" grep -qE \
    '^1 worker died; [0-9]+ parts? of the data begun and not finished, dealt again$' "$OUT"

# ---- each error is one line ----
refused 2 "train: no data" "data" "$PARAMO" train --model lr
refused 2 "train: no such model" "lr" "$PARAMO" train --model tree --data libsvm.txt
refused 2 "train: no such optimizer" "ftrl" "$PARAMO" train --model lr --data libsvm.txt --optimizer bogus
refused 2 "train: no epochs" "epochs" "$PARAMO" train --model lr --data libsvm.txt --epochs 0
refused 2 "train: a rate that is no number" "alpha" "$PARAMO" train --model lr --data libsvm.txt --alpha fast
refused 3 "train: a file that is not there" "nonesuch.txt" "$PARAMO" train --model lr --data nonesuch.txt
refused 3 "train: a pattern without files" "nonesuch-" "$PARAMO" train --model lr --data 'nonesuch-*'
mkdir folder
refused 3 "train: a folder" "folder" "$PARAMO" train --model lr --data folder
: >empty.txt
refused 3 "train: an empty file" "empty.txt" "$PARAMO" train --model lr --data empty.txt
head -c 20000 /dev/urandom >binary.txt
refused 3 "train: a binary file" "binary.txt" "$PARAMO" train --model lr --data binary.txt --format libsvm
head -c 3000 libsvm.txt.gz >cut.gz
refused 3 "train: a gzip file that is cut off" "cut.gz" "$PARAMO" train --model lr --data cut.gz
sed '1700s/.*/1 oops/' libsvm.txt >bad.txt
refused 3 "train: a bad line" "bad.txt:1700" "$PARAMO" train --model lr --data bad.txt --model-out never
check "failed trainings leave no model" test ! -e never
expect 0 "train: --skip-bad 1" "$PARAMO" train --model lr --data bad.txt --skip-bad 1
says "skipped lines are counted" 'skipped|bad'
refused 3 "train: one endless line" "xx.txt: its first line, which has no end" sh -c \
    'head -c 17000000 /dev/zero | tr "\0" x >xx.txt && "$0" train --model lr --data xx.txt' "$PARAMO"
refused 2 "train: a file name that is empty" "empty" "$PARAMO" train --model lr --data ''
refused 2 "predict: over its own data" "data files" \
    "$PARAMO" predict --model-in m-libsvm --data part-1.txt --out part-1.txt
refused 2 "predict: over its model" "manifest.json is a file of the model" \
    "$PARAMO" predict --model-in m-libsvm --data part-1.txt --out m-libsvm/manifest.json
refused 2 "export: over its model" "manifest.json is a file of the model" \
    "$PARAMO" export --model-in m-libsvm --text --out m-libsvm/manifest.json
check "the model is unchanged" test "$(wc -l <part-1.txt)" -eq 1500
expect 0 "eval: other features" "$PARAMO" eval --model-in m-libsvm --data criteo.txt
says "eval: other features cause a warning" 'warning: the model has .* of the features in criteo.txt'
refused 3 "eval: no model" "nonesuch" "$PARAMO" eval --model-in nonesuch --data libsvm.txt
refused 3 "eval: something else" "folder" "$PARAMO" eval --model-in folder --data libsvm.txt
refused 3 "eval: no data there" "nonesuch.txt" "$PARAMO" eval --model-in m-libsvm --data nonesuch.txt
refused 3 "predict: nowhere to write" "nonesuch/p" \
    "$PARAMO" predict --model-in m-libsvm --data libsvm.txt --out nonesuch/p
cp -r m-libsvm damaged
printf 'X' | dd of="$(ls damaged/*.safetensors)" bs=1 seek=2000 conv=notrunc 2>/dev/null
refused 3 "a damaged table is refused" "damaged" "$PARAMO" eval --model-in damaged --data libsvm.txt
cp -r m-libsvm flipped
printf 'X' | dd of="$(ls flipped/*.safetensors)" bs=1 seek=20 conv=notrunc 2>/dev/null
refused 3 "a bit of its header" "flipped.*checksum" "$PARAMO" train --model lr --model-in flipped --data libsvm.txt
cp -r m-libsvm short
truncate -s -4 "$(ls short/*.safetensors)"
refused 3 "a short table is refused" "short" "$PARAMO" export --model-in short --text
echo '{' >"$(ls m-gz/*.json)"
refused 3 "a damaged manifest is refused" "m-gz" "$PARAMO" predict --model-in m-gz --data libsvm.txt --out x
# shellcheck disable=SC2016
for verb in 'train --model lr --data libsvm.txt -q' 'eval --model-in m-libsvm --data libsvm.txt' \
    'predict --model-in m-libsvm --data libsvm.txt --out -' 'export --model-in m-libsvm --text'; do
    refused 3 "${verb%% *}: standard output is full" "standard output" sh -c "\"\$0\" $verb >/dev/full" "$PARAMO"
    refused 3 "${verb%% *}: standard output is closed" "standard output" sh -c "\"\$0\" $verb >&-" "$PARAMO"
done
refused 3 "a disk that is full" "/dev/full" "$PARAMO" predict --model-in m-libsvm --data libsvm.txt --out /dev/full
finish
