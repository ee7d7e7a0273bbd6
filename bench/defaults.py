#!/usr/bin/env python3
"""How good the default settings of `paramo train` are: their log-loss over the best of a grid, on each data set.

usage: bench/defaults.py [--paramo FILE] [--data DIR] [--sets DIR] [--rows N] [--models lr,fm] [--only WORD]

Sets: those of --data (../shared/data), shapes of `paramo data synth`, tables of raw numbers that are drawn here, and each
pair NAME.train, NAME.test in --sets (any format and compression: NAME.train.gz). Nothing is fetched. Of each file the
first --rows rows are used (a sixth of that for tests), so that a run takes minutes; 0: all. The test rows choose the best
of the grid, and the defaults never see them.
"""
import argparse, glob, json, math, os, random, subprocess, sys, tempfile

GRID = [(alpha, batch) for alpha in (0.02, 0.05, 0.1, 0.2, 0.5, 1.5) for batch in (16, 64, 256)]
SHAPES = {  # of paramo data synth
    "synth": [],
    "synth-small": ["--features", "20", "--fields", "6"],
    "synth-pairs": ["--factors", "4"],
    "synth-rare": ["--click-rate", "0.005"],
    "synth-wide": ["--features", "20000", "--fields", "20"],
}


def logloss(args, model, data, test, settings):
    """Of a model trained on data, on test; None if training fails."""
    with tempfile.TemporaryDirectory() as out:
        train = [args.paramo, "train", "-q", "--any-quality", "--model", model, "--data", data, "--model-out", out + "/m"]
        if subprocess.run(train + settings, capture_output=True, check=False).returncode:
            return None
        done = subprocess.run([args.paramo, "eval", "--json", "--model-in", out + "/m", "--data", test],
                              capture_output=True, check=False)
        return json.loads(done.stdout)["logloss"] if done.returncode == 0 else None


def head(path, out, rows):
    """The first rows of a file that may be compressed."""
    tool = "zcat" if path.endswith(".gz") else "zstdcat" if path.endswith(".zst") else "cat"
    with open(out, "wb") as to, subprocess.Popen([tool, path], stdout=subprocess.PIPE,
                                                 stderr=subprocess.DEVNULL) as source:
        for number, line in enumerate(source.stdout):
            if rows and number == rows:
                source.kill()
                break
            to.write(line)


def numbers(path, seed, rows, offset, heavy):
    """Six columns of sizes from 1e-3 to 1e6; far from 0, or with heavy tails."""
    draw = random.Random(seed)
    with open(path, "w") as out:
        for _ in range(rows):
            z = [draw.gauss(0, 1) for _ in range(6)]
            margin = -1 + sum(w * x for w, x in zip((1.2, -0.8, 1, -1.5, 0.5, 0.3), z))
            x = [math.exp(1.5 * v) if heavy else v + offset for v in z]
            label = draw.random() < 1 / (1 + math.exp(-margin))
            out.write("%d %s\n" % (label, " ".join("%d:%.6g" % (k + 1, v * 10.0 ** (k * 2 - 4)) for k, v in enumerate(x))))


def sets(args, work):
    """(name, train file, test file)"""
    tests = args.rows // 6
    if args.data and os.path.isdir(args.data):
        for name, train, test in (("a9a", "a9a.gz", "a9a.t.gz"),
                                  ("criteo80k", "criteo80k.train.ffm.zst", "criteo80k.test.ffm.zst"),
                                  ("frappe", "frappe_x1.train.ffm.zst", "frappe_x1.test.ffm.zst"),
                                  ("globo", "globo.train.ffm.zst", "globo.test.ffm.zst")):
            head(os.path.join(args.data, train), work + "/train", args.rows)
            head(os.path.join(args.data, test), work + "/test", tests)
            yield name, work + "/train", work + "/test"
    for name, more in SHAPES.items():
        for file, rows, seed in (("/train", args.rows or 100000, 1), ("/test", tests or 20000, 2)):
            subprocess.run([args.paramo, "data", "synth", "--rows", str(rows), "--seed", str(seed), "--out", work + file]
                           + more, check=True, stdout=subprocess.DEVNULL)
        yield name, work + "/train", work + "/test"
    for name, offset, heavy in (("numbers", 0, 0), ("numbers-offset", 3, 0), ("numbers-heavy", 0, 1)):
        numbers(work + "/train", 1, args.rows or 100000, offset, heavy)
        numbers(work + "/test", 2, tests or 20000, offset, heavy)
        yield name, work + "/train", work + "/test"
    for path in sorted(glob.glob(os.path.join(args.sets, "*.train*"))) if args.sets else []:
        head(path, work + "/train", args.rows)
        head(path.replace(".train", ".test"), work + "/test", tests)
        yield os.path.basename(path).split(".train")[0], work + "/train", work + "/test"


def main():
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paramo", default=top + "/build/release/paramo")
    parser.add_argument("--data", default=top + "/../shared/data")
    parser.add_argument("--sets")
    parser.add_argument("--rows", type=int, default=12000)
    parser.add_argument("--models", default="lr,fm")
    parser.add_argument("--only", default="", help="only sets with this in their name")
    args = parser.parse_args()
    ratios = {model: [] for model in args.models.split(",")}
    print("%-16s %-5s %9s %9s %7s   %s" % ("set", "model", "defaults", "best", "ratio", "settings of the best"))
    with tempfile.TemporaryDirectory() as work:
        for name, train, test in sets(args, work):
            for model in ratios if args.only in name else ():
                default = logloss(args, model, train, test, [])
                tried = [(logloss(args, model, train, test, ["--alpha", str(a), "--batch", str(b)]), a, b) for a, b in GRID]
                tried = [t for t in tried if t[0] is not None]
                if default is None or not tried:
                    sys.exit("%s, %s: training failed" % (name, model))
                best = min(tried)
                ratios[model].append(default / min(best[0], default))
                print("%-16s %-5s %9.4f %9.4f %7.3f   alpha %g, batch %d" %
                      (name, model, default, best[0], ratios[model][-1], best[1], best[2]), flush=True)
    for model, r in ratios.items():
        if r:
            print("%s: geometric mean %.3f, worst %.3f over %d sets" %
                  (model, math.exp(sum(map(math.log, r)) / len(r)), max(r), len(r)))


main()
