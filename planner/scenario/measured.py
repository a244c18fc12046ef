"""Inputs that a user's own machine gave: a calibration of the step times, and the memory that its engine printed.

Both belong to one deployment, of which they carry a fingerprint: for another one they do not apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.scenario.pools import SeparatePools
from planner.scenario.settings import optional_setting, setting

LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0
#: part of the work → field with its factor, measured ÷ predicted time
SCALES = {
    "weights": "calibration_weights",
    "sequences": "calibration_sequences",
    "prefill": "calibration_prefill",
    "host": "calibration_host",
    "request": "calibration_request",
}
#: figure of the plan → field with the error that measurements leave it
ERRORS = {
    "ttft": "calibration_ttft_error",
    "tpot": "calibration_tpot_error",
    "throughput": "calibration_throughput_error",
}
#: every field of a calibration
CALIBRATION = (*SCALES.values(), *ERRORS.values(), "calibration_runs", "calibration_of", "calibration_load")
#: part of `planner.inputs.PrintedMemory` → field with what the log prints, in GiB or tokens
PRINTED = {
    "weights_bytes": "printed_weights_gib",
    "activation_bytes": "printed_activation_gib",
    "cuda_graph_bytes": "printed_graphs_gib",
    "kv_pool_bytes": "printed_kv_gib",
    "kv_tokens": "printed_kv_tokens",
}


def _factor(key: str, label: str, help: str) -> Any:
    return setting(1.0, key, label, group="measured", minimum=LEAST_FACTOR, maximum=MOST_FACTOR, help=help)


def _error(key: str, label: str) -> Any:
    return setting(
        0.0,
        key,
        label,
        group="measured",
        minimum=0,
        maximum=5,
        help="Standard deviation of ln(measured ÷ predicted) that the measurements leave; 0 = not known, so that the "
        "band is that of published runs.",
    )


def _printed(key: str, label: str, help: str) -> Any:
    return optional_setting(
        key, label, kind="number", unit="GiB", group="measured", minimum=0, maximum=10_000, help=help
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements(SeparatePools):
    """Factors on the predicted step times with the error that they leave, and printed memory instead of an estimate."""

    calibration_weights: float = _factor(
        "kw", "Time of a step alone, measured ÷ predicted", "Reading the weights and launching the kernels."
    )
    calibration_sequences: float = _factor(
        "ks", "Time per sequence, measured ÷ predicted", "What further sequences add to a step, and their KV cache."
    )
    calibration_prefill: float = _factor(
        "kp", "Prefill time, measured ÷ predicted", "What a step takes longer for each token of a prompt."
    )
    calibration_host: float = _factor(
        "kc", "CPU time per step, measured ÷ predicted", "Scheduling, preparing and streaming on the CPU."
    )
    calibration_request: float = _factor(
        "kq", "CPU time per request, measured ÷ predicted", "HTTP, tokenisation and whatever stands before the engine."
    )
    calibration_ttft_error: float = _error("kfe", "Error of calibrated TTFT")
    calibration_tpot_error: float = _error("kte", "Error of calibrated TPOT")
    calibration_throughput_error: float = _error("kxe", "Error of calibrated throughput")
    calibration_runs: int = setting(
        0,
        "kn",
        "Measurements of the calibration",
        group="measured",
        minimum=0,
        maximum=1_000_000,
        help="Runs that the factors are fitted to; 0 = none, and no factor applies.",
    )
    calibration_of: str = setting(
        "",
        "ko",
        "Deployment of the calibration",
        group="measured",
        help="Fingerprint of model, GPU, split and engine that were measured; for others the factors do not apply.",
    )
    calibration_load: str = setting(
        "",
        "kl",
        "Load of the calibration",
        group="measured",
        help="The load that it was made for: arrivals, then requests per second or how many at once, prompt, answer "
        "and shared tokens. For others it still applies, and the plan says so. Empty: not known.",
    )
    printed_weights_gib: float | None = _printed(
        "pw", "Weights, as printed", "Per GPU, as the start-up log prints them. Empty: the estimate."
    )
    printed_activation_gib: float | None = _printed(
        "pa", "Activation peak, as printed", "Per GPU, as the start-up log prints it. Empty: the estimate."
    )
    printed_graphs_gib: float | None = _printed(
        "pgr", "CUDA graphs, as printed", "Per GPU, as the start-up log prints them. Empty: the estimate."
    )
    printed_kv_gib: float | None = _printed(
        "pkg", "KV cache memory, as printed", "Per GPU, as the start-up log prints it. Empty: the estimate."
    )
    printed_kv_tokens: int | None = optional_setting(
        "pkt",
        "KV cache tokens, as printed",
        kind="count",
        unit="tokens",
        group="measured",
        minimum=1,
        maximum=1_000_000_000_000,
        help="As the start-up log prints them. Empty: the estimate.",
    )
    printed_of: str = setting(
        "",
        "po",
        "Deployment of the log",
        group="measured",
        help="Fingerprint of model, GPU, split, engine, share and limits that printed the memory; for others it does "
        "not apply.",
    )
