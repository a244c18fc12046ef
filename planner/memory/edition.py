"""Which edition of an engine: the arithmetic of memory changed with versions."""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import V1_DEFAULT as V1_DEFAULT
from planner.inputs import EngineSettings, release_of

# vLLM: first version with the behaviour
LATENT_CACHE = (0, 7)  # latent attention caches the latent; before, keys and values of every head
HYBRID_POOL = (0, 9)  # windows share a pool of block groups; before, every layer was kept in full
FREE_MEMORY_CHECK = (0, 9)  # refuses when other processes hold what it wants; before, theirs counted as its own
TRITON_EXPERTS = (0, 10, 2)  # 4-bit experts by Triton on Hopper: with PyTorch 2.8; before, by Marlin
AVAILABLE_MEMORY = (0, 12)  # on unified memory: what the system calls available, no longer what CUDA calls free
KV_OF_CHECKPOINT = (0, 14)  # kv_cache_dtype auto follows what the checkpoint asks for (#29980)
PIPELINE_CHECK_OF_WHOLE_MODEL = (0, 14)  # only there: compares the whole model's cache with one stage's memory
LEAN_SAMPLER = (0, 17)  # sampler of the profile run needs 15 instead of 38 bytes per logit
SYMMETRIC_MEMORY = (0, 18)  # larger communication buffers
SIZE_IN_LOG = (0, 20, 2)  # the log's KV size is concurrency × length (#40694)
GRAPHS_IN_BUDGET = (0, 21)  # CUDA-graph estimate is subtracted
IMAGE_IN_STEP = (0, 22)  # the default step holds the largest image where prompts are not cut in one (#43051)
UTILIZATION_092 = (0, 22)  # gpu_memory_utilization 0.9 -> 0.92
PACKED_POOL = (0, 23)  # DeepSeek-V4: a block holds no empty pages of layers that a group lacks (kv_cache_utils.py)
TWO_BATCHES_IN_FLIGHT = (0, 26)  # windows keep the tokens of every batch that async scheduling overlaps (#47728)
BLOCKS_PER_GROUP = (0, 27)  # concurrency counts whole blocks of each group; before, bytes over group 0's page (#48317)
STATE_PREFIXES = (0, 28)  # prefix caching of states by default: one more page per sequence (#50991)
LARGEST_BATCH = (0, 28)  # 16,384 tokens per step on devices of 160 GiB and more (#51726)
GRAPHS_TO_1024 = (0, 28)  # Blackwell captures batches up to 1,024 (#49390)
HOPPER_BY_NAME = (0, 8)  # up to here only devices named H100 or H200 took the large batch (#12369, #17073)


@dataclass(frozen=True, slots=True)
class Edition:
    """Family and version; `is_v0` marks vLLM's first engine.

    `caches_latent` is False where latent attention caches the keys and values of every head: vLLM before
    v0.7, Ollama (0.14 still did), llama.cpp when told so ("no MLA" in the version).
    """

    family: str
    number: tuple[int, int]
    is_v0: bool = False
    caches_latent: bool = True
    patch: int = 0

    @property
    def release(self) -> tuple[int, int, int]:
        """Number with its patch; none stated means the last one."""
        return (*self.number, self.patch)

    def since(self, number: tuple[int, int]) -> bool:
        """Whether the behaviour that came with `number` is there."""
        return self.number >= number


def edition_of(engine: EngineSettings) -> Edition:
    """Read the edition from the engine's settings; no version means the newest."""
    release = release_of(engine.version)
    return Edition(
        engine.family,
        (release.major, release.minor),
        engine.is_v0,
        engine.latent_cache and not (engine.family == "vllm" and release < LATENT_CACHE),
        release.patch,
    )
