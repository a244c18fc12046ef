"""Inputs of disaggregated serving: prefill and decode on separate replicas."""

from __future__ import annotations

from dataclasses import dataclass

from planner.scenario.settings import optional_setting, setting
from planner.scenario.times import Times

DEPLOYMENTS = ("aggregated", "disaggregated")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparatePools(Times):
    """How many replicas do which job, and what carries the KV cache between them."""

    deployment: str = setting(
        "aggregated",
        "dis",
        "Prefill and decode",
        group="hardware",
        choices=DEPLOYMENTS,
        help="Together: each replica does both. Apart: some replicas only compute prompts and send the KV cache to "
        "others, which only write answers (vLLM --kv-transfer-config, SGLang --disaggregation-mode, Dynamo).",
    )
    prefill_replicas: int | None = optional_setting(
        "pr",
        "Prefill replicas",
        kind="count",
        group="hardware",
        minimum=1,
        maximum=1000,
        help="Replicas that compute prompts. Empty: as many as the targets need.",
    )
    decode_replicas: int | None = optional_setting(
        "dr",
        "Decode replicas",
        kind="count",
        group="hardware",
        minimum=1,
        maximum=1000,
        help="Replicas that write answers. Empty: as many as the targets need.",
    )
    kv_transfer_gb_s: float | None = optional_setting(
        "kvt",
        "KV transfer per GPU",
        kind="number",
        unit="GB/s",
        group="hardware",
        minimum=0.001,
        maximum=100_000,
        help="Bandwidth between a prefill and a decode GPU, one direction. Empty: 50 GB/s, the one 400 Gb/s network "
        "port that a DGX H100 has for each GPU, or half of the GPU-to-GPU link where that is less.",
    )
