"""The deployments that a search considers: GPU × split × weight format × KV cache, and then engine settings.

A candidate is what it changes of the scenario, so that thousands of them cost little to send to a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.answer.search.outcome import EVIDENCE
from planner.catalog import (
    NATIVE,
    WEIGHT_ONLY,
    checkpoint,
    get_engine,
    get_gpu,
    gpu_names,
    kernel_support,
    one_of_each_kind,
)
from planner.cost import gpu_price, offer_of, owned_hour
from planner.errors import InvalidInput
from planner.inputs import EngineSettings, Gpu
from planner.memory import kv_cache_type
from planner.model import ModelShape
from planner.scenario import CONFIG, CUSTOM, Scenario, own_gpus
from planner.step_time import EVIDENCE as KINDS_OF_EVIDENCE
from planner.step_time import kernel_evidence, measured_gpu

Changes = dict[str, Any]
TENSOR_PARALLEL = (1, 2, 4, 8, 16)
#: engines that serve many users on GPUs of a vendor; the scenario's own engine is always tried
OTHER_ENGINES = {"NVIDIA": ("vllm", "sglang", "tensorrt-llm"), "AMD": ("vllm", "sglang")}
DRAFTING_ENGINES = ("vllm", "sglang", "trtllm")
QUANTISES_WHEN_LOADING = ("vllm", "sglang")  # --quantization fp8 on a checkpoint of 16 bits
MAX_NUM_SEQS = (64, 256, 1024)
MAX_NUM_BATCHED_TOKENS = (2048, 8192, 16384)
DRAFTED_TOKENS = (1, 3)
#: settings of one GPU or engine that mean nothing on another
SIZED_ANEW: Changes = {"question": "need", "num_replicas": None, "prefill_replicas": None, "decode_replicas": None}
OWN_SETTINGS = ("usd_per_gpu_hour", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "gpu_total_gib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A GPU to consider, its least price, and how many there may be (None: any number)."""

    spec: Gpu
    name: str
    usd_per_hour: float
    most: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One candidate: the scenario's changes, its GPU, GPUs of one replica, and where its weights come from.

    `evidence` says what its kernel times rest on: one of `planner.answer.EVIDENCE`; `is_tuned` that an engine setting
    differs from the scenario's.
    """

    changes: Changes
    choice: Choice
    gpus_per_replica: int
    evidence: str
    checkpoint: str = ""
    is_tuned: bool = False


def evidence_of(scenario: Scenario) -> str:
    """What the kernel times of a deployment rest on: one of `planner.answer.EVIDENCE`."""
    return _evidence(scenario, scenario.gpu_spec, scenario.engine_settings, scenario.weight_dtype)


def _is_measured(spec: Gpu) -> bool:
    """Whether kernels were measured on this GPU itself."""
    return measured_gpu(spec)[1] == 0


def choices(scenario: Scenario, names: Iterable[str] | None = None) -> tuple[tuple[Choice, ...], str]:
    """GPUs that the user's restrictions leave, and a sentence on those left out for want of a price.

    Parameters
    ----------
    scenario : Scenario
        Names own GPUs, vendor, limits and the kind of price.
    names : iterable of str, optional
        Only these; None: own GPUs, else all of the catalog.

    Raises
    ------
    InvalidInput
        When no GPU is left, naming the restriction to loosen.
    """
    mine = own_gpus(scenario.my_gpus)
    asked = tuple(names) if names is not None else tuple(mine) or _all_of(scenario)
    found, unpriced = [], []
    for name in asked:
        spec = scenario.gpu_spec if name == scenario.gpu else get_gpu(name)
        if scenario.gpu_vendor not in ("any", spec.vendor) and name != CUSTOM:
            continue
        if scenario.measured_only and not _is_measured(spec):
            continue
        own = scenario.replace(gpu=name, **_reset(scenario, name))
        if not _priced(own, named=names is not None or bool(mine)):
            unpriced.append(name)
            continue
        limits = [limit for limit in (scenario.most_gpus, mine.get(name)) if limit is not None]
        most = min(limits, default=None)
        found.append(Choice(spec=spec, name=name, usd_per_hour=least_price(own), most=most))
    if not found:
        raise InvalidInput(*_nothing_left(scenario, unpriced))
    return tuple(found), _left_out(scenario, unpriced)


def least_price(own: Scenario) -> float:
    """Least price of a GPU-hour that a plan can come to; the power of an owned GPU grows with its load. [USD/h]"""
    if own.usd_per_gpu_hour is None and own.price_kind == "owned":
        return owned_hour(own, own.gpu_spec.tdp_w, 0.0, 1).depreciation_usd
    return gpu_price(own)[0]


def _all_of(scenario: Scenario) -> tuple[str, ...]:
    names = gpu_names()
    return names if scenario.gpu in names else (scenario.gpu, *names)


def _reset(scenario: Scenario, name: str) -> Changes:
    """Settings that fall back to the defaults on another GPU."""
    if name == scenario.gpu:
        return {}
    return {field: None for field in OWN_SETTINGS if getattr(scenario, field) is not None}


def _priced(own: Scenario, *, named: bool) -> bool:
    """Whether the GPU has a price of the scenario's kind, or the user named the GPU or its price."""
    if own.usd_per_gpu_hour is not None or named:
        return True
    return own.price_kind != "owned" and offer_of(own) is not None


