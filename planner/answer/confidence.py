"""Confidence: our error on sources that the fit did not see, as a band on every headline figure.

Speed: `catalog/error_bands.csv`, quantiles of measured ÷ predicted by quantity, by how near the measured kernels are to
the plan's (`planner.step_time.EVIDENCE`), by class of model and by engine. Memory: `catalog/accuracy_summary.csv`, the
error on published start-up logs. `planner.accuracy.snapshot` writes both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from planner.arrays import Floats
from planner.inputs import EngineSettings, Gpu, PrintedMemory
from planner.model import ModelShape
from planner.scenario import Scenario, load_in
from planner.service import LoadCurve, ServingMetrics
from planner.step_time import KERNELS_MEASURED, NOTHING_MEASURED, SAME_ARCHITECTURE, kernel_evidence
from planner.tables import read_table
from planner.units import counted, format_number

BANDS = "catalog/error_bands.csv"
MEMORY = "catalog/accuracy_summary.csv"
MAIN_ENGINES = ("vllm", "sglang", "trtllm")  # of the classes dense and moe; models on other engines are one class
MIN_ROWS = 20
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of a band where no published one has levels
BAND_OF = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "tpot", "E2E": "ttft"}  # target -> the measured error that it takes
MEASURED_TAIL = 0.99  # percentile of latencies that is published and has a band of its own beside the mean's
#: what the evidence of a plan's speed means, for the page
EVIDENCE_WORDS = {
    KERNELS_MEASURED: "kernels measured on this GPU with this engine",
    SAME_ARCHITECTURE: "kernels measured on this architecture, not on this GPU with this engine and these weights",
    NOTHING_MEASURED: "no kernels measured on this architecture",
}
_NORMAL = NormalDist()
_MEDIAN_OF_NORMAL = _NORMAL.inv_cdf(0.75)  # median of |z| for a standard normal z
_SLOWEST, _FASTEST, _SPEEDS = 20.0, 0.05, 241  # range and number of speeds tried for a target's margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Our error for one quantity on the nearest rows that were measured.

    `median_fraction` and `p90_fraction` are absolute relative errors (0.1 = 10 %), `rows` the published results behind
    them from `sources` sources, `basis` their class, `evidence` one of `EVIDENCE` ("" for memory). NaN where nothing
    was measured. `ratios` are true ÷ predicted at the shares `levels` of the rows, both ascending; without them the
    logarithm of the ratio is taken as normal. `is_own`: the rows are the user's own runs of this deployment;
    `is_narrowed`: they are part of it.
    """

    quantity: str
    median_fraction: float
    p90_fraction: float
    rows: int
    basis: str
    evidence: str = ""
    sources: int = 0
    levels: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    is_own: bool = False
    is_narrowed: bool = False

    @property
    def behind(self) -> str:
        """The results behind the band: "412 published results", or "your 3 measurements"."""
        return self.basis if self.is_own else f"{self.rows:,} published results ({self.basis})"

    @property
    def known(self) -> bool:
        """Whether anything comparable was measured."""
        return not math.isnan(self.median_fraction)

    @property
    def bias_fraction(self) -> float:
        """How far true figures tend to lie from the prediction, signed: 0.1 = 10 % above it."""
        return self.factor(0.5) - 1

    def factor(self, level: float) -> float:
        """True ÷ predicted below which a share of the true figures lies; NaN where nothing was measured.

        Between the levels of the table the logarithm is linear in the normal score, and so it goes on beyond them.
        """
        if not self.known:
            return math.nan
        score = _NORMAL.inv_cdf(level)
        if not self.ratios:
            return math.exp(score * max(math.log1p(self.median_fraction) / _MEDIAN_OF_NORMAL, 1e-6))
        return math.exp(_linear(score, [_NORMAL.inv_cdf(x) for x in self.levels], [math.log(x) for x in self.ratios]))

    def range_of(self, value: float, share: float) -> tuple[float, float]:
        """Where a share of the true figures lies when `value` is predicted: as many below it as above."""
        return value * self.factor((1 - share) / 2), value * self.factor((1 + share) / 2)

    def probability_below(self, value: float, target: float) -> float:
        """Chance that the true figure is at most `target` when `value` is predicted; NaN where nothing was measured."""
        if not self.known or not value > 0 or not target > 0:
            return math.nan
        ratio = math.log(target / value)
        if not self.ratios:
            return _NORMAL.cdf(ratio / max(math.log1p(self.median_fraction) / _MEDIAN_OF_NORMAL, 1e-6))
        logs = [math.log(x) for x in self.ratios]
        return _NORMAL.cdf(_linear(ratio, logs, [_NORMAL.inv_cdf(x) for x in self.levels]))


