"""The effects that are planted: what is set, by which metric it is to be found, and the time there is for that.

A table. Pure: it must not start or measure anything. Every effect makes the candidate worse.
"""

from typing import NamedTuple, Optional

from reuse import Failed

# Requests per second for quantiles. Below half of what the service can do even on a slow machine (2,400 were seen), so that what is seen is
# hardly a queue.
RATE = 1000
MARGIN = 0.03


class Effect(NamedTuple):
    """`percent` is how much more CPU a request costs; where that is not it, `variables` say what is set. `both` is set on both sides. A study
    gives its runs the budgets in turn."""

    metric: str
    budgets_s: tuple
    percent: Optional[float] = None
    variables: Optional[dict] = None
    rate: Optional[int] = None
    both: dict = {}
    known: Optional[float] = None

    @property
    def none(self) -> bool:
        """Whether both sides are the same."""
        return self.variables == {}

    @property
    def truth(self) -> Optional[float]:
        """Candidate over baseline as it was planted. The service's core is full, so throughput falls as CPU rises."""
        return self.known if self.percent is None else 1 / (1 + self.percent / 100)

    def budget_s(self, number: int) -> int:
        return self.budgets_s[number % len(self.budgets_s)]


def nothing(both: dict) -> Effect:
    """A service against itself. Short and long plans, because looking often is what might mislead."""
    return Effect("throughput", (40, 60, 120), variables={}, both=both, known=1.0)


def later(percent: float) -> Effect:
    """Waits drawn from an exponential distribution are longer by that share, and so is their p99, 138 ms. What the machine adds to it is
    little beside that. Of a constant wait of 20 ms it made a p99 of 28 to 65 ms, and nobody knew what 4 ms more made of that."""
    known = 1 + percent / 100
    return Effect("p99", (120,), variables={"DELAY_MS": f"{30 * known:g}"}, rate=RATE,
                  both={"DELAY_MS": "30", "DISTRIBUTION": "exponential"}, known=known)


EFFECTS = {
    "none": nothing({}),
    "none, waits": nothing({"DELAY_MS": "5"}),
    "none, 134 kB": nothing({"ORDERS": "1315"}),
    "none, two workers": nothing({"WORKERS": "2"}),
    # The budget is the time in which each is to be found.
    "spin-2": Effect("throughput", (300,), percent=2),
    "spin-3": Effect("throughput", (300,), percent=3),
    "spin-5": Effect("throughput", (100,), percent=5),
    "spin-10": Effect("throughput", (30,), percent=10),
    "spin-20": Effect("throughput", (75,), percent=20),
    "latency-only": Effect("p50", (120,), variables={"DELAY_MS": "1"}, rate=RATE),
    # The p99 stands on the very edge of the tail: now below it, now in it.
    "tail-only": Effect("p99", (120,), variables={"TAIL_SHARE": "0.01", "TAIL_MS": "20"}, rate=RATE),
    # Here it stands in the tail.
    "tail-clear": Effect("p99", (120,), variables={"TAIL_SHARE": "0.02", "TAIL_MS": "20"}, rate=RATE),
    "later-5": later(5),
    "later-10": later(10),
    "later-20": later(20),
    "memory": Effect("peak_memory", (75,), variables={"HOLD_MB": "20"}),
}


def variables(effect: Effect, calibrations: dict) -> dict:
    """What the candidate's service gets. Raises `Failed` where turns are to be known and are not."""
    if effect.percent is None:
        return effect.variables
    if effect.percent not in calibrations:
        raise Failed(f"there is no calibration: nothing says how many turns make {effect.percent:g} %")
    return {"SPIN": str(calibrations[effect.percent]["spin"])}


def truth(effect: Effect, calibrations: dict) -> Optional[float]:
    """Candidate over baseline as it was measured without the lab; as it was planted where that was not measured."""
    calibration = calibrations.get(effect.percent)
    return 1 / (1 + calibration["percent"] / 100) if calibration else effect.truth