def _nothing_left(scenario: Scenario, unpriced: list[str]) -> tuple[str, object, str]:
    if scenario.price_kind == "owned" and not scenario.my_gpus:
        return "my_gpus", "", "the GPUs that you own, such as H100 SXM:8, when prices are those of owned GPUs"
    if unpriced:
        return "price_kind", scenario.price_kind, "a kind with a published price for the GPUs that are left"
    if scenario.measured_only:
        return "measured_only", True, "off: none of the GPUs that are left has measured kernels"
    return "gpu_vendor", scenario.gpu_vendor, "a vendor of the GPUs named, or any"


def _left_out(scenario: Scenario, unpriced: list[str]) -> str:
    if not unpriced:
        return ""
    kind = {"ondemand": "on-demand", "owned": "own"}.get(scenario.price_kind, scenario.price_kind)
    known = [name for name in unpriced if name in gpu_names()]
    said = ", ".join(known[:4]) + (f" and {len(known) - 4} more" if len(known) > 4 else "")
    return f"Not considered, since no {kind} price is published: {said}."


def splits(spec: Gpu, model: ModelShape) -> tuple[Changes, ...]:
    """Ways to split one replica: tensor, pipeline, expert and attention data parallel.

    A replica stays within the GPUs of one fast link, but for pipeline stages: two or four servers in a row.
    """
    node = spec.gpus_per_node
    widths = [width for width in TENSOR_PARALLEL if width <= node]
    found = [(tp, 1, 1, False) for tp in widths]
    found += [(tp, pp, 1, False) for pp in (2, 4) for tp in widths if tp * pp <= node or tp == widths[-1]]
    if model.is_moe:
        found += [(tp, 1, 1, True) for tp in widths if tp > 1]
        found += [(tp, 1, dp, True) for tp in widths for dp in TENSOR_PARALLEL if dp > 1 and tp * dp <= node]
    names = ("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "expert_parallel")
    return tuple(dict(zip(names, split, strict=True)) for split in dict.fromkeys(found))


def formats(scenario: Scenario, spec: Gpu) -> tuple[tuple[str, str], ...]:
    """Weight formats to try on a GPU, as checkpoints exist, each with where it comes from.

    Returns
    -------
    tuple of (str, str)
        `weight_dtype` and the checkpoint: the scenario's own first, then published ones that the engine is known to
        multiply or widen on this GPU (kernel_support.csv); a 16-bit model without a published fp8 checkpoint also
        quantised while loading.
    """
    found = {scenario.weight_dtype: ""}
    shape, engine = scenario.published_shape, scenario.engine_settings
    if scenario.model not in (CUSTOM, CONFIG):
        found.setdefault("auto", "")
        for item in one_of_each_kind(scenario.model):
            known = kernel_support(engine.family, engine.version, spec, item.quantization)
            if known is not None and known.support in (NATIVE, WEIGHT_ONLY):
                found.setdefault(item.quantization, item.checkpoint)
    loads = get_engine(scenario.engine).family in QUANTISES_WHEN_LOADING
    if not shape.quantization and loads and spec.fp8_tflops and not {"fp8", "fp8_block"} & found.keys():
        found["fp8"] = "quantised while loading"
    return tuple(found.items())


def kv_types(scenario: Scenario, spec: Gpu, weight_dtype: str) -> tuple[str, ...]:
    """KV cache types to try: the scenario's own, and fp8 where the GPU reads it and the cache is not fp8 already."""
    own = kv_cache_type(scenario.model_shape, scenario.engine_settings, weight_dtype, scenario.kv_cache_dtype)
    known = get_engine(scenario.engine).family in ("vllm", "sglang", "trtllm")
    return (scenario.kv_cache_dtype, *(("fp8",) if own != "fp8" and spec.fp8_tflops and known else ()))


def deployments(
    scenario: Scenario, chosen: tuple[Choice, ...], weight_dtypes: Iterable[str] | None = None
) -> tuple[Deployment, ...]:
    """GPU × split × weight format × KV cache; each with the scenario's engine and settings.

    Parameters
    ----------
    scenario : Scenario
        Model, traffic, targets and engine stay as they are.
    chosen : tuple of Choice
        From `choices`.
    weight_dtypes : iterable of str, optional
        Formats to try whatever is published; None: `formats`.
    """
    model = scenario.model_shape
    together = {"deployment": "aggregated"} if scenario.is_disaggregated else {}
    asked = None if weight_dtypes is None else tuple((name, "") for name in weight_dtypes)
    found = []
    for choice in chosen:
        reset = _reset(scenario, choice.name)
        ways = [split for split in splits(choice.spec, model) if _allowed(scenario, choice, _size(split))]
        for dtype, source in asked or formats(scenario, choice.spec):
            evidence = _evidence(scenario, choice.spec, scenario.engine_settings, dtype)
            for cache in kv_types(scenario, choice.spec, dtype):
                for split in ways:
                    changes = {
                        **together,
                        **reset,
                        **split,
                        "gpu": choice.name,
                        "weight_dtype": dtype,
                        "kv_cache_dtype": cache,
                    }
                    found.append(
                        Deployment(
                            changes=changes,
                            choice=choice,
                            gpus_per_replica=_size(split),
                            evidence=evidence,
                            checkpoint=source,
                        )
                    )
    return tuple(found)


def _evidence(scenario: Scenario, spec: Gpu, engine: EngineSettings, weight_dtype: str) -> str:
    found = kernel_evidence(checkpoint(scenario.published_shape, weight_dtype), spec, engine, weight_dtype)
    return EVIDENCE[KINDS_OF_EVIDENCE.index(found)]


def _size(split: Mapping[str, Any]) -> int:
    sizes = (split["tensor_parallel_size"], split["pipeline_parallel_size"], split["attention_data_parallel_size"])
    return int(sizes[0] * sizes[1] * sizes[2])


def _allowed(scenario: Scenario, choice: Choice, gpus: int) -> bool:
    most = min(choice.most or gpus, choice.spec.gpus_per_node if scenario.one_node else gpus)
    return gpus <= most


def tuned(scenario: Scenario, parent: Deployment) -> tuple[Deployment, ...]:
    """A deployment with one setting changed: engine, sequences, token budget, drafting, prefix caching, separate pools.

    Drafting needs the model's own multi-token-prediction layers; its acceptance is the scenario's.
    """
    family = get_engine(scenario.engine).family
    tries: list[Changes] = []
    if scenario.model_shape.mtp_parameters and family in DRAFTING_ENGINES and not scenario.num_speculative_tokens:
        tries += [{"num_speculative_tokens": count} for count in DRAFTED_TOKENS]
    if not scenario.enable_prefix_caching and scenario.shared_prefix_tokens:
        tries.append({"enable_prefix_caching": True})
    if family in DRAFTING_ENGINES:
        tries += [{"max_num_batched_tokens": count} for count in MAX_NUM_BATCHED_TOKENS]
        tries += [{"max_num_seqs": count} for count in MAX_NUM_SEQS]
    if (
        family in DRAFTING_ENGINES
        and scenario.is_open_loop
        and _allowed(scenario, parent.choice, 2 * parent.gpus_per_replica)
    ):
        tries.append({"deployment": "disaggregated"})
    for name in OTHER_ENGINES.get(parent.choice.spec.vendor, ()):
        if get_engine(name).family != family and family in DRAFTING_ENGINES:
            other = {"engine": name, "engine_version": "", "engine_core": "auto"}
            caches = kv_types(scenario, parent.choice.spec, parent.changes["weight_dtype"])
            tries += [{**other, "kv_cache_dtype": cache} for cache in caches]
    return tuple(
        Deployment(
            changes=parent.changes | changes,
            choice=parent.choice,
            gpus_per_replica=parent.gpus_per_replica,
            evidence=_evidence_with(scenario, parent, changes),
            checkpoint=parent.checkpoint,
            is_tuned=True,
        )
        for changes in tries
    )


def _evidence_with(scenario: Scenario, parent: Deployment, changes: Changes) -> str:
    """The evidence of a deployment with other settings; another engine has kernels of its own."""
    if "engine" not in changes:
        return parent.evidence
    return _evidence(scenario, parent.choice.spec, get_engine(changes["engine"]), parent.changes["weight_dtype"])


def scenario_of(scenario: Scenario, changes: Changes) -> Scenario | None:
    """The scenario of a candidate, sized by the search; None where the other inputs forbid it."""
    try:
        return scenario.replace(**SIZED_ANEW, **changes)
    except InvalidInput:
        return None
