"""Plans and layouts that several tests of the memory stage ask for."""

import dataclasses

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Gpu, Parallelism
from planner.memory.demand import Demand
from planner.memory.edition import Edition
from planner.memory.kv_groups import KvLayout
from planner.memory.kv_layout import build_layout, entry_bytes, side_state_bytes, state_bytes
from planner.memory.memory_plan import MemoryPlan
from planner.memory.runtime import visible_memory_bytes
from planner.memory.shards import pipeline_stages
from planner.memory.sizing import plan_memory
from planner.memory.verdict import Verdict, start_verdict
from planner.model.quantization import kv_bits
from planner.model.shape import MixerKind, ModelShape
from planner.units import GIB

LLAMA, LLAMA70 = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"
QWEN7, GEMMA27 = "Qwen/Qwen2.5-7B-Instruct", "google/gemma-3-27b-it"
QWEN27, QWEN35 = "Qwen/Qwen3.8-27B", "Qwen/Qwen3.6-35B-A3B"


def gpu_that_shows(gib: float, name: str = "H100 SXM") -> Gpu:
    """Make a GPU of which a program sees `gib`, as a log states it."""
    gpu = get_gpu(name)
    kept = gpu.memory_gib - visible_memory_bytes(gpu) / GIB
    return dataclasses.replace(gpu, memory_gib=gib + kept)


def sequence_bytes(model: ModelShape, tokens: float, *, kv: str = "auto", tp: int = 1) -> float:
    """Cache of one sequence on one GPU, not rounded to blocks, as an engine without rules of its own keeps it."""
    edition, bits, total = Edition("generic", (0, 30)), kv_bits(kv, "auto"), 0.0
    for layer, count in model.layer_counts():
        mixer = layer.mixer
        per_token, window = entry_bytes(mixer, tp, bits, edition, kv), mixer.window_tokens or 0
        if mixer.kind is not MixerKind.STATE:
            held = min(tokens, window) if window and mixer.kind in (MixerKind.SLIDING, MixerKind.CHUNKED) else tokens
            total += count * per_token * held
        elif window:  # cross-attention: the whole source, once
            total += count * per_token * window
        else:
            total += count * (state_bytes(mixer, tp) + side_state_bytes(mixer))
    return total


def plan(model: str, gpu: Gpu | None = None, *, length: int = 8192, tp: int = 1, pp: int = 1, dp: int = 1,
         ep: bool = False, dcp: int = 1, weights: str = "auto", kv: str = "auto", draft: str = "",
         occupied_gib: float = 0.0, **engine: object) -> MemoryPlan:  # fmt: skip
    """Size a model in vLLM 0.19 on an H100, unless told otherwise."""
    settings = EngineSettings(**({"version": "0.19.0"} | engine))  # type: ignore[arg-type]
    parallelism = Parallelism(
        tensor_parallel_size=tp, pipeline_parallel_size=pp, attention_data_parallel_size=dp, expert_parallel=ep,
        decode_context_parallel_size=dcp,
    )  # fmt: skip
    return plan_memory(
        get_model(model), gpu or gpu_that_shows(79.19), settings, parallelism, max_model_len=length,
        weight_dtype=weights, kv_cache_dtype=kv, draft_model=get_model(draft) if draft else None,
        occupied_bytes=occupied_gib * GIB,
    )  # fmt: skip


def llamacpp(model: str, gpu: str = "RTX 3090", **settings: object) -> MemoryPlan:
    """Size a model in llama.cpp with one slot."""
    base = {"family": "llamacpp", "name": "llama.cpp", "version": "", "block_size": 1, "max_num_seqs": 1}
    return plan(model, get_gpu(gpu), **(base | settings))  # type: ignore[arg-type]


def with_pool(model: str, pool_gib: float, length: int, kv: str, **engine: object) -> Verdict:
    """Judge an engine that has `pool_gib` left for its cache, as its log states."""
    settings = EngineSettings(**({"cache_state_prefixes": True} | engine))  # type: ignore[arg-type]
    verdict = start_verdict(
        Demand(model=get_model(model), gpu=get_gpu("H100 SXM"), engine=settings, parallelism=Parallelism(),
               max_model_len=length, kv_cache_dtype=kv),
        find_longest=False,
    )  # fmt: skip
    rank = dataclasses.replace(verdict.rank, pool_bytes=pool_gib * GIB)
    return dataclasses.replace(verdict, rank=rank, num_blocks=rank.num_blocks)


def layout_of(name: str, tp: int, family: str = "vllm", version: tuple[int, int] = (0, 30), dtype: str = "auto",
              block: int = 16) -> KvLayout:  # fmt: skip
    """Cut the cache of a model's first stage as this edition does."""
    stage = pipeline_stages(get_model(name), "auto", Parallelism(tensor_parallel_size=tp), False)[0]
    return build_layout(
        stage.layers, tensor_parallel_size=tp, context_parallel=1, kv_cache_dtype=dtype, fp32=False,
        edition=Edition(family, version), block_size=block, num_speculative_tokens=0,
    )  # fmt: skip
