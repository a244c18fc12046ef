"""Rejects inputs that are each valid but do not work together, for the reason that the engine itself has."""

from __future__ import annotations

from planner.catalog import engine_names, find_model_id, get_engine, get_gpu, length_set_names
from planner.errors import InvalidInput, require_choice
from planner.inputs import check_version
from planner.model import kv_dtype_names, weight_dtype_names
from planner.scenario.derived import DerivedInputs, hours_of_day
from planner.scenario.fields import CONFIG, CUSTOM
from planner.scenario.fingerprint import check_fingerprint, check_load
from planner.scenario.own_gpus import own_gpus
from planner.scenario.quantiles import quantiles_of

#: vLLM cache.py: `BlockSize`
VLLM_BLOCK_SIZES = (1, 8, 16, 32, 64, 128, 256)
#: llama.cpp common/speculative.cpp: SPEC_VOCAB_MAX_SIZE_DIFFERENCE
LLAMACPP_VOCABULARY_SLACK = 128


def check_together(scenario: DerivedInputs) -> None:
    """Raise on combinations that no engine starts with.

    Raises
    ------
    InvalidInput
        Names the field to change, its value and what would be valid beside the others.
    """
    _check_shape(scenario)
    shape = scenario.model_shape
    if scenario.max_model_len > shape.longest_context:
        raise InvalidInput(
            "max_model_len",
            scenario.max_model_len,
            f"at most {shape.longest_context:,} tokens, the longest context of {shape.name}",
        )
    if scenario.shared_prefix_tokens >= scenario.max_model_len:
        raise InvalidInput(
            "shared_prefix_tokens",
            scenario.shared_prefix_tokens,
            f"less than the context length ({scenario.max_model_len:,} tokens), since every prompt starts with it",
        )
    _check_pools(scenario)
    if scenario.day_shape == "drawn":
        hours_of_day(scenario.day_hours)
    _check_engine(scenario)
    if scenario.draft_model and scenario.num_speculative_tokens:
        _check_draft(scenario)
    if scenario.attention_data_parallel_size > 1 and not shape.is_moe:
        raise InvalidInput(
            "attention_data_parallel_size",
            scenario.attention_data_parallel_size,
            f"1 for {shape.name}, which has no experts; add replicas instead",
        )
    memory_gib = scenario.gpu_spec.memory_gib
    if scenario.occupied_gib >= memory_gib:
        raise InvalidInput(
            "occupied_gib", scenario.occupied_gib, f"less than the {memory_gib:,.4g} GiB that {scenario.gpu} has"
        )


def _check_pools(scenario: DerivedInputs) -> None:
    """Raise where prefill and decode on separate replicas cannot be planned."""
    if scenario.deployment != "disaggregated":
        return
    if scenario.arrivals == "closed":
        raise InvalidInput(
            "deployment",
            scenario.deployment,
            "aggregated for users who wait for their answer; separate replicas are planned for traffic given as a rate",
        )
    if scenario.num_replicas is not None:
        raise InvalidInput(
            "num_replicas",
            scenario.num_replicas,
            "empty where prefill and decode have replicas of their own: enter those instead",
        )


def _check_shape(scenario: DerivedInputs) -> None:
    if scenario.model != "custom":
        return
    if scenario.num_attention_heads % scenario.num_kv_heads:
        raise InvalidInput(
            "num_kv_heads", scenario.num_kv_heads, f"a divisor of the {scenario.num_attention_heads} attention heads"
        )
    if scenario.num_experts and scenario.experts_per_token > scenario.num_experts:
        raise InvalidInput(
            "experts_per_token", scenario.experts_per_token, f"at most the number of experts, {scenario.num_experts}"
        )


def _check_engine(scenario: DerivedInputs) -> None:
    """Raise where vLLM's configuration classes do (cache.py, scheduler.py)."""
    if get_engine(scenario.engine).family != "vllm":
        return
    context = scenario.max_model_len
    if scenario.block_size is not None and scenario.block_size not in VLLM_BLOCK_SIZES:
        sizes = ", ".join(str(size) for size in VLLM_BLOCK_SIZES)
        raise InvalidInput("block_size", scenario.block_size, f"one of {sizes}, the block sizes of vLLM")
    if scenario.long_prefill_token_threshold > context:
        raise InvalidInput(
            "long_prefill_token_threshold",
            scenario.long_prefill_token_threshold,
            f"at most the context length, {context:,} tokens",
        )
    budget = scenario.max_num_batched_tokens
    if scenario.chunked_prefill == "off" and budget is not None and budget < context:
        raise InvalidInput(
            "max_num_batched_tokens",
            budget,
            f"at least the context length ({context:,} tokens): without chunked prefill a prompt must fit in one step",
        )


def _check_draft(scenario: DerivedInputs) -> None:
    target, draft = scenario.model_shape, scenario.draft_shape
    assert draft is not None
    slack = LLAMACPP_VOCABULARY_SLACK if get_engine(scenario.engine).family == "llamacpp" else 0
    if abs(draft.vocab_size - target.vocab_size) > slack:
        raise InvalidInput(
            "draft_model",
            scenario.draft_model,
            f"a model with the vocabulary of {target.name} ({target.vocab_size:,} tokens; this one has "
            f"{draft.vocab_size:,}), or none",
        )


def check_names(scenario: DerivedInputs) -> None:
    """Raise on names that the catalogs do not have.

    Raises
    ------
    InvalidInput
        Names the field, the value and the closest names.
    """
    if scenario.engine not in engine_names():
        require_choice("engine", scenario.engine, engine_names())
    if scenario.engine_version:
        check_version("engine_version", scenario.engine_version)
    require_choice("weight_dtype", scenario.weight_dtype, weight_dtype_names())
    require_choice("kv_cache_dtype", scenario.kv_cache_dtype, kv_dtype_names())
    if scenario.lengths == "trace":
        require_choice("length_trace", scenario.length_trace, length_set_names())
    for stored in ("calibration_of", "printed_of"):
        check_fingerprint(stored, getattr(scenario, stored))
    check_load("calibration_load", scenario.calibration_load)
    for side in ("prompt_quantiles", "output_quantiles"):
        quantiles_of(side, getattr(scenario, side))
    if scenario.gpu != CUSTOM:
        get_gpu(scenario.gpu)
    own_gpus(scenario.my_gpus)
    if scenario.draft_model and find_model_id(scenario.draft_model) is None:
        raise InvalidInput("draft_model", scenario.draft_model, "a model of the catalog, or none")
    if scenario.model == CONFIG and not scenario.model_config.strip():
        raise InvalidInput("model_config", scenario.model_config, "the text of a Hugging Face config.json")
