"""How far the KV pool of one command may lie from the plan, and what the plan says of a start in doubt."""

import math

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model, stored_entry
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.memory_plan import MemoryPlan
from planner.memory.pool_range import PoolRange
from planner.memory.sizing import plan_memory
from planner.model.config.build import model_from_config
from planner.units import GIB


def start(model: str, gpu: str, split: Parallelism | None = None, weights: str = "auto", kv: str = "auto",
          length: int = 8192, family: str = "vllm", **engine: object) -> MemoryPlan:  # fmt: skip
    settings = EngineSettings(name=family, family=family, **engine)  # type: ignore[arg-type]
    return plan_memory(get_model(model), get_gpu(gpu), settings, split or Parallelism(), max_model_len=length,
                       weight_dtype=weights, kv_cache_dtype=kv, explain=False)  # fmt: skip


# vLLM #45178: MiniMax-M2.5 NVFP4 on two B200, experts over two data-parallel ranks: 245,840 tokens, and 769,888 without
# the estimate of the graphs; a token takes 62 layers × 2 × 8 heads × 128 in fp8.
def test_experts_over_data_parallel_ranks() -> None:
    made = start("MiniMaxAI/MiniMax-M2.5", "B200", Parallelism(attention_data_parallel_size=2, expert_parallel=True),
                 "nvfp4", "fp8", 2304, version="0.22.0")  # fmt: skip
    token = 62 * 2 * 8 * 128
    assert made.kv_pool_low_bytes < 245_840 * token < 769_888 * token < made.kv_pool_high_bytes


# eugr/spark-vllm-docker #396: MiniMax-M2.7 AWQ on two DGX Spark, 0.29.1: 22.5 GiB at 0.8 (refused by 0.75 GiB) and
# 28.74 at 0.85; the estimate of the graphs is 0.042 of the memory.
@pytest.mark.parametrize(("share", "logged_gib"), [(0.8, 22.5), (0.85, 28.74)])
def test_a_start_on_shared_memory(share: float, logged_gib: float) -> None:
    made = start("MiniMaxAI/MiniMax-M2.7", "GB10", Parallelism(tensor_parallel_size=2), "awq_int4", length=196_608,
                 version="0.29.1", gpu_memory_utilization=share)  # fmt: skip
    assert made.kv_pool_low_bytes < logged_gib * GIB < made.kv_pool_high_bytes
    assert 3 * made.cuda_graph_bytes > (0.8 - 0.758) * 121.69 * GIB
    assert made.starts
    assert ("share memory" in made.doubt) == (share == 0.8)
    assert (made.doubt in made.notes) == bool(made.doubt)


# TensorRT-LLM 1.1 counts the page cache: gpt-oss-120b on a GB10 got 5.95 GiB of 119.7, with 49.3 GiB outside torch.
def test_the_page_cache_on_shared_memory() -> None:
    made = start("openai/gpt-oss-120b", "GB10", length=131_072, family="trtllm", version="1.1", max_num_seqs=64,
                 max_num_batched_tokens=8192)  # fmt: skip
    assert made.weights_bytes / GIB == pytest.approx(63.52, rel=0.005)
    assert made.non_torch_bytes / GIB == pytest.approx(49.3, rel=0.05)
    assert made.kv_pool_low_bytes < 5.95 * GIB < made.kv_pool_high_bytes


def needed(tokens: int) -> float:
    return tokens * 36 * 2 * 8 * 128 * 2  # Qwen3-8B in 16 bits


def test_doubt_names_the_cause_and_the_setting() -> None:
    def at(length: int, **engine: object) -> MemoryPlan:
        return start("Qwen/Qwen3-8B", "RTX 4090", length=length, **({"version": "0.33.0"} | engine))

    free = at(8192)
    assert not free.doubt
    assert free.kv_pool_low_bytes < free.kv_pool_bytes < free.kv_pool_high_bytes
    for short, cause in ((0.2, "--max-cudagraph-capture-size"), (0.8, "A first start, which compiles")):
        length = int((free.kv_pool_bytes - short * GIB) / needed(16)) * 16
        made = at(length)
        assert made.starts
        assert cause in made.doubt
    tight = at(int((free.kv_pool_bytes - 0.2 * GIB) / needed(16)) * 16)
    assert f"above {made_above(tight):,.1f} GiB" in tight.doubt
    refused = at(int((free.kv_pool_bytes + 0.2 * GIB) / needed(16)) * 16)
    assert not refused.starts
    assert "it may start" in refused.doubt
    assert not at(36_000, cuda_graphs=False, gpu_memory_utilization=0.97).doubt


def test_a_doubt_is_settled_by_the_longest_context_that_the_smallest_pool_holds() -> None:
    def at(length: int) -> MemoryPlan:
        return start("Qwen/Qwen3-8B", "RTX 4090", length=length, version="0.33.0")

    pool = at(8192).kv_pool_bytes
    for length in (int((pool - 0.2 * GIB) / needed(16)) * 16, int((pool + 0.2 * GIB) / needed(16)) * 16):
        made = at(length)
        assert made.settled_by is not None
        shorter = int(made.settled_by.changes["max_model_len"])  # type: ignore[call-overload]
        assert f"It starts in any case with max_model_len {shorter:,}." in made.doubt
        held = made.kv_pool_low_bytes / needed(1)
        assert held - 1024 - 16 < shorter <= held
        settled = at(shorter)
        assert settled.starts and not settled.doubt and settled.settled_by is None


