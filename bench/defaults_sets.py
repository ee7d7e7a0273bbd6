"""The data sets of bench/defaults.py: public ones from ../shared/data, `paramo data synth`, and sets drawn here.

make(paramo, data, folder, rows, out) writes NAME.train and NAME.test into out, libsvm, libffm or Criteo TSV, and
returns the names. Each drawn set is a function of its seed alone.
"""
import glob, gzip, math, os, random, subprocess

from defaults_draw import line, put, sigmoid

SHAPES = {  # of paramo data synth
    "synth": [],
    "synth-small": ["--features", "20", "--fields", "6"],
    "synth-pairs": ["--factors", "4"],
    "synth-rare": ["--click-rate", "0.005"],
    "synth-wide": ["--features", "20000", "--fields", "20"],
}


def table(draw, rows, value):
    """Six columns of sizes from 1e-3 to 1e6; value(z, k) makes column k of a normal number z."""
    for _ in range(rows):
        z = [draw.gauss(0, 1) for _ in range(6)]
        margin = -1 + sum(w * x for w, x in zip((1.2, -0.8, 1, -1.5, 0.5, 0.3), z))
        yield line(draw.random() < sigmoid(margin), [(k + 1, value(v, k)) for k, v in enumerate(z)])


def numbers(draw, rows):
    return table(draw, rows, lambda z, k: z * 10 ** (k * 2 - 4))


def numbers_offset(draw, rows):
    return table(draw, rows, lambda z, k: (z + 3) * 10 ** (k * 2 - 4))


def numbers_heavy(draw, rows):
    return table(draw, rows, lambda z, k: math.exp(1.5 * z) * 10 ** (k * 2 - 4))


def far(draw, rows):
    """A year, a second since 1970, an amount near 1e6, a share, and a count."""
    return table(draw, rows, lambda z, k: (2010 + 6 * z, 1.7e9 + 3e6 * z, 1e6 + 1e3 * z, 0.5 + 0.1 * z,
                                           math.exp(z), z)[k])


def mixed(draw, rows):
    """Half one-hot, half raw numbers far from 0."""
    weight = random.Random(5)
    w = [weight.gauss(0, 0.8) for _ in range(600)]
    for _ in range(rows):
        ids = [1000 + 100 * f + int(100 * draw.random() ** 2) for f in range(6)]
        z = [draw.gauss(0, 1) for _ in range(3)]
        margin = -1 + sum(w[i - 1000] for i in ids) + 0.8 * z[0] - 0.6 * z[1] + 0.5 * z[2]
        yield line(draw.random() < sigmoid(margin),
                   [(1, 1950 + 20 * z[0]), (2, 40 + 12 * z[1]), (3, math.exp(10 + z[2]))] + [(i, 1) for i in ids])


def gaps(draw, rows):
    """Log-normal counts, of which each row lacks about half."""
    for _ in range(rows):
        z = [draw.gauss(0, 1) for _ in range(12)]
        here = [draw.random() < 0.5 for _ in z]
        margin = -1.5 + sum(0.6 * (x + 0.5) * (-1) ** k for k, x in enumerate(z) if here[k])
        yield line(draw.random() < sigmoid(margin),
                   [(k + 1, math.floor(math.exp(2 + 1.3 * x))) for k, x in enumerate(z) if here[k]])


def text(draw, rows, rate=-5.2):
    """Words by a Zipf law, as tf: 30 of 20,000 a row; 3 % positives."""
    weight = random.Random(6)
    w = [weight.gauss(0, 0.9) if weight.random() < 0.3 else 0 for _ in range(20000)]
    for _ in range(rows):
        count = {}
        for _ in range(5 + int(draw.expovariate(1 / 25))):
            word = int(20000 ** draw.random())
            count[word] = count.get(word, 0) + 1
        norm = math.sqrt(sum(n * n for n in count.values()))
        margin = rate + sum(w[k] * (n ** 0.5) for k, n in count.items())
        yield line(draw.random() < sigmoid(margin), sorted((k, n / norm) for k, n in count.items()))


def one_hot(draw, rows, bias=-2.0, spread=1.5, values=12, fields=20, drift=0.0):
    weight = random.Random(7)
    w = [[weight.gauss(0, spread) for _ in range(values)] for _ in range(fields)]
    w2 = [[weight.gauss(0, spread) for _ in range(values)] for _ in range(fields)]
    for r in range(rows):
        ids = [int(values * draw.random() ** 2) for _ in range(fields)]
        t = drift * r / rows
        margin = bias + sum((1 - t) * w[f][i] + t * w2[f][i] for f, i in enumerate(ids))
        yield line(draw.random() < sigmoid(margin), [(f * values + i + 1, 1) for f, i in enumerate(ids)])


