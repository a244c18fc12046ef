"""The form's inputs in words: groups, choices, labels and values. No streamlit."""

from __future__ import annotations

from typing import Any

from planner.catalog import LENGTH_SET_TITLES
from planner.scenario import CONFIG, CUSTOM, fields_by_name
from planner.units import format_number

WORDS: dict[str, dict[str, str]] = {
    "model": {CUSTOM: "Enter the shape by hand", CONFIG: "From a config.json"},
    "gpu": {CUSTOM: "Enter a GPU by hand"},
    "weight_dtype": {"auto": "as published"},
    "kv_cache_dtype": {"auto": "as the checkpoint"},
    "demand": {"users": "Users × requests per hour", "rate": "Requests per second", "daily": "Requests per day"},
    "arrivals": {
        "poisson": "Poisson, independent users",
        "bursty": "Bursty",
        "once": "All at once",
        "closed": "Closed loop of N users",
    },
    "lengths": {
        "trace": "As in a real trace",
        "lognormal": "Lognormal: mean and spread",
        "normal": "Normal: mean and spread",
        "uniform": "Uniform: mean ± spread",
        "exponential": "Exponential: mean",
        "constant": "Constant",
    },
    "length_trace": LENGTH_SET_TITLES,
    "chunked_prefill": {"auto": "as the engine", "on": "on", "off": "off"},
    "async_scheduling": {"auto": "as the engine", "off": "off"},
    "state_dtype": {"auto": "as the model"},
    "media": {"auto": "all that the model takes", "images": "images, no video", "none": "text only"},
    "ngram_tables": {"auto": "as the engine", "gpu": "on the GPUs", "host": "in host memory"},
    "engine_core": {"auto": "as the release", "v0": "V0", "v1": "V1"},
    "moe_runner_backend": {"auto": "as the engine", "triton": "Triton", "flashinfer_trtllm": "FlashInfer TRT-LLM"},
    "latent_cache": {"auto": "as the engine", "off": "off"},
    "state_prefixes": {"auto": "as the release", "on": "on", "off": "off"},
    "kv_unified": {"auto": "as the engine", "on": "on", "off": "off"},
    "measured_requests": {"steady": "after warm-up", "all": "all, as benchmark clients count"},
    "draft_model": {"": "none, or the model's own layers"},
    "router": {
        "round_robin": "Round robin",
        "random": "Random",
        "least_outstanding": "Fewest unfinished requests",
        "power_of_two": "The lesser of two at random",
        "prefix_affinity": "A system prompt stays on one replica",
    },
}


def field_label(name: str) -> str:
    """A field as the form calls it, with its unit."""
    meta = fields_by_name()[name].metadata
    return str(meta["label"]) + (f" ({meta['unit']})" if meta["unit"] else "")


def short(value: str) -> str:
    """A hub id without its owner."""
    return value.rsplit("/", 1)[-1]


def field_value(name: str, value: Any) -> str:
    """A field's value as the form shows it."""
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return WORDS.get(name, {}).get(value, short(value)) or "none"
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)
