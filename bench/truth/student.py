"""Student's t distribution and the t-test that people use by hand.

Pure: numbers in, numbers out.
"""

from math import copysign, exp, inf, lgamma, log, log1p, sqrt
from statistics import mean, variance
from typing import NamedTuple, Sequence

FRACTION_TERMS_MAX = 300
FRACTION_TOLERANCE = 1e-14
TINY = 1e-300


class Test(NamedTuple):
    """`p` is the probability of so large a difference, either way, where there is none."""

    t: float
    freedom: float
    p: float


def welch(first: Sequence[float], second: Sequence[float]) -> Test:
    """Welch's t-test of whether two means differ, the variances being what they are.

    Welch, *Biometrika* 34, 1947. Each side needs two values or more. Values that do not vary at all have p 0 or 1.
    """
    parts = [variance(side) / len(side) for side in (first, second)]
    difference = mean(second) - mean(first)
    if sum(parts) == 0:
        return Test(0.0, inf, 1.0) if difference == 0 else Test(inf if difference > 0 else -inf, inf, 0.0)
    t = difference / sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (first, second)))
    return Test(t, freedom, p_two_sided(t, freedom))


def paired(first: Sequence[float], second: Sequence[float]) -> Test:
    """Student's test of whether the mean of the pairs' log ratios is not 0. Two pairs or more."""
    logs = [log(b / a) for a, b in zip(first, second, strict=True)]
    freedom, spread = len(logs) - 1, sqrt(variance(logs) / len(logs))
    if spread == 0:
        return Test(copysign(inf, mean(logs)), freedom, 0.0) if mean(logs) else Test(0.0, freedom, 1.0)
    t = mean(logs) / spread
    return Test(t, freedom, p_two_sided(t, freedom))


def p_two_sided(t: float, freedom: float) -> float:
    """The probability that |T| is at least |t|. Abramowitz and Stegun, 26.7.1 with 26.5.27."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def critical(freedom: float, p: float = 0.05) -> float:
    """The t of which |T| is beyond with this probability, by bisection."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if p_two_sided(middle, freedom) > p else (low, middle)
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised I_x(a, b), for a and b above 0 and x from 0 to 1."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # The fraction converges quickly on this side of the mean alone; I_x(a, b) = 1 - I_(1-x)(b, a).
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return front / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 26.5.8 of Abramowitz and Stegun by Lentz's method, without its front."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for term in range(1, FRACTION_TERMS_MAX):
        m = term // 2
        if term % 2 == 0:
            part = m * (b - m) * x / ((a + term - 1) * (a + term))
        else:
            part = -(a + m) * (a + b + m) * x / ((a + term - 1) * (a + term))
        denominator = 1 / ((1 + part * denominator) or TINY)
        numerator = (1 + part / numerator) or TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < FRACTION_TOLERANCE:
            break
    return value