def rare(draw, rows):
    """0.2 % positives."""
    return one_hot(draw, rows, bias=-8.0, spread=0.6, values=50, fields=10)


def drifting(draw, rows):
    return one_hot(draw, rows, spread=0.5, values=50, fields=10, drift=1.0)


def sure(draw, rows):
    """Labels almost without chance."""
    return one_hot(draw, rows, bias=0.0, spread=2.5, values=6)


def by_label(draw, rows):
    return sorted(one_hot(draw, rows, spread=0.6), key=lambda row: row[0])


def numbers_by_label(draw, rows):
    return sorted(numbers(draw, rows), key=lambda row: row[0])


DRAWN = (numbers, numbers_offset, numbers_heavy, far, mixed, gaps, text, one_hot, rare, drifting, sure, by_label,
         numbers_by_label)
ROWS = {"one_hot": 7700, "rare": 60000}  # others: as many as asked for
UNSORTED = {"by_label": lambda draw, rows: one_hot(draw, rows, spread=0.6), "numbers_by_label": numbers}


def head(path, rows, skip=0):
    """The first rows of a file that may be compressed."""
    tool = "zcat" if path.endswith(".gz") else "zstdcat" if path.endswith(".zst") else "cat"
    with subprocess.Popen([tool, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as source:
        for number, text_line in enumerate(source.stdout):
            if rows and number == rows + skip:
                source.kill()
                break
            if number >= skip:
                yield text_line


def likes(path):
    """MovieLens: is the rating at least 4? user and item, one-hot."""
    for row in gzip.open(path, "rt"):
        user, item, rating = row.split("\t")[:3]
        yield "%d %s:1 %d:1\n" % (int(rating) >= 4, user, 10000 + int(item))


def counts(rows):
    """Criteo's 13 counts as libsvm; what is missing is left out."""
    for row in rows:
        column = row.rstrip("\n").split("\t")
        yield line(int(column[0]), [(k, float(column[k])) for k in range(1, 14) if column[k] != ""])


def public(data, rows, out):
    tests = rows // 3
    join = lambda name: os.path.join(data, name)
    for name, train, test in (("a9a", "a9a.gz", "a9a.t.gz"),
                              ("criteo80k", "criteo80k.train.ffm.zst", "criteo80k.test.ffm.zst"),
                              ("frappe", "frappe_x1.train.ffm.zst", "frappe_x1.test.ffm.zst"),
                              ("globo", "globo.train.ffm.zst", "globo.test.ffm.zst")):
        put(out + name + ".train", head(join(train), rows))
        put(out + name + ".test", head(join(test), tests))
        yield name
    raw = join("criteo_raw_10k.tsv.gz")
    for name, change in (("criteo-raw", lambda lines: lines), ("criteo-counts", counts)):
        put(out + name + ".train", change(head(raw, 8000)))
        put(out + name + ".test", change(head(raw, 2000, 8000)))
        yield name
    train = list(likes(join("ml100k/u1.base.gz")))
    test = list(likes(join("ml100k/u1.test.gz")))
    random.Random(8).shuffle(train)
    for name, lines in (("ml100k", train), ("ml100k-sorted", sorted(train[:rows], key=lambda row: row[0]))):
        put(out + name + ".train", lines)
        put(out + name + ".test", test)
        yield name


def make(paramo, data, folder, rows, out):
    names = []
    out += "/"
    if data and os.path.isdir(data):
        names += public(data, rows, out)
    for name, more in SHAPES.items():
        for file, n, seed in ((".train", rows, 1), (".test", rows // 3, 2)):
            subprocess.run([paramo, "data", "synth", "--rows", str(n), "--seed", str(seed), "--out", out + name + file]
                           + more, check=True, stdout=subprocess.DEVNULL)
        names.append(name)
    for draw in DRAWN:
        name = draw.__name__.replace("_", "-")
        n = ROWS.get(draw.__name__, rows)
        put(out + name + ".train", draw(random.Random(1), n))
        test = UNSORTED.get(draw.__name__, draw)
        if draw is drifting:  # the test rows come after
            lines = list(draw(random.Random(1), n + n // 3))
            put(out + name + ".train", lines[:n])
            put(out + name + ".test", lines[n:])
        else:
            put(out + name + ".test", test(random.Random(2), n // 3))
        names.append(name)
    for path in sorted(glob.glob(os.path.join(folder, "*.train*"))) if folder else []:
        name = os.path.basename(path).split(".train")[0]
        put(out + name + ".train", head(path, rows))
        put(out + name + ".test", head(path.replace(".train", ".test"), rows // 3))
        names.append(name)
    return names
