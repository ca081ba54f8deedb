"""Makes change.json: where NumPy sees a change of level. What a split explains is the difference between two weighted least squares fits, and p is the
share of all orders of eight points, or of many drawn by NumPy."""

import itertools

import numpy as np

from kept import keep

SEED = 20261122
SIDE = 3
DRAWN = 100_000
random = np.random.default_rng(SEED)


def rest(columns, values, weights):
    """Weighted sum of squares that a fit leaves."""
    root = np.sqrt(weights)
    solution, *_ = np.linalg.lstsq(columns * root[:, None], values * root, rcond=None)
    return float((((values - columns @ solution) * root) ** 2).sum())


def weights_of(values, errors):
    between = max(0.0, values.var(ddof=1) - (errors**2).mean())
    return 1.0 / (errors**2 + between)


def suspect(values, errors):
    """In units of the largest variance, as the crate has it."""
    n = len(values)
    weights = weights_of(values, errors)
    weights = weights / weights.min()
    flat = np.ones((n, 1))
    left = rest(flat, values, weights)
    explained = {}
    for after in range(SIDE, n - SIDE + 1):
        step = np.column_stack([flat, (np.arange(n) >= after).astype(float)])
        explained[after] = left - rest(step, values, weights)
    at = max(explained, key=explained.get)
    return at, explained[at], weights


def largest(orders, values, weights):
    """The largest over all splits, for each of many orders."""
    w, x = weights[orders], values[orders]
    mean = (weights * values).sum() / weights.sum()
    sums, below = np.cumsum(w * (x - mean), axis=1), np.cumsum(w, axis=1)
    total = weights.sum()
    cut = slice(SIDE - 1, values.size - SIDE)
    return (sums[:, cut] ** 2 * total / (below[:, cut] * (total - below[:, cut]))).max(axis=1)


def p_value(values, weights, statistic):
    n = len(values)
    if n <= 8:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        orders = random.permuted(np.tile(np.arange(n), (DRAWN, 1)), axis=1)
    return float((largest(orders, values, weights) >= statistic * (1 - 1e-9)).mean())


def rows():
    made = []
    for n, step, at in [(6, 0.0, 3), (8, 2.0, 4), (8, 0.0, 4), (12, 3.0, 5), (20, 2.0, 14), (20, 1.0, 10), (40, 1.2, 20), (40, 0.0, 20)]:
        errors = np.round(random.uniform(0.3, 1.5, n), 6)
        values = np.round(random.normal(0, 1, n) * errors + np.where(np.arange(n) >= at, step, 0.0), 6)
        found, statistic, weights = suspect(values, errors)
        p = p_value(values, weights, statistic)
        made.append({"values": values.tolist(), "errors": errors.tolist(), "at": found, "statistic": statistic, "p": p})
    return made


keep("change.json", {"made_by": f"python3 make_change.py, NumPy {np.__version__}, seed {SEED}", "rows": rows()})
