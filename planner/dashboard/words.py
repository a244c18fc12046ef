"""Labels, choices and values of the form in words. No streamlit."""

from __future__ import annotations

from typing import Any

from planner.catalog import LENGTH_SET_TITLES
from planner.model import scheme, weight_dtype_names
from planner.scenario import CONFIG, CUSTOM, fields_by_name
from planner.units import format_number

WORDS: dict[str, dict[str, str]] = {
    "model": {CUSTOM: "Enter the shape by hand", CONFIG: "From a config.json"},
    "gpu": {CUSTOM: "Enter a GPU by hand"},
    "weight_dtype": {
        "auto": "as published",
        **{name: scheme(name).in_words for name in weight_dtype_names() if name != "auto"},
    },
    "kv_cache_dtype": {"auto": "as the checkpoint"},
    "question": {
        "need": "What do I need?",
        "take": "What can my GPUs take?",
        "will": "Will this do?",
    },
    "demand": {"users": "Users × requests per hour", "rate": "Requests per second", "daily": "Requests per day"},
    "arrivals": {
        "poisson": "Independent (Poisson)",
        "bursty": "Bursty",
        "once": "All at once",
        "closed": "Closed loop: each waits",
    },
    "lengths": {
        "trace": "As in a real trace",
        "lognormal": "Lognormal: mean and spread",
        "normal": "Normal: mean and spread",
        "uniform": "Uniform: mean ± spread",
        "exponential": "Exponential: mean",
        "constant": "Constant",
        "quantiles": "Quantiles of your recording",
    },
    "length_trace": LENGTH_SET_TITLES,
    "chunked_prefill": {"auto": "engine default", "on": "on", "off": "off"},
    "async_scheduling": {"auto": "engine default", "off": "off"},
    "state_dtype": {"auto": "model default"},
    "media": {"auto": "everything the model takes", "images": "images, no video", "none": "text only"},
    "ngram_tables": {"auto": "engine default", "gpu": "on the GPUs", "host": "in host memory"},
    "engine_core": {"auto": "release default", "v0": "V0", "v1": "V1"},
    "moe_runner_backend": {
        "auto": "engine default",
        "triton": "Triton",
        "flashinfer_trtllm": "FlashInfer TRT-LLM",
        "aiter": "AITER (AMD)",
    },
    "latent_cache": {"auto": "engine default", "off": "off"},
    "state_prefixes": {"auto": "release default", "on": "on", "off": "off"},
    "deployment": {"aggregated": "On the same replicas", "disaggregated": "On separate replicas"},
    "day_shape": {
        "office": "Office hours",
        "two_peaks": "Consumers, noon and evening",
        "night_batch": "Jobs at night",
        "flat": "Flat, the peak all day",
        "drawn": "Drawn by hand, on Fleet & time",
    },
    "kv_unified": {"auto": "engine default", "on": "on", "off": "off"},
    "measured_requests": {"steady": "after warm-up", "all": "all, as benchmark clients count"},
    "draft_model": {"": "none, or the model's own layers"},
    "price_kind": {"ondemand": "on demand", "reserved": "reserved", "spot": "spot and marketplace", "owned": "owned"},
    "gpu_vendor": {"any": "any vendor"},
    "router": {
        "round_robin": "Round robin",
        "random": "Random",
        "least_outstanding": "Fewest unfinished requests",
        "power_of_two": "Less loaded of two at random",
        "prefix_affinity": "Same system prompt, same replica",
    },
}


def field_label(name: str) -> str:
    """A field's label in the form, with its unit."""
    meta = fields_by_name()[name].metadata
    return str(meta["label"]) + (f" ({meta['unit']})" if meta["unit"] else "")


def short(value: str) -> str:
    """A Hugging Face id without its owner."""
    return value.rsplit("/", 1)[-1]


def field_value(name: str, value: Any) -> str:
    """A field's value as the form shows it; "automatic" where it is empty."""
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return WORDS.get(name, {}).get(value, short(value)) or "none"
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)
