"""Batch sizes captured as CUDA graphs, and the memory that they take."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.cuda_graphs import GraphTerms, captured_sizes, graph_terms
from planner.memory.defaults import resolve
from planner.units import GIB, MIB


# vLLM #49390: 1, 2, 4, 32 sizes to 256, 16 to 512 and, on data-centre Blackwell from v0.28 on, 32 more to 1,024
# (measured there on a B300). #26016: before v0.12 all by 8, 3 + 64. SGLang: 5 + 31 to 256, 15 below 512, and 512.
@pytest.mark.parametrize(
    ("gpu", "family", "version", "tp", "sizes", "largest"),
    [
        ("B200", "vllm", "0.28", 1, 83, 1024),
        ("B300", "vllm", "0.28", 1, 83, 1024),
        ("B200", "vllm", "0.27", 1, 51, 512),
        ("H200", "vllm", "0.28", 1, 51, 512),
        ("RTX 5090", "vllm", "0.28", 1, 51, 512),
        ("H200", "vllm", "0.11", 1, 67, 512),
        ("H100 SXM", "sglang", "0.5.6", 1, 36, 256),
        ("H100 SXM", "sglang", "0.5.6", 4, 52, 512),
        ("B200", "sglang", "", 1, 52, 512),
    ],
)
def test_captured_batch_sizes(gpu: str, family: str, version: str, tp: int, sizes: int, largest: int) -> None:
    engine, split, device = (
        EngineSettings(family=family, version=version),
        Parallelism(tensor_parallel_size=tp),
        get_gpu(gpu),
    )
    seqs = resolve(engine, device, split, 8192).max_num_seqs
    captured = captured_sizes(engine, device, split, seqs)
    assert (len(captured), captured[-1]) == (sizes, largest)
    assert captured_sizes(engine, device, split) == captured  # these defaults bound nothing


# vLLM: twice max_num_seqs, with drafted tokens from v0.13 on (#30330); V0 to the multiple of 8 that holds them.
# SGLang: none above max_running_requests, and that one itself.
@pytest.mark.parametrize(
    ("family", "version", "drafted", "seqs", "expected"),
    [
        ("vllm", "0.19", 0, 6, (1, 2, 4, 8)),
        ("vllm", "0.19", 2, 6, (1, 2, 4, 8, 16, 24, 32)),
        ("vllm", "0.12", 2, 6, (1, 2, 4, 8)),
        ("vllm", "0.7.3", 0, 20, (1, 2, 4, 8, 16, 24)),
        ("sglang", "0.5.6", 0, 20, (1, 2, 4, 8, 12, 16, 20)),
        ("sglang", "0.5.6", 1, 4, (2, 4, 6, 8)),
    ],
)
def test_captured_batch_sizes_of_few_sequences(
    family: str, version: str, drafted: int, seqs: int, expected: tuple[int, ...]
) -> None:
    engine = EngineSettings(family=family, version=version, num_speculative_tokens=drafted)
    assert captured_sizes(engine, get_gpu("H100 SXM"), Parallelism(), seqs) == expected


def test_the_pool_grows_with_the_number_of_sizes_and_the_base_does_not() -> None:
    def total(sizes: int) -> float:
        return GraphTerms(
            base=5.0, common=10.0, per_layer=2.0, num_layers=3, experts=4.0, sizes=sizes, sizes_to_512=50
        ).total

    assert total(0) == 5
    assert total(50) == 5 + 10 + 2 * 3 + 4
    assert total(100) == 5 + 2 * 20


# Hopper: 0.08 + 0.12 GiB and 20 MiB a layer; 24 GB: 0.53 GiB whatever the depth (logs of an RTX 4090 with 28 layers).
@pytest.mark.parametrize(
    ("gpu", "model", "by_hand"),
    [
        ("H100 SXM", "meta-llama/Llama-3.1-8B-Instruct", 0.2 * GIB + 32 * 20 * MIB),
        ("RTX 4090", "Qwen/Qwen3-8B", 0.53 * GIB),
        ("H100 SXM", "Qwen/Qwen3-30B-A3B", 0.2 * GIB + 48 * 20 * MIB + 0.4 * GIB),
    ],
)
def test_memory_of_all_sizes_to_512(gpu: str, model: str, by_hand: float) -> None:
    terms = terms_of(gpu, model, EngineSettings(version="0.19"))
    assert terms is not None
    assert terms.total == pytest.approx(by_hand)


@pytest.mark.parametrize(
    "engine",
    [
        EngineSettings(cuda_graphs=False),
        EngineSettings(family="llamacpp", name="llama.cpp"),
        EngineSettings(family="generic", name="generic"),
    ],
)
def test_engines_that_capture_none(engine: EngineSettings) -> None:
    assert terms_of("H100 SXM", "Qwen/Qwen3-8B", engine) is None


def terms_of(gpu: str, model: str, engine: EngineSettings) -> GraphTerms | None:
    shape, device, split = get_model(model), get_gpu(gpu), Parallelism()
    layers = tuple((layer, 1) for layer in shape.layers)
    return graph_terms(shape, layers, device, engine, split, resolve(engine, device, split, 8192))
