"""What other programs reach on a set of bench/defaults.py: Vowpal Wabbit's `vw`, and scikit-learn's linear models.

Both learn and measure the same rows. Losses are those of `paramo eval`: log-loss, the root of the mean square, half the
deviance of poisson. A program is left out where it is not installed, or does not have the objective.
"""
import math, os, subprocess

VW_GRID = ["--passes 10 -c -k", "--passes 20 -c -k -l 0.1", "--passes 20 -c -k -l 2", "-l 0.1"]
VW_LOSS = {"logistic": "logistic", "squared": "squared", "poisson": "poisson"}
STRENGTHS = (0.01, 0.1, 1, 10, 100)  # scikit-learn's C


def vw_line(line, number):
    """libsvm, libffm or Criteo TSV in Vowpal Wabbit's format; a feature's field is left out."""
    if "\t" in line:
        column = line.rstrip("\n").split("\t")
        features = ["%d:%s" % (k, column[k]) for k in range(1, 14) if column[k] != ""]
        features += ["c%d_%s" % (k, column[k]) for k in range(14, 40) if column[k] != ""]
    else:
        column = line.split()
        features = [":".join(f.split(":")[-2:]) for f in column[1:]]
    label = column[0] if number else "1" if float(column[0]) > 0 else "-1"
    return "%s | %s\n" % (label, " ".join(features))


def measure(objective, predictions, labels):
    rows = loss = 0
    for p, y in zip(predictions, labels):
        rows += 1
        if objective == "logistic":
            p = min(max(p, 1e-15), 1 - 1e-15)
            loss -= math.log(p if y > 0 else 1 - p)
        elif objective == "squared":
            loss += (p - y) ** 2
        else:
            p = max(p, 1e-15)
            loss += p - y - (y * math.log(p / y) if y > 0 else 0)
    return math.sqrt(loss / rows) if objective == "squared" else loss / rows


def vw_loss(vw, path, objective, settings):
    """Infinite if it does not have the objective."""
    if objective not in VW_LOSS:
        return math.inf
    for kind in (".train", ".test"):
        if not os.path.exists(path + kind + ".vw"):
            with open(path + kind) as lines, open(path + kind + ".vw", "w") as out:
                out.writelines(vw_line(line, objective != "logistic") for line in lines)
    link = {"logistic": ["--link", "logistic"], "poisson": ["--link", "poisson"]}.get(objective, [])
    done = subprocess.run([vw, "--quiet", "-b", "22", "--loss_function", VW_LOSS[objective], "-d", path + ".train.vw",
                           "-f", path + ".m"] + settings.split(), stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        predict = [vw, "--quiet", "-t", "-i", path + ".m", "-d", path + ".test.vw", "-p", path + ".p"]
        done = subprocess.run(predict + link, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        return math.inf
    with open(path + ".p") as scores, open(path + ".test.vw") as lines:
        predictions = [float(score.split()[0]) for score in scores]
        return measure(objective, predictions, [float(line.split(" ", 1)[0]) for line in lines])


def vw_losses(vw, path, objective):
    """[(loss, name)], that of the defaults first."""
    if not vw:
        return []
    return [(vw_loss(vw, path, objective, g), ("Vowpal Wabbit " + g).strip()) for g in [""] + VW_GRID]


def without_fields(path):
    """libffm as libsvm; ids must differ between fields."""
    with open(path) as lines, open(path + ".svm", "w") as out:
        for row in lines:
            column = row.split()
            pairs = {int(f.split(":")[-2]): f.split(":")[-1] for f in column[1:]}
            out.write(column[0] + "".join(" %d:%s" % f for f in sorted(pairs.items())) + "\n")
    return path + ".svm"


def sklearn_losses(path, objective):
    """[(loss, name)], that of the defaults on columns of unit variance first."""
    try:
        from sklearn import linear_model, preprocessing
        from sklearn.datasets import load_svmlight_files
        from sklearn.metrics import log_loss
    except ImportError:
        return []
    try:
        x, y, test, z = load_svmlight_files([without_fields(path + ".train"), without_fields(path + ".test")])
    except (ValueError, IndexError):
        return []
    if objective == "logistic":
        y, z = y > 0, z > 0
    found = []
    for scaler in (preprocessing.StandardScaler(with_mean=False), preprocessing.MaxAbsScaler()):
        a, b = scaler.fit_transform(x), scaler.transform(test)
        for c in (1,) + tuple(s for s in STRENGTHS if s != 1):
            name = "scikit-learn %s C %g" % (type(scaler).__name__, c)
            if len(set(y)) == 1:
                continue
            if objective in ("logistic", "softmax"):
                model = linear_model.LogisticRegression(C=c, max_iter=1000).fit(a, y)
                loss = log_loss(z, model.predict_proba(b), labels=model.classes_)
            elif objective == "squared":
                loss = measure(objective, linear_model.Ridge(alpha=1 / c).fit(a, y).predict(b), z)
            else:
                model = linear_model.PoissonRegressor(alpha=1 / c / a.shape[0], max_iter=1000).fit(a, y)
                loss = measure(objective, model.predict(b), z)
            found.append((loss, name))
    return found
