"""What the drawn sets of bench/defaults.py share."""
import math


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def line(label, features):
    """A row in libsvm's format."""
    return "%d %s\n" % (label, " ".join("%d:%.9g" % f for f in features))


def put(path, lines):
    with open(path, "w") as out:
        out.writelines(lines)
