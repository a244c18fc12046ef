"""A short fingerprint of a deployment, part by part, so that what was measured on it applies to nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from planner.errors import InvalidInput
from planner.scenario.fields import CONFIG, CUSTOM, Inputs, fields_by_name

_LOAD = re.compile(r"[a-z]{1,20}(?:_\d{1,9}(?:\.\d{1,9})?(?:e-?\d{1,2})?){4}")
DIGITS = 4  # of each part: one in 65,000 other values looks the same
Parts = Mapping[str, tuple[str, ...]]
#: what a step's time depends on besides the batch, by what a user calls it
PARTS: Parts = {
    "model": ("model", "weight_dtype", "kv_cache_dtype", "state_dtype"),
    "GPU": ("gpu", "gpu_total_gib"),
    "split": (
        *("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel", "attention_data_parallel_size"),
        "decode_context_parallel_size",
    ),
    "engine": (
        *("engine", "engine_version", "engine_core", "enforce_eager", "moe_runner_backend", "latent_cache", "offline"),
        *("plain_awq", "behind_dynamo"),
        *("chunked_prefill", "async_scheduling", "draft_model", "num_speculative_tokens"),
    ),
}
#: what the memory of a start depends on besides
MEMORY_PARTS: Parts = {
    **PARTS,
    "share of memory": ("gpu_memory_utilization", "occupied_gib"),
    "limits": (
        *("max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "max_cudagraph_capture_size"),
        *("max_total_tokens", "media", "images_per_prompt", "num_lora_adapters", "max_loras", "max_lora_rank"),
        *("enable_prefix_caching", "state_prefixes", "kv_unified", "max_state_slots", "mamba_full_memory_ratio"),
        *("ngram_tables", "encoder_data_parallel"),
    ),
}


def fingerprint(inputs: Inputs, parts: Parts = PARTS) -> str:
    """The fingerprint of a deployment: four hexadecimal digits for each part.

    Only what differs from the defaults counts, so that a field that a later version adds changes no fingerprint.

    Parameters
    ----------
    inputs : Inputs
        The deployment.
    parts : mapping
        Fields by part: `PARTS`, or `MEMORY_PARTS` for the memory of a start.
    """
    return "-".join(_digest(_changed(inputs, names)) for names in parts.values())


@dataclass(frozen=True, slots=True)
class Load:
    """A load in figures: requests a second, or users or requests at once, by `arrivals`; mean lengths in tokens."""

    arrivals: str
    amount: float
    prompt_tokens: float
    output_tokens: float
    shared_prefix_tokens: float

    @property
    def text(self) -> str:
        """The load as links carry it, each figure to three digits."""
        return "_".join([self.arrivals, *(_short(figure) for figure in self._figures)])

    @property
    def digest(self) -> str:
        """The load as links carried it until it was written out: four hexadecimal digits."""
        return _digest({"arrivals": self.arrivals, "figures": [f"{figure:.3g}" for figure in self._figures]})

    @property
    def _figures(self) -> tuple[float, ...]:
        return (self.amount, self.prompt_tokens, self.output_tokens, self.shared_prefix_tokens)


def load_in(text: str) -> Load | None:
    """The load that `Load.text` wrote; None for other text, such as a digest."""
    match = _LOAD.fullmatch(text)
    if match is None:
        return None
    kind, *figures = text.split("_")
    return Load(kind, *map(float, figures))


def check_load(field: str, stored: str) -> None:
    """Raise InvalidInput unless the text is a load, a digest of one or empty."""
    if load_in(stored) is None and not re.fullmatch(f"(?:[0-9a-f]{{{DIGITS}}})?", stored):
        raise InvalidInput(field, stored, "empty, or a load such as poisson_9.3_512_128_0, as a calibration gives it")


def _short(figure: float) -> str:
    return f"{float(f'{figure:.3g}'):g}".replace("e+0", "e").replace("e+", "e")


def check_fingerprint(field: str, stored: str) -> None:
    """Raise InvalidInput unless the text is a fingerprint or empty."""
    parts = stored.split("-") if stored else []
    if not all(re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", part) for part in parts):
        raise InvalidInput(field, stored, f"empty, or groups of {DIGITS} hexadecimal digits as a reading gives them")


def differing(inputs: Inputs, stored: str, parts: Parts = PARTS) -> tuple[str, ...]:
    """The parts in which a deployment differs from the one that a fingerprint was taken of; all for no fingerprint."""
    own, other = fingerprint(inputs, parts).split("-"), stored.split("-")
    if len(own) != len(other):
        return tuple(parts)
    return tuple(name for name, one, two in zip(parts, own, other, strict=True) if one != two)


def _digest(values: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:DIGITS]


def _changed(inputs: Inputs, names: tuple[str, ...]) -> dict[str, object]:
    declared = fields_by_name()
    if "model" in names:
        names += {CONFIG: ("model_config",), CUSTOM: _of_group("shape")}.get(inputs.model, ())
    elif "gpu" in names and inputs.gpu == CUSTOM:
        names += _of_group("gpu")
    values = {name: getattr(inputs, name) for name in names}
    return {name: value for name, value in values.items() if value != declared[name].default}


def _of_group(group: str) -> tuple[str, ...]:
    return tuple(name for name, item in fields_by_name().items() if item.metadata["group"] == group)
