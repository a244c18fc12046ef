"""Confidence: our error against published measurements, as a band on every headline figure.

The errors come from `catalog/accuracy_summary.csv`, written by `planner.accuracy.snapshot`. A figure's
band is the error on the nearest measured class: the same kind of model on the same engine, else the same
kind of model on any engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.inputs import EngineSettings
from planner.model import ModelShape
from planner.scenario import Scenario
from planner.service import ServingMetrics
from planner.tables import read_table

_ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
_MEDIAN_OF_NORMAL = 0.6744897501960817  # median of |z| for a standard normal z
MIN_ROWS = 20
BAND_OF = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "tpot", "E2E": "ttft"}  # target -> the measured error that it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Our error for one quantity on the nearest measured class.

    `median_fraction` and `p90_fraction` are absolute relative errors (0.1 = 10 %), `rows` the published
    results behind them, `basis` their class. NaN where nothing was measured.
    """

    quantity: str
    median_fraction: float
    p90_fraction: float
    rows: int
    basis: str

    def probability_below(self, value: float, target: float) -> float:
        """Chance that the true figure is at most `target` when `value` is predicted.

        The logarithm of true ÷ predicted is taken as normal with the median absolute error measured.
        """
        if math.isnan(self.median_fraction) or not value > 0 or not target > 0:
            return math.nan
        sigma = max(math.log1p(self.median_fraction) / _MEDIAN_OF_NORMAL, 1e-6)
        return 0.5 * (1 + math.erf(math.log(target / value) / sigma / math.sqrt(2)))


def band(quantity: str, *, is_moe: bool, engine_family: str) -> Band:
    """Our measured error for one quantity.

    Parameters
    ----------
    quantity : str
        A measured column: ttft_ms_mean, tpot_ms_mean, output_tok_s_total, kv_tokens, weights_gib_per_gpu …
    is_moe : bool
        Whether the model is a mixture of experts.
    engine_family : str
        As in EngineSettings.

    Returns
    -------
    Band
        NaN errors where nothing comparable was measured.
    """
    family = "moe" if is_moe else "dense"
    engine = _ENGINES.get(engine_family, "")
    wanted = ((f"{family} · {engine}", "engine"), (family, "class"), ("all", "class"))
    for value, group in wanted:
        for row in read_table("catalog/accuracy_summary.csv"):
            same = row["quantity"] == quantity and row["value"] == value and (row.get("group") or "class") == group
            if same and int(float(row["predicted"] or 0)) >= MIN_ROWS and row["median_pct"]:
                return Band(
                    quantity=quantity,
                    median_fraction=float(row["median_pct"]) / 100,
                    p90_fraction=float(row["p90_pct"] or "nan") / 100,
                    rows=int(float(row["predicted"])),
                    basis=value,
                )
    return Band(quantity=quantity, median_fraction=math.nan, p90_fraction=math.nan, rows=0, basis="not measured")


def bands_of(model: ModelShape, engine: EngineSettings) -> dict[str, Band]:
    """Our measured error for this class of model and engine, by headline figure."""
    names = {
        "ttft": "ttft_ms_mean",
        "tpot": "tpot_ms_mean",
        "throughput": "output_tok_s_total",
        "kv_pool": "available_kv_gib",
        "weights": "weights_gib_per_gpu",
    }
    return {key: band(quantity, is_moe=model.is_moe, engine_family=engine.family) for key, quantity in names.items()}


def slo_probability(scenario: Scenario, bands: dict[str, Band], metrics: ServingMetrics) -> float:
    """Chance that every target holds, given our error: the smallest of the chances, since they fail together.

    The error of TTFT also stands for E2E, which queueing moves as it moves TTFT, and that of TPOT for the gaps between
    tokens. NaN without a target, or where nothing was measured. 0 when more requests are rejected or abandoned than may
    miss the targets, however fast the others are.
    """
    if metrics.lost_fraction > 1 - scenario.target_quantile:
        return 0.0
    chances = [
        bands[BAND_OF[target.name]].probability_below(
            getattr(metrics, target.latency).at(scenario.target_quantile), target.limit_s
        )
        for target in scenario.targets
    ]
    known = [chance for chance in chances if not math.isnan(chance)]
    return min(known) if known else math.nan