def _linear(x: float, xs: list[float], ys: list[float]) -> float:
    """Piecewise linear through ascending points, the first and last slope going on beyond them."""
    place = min(max(int(np.searchsorted(xs, x)), 1), len(xs) - 1)
    run = max(xs[place] - xs[place - 1], 1e-9)
    return ys[place - 1] + (x - xs[place - 1]) * (ys[place] - ys[place - 1]) / run


def _unknown(quantity: str) -> Band:
    return Band(quantity=quantity, median_fraction=math.nan, p90_fraction=math.nan, rows=0, basis="not measured")


def speed_band(quantity: str, *, is_moe: bool, engine_family: str, evidence: str) -> Band:
    """Band of a speed.

    Parameters
    ----------
    quantity : str
        ttft, tpot, throughput, ttft_tail or tpot_tail (a percentile).
    is_moe : bool
        Whether the model is a mixture of experts.
    engine_family : str
        As in EngineSettings.
    evidence : str
        One of `EVIDENCE`.

    Returns
    -------
    Band
        Of the class of model on this engine where enough rows are known, else of the class, else of all rows with this
        evidence.
    """
    kind = ("moe" if is_moe else "dense") if engine_family in MAIN_ENGINES else "other"
    for own in ((kind, engine_family), (kind, ""), ("", "")):
        for row in read_table(BANDS):
            if (row["quantity"], row["evidence"], row["class"], row["engine"]) == (quantity, evidence, *own):
                return _read(row)
    return _unknown(quantity)


def _read(row: Mapping[str, str]) -> Band:
    columns = [name for name in row if name[0] == "q" and name[1].isdigit()]
    words = [{"moe": "mixtures of experts", "dense": "dense models", "other": "other engines"}.get(row["class"], "all")]
    words += [row["engine"]] if row["engine"] else []
    return Band(
        quantity=row["quantity"],
        median_fraction=float(row["median_pct"]) / 100,
        p90_fraction=float(row["p90_pct"]) / 100,
        rows=int(row["rows"]),
        basis=f"{' on '.join(words)}, {EVIDENCE_WORDS[row['evidence']]}",
        evidence=row["evidence"],
        sources=int(row["sources"]),
        levels=tuple(float(name[1:]) / 100 for name in columns),
        ratios=tuple(float(row[name]) for name in columns),
    )


