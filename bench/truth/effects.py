"""The effects that are planted: what is set, by which metric it is to be found, and the time there is for that.

A table. Pure: it must not start or measure anything. Every effect makes the candidate worse.
"""

from typing import NamedTuple, Optional

from reuse import Failed

# The shortest comparison there is. The budget is not what ends it, but for a host that takes nearly everything.
AA_BUDGET_S = 300
AA_SHORT = {"warmup": "500ms", "slices": 2, "blocks": 6}
WARM = {"warmup": "2s"}
# Requests per second for quantiles. Far below what the service can do on any machine, so that what is seen is the
# service's own time and not a queue.
RATE = 1000


class Effect(NamedTuple):
    """`percent` is how much more CPU a request costs; where that is not it, `variables` say what is set."""

    metric: str
    margin: str
    budget_s: int
    percent: Optional[float] = None
    variables: Optional[dict] = None
    rate: Optional[int] = None
    design: dict = WARM

    @property
    def margin_share(self) -> float:
        return float(self.margin.rstrip("%")) / 100

    @property
    def truth(self) -> Optional[float]:
        """Candidate over baseline as it was planted. The service's core is full, so throughput falls as CPU rises."""
        return None if self.percent is None else 1 / (1 + self.percent / 100)


NONE = Effect("throughput", "3%", AA_BUDGET_S, variables={}, design=AA_SHORT)
EFFECTS = {
    "spin-2": Effect("throughput", "1%", 270, percent=2),
    "spin-5": Effect("throughput", "3%", 270, percent=5),
    "spin-10": Effect("throughput", "3%", 75, percent=10),
    "spin-20": Effect("throughput", "3%", 75, percent=20),
    "latency-only": Effect("p50", "3%", 120, variables={"DELAY_MS": "1"}, rate=RATE),
    # The p99 stands on the very edge of the tail: now below it, now in it.
    "tail-only": Effect("p99", "3%", 120, variables={"TAIL_SHARE": "0.01", "TAIL_MS": "20"}, rate=RATE),
    # Here it stands in the tail.
    "tail-clear": Effect("p99", "3%", 120, variables={"TAIL_SHARE": "0.02", "TAIL_MS": "20"}, rate=RATE),
    "memory": Effect("peak_memory", "3%", 75, variables={"HOLD_MB": "20"}),
}


def variables(effect: Effect, calibration: Optional[dict]) -> dict:
    """What the candidate's service gets. Raises `Failed` where turns are to be known and are not."""
    if effect.percent is None:
        return effect.variables
    if calibration is None:
        raise Failed("there is no calibration: `bench/truth/planted.py` makes one")
    return {"SPIN": str(round(effect.percent * calibration["turns_per_percent"]))}


def calibration_in(lines: list) -> Optional[dict]:
    """The first calibration of a study's lines: a study keeps to one."""
    return next((line for line in lines if line.get("kind") == "calibration"), None)
