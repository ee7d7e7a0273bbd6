# The recipes of docs/EXTENDING.md in a copy of the tree: a model, an optimizer and a message are added as it says,
# built and run.
# What they add lies in test/extending: new files, and one patch for each recipe.
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
cp -r "$TOP"/{CMakeLists.txt,cmake,cmd,docs,examples,fuzz,include,learn,LICENSE,man,README.md,scripts,sim,src,test} .

# A model: its file, and a line of the table. The tests go over that table.
cp "$RECIPES/model_ffm.c" learn/model/
check "the model's patch" patch -s -p1 -i "$RECIPES/model.patch"

# An optimizer: its file, a line of each table that lists it, and its reference for the tests.
cp "$RECIPES/opt_rmsprop.c" src/table/optimizer/
check "the optimizer's patch" patch -s -p1 -i "$RECIPES/optimizer.patch"

# A message: a line of the table, a case where it arrives, and what handles it.
cp "$RECIPES"/exists.[ch] src/server/shard/
cp "$RECIPES/test_exists.c" test/server/
check "the message's patch" patch -s -p1 -i "$RECIPES/message.patch"

# Without optimization, and with the compiler's cache where there is one: the test of each push builds little.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$WORK CCACHE_NOHASHDIR=1
fi
DEADLINE=300 # a machine that does much else
expect 0 "configure" cmake -S . -B build -G Ninja -DCMAKE_C_FLAGS=-O0
expect 0 "build" cmake --build build -j 2 --target paramo test_model test_optimizer test_head test_exists
NEW=$TREE/build/paramo
[ -x "$NEW" ] || finish

expect 0 "the tests of all models" build/test/test_model
expect 0 "the tests of all optimizers" build/test/test_optimizer
expect 0 "the test of all messages" build/test/test_head
expect 0 "the message" build/test/test_exists
check "--help names the model" bash -c '"$0" train --help | grep -q -- "--model lr|fm|ffm"' "$NEW"
check "--help names its setting" bash -c '"$0" train --help | grep -q -- "--fields N  *ffm: "' "$NEW"
check "--help names the optimizer" bash -c '"$0" train --help | grep -q -- "--optimizer ftrl|adagrad|sgd|rmsprop"' "$NEW"

expect 0 "data" "$NEW" data synth --rows 4000 --fields 6 --features 40 --factors 2 --out rows.ffm
train=(train --data rows.ffm --epochs 3 --quiet)
expect 0 "the model learns" "$NEW" "${train[@]}" --model ffm --dim 4 --fields 6 --valid rows.ffm --json --model-out ffm
cp "$OUT" ffm.json
better() { # better THAN: the last epoch's log-loss is below that of guessing the mean rate
    python3 -c 'import json, sys; e = json.load(open(sys.argv[1]))["epochs"][-1]; sys.exit(e["valid"]["logloss"] >= e["mean_logloss"])' "$1"
}
check "better than guessing the mean rate" better ffm.json
check "its setting is in the manifest" grep -q '"fields": 6' ffm/manifest.json
expect 0 "it predicts" "$NEW" predict --model-in ffm --data rows.ffm --out scores
check "every row" test "$(wc -l <scores)" -eq 4000
expect 0 "it is exported" "$NEW" export --model-in ffm --text --out ffm.tsv
check "with the factors of each field" test "$(head -n 1 ffm.tsv | wc -w)" -eq $((2 + 4 * 6))
expect 0 "two servers" "$NEW" run -s 2 -w 1 -- "$NEW" "${train[@]}" --model ffm --dim 4 --fields 6 --model-out two
check "the same model" cmp ffm/manifest.json two/manifest.json
expect 0 "it continues" "$NEW" "${train[@]}" --model-in ffm --model-out more
expect 2 "with the same sizes only" "$NEW" "${train[@]}" --model-in ffm --fields 7
expect 2 "its options are not those of others" "$NEW" "${train[@]}" --model lr --fields 6
echo '1 3:1 4:1' >rows.svm
expect 3 "data without fields is refused" "$NEW" train --model ffm --data rows.svm
check "with the reason" grep -q 'libsvm format, which has no fields' "$ERR"

expect 0 "the optimizer learns" "$NEW" "${train[@]}" --model lr --optimizer rmsprop --valid rows.ffm --json --model-out rms
cp "$OUT" rms.json
check "better than guessing the mean rate" better rms.json
expect 0 "its state continues" "$NEW" "${train[@]}" --model-in rms --model-out rms2
finish
