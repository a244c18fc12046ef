"""CUDA graphs: the batch sizes for which an engine captures one, and the memory that they take.

Step times take the same sizes from here, since a decode batch is padded to the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.inputs import EngineSettings, Gpu, Parallelism
from planner.memory.defaults import Resolved, is_large
from planner.memory.edition import (
    GRAPHS_BY_16,
    GRAPHS_OF_DRAFTS,
    GRAPHS_TO_1024,
    SECOND_RUNNER_PROFILES,
    STATES_IN_GRAPHS,
    Edition,
    edition_of,
)
from planner.memory.expert_padding import is_data_centre_blackwell
from planner.memory.log_constants import constant
from planner.memory.sglang_limits import sglang_limits
from planner.model import Layer, MixerKind, ModelShape

LARGEST = 512
LARGEST_BLACKWELL = 1024  # data-centre Blackwell, vLLM from v0.28 on
STATE_CHUNK_TOKENS = 64  # chunked delta rule: one state per chunk
WORKSPACE_VALUES = 5  # 16-bit tensors as wide as the values: gate, w, u, corrected values, output


@lru_cache(maxsize=1024)
def captured_sizes(
    engine: EngineSettings, gpu: Gpu, parallelism: Parallelism, max_num_seqs: int | None = None
) -> tuple[int, ...]:
    """Batch sizes for which the engine captures a CUDA graph, ascending; a decode batch is padded to the next one.

    Parameters
    ----------
    engine : EngineSettings
        Family and version; speculation multiplies the tokens of a batch. None are captured without `cuda_graphs`.
    gpu : Gpu
        SGLang's largest size follows its memory, vLLM's its architecture.
    parallelism : Parallelism
        SGLang captures larger batches from four GPUs on.
    max_num_seqs : int, optional
        vLLM captures no batch above twice this, SGLang none above it; None = no bound, for callers whose batches it
        bounds anyway.

    Returns
    -------
    tuple of int
        Tokens. Sources: vLLM config/vllm.py `_set_cudagraph_sizes` (V0 and before v0.12 in steps of 8 throughout);
        SGLang server_args.py `_generate_cuda_graph_batch_sizes` and cuda_graph_runner.py `get_batch_sizes_to_capture`.
        Other engines are assumed to capture as vLLM does.
    """
    if not engine.cuda_graphs:
        return ()
    edition = edition_of(engine)
    return _sizes_to(_largest(edition, engine, gpu, parallelism, max_num_seqs), edition, engine.num_speculative_tokens)


def _largest(
    edition: Edition, engine: EngineSettings, gpu: Gpu, parallelism: Parallelism, max_num_seqs: int | None
) -> int:
    """Largest captured batch: sequences in SGLang, tokens elsewhere."""
    told = engine.max_cudagraph_capture_size
    if edition.family == "sglang":
        limit = told or sglang_limits(edition, gpu, parallelism)[1]
        return limit if max_num_seqs is None else min(limit, max_num_seqs)
    vllm = edition.family == "vllm"
    if vllm and edition.is_v0:  # the first multiple of 8 that holds max_num_seqs
        return LARGEST if max_num_seqs is None else -(-max_num_seqs // 8) * 8
    larger = vllm and edition.since(GRAPHS_TO_1024) and is_data_centre_blackwell(gpu)
    largest = LARGEST_BLACKWELL if larger else LARGEST
    if told is not None or max_num_seqs is None:
        return told or largest
    drafted = engine.num_speculative_tokens if vllm and edition.since(GRAPHS_OF_DRAFTS) else 0
    return min(largest, 2 * max_num_seqs * (1 + drafted))


def _sizes_to(largest: int, edition: Edition, drafted: int) -> tuple[int, ...]:
    """Captured batch sizes up to the largest one. [tokens]"""
    if edition.family == "sglang":  # counts sequences, each of which brings its drafted tokens
        if drafted:
            narrow = (*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8))
            sizes = (*narrow, *range(272, largest + 1, 16))
        else:
            sizes = (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, largest + 1, 32))
        return tuple(size * (1 + drafted) for size in sorted({largest, *sizes}) if size <= largest)
    step = 8 if edition.family == "vllm" and not edition.since(GRAPHS_BY_16) else 16
    return tuple(size for size in (1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, step)) if size <= largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTerms:
    """CUDA graphs of one GPU: a base, and a pool in proportion to the captured sizes. [bytes].

    `transient` is the prefill workspace of recurrent layers, which the estimate of vLLM 0.26 to 0.28 takes for graphs.
    """

    base: float
    common: float
    per_layer: float
    num_layers: int
    experts: float
    sizes: int
    sizes_to_512: int  # of the same steps
    transient: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        pool = self.common + self.per_layer * self.num_layers + self.experts
        return max(self.base + pool * self.sizes / self.sizes_to_512, self.transient)


def graph_terms(
    model: ModelShape,
    layers: tuple[tuple[Layer, int], ...],
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    resolved: Resolved,
) -> GraphTerms | None:
    """Pool of the captured CUDA graphs on one GPU, estimated as the engine does; None where none are captured.

    All but a base grows with the number of sizes. Finer steps to the same largest size cost no more: a log of v0.11
    (H100, 67 sizes) holds 1.03 GiB, this makes 1.30. Constants: catalog/memory_constants.csv.
    """
    if not engine.cuda_graphs or resolved.edition.family in ("llamacpp", "generic"):
        return None
    wide = is_large(gpu)
    return GraphTerms(
        base=constant("graphs_base"),
        common=constant("graphs_common" if wide else "graphs_small_gpu"),
        per_layer=constant("graphs_layer") if wide else 0.0,
        num_layers=sum(count for layer, count in layers if layer.mixer.kind is not MixerKind.NONE),
        experts=constant("graphs_experts") if model.is_moe else 0.0,
        sizes=len(captured_sizes(engine, gpu, parallelism, resolved.max_num_seqs)),
        sizes_to_512=len(_sizes_to(LARGEST, resolved.edition, engine.num_speculative_tokens)),
        transient=_state_workspace(layers, resolved, parallelism),
    )


def _state_workspace(layers: tuple[tuple[Layer, int], ...], resolved: Resolved, parallelism: Parallelism) -> float:
    """Prefill workspace of one recurrent layer over max_num_batched_tokens tokens on one GPU. [bytes]

    Per token in 16 bits: the convolution's channels, five tensors as wide as the values, and a 64th of the state. A
    published pair of starts (RTX 5090, 64 layers) holds 0.52 GiB of graphs at 2,048 to 4,096 tokens and 0.89 at 8,192;
    this makes 0.53 and 0.81.
    """
    edition = resolved.edition
    if edition.family != "vllm" or not edition.since(STATES_IN_GRAPHS) or edition.since(SECOND_RUNNER_PROFILES):
        return 0.0
    mixers = [layer.mixer for layer, _ in layers if layer.mixer.is_state]
    elements = max(
        (
            x.conv_elements / 3
            + WORKSPACE_VALUES * x.num_heads * x.value_head_dim
            + x.state_elements / STATE_CHUNK_TOKENS
            for x in mixers
        ),
        default=0.0,
    )
    return 2.0 * resolved.max_num_batched_tokens * elements / parallelism.tensor_parallel_size
