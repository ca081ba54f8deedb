"""Makes vectors.json: SciPy's distributions, formulas written out by hand in NumPy, and brute force over every place a censored sample could take."""

import itertools
from fractions import Fraction
from math import ceil

import numpy as np
import scipy
from scipy import stats

from kept import keep

SEED = 20261121
random = np.random.default_rng(SEED)


def t_quantiles():
    """Two-sided critical values, also far out, where boundaries for many comparisons lie."""
    degrees = [1, 2, 5, 6, 9, 14, 21, 29, 44, 59, 89, 119, 9999]
    tails = [0.5, 0.1, 0.05, 0.0339, 0.01, 0.0015, 1e-4, 1e-5, 1e-7]
    return [{"freedom": f, "p": p, "t": float(stats.t.isf(p / 2, f))} for f in degrees for p in tails]


def boundaries():
    """A normal boundary as the t of the same tail."""
    return [
        {"z": z, "blocks": n, "t": float(stats.t.isf(stats.norm.sf(z), n - 1))}
        for z in [0.5, 1.96, 2.121, 3.17, 4.5, 6.0]
        for n in [2, 6, 10, 30, 120]
    ]


def intervals():
    rows = []
    for n in [2, 3, 6, 10, 30, 120]:
        for shift, scale in [(0.0, 0.01), (0.05, 0.02), (-0.7, 0.3)]:
            d = random.normal(shift, scale, n)
            low, high = stats.t.interval(0.95, n - 1, loc=d.mean(), scale=stats.sem(d))
            rows.append(
                {
                    "d": d.tolist(),
                    "level": 0.95,
                    "ratio": float(stats.gmean(np.exp(d))),
                    "low": float(np.exp(low)),
                    "high": float(np.exp(high)),
                    "sd_log": float(d.std(ddof=1)),
                    "lag1": lag1(d),
                }
            )
    return rows


def lag1(d):
    if len(d) < 3:
        return None
    centred = d - d.mean()
    full = np.correlate(centred, centred, mode="full")
    return float(full[len(d)] / full[len(d) - 1])


def wilson():
    rows = []
    for hits, total in [(0, 1), (1, 1), (0, 1000), (3, 1000), (500, 1000), (999, 1000), (1000, 1000), (17, 1_000_000)]:
        for level in [0.9, 0.95, 0.99]:
            ends = stats.binomtest(hits, total).proportion_ci(level, method="wilson")
            rows.append({"hits": hits, "total": total, "level": level, "low": float(ends.low), "high": float(ends.high)})
    return rows


def components():
    """Balanced and unbalanced layouts; for one balanced variant SciPy's F gives the same by another way."""
    rows = []
    layouts = [[[4, 4, 4]], [[2, 3, 5, 2]], [[4, 4, 4], [4, 4, 4]], [[2, 6], [3, 3, 8], [1, 2, 5, 9]], [[6, 6, 6, 6]]]
    for layout in layouts:
        for between_sd in [0.0, 0.02]:
            variants = []
            for sizes in layout:
                variant_mean = random.normal(8, 1)
                variants.append(
                    [(variant_mean + random.normal(0, between_sd) + random.normal(0, 0.01, n)).tolist() for n in sizes]
                )
            rows.append({"variants": variants, **anova(variants)})
    return rows


def anova(variants):
    residual = np.concatenate([np.array(trial) - np.mean(trial) for trials in variants for trial in trials])
    trials_total = sum(len(trials) for trials in variants)
    within = float(residual @ residual / (len(residual) - trials_total))
    freedom = trials_total - len(variants)
    square, n0 = 0.0, 0.0
    for trials in variants:
        everything = np.concatenate(trials)
        sizes = np.array([len(trial) for trial in trials])
        # Between = total - within, which is the other way round from the crate.
        square += ((everything - everything.mean()) ** 2).sum() - sum(((np.array(t) - np.mean(t)) ** 2).sum() for t in trials)
        n0 += len(everything) - (sizes**2).sum() / len(everything)
    mean_square = square / freedom
    n0 /= freedom
    if len(variants) == 1 and len(set(map(len, variants[0]))) == 1:
        f = stats.f_oneway(*variants[0]).statistic
        assert np.isclose(f * within, mean_square)
    return {"within": within, "between": float(max(0.0, (mean_square - within) / n0))}


def mser5():
    rows = []
    for n in [60, 63, 100, 200, 317]:
        time = np.arange(n)
        shapes = {
            "flat": np.zeros(n),
            "exponential": -np.exp(-time / 12) * 30,
            "long exponential": -np.exp(-time / (n / 3)) * 30,
            "step at a quarter": np.where(time < n // 4, -20.0, 0.0),
            "step at two thirds": np.where(time < 2 * n // 3, -20.0, 0.0),
            "trend": time * 0.5,
        }
        for name, shape in shapes.items():
            series = np.round(100 + shape + random.normal(0, 1.5, n), 3)
            rows.append({"name": name, "series": series.tolist(), **truncation(series)})
    return rows


def truncation(series):
    batches = np.array([series[i : i + 5].mean() for i in range(0, len(series) - len(series) % 5, 5)])
    k = len(batches)
    statistic = [batches[d:].var() / (k - d) for d in range(k - 5 + 1)]
    d = int(np.argmin(statistic))
    return {"buckets": 5 * d, "steady": d <= k / 2}


def censored_quantiles():
    """Brute force: each censored sample at its bound or out of reach; the quantile is exact when that changes nothing."""
    rows = []
    for answered, unanswered in [(5, 0), (5, 1), (7, 3), (3, 4), (0, 3), (12, 5), (1, 1), (20, 2)]:
        for spread in [6, 2000]:
            exact = sorted(int(x) for x in random.integers(1, spread, answered))
            censored = sorted(int(x) for x in random.integers(1, spread, unanswered))
            for q in ["0", "0.07", "0.25", "0.5", "0.75", "0.9", "0.99", "1"]:
                rows.append({"exact": exact, "censored": censored, "q": float(q), **bounds(exact, censored, q)})
    return rows


def bounds(exact, censored, q):
    count = len(exact) + len(censored)
    rank = max(1, ceil(Fraction(q) * count))
    far = 10**9
    found = [
        sorted(exact + list(places))[rank - 1] for places in itertools.product(*[(bound, far) for bound in censored])
    ]
    low, high = min(found), max(found)
    return {"low": low, "high": None if high == far else high}


keep("vectors.json", {
    "made_by": f"python3 make_vectors.py, SciPy {scipy.__version__}, NumPy {np.__version__}, seed {SEED}",
    "t_quantiles": t_quantiles(),
    "boundaries": boundaries(),
    "intervals": intervals(),
    "wilson": wilson(),
    "components": components(),
    "mser5": mser5(),
    "censored_quantiles": censored_quantiles(),
})
