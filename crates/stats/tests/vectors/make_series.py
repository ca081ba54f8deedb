"""Makes series.json: SciPy's tests, and least squares with a column for each block and each variant."""


import numpy as np
import scipy
from scipy import stats

from kept import keep

SEED = 20261122
random = np.random.default_rng(SEED)


def series():
    """Noise, trends, steps, of few values and of many."""
    rows = []
    for n in [6, 7, 10, 22, 40, 120]:
        time = np.arange(n)
        for shape in [np.zeros(n), 0.4 * time, np.where(time >= n // 2, 3.0, 0.0), -0.02 * time]:
            values = np.round(10 + shape + random.normal(0, 1, n), 6)
            rows.append({"values": values.tolist(), **trend(values), **step(values), **mean(values - 10)})
    return rows


def trend(values):
    time = np.arange(len(values))
    found = stats.kendalltau(time, values, method="exact")
    pairs = len(values) * (len(values) - 1) // 2
    return {
        "s": round(found.statistic * pairs),
        "trend_p": float(found.pvalue),
        "slope": float(stats.theilslopes(values, time).slope),
        "line": float(stats.linregress(time, values).slope),
    }


def step(values):
    n = len(values)
    splits = list(range(3, n - 2))
    tests = [stats.ttest_ind(values[k:], values[:k]) for k in splits]
    best = int(np.argmax([abs(test.statistic) for test in tests]))
    after = splits[best]
    difference = values[after:].mean() - values[:after].mean()
    p = min(1.0, float(tests[best].pvalue) * len(splits))
    return {"after": after, "difference": float(difference), "step_p": p}


def mean(values):
    found = stats.ttest_1samp(values, 0.0)
    return {"mean_t": float(found.statistic), "mean_p": float(found.pvalue)}


def places():
    """Values of variants in blocks, with orders drawn anew for each block."""
    rows = []
    for blocks, variants, effect in [(6, 2, 0.0), (10, 2, 0.5), (15, 3, 0.2), (8, 7, -0.3), (40, 4, 0.05)]:
        orders = np.array([random.permutation(variants) for _ in range(blocks)])
        values = random.normal(0, 1, (blocks, variants)) + random.normal(0, 3, (blocks, 1)) + np.arange(variants)
        values = np.round(values + effect * orders, 6)
        cells = [[[float(orders[b, v]), float(values[b, v])] for v in range(variants)] for b in range(blocks)]
        rows.append({"cells": cells, **least_squares(orders, values)})
    return rows


def least_squares(orders, values):
    blocks, variants = values.shape
    block = np.repeat(np.eye(blocks), variants, axis=0)
    variant = np.tile(np.eye(variants)[:, 1:], (blocks, 1))
    design = np.hstack([orders.reshape(-1, 1), block, variant])
    y = values.ravel()
    solution, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    rest = y - design @ solution
    freedom = len(y) - rank
    assert freedom == (blocks - 1) * (variants - 1) - 1
    covariance = np.linalg.inv(design.T @ design) * (rest @ rest / freedom)
    t = solution[0] / np.sqrt(covariance[0, 0])
    return {"value": float(solution[0]), "t": float(t), "p": float(2 * stats.t.sf(abs(t), freedom))}


def neighbours():
    """Mean and variance of the correlation by simulation, and the normal quantile: what the formula should be near to."""
    rows = []
    for n in [6, 8, 10, 15, 30, 60, 120]:
        noise = random.normal(0, 1, (200_000, n))
        centred = noise - noise.mean(axis=1, keepdims=True)
        correlation = (centred[:, 1:] * centred[:, :-1]).sum(axis=1) / (centred**2).sum(axis=1)
        rows.append(
            {
                "blocks": n,
                "normal": {
                    str(alpha): float(correlation.mean() + correlation.std() * stats.norm.isf(alpha)) for alpha in [0.05, 0.001]
                },
                "exceeded_in_1000": float(np.quantile(correlation, 0.999)),
            }
        )
    return rows


keep("series.json", {
    "made_by": f"python3 make_series.py, SciPy {scipy.__version__}, NumPy {np.__version__}, seed {SEED}",
    "series": series(),
    "places": places(),
    "neighbours": neighbours(),
})
