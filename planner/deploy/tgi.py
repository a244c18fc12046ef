"""The `text-generation-launcher` command of a plan."""

from __future__ import annotations

from planner.answer import Plan
from planner.deploy.launch import Launch, Options
from planner.deploy.settings import unmet_settings
from planner.deploy.weights import missing_checkpoint, planned_weights

COMMAND = "text-generation-launcher"
ONLINE = {"fp8": "fp8", "bnb_nf4": "bitsandbytes-nf4", "bnb_int8": "bitsandbytes"}  # --quantize while loading
KV_TYPES = {"fp8": "fp8_e4m3fn", "fp8_e4m3": "fp8_e4m3fn", "fp8_e5m2": "fp8_e5m2"}
IMAGE_RELEASES = {"3.3": "3.3.5"}  # the image's tag: TGI's own README
TOLD = (
    *("tensor_parallel_size", "kv_cache_dtype", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens"),
    *("num_speculative_tokens", "enforce_eager", "offline"),
)


def tgi_launch(plan: Plan) -> Launch:
    """How to start one replica of a plan with Text Generation Inference.

    Parameters
    ----------
    plan : Plan
        Its scenario says what the user set; everything else stays at TGI's defaults.

    Returns
    -------
    Launch
        Source: TGI docs/source/reference/launcher.md (catalog/engine_flags.csv).
    """
    scenario = plan.scenario
    version = IMAGE_RELEASES.get(plan.engine.version, plan.engine.version)
    options = Options(COMMAND, "TGI", version)
    weights = planned_weights(plan)
    options.notes += [weights.note] if weights.note else []
    options.add("--model-id", weights.id)
    if weights.dtype in ("float16", "bfloat16"):
        options.add("--dtype", weights.dtype)
    elif weights.dtype:
        options.unmet.append(f"Weights = {weights.dtype}: TGI runs in float16 or bfloat16.")
    if weights.convert in ONLINE:
        options.add("--quantize", ONLINE[weights.convert])
    elif weights.convert:
        options.unmet.append(missing_checkpoint(weights))
    options.add("--max-input-tokens", scenario.max_model_len - 1)
    options.add("--max-total-tokens", scenario.max_model_len)
    if scenario.tensor_parallel_size > 1:
        options.add("--num-shard", scenario.tensor_parallel_size)
    if scenario.gpu_memory_utilization is not None:
        options.add("--cuda-memory-fraction", scenario.gpu_memory_utilization)
    if scenario.max_num_seqs is not None:
        options.add("--max-batch-size", scenario.max_num_seqs)
    if scenario.max_num_batched_tokens is not None:
        options.add("--max-batch-prefill-tokens", scenario.max_num_batched_tokens)
    if scenario.enforce_eager:
        options.add("--cuda-graphs", 0)
    if scenario.num_speculative_tokens:
        options.add("--speculate", scenario.num_speculative_tokens)
    kind = scenario.kv_cache_dtype
    if kind in KV_TYPES:
        options.add("--kv-cache-dtype", KV_TYPES[kind])
    elif kind not in ("auto", "bf16", "fp16"):
        options.unmet.append(f"KV cache = {kind}: TGI has no cache of this type.")
    return Launch(
        engine="tgi",
        title="TGI",
        version=version,
        program=("text-generation-launcher",),
        options=tuple(options.chosen),
        model="tgi",
        port=3000,
        in_container=(("--port", "3000"),),  # the image sets PORT=80
        image_runs=True,
        health_path="/health",
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, TOLD, "TGI")),
    )
