"""Small data sets of bench/defaults.py: bundled ones and generators of scikit-learn, and drawn text and ids, with 30 to
6,000 rows. `paramo train` cross-validates most of them (docs/TRAINING.md, "Few rows").

The first 14 were looked at when the rule was made; the others were only tried. make(out) writes NAME.train and
NAME.test into out, libsvm, and returns the names, or none where scikit-learn is not installed. Each set is a function
of its seed.
"""
import math

from defaults_draw import line, put, sigmoid

OBJECTIVE = {name: ["--objective", "softmax", "--classes", str(k)] for name, k in
             (("iris", 3), ("wine", 3), ("blobs200", 4), ("digits10", 10))}
OBJECTIVE.update({name: ["--objective", "squared"] for name in ("reg120", "diabetes", "friedman200", "sparse500")})
OBJECTIVE["poisson400"] = ["--objective", "poisson"]


def one_hot(np, seed, rows, fields, values, bias, spread, drift=0.0):
    r = np.random.RandomState(seed)
    w, later = r.randn(fields, values) * spread, r.randn(fields, values) * spread
    x, y = [], []
    for i in range(rows):
        ids, t = (values * r.rand(fields) ** 2).astype(int), drift * i / rows
        margin = bias + sum((1 - t) * w[f, k] + t * later[f, k] for f, k in enumerate(ids))
        x.append({f * values + k + 1: 1 for f, k in enumerate(ids)})
        y.append(int(r.rand() < sigmoid(margin)))
    return x, np.array(y)


def text(np, seed, rows, words, length, bias, share=0.3):
    r = np.random.RandomState(seed)
    w = r.randn(words) * (r.rand(words) < share)
    x, y = [], []
    for _ in range(rows):
        count = {}
        for k in (words ** r.rand(5 + int(r.exponential(length)))).astype(int):
            count[k] = count.get(k, 0) + 1
        margin = bias + sum(w[k] * n ** 0.5 for k, n in count.items())
        norm = math.sqrt(sum((1 + math.log(n)) ** 2 for n in count.values()))
        x.append({k + 1: (1 + math.log(n)) / norm for k, n in count.items()})
        y.append(int(r.rand() < sigmoid(margin)))
    return x, np.array(y)


def wide(np, seed):
    r = np.random.RandomState(seed)
    x, w = r.randn(2150, 2000) * (r.rand(2150, 2000) < 0.05), np.zeros(2000)
    w[:60] = r.randn(60) * 2
    return x, (x @ w + r.randn(2150) * 0.5 > 0) * 1


def moving(np, seed):
    r, n = np.random.RandomState(seed), 4500
    x, t, w, later = r.randn(n, 8), np.arange(n) / n, r.randn(8), r.randn(8)
    y = (r.rand(n) < 1 / (1 + np.exp(-((x @ w) * (1 - t * 0.5) + (x @ later) * t * 0.5 + t)))) * 1
    return x * 50 + 100, y


def counts(np, seed):
    r = np.random.RandomState(seed)
    x = r.randn(2400, 6)
    return x * 20 + 80, r.poisson(np.exp(0.5 + x @ (r.randn(6) * 0.35)))


def rare(np, datasets):
    x, y = datasets.make_classification(12000, 12, n_informative=6, weights=[.98], flip_y=.005, random_state=29)
    return np.exp(x) * [10. ** (k % 5) for k in range(12)], y


def raw(x, y, times, plus=0):
    return x * times + plus, y


