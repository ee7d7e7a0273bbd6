# The recipes of docs/EXTENDING.md in a copy of the tree: one part of each kind is added by its recipe, all are built
# together, and each is run. The new files, and one patch for each recipe, are in test/extending.
# shellcheck shell=bash disable=SC2016
. "$(dirname "$0")/lib.sh"

case $PARAMO in
*/asan/* | */tsan/*)
    echo "skipped: the copy is built without sanitizers"
    exit 77
    ;;
esac
for tool in patch cmake ninja; do
    command -v "$tool" >/dev/null || {
        echo "skipped: $tool is not there"
        exit 77
    }
done

RECIPES=$TOP/test/extending
TREE=$WORK/tree
mkdir "$TREE" && cd "$TREE" || exit 1
cp -r \
    "$TOP"/{CHANGELOG.md,CMakeLists.txt,cmake,cmd,docs,examples,fuzz,include,learn,LICENSE,man,README.md,scripts,sim,src,test} \
    .

USED=$WORK/used
: >"$USED"
# adds PART NAME FILE...: the part's section names each FILE, where <name> stands for NAME; the examples are copied
# there. The section names each file that the part's patch changes, too, if it has one.
adds() {
    local part=$1 name=$2 file
    shift 2
    awk -v head="$part" '/^## / { of = $0 ~ "^## [0-9]+[.] " head "$" } of' docs/EXTENDING.md >section
    check "$part: the document has its section" test -s section
    for file in "$@"; do
        check "$part: its section names $file" names "$file" "$name"
        mkdir -p "$(dirname "$file")"
        check "$part: $file is new" test ! -e "$file"
        cp "$RECIPES/$(basename "$file")" "$file" && basename "$file" >>"$USED"
    done
    file=${part##* }.patch
    basename "$file" >>"$USED"
    check "$part: the document has its patch" patch -s -p1 -i "$RECIPES/$file"
    while read -r file; do
        check "$part: its section names $file" names "$file" "$name"
    done < <(sed -n 's,^+++ b/,,p' "$RECIPES/$file")
}
names() { sed "s/<name>/$2/g" section | grep -qF "\`$1\`"; }

adds "A model" xfm learn/model/model_xfm.c
adds "An optimizer" rmsprop src/table/optimizer/opt_rmsprop.c
adds "A message" exists src/server/shard/exists.c src/server/shard/exists.h test/server/test_exists.c
adds "A verb" hello cmd/cmd_hello.c
adds "An option" times
adds "A reader" comma learn/data/parse_comma.c
adds "A transport" tally src/van/tally/tally.c test/van/test_tally.c
adds "An objective" boost learn/objective/objective_boost.c
check "every example is used" diff <(sort "$USED") <(cd "$RECIPES" && ls)
# What the document names in backquotes is there.
stands() { # stands PATH: a file, or the end of the path of one; <name> is any name
    local path=${1//./[.]}
    grep -qE "(^|/)${path//<name>/[a-z0-9_]+}\$" files
}
find . -type f | sed 's,^\./,,' >files
for path in $(grep -oE '`[A-Za-z0-9_<>/.-]+\.(c|h|in|sh|md)`' docs/EXTENDING.md | tr -d '\`' | sort -u); do
    check "the document names $path" stands "$path"
done

# Without optimization, and with the compiler's cache where there is one: the test of each push builds little.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$WORK CCACHE_NOHASHDIR=1
fi
DEADLINE=300 # a machine that does much else
expect 0 "configure" cmake -S . -B build -G Ninja -DCMAKE_C_FLAGS=-O0
expect 0 "build" cmake --build build -j 2 --target paramo man test_model test_optimizer test_head \
    test_exists test_tally test_parse_sparse test_options test_settings test_objective
NEW=$TREE/build/paramo
[ -x "$NEW" ] || finish

expect 0 "the tests of all models" build/test/test_model
expect 0 "the tests of all optimizers" build/test/test_optimizer
expect 0 "the test of all objectives" build/test/test_objective
expect 0 "the test of all messages" build/test/test_head
expect 0 "the message's own test" build/test/test_exists
check "--help names the model" bash -c '"$0" train --help | grep -q -- "--model lr|fm|.*|xfm"' "$NEW"
check "--help names its setting" bash -c '"$0" train --help | grep -q -- "--fields N  *ffm, .*xfm: "' "$NEW"
check "--help names the optimizer" bash -c '"$0" train --help | grep -q -- "--optimizer ftrl|adagrad|sgd|rmsprop"' \
    "$NEW"

expect 0 "data" "$NEW" data synth --rows 4000 --fields 6 --features 40 --factors 2 --out rows.ffm
train=(train --data rows.ffm --epochs 3 --quiet)
expect 0 "the model learns" "$NEW" "${train[@]}" --model xfm --dim 4 --fields 6 --valid rows.ffm --json --model-out xfm
cp "$OUT" xfm.json
better() { # better THAN: the last epoch's log-loss is below that of guessing the mean rate
    python3 -c \
        'import json, sys; e = json.load(open(sys.argv[1]))["epochs"][-1]; sys.exit(e["valid"]["logloss"] >= e["mean_logloss"])' \
        "$1"
}
check "the model is better than guessing the mean rate" better xfm.json
check "the model's setting is in the manifest" grep -q '"fields": 6' xfm/manifest.json
expect 0 "the model predicts" "$NEW" predict --model-in xfm --data rows.ffm --out scores
check "the model predicts every row" test "$(wc -l <scores)" -eq 4000
expect 0 "the model is exported" "$NEW" export --model-in xfm --text --out xfm.tsv
check "the export has the factors" test "$(head -n 1 xfm.tsv | wc -w)" -eq $((2 + 4))
expect 0 "the model on two servers" "$NEW" run -s 2 -w 1 -- "$NEW" "${train[@]}" --model xfm --dim 4 --fields 6 \
    --valid rows.ffm --model-out two
check "two servers save the same model" cmp xfm/manifest.json two/manifest.json
expect 0 "training of the model continues" "$NEW" "${train[@]}" --model-in xfm --model-out more
expect 2 "training does not continue with another size" "$NEW" "${train[@]}" --model-in xfm --fields 7
expect 2 "the model refuses options of other models" "$NEW" "${train[@]}" --model lr --fields 6
echo '1 3:1 4:1' >rows.svm
expect 3 "the model refuses data without fields" "$NEW" train --model xfm --data rows.svm
check "the error gives the reason" grep -q 'libsvm format, which has no fields' "$ERR"

expect 0 "the objective is learned" "$NEW" "${train[@]}" --model fm --objective boost --json --model-out boost
check "the objective is measured" grep -q '"exponential_loss"' "$OUT"
check "the objective is in the manifest" grep -q '"name": "boost"' boost/manifest.json
expect 0 "eval measures the objective" "$NEW" eval --model-in boost --data rows.ffm --json
check "the objective is better than an even guess" awk \
    '/"exponential_loss"/ { found = $2 + 0 < 1 } END { exit !found }' "$OUT"

expect 0 "the optimizer learns" "$NEW" "${train[@]}" --model lr --optimizer rmsprop --valid rows.ffm --json \
    --model-out rms
cp "$OUT" rms.json
check "the optimizer is better than guessing the mean rate" better rms.json
expect 0 "training continues with the optimizer's state" "$NEW" "${train[@]}" --model-in rms --model-out rms2

expect 0 "the test of all verbs and options" build/test/test_options
expect 0 "the verb runs" "$NEW" hello
check "the verb prints its line" diff <(echo hello) "$OUT"
expect 0 "the verb runs with its option" "$NEW" hello --times 3
check "the verb prints as many lines as its option says" diff <(printf 'hello\n%.0s' 1 2 3) "$OUT"
refused 2 "the option's limits are checked" '--times .0. on the command line: not a whole number from 1 to 1000' \
    "$NEW" hello --times 0
check "--help names the verb" bash -c '"$0" --help | grep -q "^  hello  *print a greeting"' "$NEW"
check "--help of the verb names the option" bash -c '"$0" hello --help | grep -q -- "--times N  *how many times"' "$NEW"
check "the manual names the verb" grep -qx '[.]SS paramo hello' build/man/paramo.1
check "the manual names the verb's option" grep -qF '\fB\-\-times\fR' build/man/paramo.1

expect 0 "the test of all formats" build/test/test_parse_sparse
check "--help names the format" bash -c '"$0" train --help | grep -q -- "--format auto|libsvm|vw|libffm|criteo|comma"' \
    "$NEW"
"$NEW" data synth --rows 4000 --format libsvm --out rows.svm >"$OUT"
tr ' ' ',' <rows.svm >rows.comma
for data in svm comma; do
    expect 0 "$data is read" "$NEW" train --model lr --data rows.$data --quiet --model-out lr.$data
    expect 0 "$data trains a model" "$NEW" export --model-in lr.$data --text --out $data.tsv
done
check "both formats train the same model" cmp svm.tsv comma.tsv
check "the model is not empty" test "$(wc -l <comma.tsv)" -gt 1000
sed '7s/:/;/' rows.comma >bad.comma
refused 3 "a bad line is an error" "bad.comma:7: expected a feature, index:value, found" "$NEW" train --model lr \
    --data bad.comma
refused 3 "the format has no fields" \
    "comma format, which has no fields; csv, tsv, jsonl, vw, libffm and criteo have them" \
    "$NEW" train --model xfm --data rows.comma

expect 0 "the van keeps the contract" build/test/test_tally
expect 0 "the test of all settings" build/test/test_settings
check "--help names the van" bash -c '"$0" run --help | grep -q -- "--van auto|tcp|ucx|tally"' "$NEW"
expect 0 "a job uses the van" env PS_VERBOSE=1 "$NEW" run -s 1 -w 1 --van tally -- "$NEW" "${train[@]}" --model lr
check "the job's frames use the van" grep -qE 'van: tally: [1-9][0-9]* frames' "$ERR"
finish
