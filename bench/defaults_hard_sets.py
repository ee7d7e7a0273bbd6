"""Drawn data sets of bench/defaults.py that are hard for default settings: raw columns, rare positives, few rows,
sorted and drifting rows, a feature that gives the label away, equal rows, labels that are numbers or classes.

make(rows, out) writes NAME.train and NAME.test into out, libsvm, and returns the names; OBJECTIVE says what a set is
trained for where that is not `logistic`. Each set is a function of its seed alone.
"""
import math, random

from defaults_draw import line, put, sigmoid

OBJECTIVE = {
    "price": ["--objective", "squared"],
    "visits": ["--objective", "poisson"],
    "classes": ["--objective", "softmax", "--classes", "5"],
}


def raw_features(draw, columns=8):
    """Normal numbers, and what a file has for them: columns of sizes 1e-6 to 1e9, a tenth missing, one value in a
    hundred a thousand times too large."""
    z = [draw.gauss(0, 1) for _ in range(columns)]
    raw = []
    for k, x in enumerate(z):
        value = x * 10 ** (-6 + 15 * k / (columns - 1))
        if draw.random() < 0.01:
            value *= 1000
        if draw.random() >= 0.1:
            raw.append((k + 1, value))
    return z, raw


def outliers(draw, rows):
    """A table of raw numbers with outliers, negative and missing values."""
    w = (1.0, -0.8, 0.6, -1.2, 0.5, 0.9, -0.4, 0.7)
    for _ in range(rows):
        z, raw = raw_features(draw)
        yield line(draw.random() < sigmoid(-1 + sum(a * x for a, x in zip(w, z))), raw)


def skewed(draw, rows):
    """Amounts, ages, balances and counts as a bank has them: most columns are skewed, some are far from 0."""
    for _ in range(rows):
        z = [draw.gauss(0, 1) for _ in range(7)]
        raw = [(1, round(math.exp(8 + 2 * z[0]), 2)), (2, round(45 + 12 * z[1])), (3, round(2e4 * z[2] - 5e3)),
               (4, int(math.exp(1 + z[3]))), (5, 1 / (1 + math.exp(-z[4]))), (6, 1 if z[5] > 0.8 else 0),
               (7, round(1e6 * math.exp(3 * z[6])))]
        margin = -1.5 + 0.7 * z[0] - 0.5 * z[1] + 0.8 * z[2] + 0.4 * z[3] - 0.9 * z[4] + 1.2 * (z[5] > 0.8) + 0.3 * z[6]
        yield line(draw.random() < sigmoid(margin), [f for f in raw if f[1] != 0])


def topics(draw, rows, rate=0.03):
    """tf-idf of words; 3 % positives have words of their own topic."""
    weight = random.Random(21)
    own = [int(30000 ** weight.random()) for _ in range(400)]
    for _ in range(rows):
        positive = draw.random() < rate
        count = {}
        for _ in range(8 + int(draw.expovariate(1 / 40))):
            if positive and draw.random() < 0.12:
                word = own[int(400 * draw.random() ** 2)]
            else:
                word = int(30000 ** draw.random())
            count[word] = count.get(word, 0) + 1
        value = {k: (1 + math.log(n)) * (1 + math.log(30000 / (1 + 30000 / (k + 1)))) for k, n in count.items()}
        norm = math.sqrt(sum(v * v for v in value.values()))
        yield line(positive, sorted((k, v / norm) for k, v in value.items()))


def clicks(draw, rows, bias=-8.3, pool=(3, 12, 60, 400, 3000, 20000)):
    """One-hot ids of fields from 3 to 20,000 values, and two counts; 0.2 % positives."""
    weight = random.Random(22)
    w = [[weight.gauss(0, 0.7) for _ in range(n)] for n in pool]
    start = [10 + sum(pool[:f]) for f in range(len(pool))]
    for _ in range(rows):
        ids = [int(n * draw.random() ** 3) for n in pool]
        z = [draw.gauss(0, 1), draw.gauss(0, 1)]
        margin = bias + sum(w[f][i] for f, i in enumerate(ids)) + 0.5 * z[0] - 0.4 * z[1]
        raw = [(1, int(math.exp(2 + z[0]))), (2, round(100 * math.exp(z[1]), 2))]
        yield line(draw.random() < sigmoid(margin),
                   [f for f in raw if f[1]] + [(start[f] + i, 1) for f, i in enumerate(ids)])


def survey(draw, rows):
    """Answers of a questionnaire: eight fields of 2 to 9 answers, an age and an income."""
    weight = random.Random(23)
    pool = (2, 2, 3, 4, 5, 5, 7, 9)
    w = [[weight.gauss(0, 0.6) for _ in range(n)] for n in pool]
    for _ in range(rows):
        ids = [int(n * draw.random()) for n in pool]
        z = [draw.gauss(0, 1), draw.gauss(0, 1)]
        margin = -0.5 + sum(w[f][i] for f, i in enumerate(ids)) + 0.6 * z[0] - 0.5 * z[1]
        yield line(draw.random() < sigmoid(margin),
                   [(1, round(40 + 13 * z[0])), (2, round(math.exp(10 + 0.7 * z[1])))] +
                   [(10 * (f + 1) + i, 1) for f, i in enumerate(ids)])


