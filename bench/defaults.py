#!/usr/bin/env python3
"""How good the default settings of `paramo train` are: their log-loss over the best of a grid, on each data set.

usage: bench/defaults.py [--paramo FILE] [--vw FILE] [--data DIR] [--sets DIR] [--rows N] [--models lr,fm] [--only WORD]

Sets: those of bench/defaults_sets.py, and each pair NAME.train, NAME.test in --sets (any format and compression:
NAME.train.gz). Nothing is fetched. Of most files the first --rows rows are used, a third of that for tests, so that a
run takes minutes. The test rows choose the best of the grid, and the defaults never see them. If Vowpal Wabbit is
installed it learns the same rows: with its defaults, and in the best of four other ways; these are part of LR's grid.
"""
import argparse, json, math, os, shutil, subprocess, sys, tempfile

import defaults_sets

GRID = ["--alpha %g --beta %g --batch %d" % g for g in (
    (0.02, 1, 16), (0.1, 1, 16), (0.2, 1, 32), (0.5, 1, 32), (0.1, 1, 256), (0.5, 1, 256), (0.2, 4, 32), (0.3, 9, 32),
    (0.5, 10, 32), (1, 20, 32))]
VW_GRID = ["--passes 10 -c -k", "--passes 20 -c -k -l 0.1", "--passes 20 -c -k -l 2", "-l 0.1"]


def logloss(args, model, name, settings):
    """Of a model trained on a set's rows, on its test rows; infinite if training fails."""
    with tempfile.TemporaryDirectory() as out:
        train = [args.paramo, "train", "-q", "--any-quality", "--model", model, "--data", name + ".train",
                 "--model-out", out + "/m"]
        if subprocess.run(train + settings.split(), capture_output=True, check=False).returncode:
            return math.inf
        done = subprocess.run([args.paramo, "eval", "--json", "--model-in", out + "/m", "--data", name + ".test"],
                              capture_output=True, check=False)
        return json.loads(done.stdout)["logloss"] if done.returncode == 0 else math.inf


def vw_line(line):
    """libsvm, libffm or Criteo TSV in Vowpal Wabbit's format; a feature's field is left out."""
    if "\t" in line:
        column = line.rstrip("\n").split("\t")
        features = ["%d:%s" % (k, column[k]) for k in range(1, 14) if column[k] != ""]
        features += ["c%d_%s" % (k, column[k]) for k in range(14, 40) if column[k] != ""]
    else:
        column = line.split()
        features = [":".join(f.split(":")[-2:]) for f in column[1:]]
    return "%d | %s\n" % (1 if float(column[0]) > 0 else -1, " ".join(features))


def vw_logloss(args, name, settings):
    for kind in (".train", ".test"):
        if not os.path.exists(name + kind + ".vw"):
            with open(name + kind) as lines, open(name + kind + ".vw", "w") as out:
                out.writelines(map(vw_line, lines))
    vw = [args.vw, "--quiet"]
    subprocess.run(vw + ["-b", "22", "--loss_function", "logistic", "-d", name + ".train.vw", "-f", name + ".m"]
                   + settings.split(), check=True, stderr=subprocess.DEVNULL)
    subprocess.run(vw + ["-t", "-i", name + ".m", "-d", name + ".test.vw", "-p", name + ".p", "--link", "logistic"],
                   check=True, stderr=subprocess.DEVNULL)
    loss = rows = 0
    with open(name + ".p") as scores, open(name + ".test.vw") as lines:
        for score, line in zip(scores, lines):
            p = min(max(float(score.split()[0]), 1e-15), 1 - 1e-15)
            loss -= math.log(p if line.startswith("1") else 1 - p)
            rows += 1
    return loss / rows


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paramo", default=top + "/build/release/paramo")
    parser.add_argument("--vw", default=shutil.which("vw"))
    parser.add_argument("--data", default=top + "/../shared/data")
    parser.add_argument("--sets")
    parser.add_argument("--rows", type=int, default=9000)
    parser.add_argument("--models", default="lr,fm")
    parser.add_argument("--only", default="", help="only sets with this in their name")
    args = parser.parse_args()
    ratios = {model: [] for model in args.models.split(",")}
    vw_ratios = []
    print("%-16s %-5s %9s %9s %9s %7s   %s" %
          ("set", "model", "VW", "defaults", "best", "ratio", "settings of the best"))
    with tempfile.TemporaryDirectory() as work:
        for name in defaults_sets.make(args.paramo, args.data, args.sets, args.rows, work):
            for model in ratios if args.only in name else ():
                path = os.path.join(work, name)
                default, vw = logloss(args, model, path, ""), math.nan
                tried = [(default, "the defaults")] + [(logloss(args, model, path, g), g) for g in GRID]
                if args.vw and model == "lr":
                    vw = vw_logloss(args, path, "")
                    tried += [(vw, "Vowpal Wabbit")]
                    tried += [(vw_logloss(args, path, g), "Vowpal Wabbit " + g) for g in VW_GRID]
                best = min(tried)
                if default == math.inf:
                    sys.exit("%s, %s: training failed" % (name, model))
                ratios[model].append(default / best[0])
                if vw == vw:
                    vw_ratios.append(vw / best[0])
                print("%-16s %-5s %9.4f %9.4f %9.4f %7.3f   %s" %
                      (name, model, vw, default, best[0], ratios[model][-1], best[1]), flush=True)
    for model, r in list(ratios.items()) + [("Vowpal Wabbit", vw_ratios)]:
        if r:
            print("%s: geometric mean %.3f, worst %.3f over %d sets" % (model, mean(r), max(r), len(r)))


main()
