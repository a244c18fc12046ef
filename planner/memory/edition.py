"""How each version of an engine computes memory, and how engines treat special traits of models."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import V1_DEFAULT as V1_DEFAULT
from planner.inputs import EngineSettings, Gpu, release_of
from planner.model import ModelShape

# vLLM: the first version that does this
LATENT_CACHE = (0, 7)  # MLA caches the latent; before, keys and values of every head
#: Ollama: from here on it runs llama.cpp (b10488 in August 2026), which caches the latent alone (llama.cpp #19067)
OLLAMA_LATENT_CACHE = (0, 32)
HYBRID_POOL = (0, 9)  # windowed layers share a pool of block groups; before, they cached the whole sequence
FREE_MEMORY_CHECK = (0, 9)  # refuses when other processes hold what it wants; before, it counted theirs as its own
TRITON_EXPERTS = (0, 10, 2)  # 4-bit experts by Triton on Hopper: with PyTorch 2.8; before, by Marlin
LORA_ON_EXPERTS = (0, 11)  # adapters of experts take slots; before, experts had none
AVAILABLE_MEMORY = (0, 12)  # unified memory: reads what the system calls available, no longer what CUDA calls free
GRAPHS_BY_16 = (0, 12)  # above 256, CUDA graphs for every 16th batch size; before, for every 8th (#26016)
GRAPHS_OF_DRAFTS = (0, 13)  # drafted tokens count in the largest captured batch (#30330)
KV_OF_CHECKPOINT = (0, 14)  # kv_cache_dtype auto takes the type that the checkpoint asks for (#29980)
PIPELINE_CHECK_OF_WHOLE_MODEL = (0, 14)  # in this version alone: compares all stages' cache with one stage's memory
LEAN_SAMPLER = (0, 17)  # the profile run's sampler needs 15 instead of 38 bytes per logit
SYMMETRIC_MEMORY = (0, 18)  # larger communication buffers
SIZE_IN_LOG = (0, 20, 2)  # the log's KV size is concurrency × length (#40694)
#: subtracts an estimate of the CUDA graphs (vllm/envs.py of 0.20.0; its log wrongly says since v0.21)
GRAPHS_IN_BUDGET = (0, 20)
WHOLE_IMAGES = (0, 20)  # Gemma 4 joined the models whose images enter in one step; 0.19.1 lists Gemma 3 without it
IMAGE_IN_STEP = (0, 22)  # the default step holds the largest image where images may not be split (#43051)
UTILIZATION_092 = (0, 20)  # gpu_memory_utilization 0.9 -> 0.92 (vllm/config/cache.py of 0.20.0)
GRAPHS_ON_AMD = (0, 26)  # the estimate on AMD, which was skipped before
STATES_IN_GRAPHS = (0, 26)  # the graph estimate of hybrids holds their prefill workspace (#50780)
SECOND_RUNNER_BY_SHAPE = (0, 25)  # the second model runner (V2) takes all models without experts and states
SECOND_RUNNER_COPIES = (0, 26)  # until then its profile run copied the logits to fp32
SECOND_RUNNER_SAMPLES = (0, 33)  # its profile run samples with all parameters; before, it took the largest logit
SECOND_RUNNER_PROFILES = (0, 29)  # it takes all models, and estimates its CUDA graphs; before, it reserved none
# sparse latent attention; the releases between those read are assumed to do as the older one
SHARED_WORKSPACE = (0, 18)  # experts and sparse attention share one reserved buffer
FLASHINFER_SPARSE = (0, 19)  # data-centre Blackwell prefers FlashInfer for an fp8 cache (#35807)
INDEXER_LOGITS_PROFILED = (0, 19)  # the profile run allocates an indexer's scores
DECODE_LOGITS_RESERVED = (0, 23)  # AMD: reserves the scores of a decode step
WORKSTATION_SPARSE = (0, 26)  # kernels for workstation Blackwell
DECODE_LOGITS_BY_SEQUENCES = (0, 30)  # AMD: for as many rows as sequences, no longer for every token of a step
SMALLER_GATHER = (0, 32)  # gathers two contexts instead of five where they are longer than 262,144 tokens
PACKED_POOL = (0, 23)  # DeepSeek-V4: blocks no longer hold empty pages for layers that a group lacks
TWO_BATCHES_IN_FLIGHT = (0, 26)  # windowed layers keep the tokens of both batches of async scheduling (#47728)
BLOCKS_PER_GROUP = (0, 27)  # concurrency counts whole blocks of each group; before, bytes ÷ page of group 0 (#48317)
STATE_PREFIXES = (0, 28)  # caches states of prefixes by default: one more page per sequence (#50991)
LARGEST_BATCH = (0, 28)  # 16,384 tokens per step on devices of 160 GiB and more (#51726)
SMALL_GB10 = (0, 33)  # GB10 takes the limits of small devices (arg_utils.py get_batch_defaults)
GRAPHS_TO_1024 = (0, 28)  # Blackwell captures batches up to 1,024 (#49390)
SAMPLER_AT_END = (0, 8)  # warms the sampler once more after the capture (#14452)
HOPPER_BY_NAME = (0, 8)  # until then only devices named H100 or H200 took the large batch (#12369, #17073)

TRTLLM_2048_SEQUENCES = (0, 14)  # max_batch_size 256 since TensorRT-LLM 0.11, 2,048 since 0.14 (its release notes)

#: engines whose default leaves the n-gram tables of layers in host memory: vLLM (EngramConfig.cpu_offload), SGLang
#: (ple_offload_embedding, on CUDA), llama.cpp (a tensor of the input layer, read from the file row by row)
NGRAMS_OF_LAYERS_ON_HOST = ("vllm", "sglang", "llamacpp")
#: engines that divide experts only where attention's output is projected by groups of heads (DeepSeek-V4): a log of
#: SGLang on eight H200 holds 125.65 GiB, this makes 125.3; vLLM divides the query and output projections too
#: (models/deepseek_v4: ColumnParallelLinear, RowParallelLinear)
GROUPED_OUTPUT_DIVIDES_EXPERTS_ONLY = ("sglang",)


@dataclass(frozen=True, slots=True)
class Edition:
    """Family and version of an engine; `is_v0` marks vLLM's first engine.

    `caches_latent` is False where MLA caches the keys and values of every head: vLLM before v0.7, Ollama before 0.32,
    and any engine whose settings turn `latent_cache` off.
    """

    family: str
    number: tuple[int, int]
    is_v0: bool = False
    caches_latent: bool = True
    patch: int = 0

    @property
    def release(self) -> tuple[int, int, int]:
        """Version with its patch; without one, the last patch of the release."""
        return (*self.number, self.patch)

    def since(self, number: tuple[int, int]) -> bool:
        """Whether this version is `number` or later."""
        return self.number >= number


def runs_second_runner(edition: Edition, model: ModelShape, *, quantized: bool) -> bool:
    """Whether vLLM runs this model with its second model runner (V2) by default.

    Source: vllm/config/vllm.py `use_v2_model_runner` of 0.22.1, 0.23.0, 0.25.1, 0.26.0, 0.28.0, 0.29.0, 0.33.0.
    """
    if edition.family != "vllm" or edition.is_v0:
        return False
    if edition.since(SECOND_RUNNER_PROFILES):
        return True
    listed = model.second_runner_since is not None and edition.since(model.second_runner_since)
    if edition.since(SECOND_RUNNER_BY_SHAPE):
        return listed or not (model.is_moe or any(layer.mixer.is_state for layer in model.layer_kinds))
    return listed and (model.is_moe or not quantized)


def reserves_graphs(edition: Edition, model: ModelShape, gpu: Gpu, *, quantized: bool) -> bool:
    """Whether vLLM subtracts an estimate of its CUDA graphs from the budget.

    Not before 0.20, not on AMD before 0.26, and not with the second model runner before 0.29.
    """
    if edition.family != "vllm" or edition.is_v0 or not edition.since(GRAPHS_IN_BUDGET):
        return False
    if gpu.vendor.upper() == "AMD" and not edition.since(GRAPHS_ON_AMD):
        return False
    return edition.since(SECOND_RUNNER_PROFILES) or not runs_second_runner(edition, model, quantized=quantized)


def encoder_split(edition: Edition, model: ModelShape, engine: EngineSettings) -> str:
    """What tensor parallel ranks divide of a vision tower: its weights, its images, or nothing.

    Images only where the user asks for it and the engine's class for the model can; vLLM ignores the flag elsewhere.
    """
    split = dict(model.encoder_splits).get(edition.family, "weights")
    return "weights" if split == "images" and not engine.encoder_data_parallel else split


def edition_of(engine: EngineSettings) -> Edition:
    """Read the edition from the engine's settings; no version means the newest."""
    release = release_of(engine.version)
    every_head = engine.family == "vllm" and release < LATENT_CACHE
    every_head |= engine.name.startswith("ollama") and release < OLLAMA_LATENT_CACHE
    return Edition(
        engine.family,
        (release.major, release.minor),
        engine.is_v0,
        engine.latent_cache and not every_head,
        release.patch,
    )