def sets(np, d):
    """name: rows, labels, how many to learn, seed of the split, order of the rows ('' drawn, sorted, as they come)."""
    iris, wine, digits, diabetes = d.load_iris(), d.load_wine(), d.load_digits(), d.load_diabetes()
    cancer = d.load_breast_cancer()
    two, three8 = iris.target > 0, (digits.target == 3) | (digits.target == 8)
    classified = d.make_classification
    hastie = d.make_hastie_10_2(4000, random_state=25)
    labels = d.make_multilabel_classification(3600, 60, n_classes=3, random_state=39)
    looked = {
        "cancer": (cancer.data, cancer.target, 380, 1, ""),
        "iris": (iris.data, iris.target, 100, 2, ""),
        "wine": (wine.data, wine.target, 120, 3, ""),
        "class100": (*classified(3100, 20, n_informative=5, random_state=4, class_sep=1), 100, 4, ""),
        "uneven800": (*raw(*classified(4000, 50, n_informative=10, weights=[.9], random_state=5, flip_y=.03), 100, 50),
                      800, 5, ""),
        "odd600": (digits.data, digits.target % 2, 600, 6, ""),
        "reg120": (*d.make_regression(2120, 15, n_informative=6, noise=40, random_state=7), 120, 7, ""),
        "diabetes": (diabetes.data * 1000 + 200, diabetes.target, 280, 8, ""),
        "text1500": (*text(np, 9, 5500, 8000, 20, -2.2), 1500, 9, ""),
        "ids1000": (*one_hot(np, 10, 5000, 6, 30, -1, .7), 1000, 10, ""),
        "moons300": (*raw(*d.make_moons(2300, noise=.3, random_state=11), 10, 30), 300, 11, "sorted"),
        "drift4000": (*one_hot(np, 12, 7000, 8, 40, -1, .5, 1), 4000, 12, "comes"),
        "blobs200": (*d.make_blobs(2200, 6, centers=4, cluster_std=4, random_state=13), 200, 13, ""),
        "class6000": (*classified(9000, 30, n_informative=15, random_state=14, class_sep=2), 6000, 14, ""),
    }
    judged = {
        "digits10": (digits.data, digits.target, 1000, 21, ""),
        "digits38": (digits.data[three8], (digits.target[three8] == 8) * 1, 180, 22, ""),
        "iris2": (iris.data[two], iris.target[two] - 1, 65, 23, ""),
        "wine1": (wine.data, (wine.target == 1) * 1, 110, 24, ""),
        "hastie1000": (hastie[0], (hastie[1] > 0) * 1, 1000, 25, ""),
        "quantiles400": (*raw(*d.make_gaussian_quantiles(n_samples=2400, n_features=5, n_classes=2, random_state=26), 1,
                              2), 400, 26, ""),
        "friedman200": (*raw(*d.make_friedman1(2200, noise=1, random_state=27), 1000), 200, 27, ""),
        "wide150": (*wide(np, 28), 150, 28, ""),
        "rare5000": (*rare(np, d), 5000, 29, ""),
        "tiny30": (*classified(2030, 4, n_informative=3, n_redundant=0, random_state=30, class_sep=.8), 30, 30, ""),
        "text400": (*text(np, 31, 3400, 3000, 40, -1.5, .5), 400, 31, ""),
        "ids300": (*one_hot(np, 32, 4300, 5, 12, -.5, .3), 300, 32, ""),
        "sparse500": (*d.make_sparse_uncorrelated(2500, 10, random_state=33), 500, 33, ""),
        "sorted2000": (*raw(*classified(5000, 15, n_informative=8, random_state=34), np.tile([1, 1e3, 1e-3], 5), 7),
                       2000, 34, "sorted"),
        "drift2500": (*moving(np, 35), 2500, 35, "comes"),
        "apart5000": (*classified(9000, 10, n_informative=8, n_redundant=0, class_sep=3, flip_y=.002, random_state=36),
                      5000, 36, ""),
        "poisson400": (*counts(np, 37), 400, 37, ""),
        "circles200": (*d.make_circles(1200, noise=.15, factor=.5, random_state=38), 200, 38, ""),
        "counts600": (labels[0], labels[1][:, 0], 600, 39, ""),
    }
    return looked, judged


def lines(x, y, places):
    for i in places:
        features = sorted(x[i].items()) if isinstance(x[i], dict) else [(k + 1, v) for k, v in enumerate(x[i]) if v]
        yield line(0, features).replace("0", "%.9g" % y[i], 1)


def make(out):
    try:
        import numpy as np
        from sklearn import datasets
    except ImportError:
        return []
    found = {}
    for group in sets(np, datasets):
        found.update(group)
    for name, (x, y, rows, seed, order) in found.items():
        places = np.arange(len(y)) if order == "comes" else np.random.RandomState(seed).permutation(len(y))
        learned, tests = places[:rows], places[rows:]
        if order == "sorted":
            learned = learned[np.argsort(y[learned], kind="stable")]
        put(out + name + ".train", lines(x, y, learned))
        put(out + name + ".test", lines(x, y, tests))
    return list(found)
