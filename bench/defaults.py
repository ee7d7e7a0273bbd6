#!/usr/bin/env python3
"""How good the default settings of `paramo train` are: their log-loss over the best of a grid, on each data set.

usage: bench/defaults.py [--paramo FILE] [--vw FILE] [--data DIR] [--sets DIR] [--rows N] [--models lr,fm]
                         [--only WORD] [--of all|usual|hard|small]

Sets: those of bench/defaults_sets.py (usual), bench/defaults_hard_sets.py (hard) and bench/defaults_small_sets.py
(small, with scikit-learn), and each pair NAME.train, NAME.test in --sets (any format and compression: NAME.train.gz).
Nothing is fetched. Of most files the first --rows rows are used, a third of that for tests, so that a run takes
minutes. The test rows choose the best of the grid, and the defaults never see them. Vowpal Wabbit and scikit-learn
(bench/defaults_peers.py) learn the same rows where they are installed: with their defaults, and in the best of a
grid. "Best" is the best of all programs.
"""
import argparse, json, math, os, re, shutil, subprocess, sys, tempfile

import defaults_hard_sets, defaults_peers, defaults_sets, defaults_small_sets

OBJECTIVE = {**defaults_hard_sets.OBJECTIVE, **defaults_small_sets.OBJECTIVE}

GRID = ["--alpha %g --beta %g --batch %d" % g for g in (
    (0.02, 1, 16), (0.1, 1, 16), (0.2, 1, 32), (0.5, 1, 32), (0.1, 1, 256), (0.5, 1, 256), (0.2, 4, 32), (0.3, 9, 32),
    (0.5, 10, 32), (1, 20, 32))] + ["--l2 %g" % g for g in (1, 10, 50)]
FACTORS = ["--factor-alpha 0.02 --factor-beta 1 --factor-init 0.01", "--factor-alpha 0.2 --factor-beta 1",
           "--factor-after 5", "--factor-l2 1"]
FLOOR = 1e-3  # added to both losses of a ratio: where labels are certain, both are near 0
LOSSES = {"logistic": "logloss", "squared": "rmse", "poisson": "poisson_loss", "softmax": "logloss"}


def loss(args, model, name, more, settings):
    """Of a model trained on a set's rows, on its test rows, and the exit code and warnings of the training. The loss is
    infinite if training fails."""
    objective = more[1] if more else "logistic"
    with tempfile.TemporaryDirectory() as out:
        train = [args.paramo, "train", "-q", "--any-quality", "--model", model, "--data", name + ".train",
                 "--model-out", out + "/m"] + more
        done = subprocess.run(train + settings.split(), capture_output=True, check=False, text=True)
        said = re.findall(r"warning: (.*)", done.stderr)
        if done.returncode:
            return math.inf, said + done.stderr.splitlines()[-1:]
        done = subprocess.run([args.paramo, "eval", "--json", "--model-in", out + "/m", "--data", name + ".test"],
                              capture_output=True, check=False)
        return (json.loads(done.stdout)[LOSSES[objective]] if done.returncode == 0 else math.inf), said


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
    parser.add_argument("--of", default="all", choices=("all", "usual", "hard", "small"))
    parser.add_argument("--warnings", action="store_true", help="show what the trainer warns of with its defaults")
    args = parser.parse_args()
    ratios = {model: [] for model in args.models.split(",")}
    others = {"Vowpal Wabbit": [], "scikit-learn": []}
    print("%-16s %-4s %9s %9s %9s %9s %9s %6s   %s" %
          ("set", "", "VW", "sklearn", "defaults", "our best", "best", "ratio", "settings of the best"))
    with tempfile.TemporaryDirectory() as work:
        names = []
        if args.of in ("all", "usual"):
            names = defaults_sets.make(args.paramo, args.data, args.sets, args.rows, work)
        names += defaults_hard_sets.make(args.rows, work + "/") if args.of in ("all", "hard") else []
        names += defaults_small_sets.make(work + "/") if args.of in ("all", "small") else []
        for name in names:
            if args.only not in name:
                continue
            path = os.path.join(work, name)
            more = OBJECTIVE.get(name, [])
            objective = more[1] if more else "logistic"
            vw = defaults_peers.vw_losses(args.vw, path, objective)
            sklearn = defaults_peers.sklearn_losses(path, objective)
            for model in ratios:
                default, said = loss(args, model, path, more, "")
                if default == math.inf:
                    print("%-16s %-4s failed: %s" % (name, model, said[-1]), flush=True)
                    continue
                grid = GRID + (FACTORS if model == "fm" else [])
                ours = min([(default, "the defaults")] + [(loss(args, model, path, more, g)[0], g) for g in grid])
                best = min([ours] + vw + sklearn)
                ratios[model].append((default + FLOOR) / (best[0] + FLOOR))
                for found, program in ((vw, "Vowpal Wabbit"), (sklearn, "scikit-learn")):
                    if found and model == "lr" and found[0][0] < math.inf:
                        others[program].append((found[0][0] + FLOOR) / (best[0] + FLOOR))
                peer = lambda found: found[0][0] if found else math.nan
                print("%-16s %-4s %9.5g %9.5g %9.5g %9.5g %9.5g %6.3f   %s" %
                      (name, model, peer(vw), peer(sklearn), default, ours[0], best[0], ratios[model][-1], best[1]),
                      flush=True)
                if args.warnings:
                    print("".join("    %s\n" % w for w in said), end="", flush=True)
    for model, r in list(ratios.items()) + list(others.items()):
        if r:
            print("%s: geometric mean %.3f, worst %.3f over %d sets" % (model, mean(r), max(r), len(r)))


main()
