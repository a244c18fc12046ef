"""What starts a plan with llama.cpp: `llama-server`, or Ollama around it."""

from __future__ import annotations

from planner.answer import Plan
from planner.deploy.launch import Launch, Options
from planner.deploy.settings import unmet_settings
from planner.deploy.weights import PLACEHOLDER, gguf_file, ollama_name

SERVER = "llama-server"
OLLAMA = "ollama serve"
OLLAMA_RELEASE = ".0"  # what the image's tag adds to a line of versions
TYPES_16 = {"bf16": "bf16", "fp16": "f16", "fp32": "f32"}
TOLD = (
    *("tensor_parallel_size", "pipeline_parallel_size", "kv_cache_dtype", "max_num_seqs", "max_num_batched_tokens"),
    *("enable_prefix_caching", "num_speculative_tokens", "kv_unified", "offline"),
)
#: llama.cpp allocates what it needs; it has no such share, and no CUDA graph or block size to set
WITHOUT_EFFECT = ("gpu_memory_utilization", "block_size", "chunked_prefill")
OLLAMA_TOLD = ("kv_cache_dtype", "max_num_seqs", "tensor_parallel_size", "pipeline_parallel_size", "offline")


def llamacpp_launch(plan: Plan) -> Launch:
    """How to start a plan with llama.cpp's server; Ollama where the plan is made for it.

    Parameters
    ----------
    plan : Plan
        With an engine of the llama.cpp family.

    Returns
    -------
    Launch
        Source: llama.cpp tools/server/README.md; Ollama envconfig/config.go.
    """
    return _ollama(plan) if plan.engine.name.startswith("ollama") else _llama_server(plan)


def _llama_server(plan: Plan) -> Launch:
    scenario, slots = plan.scenario, plan.memory.max_num_seqs
    options = Options(SERVER, "llama-server", plan.engine.version)
    repository, scheme, note = gguf_file(plan)
    if repository:
        options.add("-hf", f"{repository}:{scheme}")
    else:
        options.add("-m", f"{PLACEHOLDER}-{scheme}.gguf")
        note = note or f"The catalog knows no GGUF repository of this model: name your file in {scheme}."
    options.notes += [note] if note else []
    unified = plan.engine.kv_unified
    options.add("-c", scenario.max_model_len * (1 if unified else slots))
    if not unified or scenario.max_num_seqs is not None:
        options.add("-np", slots)
        if unified:
            options.add("--kv-unified")
    options.add("-ngl", "all")
    if scenario.max_num_batched_tokens is not None:
        options.add("-b", scenario.max_num_batched_tokens)
    if scenario.tensor_parallel_size > 1:
        options.add("-sm", "row")
    kind = scenario.kv_cache_dtype
    if kind != "auto":
        name = TYPES_16.get(kind, kind)
        if options.takes("-ctk", name):
            options.chosen += [("-fa", "on"), ("-ctk", name), ("-ctv", name)]
        else:
            options.unmet.append(f"KV cache = {kind}: llama.cpp has no cache of this type.")
    if not scenario.enable_prefix_caching:
        options.add("--no-cache-prompt")
    _speculation(plan, options)
    shared = "one context that all slots share" if unified else f"{slots} × the planned context, one for each slot"
    options.notes.append(f"-c is {shared}.")
    return Launch(
        engine="llamacpp",
        title="llama.cpp",
        version=plan.engine.version,
        program=("llama-server",),
        options=tuple(options.chosen),
        model=scenario.model,
        port=8080,
        image_runs=True,
        health_path="/health",
        in_container=(("--host", "0.0.0.0"), ("--metrics", None)),
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, (*TOLD, *WITHOUT_EFFECT), "llama.cpp")),
    )


def _speculation(plan: Plan, options: Options) -> None:
    scenario, tokens = plan.scenario, plan.scenario.num_speculative_tokens
    if not tokens:
        return
    if scenario.draft_model:
        options.add("-md", f"{scenario.draft_model.rpartition('/')[2]}.gguf")
        options.notes.append("-md is the draft model's GGUF file.")
        draft = scenario.draft_shape
        if draft is not None and draft.draft_vocab_size:
            options.add("--spec-type", "draft-eagle3")
    else:
        options.add("--spec-type", "draft-mtp" if plan.model.mtp_parameters else "ngram-simple")
    options.add("--spec-draft-n-max", tokens)


def _ollama(plan: Plan) -> Launch:
    scenario, memory = plan.scenario, plan.memory
    options = Options(OLLAMA, "Ollama", plan.engine.version)
    name, note = ollama_name(plan)
    options.notes += [note] if note else []
    env = [("OLLAMA_CONTEXT_LENGTH", str(scenario.max_model_len))]
    if memory.max_num_seqs > 1:
        env.append(("OLLAMA_NUM_PARALLEL", str(memory.max_num_seqs)))
    env.append(("OLLAMA_KEEP_ALIVE", "-1"))  # a plan's model stays loaded
    kind = scenario.kv_cache_dtype
    if kind in ("q8_0", "q4_0"):
        env += [("OLLAMA_FLASH_ATTENTION", "1"), ("OLLAMA_KV_CACHE_TYPE", kind)]
    elif kind not in ("auto", "fp16"):
        options.unmet.append(f"KV cache = {kind}: Ollama has f16, q8_0 and q4_0.")
    options.notes.append("Ollama spreads a model over all GPUs that it sees when one does not hold it.")
    version = plan.engine.version
    return Launch(
        engine="ollama",
        title="Ollama",
        version=version + OLLAMA_RELEASE if version.count(".") == 1 else version,
        program=("ollama", "serve"),
        env=tuple(env),
        after=(("ollama", "pull", name),),
        model=name,
        port=11_434,
        container_env=(("OLLAMA_HOST", "0.0.0.0:11434"),),
        image_runs=True,
        health_path="/api/version",
        notes=tuple(options.notes),
        unmet=(*options.unmet, *unmet_settings(plan, (*OLLAMA_TOLD, *WITHOUT_EFFECT), "Ollama")),
    )