def memory_band(quantity: str) -> Band:
    """Our error on published start-up logs: `available_kv_gib`, `weights_gib_per_gpu` or `kv_tokens`."""
    for row in read_table(MEMORY):
        same = row["quantity"] == quantity and row["value"] == "all" and (row.get("group") or "class") == "class"
        if same and int(float(row["predicted"] or 0)) >= MIN_ROWS and row["median_pct"]:
            return Band(
                quantity=quantity,
                median_fraction=float(row["median_pct"]) / 100,
                p90_fraction=float(row["p90_pct"] or "nan") / 100,
                rows=int(float(row["predicted"])),
                basis="all",
            )
    return _unknown(quantity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a user's own runs say about our error on their deployment.

    `errors` are the standard deviations of ln(measured ÷ predicted) that the calibration leaves, by figure (ttft, tpot,
    throughput); `runs` is their number, 0 without a calibration.
    """

    runs: int = 0
    errors: Mapping[str, float] = field(default_factory=dict)


def measured_of(scenario: Scenario) -> Measured:
    """What the scenario's calibration says of the error; nothing where it has none for this deployment."""
    return Measured(runs=scenario.calibration_runs, errors=scenario.calibrated_errors)


def own_runs(scenario: Scenario, bands: Mapping[str, Band] | None = None) -> str:
    """What a calibrated plan rests on, in a few words; empty without a calibration of its deployment.

    Parameters
    ----------
    scenario : Scenario
        The plan's.
    bands : mapping, optional
        The plan's: where the runs narrow none of them, their loads were too far from the plan's own.
    """
    if not scenario.is_calibrated:
        return ""
    runs = f"calibrated to your {counted(scenario.calibration_runs, 'measurement')}"
    if scenario.is_calibrated_for_other_load:
        return f"{runs}, for {calibrated_load(scenario)}"
    if bands is not None and scenario.calibrated_errors and not any(band.is_narrowed for band in bands.values()):
        return f"{runs}, whose loads are far from this one"
    return runs


def calibrated_load(scenario: Scenario) -> str:
    """The load for which a plan's calibration was made, in words; "another load" where an older link does not say.

    Parameters
    ----------
    scenario : Scenario
        With a calibration.
    """
    load = load_in(scenario.calibration_load)
    if load is None:
        return "another load"
    if load.arrivals == "closed":
        amount = counted(int(load.amount), "concurrent user")
    elif load.arrivals == "once":
        amount = counted(int(load.amount), "request") + " at once"
    else:
        kind = "" if load.arrivals == "poisson" else f" ({load.arrivals})"
        amount = f"{format_number(load.amount)} req/s{kind}"
    prompt, answer = (format_number(tokens) for tokens in (load.prompt_tokens, load.output_tokens))
    shared = f", {format_number(load.shared_prefix_tokens)} of them shared," if load.shared_prefix_tokens else ""
    # a plan that asks for the most that its GPUs take has no amount
    said = f"{amount} with " if load.amount else ""
    return f"{said}prompts of {prompt} tokens{shared} and answers of {answer}"


def _narrower(published: Band, measured: Measured) -> Band:
    """The band of the user's own runs where it is narrower than that of published ones."""
    sigma = measured.errors.get(published.quantity)
    if sigma is None:
        return published
    levels = published.levels or LEVELS
    own = Band(
        quantity=published.quantity,
        median_fraction=math.expm1(sigma * _MEDIAN_OF_NORMAL),
        p90_fraction=math.expm1(sigma * _NORMAL.inv_cdf(0.95)),
        rows=measured.runs,
        basis=f"your {counted(measured.runs, 'measurement')}",
        is_own=True,
        is_narrowed=True,
        evidence=published.evidence,
        sources=1,
        levels=levels,
        ratios=tuple(math.exp(sigma * _NORMAL.inv_cdf(level)) for level in levels),
    )
    if not published.known or _width(own) < _width(published):
        return own
    return published


def _width(band: Band) -> float:
    return math.log(band.factor(0.95) / band.factor(0.05))


def bands_of(
    model: ModelShape,
    gpu: Gpu,
    engine: EngineSettings,
    weight_dtype: str = "auto",
    quantile: float = 0.5,
    measured: Measured | None = None,
) -> dict[str, Band]:
    """Bands of a plan's headline figures.

    Parameters
    ----------
    model, gpu, engine, weight_dtype
        As of a `planner.step_time.RankShare`.
    quantile : float
        Of the latencies shown. The median has the band of the mean, the 99th percentile its own; between the two the
        band moves with the normal score.
    measured : Measured, optional
        The user's own runs, which narrow the bands of this deployment.

    Returns
    -------
    dict of str to Band
        ttft, tpot, throughput, kv_pool and weights.
    """
    evidence = kernel_evidence(model, gpu, engine, weight_dtype)

    def of(quantity: str) -> Band:
        found = speed_band(quantity, is_moe=model.is_moe, engine_family=engine.family, evidence=evidence)
        return _narrower(found, measured or Measured())

    return {
        "ttft": _towards_tail(of("ttft"), of("ttft_tail"), quantile),
        "tpot": _towards_tail(of("tpot"), of("tpot_tail"), quantile),
        "throughput": of("throughput"),
        "kv_pool": memory_band("available_kv_gib"),
        "weights": memory_band("weights_gib_per_gpu"),
    }


def memory_bands(bands: Mapping[str, Band], printed: PrintedMemory | None) -> dict[str, Band]:
    """The bands of a plan, without an error where its engine's own log says the figure."""
    told = {
        "weights": printed is not None and printed.weights_bytes is not None,
        "kv_pool": printed is not None and (printed.kv_pool_bytes or printed.kv_tokens) is not None,
    }
    own = Band(quantity="", median_fraction=0.0, p90_fraction=0.0, rows=1, basis="your start-up log", is_own=True)
    return {name: replace(own, quantity=name) if told.get(name) else band for name, band in bands.items()}


def _towards_tail(mean: Band, tail: Band, quantile: float) -> Band:
    """Band of a percentile between that of the mean (at 50 %) and that of the 99th percentile."""
    scores = _NORMAL.inv_cdf(min(max(quantile, 0.5), MEASURED_TAIL)), _NORMAL.inv_cdf(MEASURED_TAIL)
    share = scores[0] / scores[1]
    if not share or not tail.known or not mean.known:
        return mean

    def mixed(a: float, b: float) -> float:
        return math.exp((1 - share) * math.log(a) + share * math.log(b))

    return replace(
        mean,
        quantity=f"{mean.quantity} p{100 * quantile:g}",
        median_fraction=mixed(mean.median_fraction, tail.median_fraction),
        p90_fraction=mixed(mean.p90_fraction, tail.p90_fraction),
        rows=tail.rows,
        sources=tail.sources,
        basis=f"99th percentiles of all models, and means of {mean.basis}",
        is_own=False,
        ratios=tuple(mixed(a, b) for a, b in zip(mean.ratios, tail.ratios, strict=True)),
    )


def slo_probability(
    scenario: Scenario,
    bands: dict[str, Band],
    metrics: ServingMetrics,
    curve: LoadCurve | None = None,
    serving: int = 1,
) -> float:
    """Chance that every target holds, given our error: the smallest of the chances, since they fail together.

    The error of TTFT also stands for E2E, which queueing moves as it moves TTFT, and that of TPOT for the gaps between
    tokens. NaN without a target, or where nothing was measured. 0 when more requests are rejected or abandoned than may
    miss the targets, however fast the others are. In an open loop, with the load curve of one of the `serving`
    replicas, the queue counts too (`chance_with`).
    """
    if metrics.lost_fraction > 1 - scenario.target_quantile:
        return 0.0
    if curve is not None and curve.points and scenario.is_open_loop:
        return chance_with(scenario, bands, curve, metrics, serving, serving)
    return _smallest(_latency_chances(scenario, bands, metrics))


def _latency_chances(
    scenario: Scenario, bands: dict[str, Band], metrics: ServingMetrics, times: Mapping[str, float] | None = None
) -> list[float]:
    """Chance of each target, with latencies some times as long as those of the metrics."""
    return [
        bands[BAND_OF[target.name]].probability_below(
            getattr(metrics, target.latency).at(scenario.target_quantile) * (times or {}).get(target.latency, 1.0),
            target.limit_s,
        )
        for target in scenario.targets
    ]


def _smallest(chances: list[float]) -> float:
    known = [chance for chance in chances if not math.isnan(chance)]
    return min(known) if known else math.nan


def chance_with(
    scenario: Scenario,
    bands: dict[str, Band],
    curve: LoadCurve,
    metrics: ServingMetrics,
    serving: int,
    replicas: float,
) -> float:
    """Chance, given our error, that another number of replicas meets every target at the peak of an open loop.

    A replica that is f times as slow as predicted is one that serves f times the rate and takes f times as long. So the
    load curve tells how slow the replicas may be before the queue misses the targets, and the band of the throughput
    how likely that is; the latencies have the chances of `slo_probability`. The smallest counts: they fail together.

    Parameters
    ----------
    scenario : Scenario
        Targets and peak.
    bands : dict
        `bands_of`.
    curve : LoadCurve
        One replica against load.
    metrics : ServingMetrics
        Of the fleet as planned, with `serving` replicas.
    serving, replicas : int, float
        Replicas that share the load in the plan, and the number asked about.

    Returns
    -------
    float
        NaN for closed loops and bursts, whose load is not a rate.
    """
    if not scenario.is_open_loop or not scenario.targets or not curve.points or replicas < 1:
        return math.nan
    if replicas <= serving and metrics.lost_fraction > 1 - scenario.target_quantile:
        return 0.0
    q, rate, planned = scenario.target_quantile, scenario.peak_rate_rps / replicas, scenario.peak_rate_rps / serving
    times = {
        target.latency: float(_along(curve, rate, q, target.latency) / _along(curve, planned, q, target.latency))
        for target in (scenario.targets if replicas != serving else ())
    }
    found = _found_over_curve(scenario, curve, metrics, planned)
    slowest = _slowest_that_holds(scenario, curve, rate, bearable_rps(scenario, curve, metrics, serving), found)
    keeps_up = 1 - bands["throughput"].probability_below(1.0, 1 / slowest) if slowest > 0 else 0.0
    return _smallest([*_latency_chances(scenario, bands, metrics, times), keeps_up])


def _along(curve: LoadCurve, rate_rps: float | Floats, quantile: float, latency: str) -> Floats:
    """A latency of one replica at any rates of its load curve. [s]"""
    rates = [point.rate_rps for point in curve.points]
    found: Floats = np.interp(rate_rps, rates, [getattr(point.metrics, latency).at(quantile) for point in curve.points])
    return found


def bearable_rps(scenario: Scenario, curve: LoadCurve, metrics: ServingMetrics, serving: int) -> float:
    """The most that a replica finishes while no more requests are lost than may miss the targets. [req/s]

    From the load curve of one replica; what `serving` of them were simulated to bear at the peak counts too.
    """
    may_lose = 1 - scenario.target_quantile
    shown = scenario.peak_rate_rps / serving if metrics.lost_fraction <= may_lose else 0.0
    rates = np.array([point.rate_rps for point in curve.points])
    lost = np.array([point.metrics.lost_fraction for point in curve.points])
    if not (lost > may_lose).any():
        return curve.capacity_rps
    first = int(np.argmax(lost > may_lose))
    around = slice(first - 1, first + 1)
    borne = float(np.interp(may_lose, lost[around], rates[around])) if first else 0.0
    return min(curve.capacity_rps, max(borne, shown))


def _found_over_curve(
    scenario: Scenario, curve: LoadCurve, metrics: ServingMetrics, planned_rps: float
) -> dict[str, float]:
    """Each latency of the fleet as simulated ÷ that of one replica alone at the same share of the load.

    Below 1 where several replicas share bursts that one would have to bear by itself.
    """
    q = scenario.target_quantile
    ratios = {
        target.latency: getattr(metrics, target.latency).at(q) / float(_along(curve, planned_rps, q, target.latency))
        for target in scenario.targets
    }
    return {name: min(1.0, ratio) if math.isfinite(ratio) else 1.0 for name, ratio in ratios.items()}


def _slowest_that_holds(
    scenario: Scenario, curve: LoadCurve, rate_rps: float, bearable: float, found: Mapping[str, float]
) -> float:
    """Factor by which a replica may be slower than predicted and still meet the targets at a rate; 0: none tried."""
    factors = np.geomspace(_FASTEST, _SLOWEST, _SPEEDS)
    loads, q = rate_rps * factors, scenario.target_quantile
    fails = loads > bearable
    for target in scenario.targets:
        fails |= factors * found[target.latency] * _along(curve, loads, q, target.latency) > target.limit_s
    held = int(np.argmax(fails)) if fails.any() else len(factors)
    return float(factors[held - 1]) if held else 0.0