def moving(draw, rows):
    """New ids come and old ones go, and the mean rate rises."""
    weight = random.Random(24)
    w = [weight.gauss(0, 0.8) for _ in range(4000)]
    for r in range(rows):
        t = r / rows
        ids = [int(300 * t * 3 + 400 * draw.random() ** 2) for _ in range(6)]
        margin = -2 + t + sum(w[500 * f + i % 500] for f, i in enumerate(ids))
        yield line(draw.random() < sigmoid(margin), [(2000 * f + i + 1, 1) for f, i in enumerate(ids)])


def leak(draw, rows):
    """A survey in which a feature is there if and only if the label is 1."""
    for text in survey(draw, rows):
        yield text.rstrip("\n") + (" 200:1\n" if text.startswith("1") else "\n")


def copies(draw, rows):
    """About 20 copies of each row; each draws its own label."""
    kinds = [list(survey(random.Random(100 + k), 1))[0].split(" ", 1)[1] for k in range(max(rows // 20, 1))]
    chance = [sigmoid(random.Random(10000 + k).gauss(-1, 1)) * 0.5 + 0.1 for k in range(len(kinds))]
    for _ in range(rows):
        k = int(len(kinds) * draw.random())
        yield "%d %s" % (draw.random() < chance[k], kinds[k])


def price(draw, rows):
    """Prices near 1e6 by areas, ages and places."""
    weight = random.Random(25)
    w = [weight.gauss(0, 1.5e5) for _ in range(60)]
    for _ in range(rows):
        place, z = int(60 * draw.random() ** 2), [draw.gauss(0, 1), draw.gauss(0, 1)]
        y = 1e6 + w[place] + 2e5 * z[0] - 1e5 * z[1] + draw.gauss(0, 5e4)
        yield "%.0f 1:%.1f 2:%d %d:1\n" % (y, 120 + 40 * z[0], round(30 + 9 * z[1]), 100 + place)


def visits(draw, rows):
    """Counts with a mean of about 3, by ids and two numbers."""
    weight = random.Random(26)
    w = [weight.gauss(0, 0.5) for _ in range(80)]
    for _ in range(rows):
        ids, z = [int(40 * draw.random()), 40 + int(40 * draw.random())], [draw.gauss(0, 1), draw.gauss(0, 1)]
        left, y = math.exp(0.8 + w[ids[0]] + w[ids[1]] + 0.3 * z[0] - 0.2 * z[1]), 0
        left -= draw.expovariate(1)
        while left > 0:
            y += 1
            left -= draw.expovariate(1)
        yield "%d 1:%.3f 2:%d %d:1 %d:1\n" % (
            y, 50 + 10 * z[0], round(1000 * math.exp(z[1])), 100 + ids[0], 100 + ids[1])


def classes(draw, rows):
    """Five classes, of which one has 0.5 % of the rows."""
    weight = random.Random(27)
    w = [[weight.gauss(0, 0.8) for _ in range(100)] for _ in range(5)]
    bias = (1.0, 0.5, 0.0, -0.5, -4.0)
    for _ in range(rows):
        ids = [20 * f + int(20 * draw.random()) for f in range(5)]
        e = [math.exp(bias[c] + sum(w[c][i] for i in ids)) for c in range(5)]
        at, c = draw.random() * sum(e), 0
        while at > e[c] and c < 4:
            at -= e[c]
            c += 1
        yield "%d %s\n" % (c, " ".join("%d:1" % (i + 1) for i in ids))


def one_class(draw, rows):
    """Every label is 0."""
    for text in survey(draw, rows):
        yield "0 " + text.split(" ", 1)[1]


def sorted_survey(draw, rows):
    return sorted(survey(draw, rows), key=lambda row: row[0])


SETS = {  # name: rows for training (0: as many as asked for), for tests, how they are drawn
    "outliers": (0, 0, outliers),
    "skewed": (0, 0, skewed),
    "topics": (0, 0, topics),
    "clicks": (50000, 50000, clicks),
    "survey-300": (300, 5000, survey),
    "survey-3000": (3000, 5000, survey),
    "skewed-300": (300, 5000, skewed),
    "survey-sorted": (0, 0, sorted_survey),
    "skewed-sorted": (0, 0, lambda draw, rows: sorted(skewed(draw, rows), key=lambda row: row[0])),
    "moving": (0, 0, moving),
    "leak": (0, 0, leak),
    "copies": (0, 0, copies),
    "one-class": (0, 0, one_class),
    "price": (0, 0, price),
    "visits": (0, 0, visits),
    "classes": (0, 0, classes),
}


def make(rows, out):
    for name, (train, test, draw) in SETS.items():
        n, tests = train or rows, test or rows // 3
        if draw is moving:  # the test rows come after
            lines = list(draw(random.Random(1), n + tests))
            put(out + name + ".train", lines[:n])
            put(out + name + ".test", lines[n:])
        else:
            put(out + name + ".train", draw(random.Random(1), n))
            put(out + name + ".test", draw(random.Random(2), tests))
    return list(SETS)