def test_a_doubt_about_states_is_settled_by_fewer_sequences() -> None:
    def at(seqs: int) -> MemoryPlan:
        return start("Qwen/Qwen3.8-27B", "H200", length=8192, version="0.30.0", max_num_seqs=seqs)

    most = next(seqs for seqs in range(2048, 0, -8) if at(seqs).starts)  # a larger sampler leaves a smaller pool
    made = at(most)
    assert made.settled_by is not None
    fewer = int(made.settled_by.changes["max_num_seqs"])  # type: ignore[call-overload]
    assert fewer % 8 == 0 and fewer < most
    assert at(fewer).starts and not at(fewer).doubt


def test_an_unknown_architecture_widens_the_range_by_its_share_of_the_weights() -> None:
    def at(model_type: str) -> MemoryPlan:
        config = dict(stored_entry("Qwen/Qwen3-8B")["config"], model_type=model_type)
        config.pop("architectures", None)
        return plan_memory(
            model_from_config(config), get_gpu("H100 SXM"), EngineSettings(), Parallelism(), max_model_len=8192
        )

    known, unknown = at("llama"), at("tomorrows-llama")
    assert unknown.kv_pool_high_bytes - unknown.kv_pool_bytes == pytest.approx(
        known.kv_pool_high_bytes - known.kv_pool_bytes + 0.09 * known.weights_bytes
    )
    assert unknown.kv_pool_low_bytes < known.kv_pool_low_bytes
    assert (known.weights_error, unknown.weights_error) == (0.02, 0.09)
    assert any("tomorrows-llama is not known" in note for note in unknown.notes)


def made_above(made: MemoryPlan) -> float:
    return (made.cuda_graph_bytes + made.kv_pool_bytes - needed(made.max_model_len)) / GIB


# A second runner that reserves nothing and a start without graphs have no estimate to err in.
def test_no_graphs_no_spread_by_graphs() -> None:
    eager, graphs = (start("Qwen/Qwen3-8B", "H100 SXM", version="0.33.0", cuda_graphs=on) for on in (False, True))
    spread = [made.kv_pool_bytes - made.kv_pool_low_bytes for made in (eager, graphs)]
    assert spread[0] < spread[1]
    assert eager.kv_pool_error < graphs.kv_pool_error


@pytest.mark.parametrize(
    ("family", "settings"),
    [("llamacpp", {"max_num_seqs": 1}), ("sglang", {"max_total_tokens": 20_000})],
)
def test_a_pool_of_a_stated_size_has_no_range(family: str, settings: dict[str, object]) -> None:
    made = start("Qwen/Qwen3-8B", "H100 SXM", family=family, block_size=1, **settings)
    assert made.kv_pool_low_bytes == made.kv_pool_high_bytes == made.kv_pool_bytes


def test_causes_add_up_by_their_squares() -> None:
    spread = PoolRange(pool=10.0, smaller=(("a", 3.0), ("b", 4.0)), larger=1.0)
    assert (spread.low, spread.high) == (10 - math.hypot(3, 4), 11.0)


# gpu_model_runner.py `_dummy_sampler_run` after the capture, up to 1,024 rows of the vocabulary: with all of an H100
# budgeted, the profile run's activations (1.89 GiB) hold the graphs (0.83) or the sampler (1.83), not both.
def test_the_sampler_finds_no_room_after_the_graphs() -> None:
    llama = "meta-llama/Llama-3.1-8B-Instruct"
    made = start(llama, "H100 SXM", version="0.19.0", gpu_memory_utilization=1.0)
    assert made.outcome == "oom_at_sampler_warmup"
    assert "warming up sampler with 1024 dummy requests" in made.refusal
    for change in ({"gpu_memory_utilization": 0.95}, {"cuda_graphs": False}, {"version": "0.7.3", "use_v1": True}):
        assert start(llama, "H100 SXM", **({"version": "0.19.0", "gpu_memory_utilization": 1.0} | change)).starts
    # the second runner warms it before the capture, and 0.33 profiles that
    assert start(llama, "H100 SXM", version="0.33.0", gpu_memory_utilization=1.0).starts


# TensorRT-LLM serves with the length that its cache holds: "max_seq_len reduced to 86720" of 131,072 in a log of 1.1.
def test_tensorrt_llm_starts_with_a_shorter_context() -> None:
    made = start("meta-llama/Llama-3.1-8B-Instruct", "RTX 4090", length=131_072, family="trtllm", version="1.1")
    assert made.starts
    assert made.max_model_len == made.held_length_tokens < 131_072


def test_host_memory_holds_what_the_gpus_do_not() -> None:
    def offload(host_gib: float | None) -> MemoryPlan:
        return plan_memory(
            get_model("Qwen/Qwen3-8B"), get_gpu("H100 SXM"),
            EngineSettings(kv_offload_gib=64.0, host_memory_gib=host_gib), Parallelism(), max_model_len=8192,
        )  # fmt: skip

    assert offload(None).starts
    assert offload(64.0).starts
    short = offload(63.0)
    assert short.outcome == "oom_host_memory"
    assert "64.0 GiB" in short.refusal
    assert short.remedies == ("no KV offload",)


# 32 B parameters in 16 bits on a GPU of 23.7 GiB: llama.cpp leaves the rest to the CPU, if that has the memory.
def test_host_memory_of_llamacpp() -> None:
    settings = {"family": "llamacpp", "block_size": 1, "max_num_seqs": 1}
    free = start("Qwen/Qwen3-32B", "RTX 4090", **settings)
    rest = -free.free_bytes / GIB
    assert free.outcome == "started_partly_on_cpu"
    assert start("Qwen/Qwen3-32B", "RTX 4090", host_memory_gib=rest + 1, **settings).outcome == free.outcome
    assert start("Qwen/Qwen3-32B", "RTX 4090", host_memory_gib=rest - 1, **settings).outcome == "oom_host_memory"
