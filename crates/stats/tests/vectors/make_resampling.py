"""Makes resampling.json: SciPy's bootstrap, every resample or flip there is, numerical integrals in place of closed forms, Kronecker products in
place of places."""

import itertools

import numpy as np
import scipy
from scipy import integrate, stats

from kept import keep

SEED = 20261122
random = np.random.default_rng(SEED)
RESAMPLES = 200_000


def bootstraps():
    """The interval of a mean, from so many resamples that its own scatter is a tenth of what the test allows."""
    rows = []
    for n in [6, 10, 30]:
        for shape in ["normal", "skewed"]:
            noise = random.normal(0, 1, n) if shape == "normal" else random.exponential(1, n) - 1
            d = 0.05 + 0.02 * noise
            for level in [0.9, 0.95]:
                drawn = d[random.integers(0, n, (RESAMPLES, n))]
                rows.append({"d": d.tolist(), "level": level, "t": studentised(d, drawn, level)})
    return rows


def studentised(d, drawn, level):
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn.mean(axis=1) - d.mean()) / (drawn.std(axis=1, ddof=1) / np.sqrt(len(d)))
    t[np.isnan(t)] = 0
    tail = (1 - level) / 2
    low, high = np.quantile(np.sort(t), [tail, 1 - tail])
    error = stats.sem(d)
    return [float(d.mean() - high * error), float(d.mean() - low * error)]


def enumerated():
    """All n^n resamples of a few blocks. Multiples of 1/64, so that equal means are equal in every order of adding."""
    rows = []
    for d in [[1, 5, 8], [-3, 0, 2, 9], [-7, -2, 1, 4, 5], [0, 0, 1, 2, 12]]:
        d = np.array(d) / 64
        drawn = np.array(list(itertools.product(d, repeat=len(d))))
        for level in [0.6, 0.8]:
            rows.append({"d": d.tolist(), "level": level, "t": studentised(d, drawn, level)})
    return rows


def guards():
    rows = []
    for n in [0, 1, 5, 12, 40]:
        for effect in [0.0, 1.5]:
            d = 0.01 * (effect + random.standard_t(2, n))
            s, v = (d / 0.01).sum(), ((d / 0.01) ** 2).sum()
            # The integrand's peak is taken out so that it neither overflows nor vanishes.
            peak, width = s / (v + 4), 1 / np.sqrt(v + 4)
            top = peak * s - peak**2 * (v + 4) / 2
            ends = (peak - 12 * width, peak + 12 * width)
            mean, _ = integrate.quad(lambda x: np.exp(x * s - x * x * (v + 4) / 2 - top) * np.sqrt(4 / (2 * np.pi)), *ends, epsrel=1e-11)
            rows.append({"d": d.tolist(), "scale": 0.01, "ln_evidence": float(np.log(mean) + top)})
    return rows


def flips():
    """Every one of the 2^n flips of the residuals, with t computed anew for each."""
    rows = []
    for n, m in [(8, 1), (8, 3), (9, 2), (10, 6)]:
        for effect in [0.0, 1.0]:
            d = random.normal(0, 1, (n, m)) - random.normal(0, 1, (n, 1)) + effect * np.arange(m)
            signs = np.array(list(itertools.product([1, -1], repeat=n)))
            largest = np.sort(abs(t_of(signs[:, :, None] * (d - d.mean(axis=0)))).max(axis=1))
            # The least value that at most a share of 5 % exceeds, and not less than for one candidate alone.
            critical = next(float(c) for c in largest if (largest > c + 1e-9).mean() <= 0.05)
            rows.append({"d": d.tolist(), "critical_t": max(critical, float(stats.t.ppf(0.975, n - 1)))})
    return rows


def t_of(d):
    return d.mean(axis=1) / (d.std(axis=1, ddof=1) / np.sqrt(d.shape[1]))


def designs():
    """Contrasts as Kronecker products: e_level - e_first for a factor that is concerned, the mean for one that is not."""
    rows = []
    for levels in [[2], [3], [2, 2], [2, 3], [3, 2, 2], [2, 2, 2, 2]]:
        terms = [(f, l) for f, count in enumerate(levels) for l in range(1, count)]
        pairs = [(a, b) for a, b in itertools.combinations(terms, 2) if a[0] != b[0]]
        coefficients = [kronecker(levels, dict(chosen)) for chosen in [(t,) for t in terms] + pairs]
        rows.append({"levels": levels, "coefficients": coefficients})
    return rows


def kronecker(levels, chosen):
    product = np.ones(1)
    for factor, count in enumerate(levels):
        one = np.full(count, 1 / count)
        if factor in chosen:
            one = np.eye(count)[chosen[factor]] - np.eye(count)[0]
        product = np.kron(product, one)
    return product.tolist()


def bands():
    """Whole blocks drawn with replacement, everything merged, the quantile of rank ceil(q n), percentiles of those."""
    rows = []
    for q in [0.5, 0.9]:
        level = random.normal(13, 0.1, 12)
        blocks = [np.sort(np.exp(random.normal(mu, 0.3, 200)).astype(int)) for mu in level]
        found = []
        for _ in range(20_000):
            merged = np.sort(np.concatenate([blocks[i] for i in random.integers(0, 12, 12)]))
            found.append(merged[int(np.ceil(q * len(merged) - 1e-9)) - 1])
        low, high = np.quantile(found, [0.025, 0.975])
        rows.append({"blocks": [block.tolist() for block in blocks], "q": q, "level": 0.95, "low": float(low), "high": float(high)})
    return rows


keep("resampling.json", {
    "made_by": f"python3 make_resampling.py, SciPy {scipy.__version__}, NumPy {np.__version__}, seed {SEED}",
    "bootstraps": bootstraps(),
    "enumerated": enumerated(),
    "guards": guards(),
    "flips": flips(),
    "designs": designs(),
    "bands": bands(),
})
