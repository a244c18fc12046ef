"""What SGLang takes of a GPU and how many requests it lets run, where both are left open."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.defaults import resolve
from planner.memory.edition import Edition
from planner.memory.memory_plan import MemoryPlan
from planner.memory.sglang_limits import sglang_limits, sglang_ranks, sglang_sequences, sglang_share
from planner.memory.sizing import plan_memory
from tests.memory.cases import LLAMA, plan


def test_sglang_reserves_a_fixed_fraction() -> None:
    made = plan(LLAMA, family="sglang", version="0.5.5", gpu=get_gpu("H100 SXM"))
    reserved_mb = 512 + 1.5 * 8192 + 1024 / 8 + 2 * 256  # base, prefill chunk, one rank of eight, graph batch
    assert made.gpu_memory_utilization == pytest.approx(1 - reserved_mb / 1024 / 79.65)
    assert made.kv_pool_bytes == pytest.approx(made.budget_bytes - made.weights_bytes)


def test_requests_that_states_let_run() -> None:
    def sglang(utilization: float, **engine: object) -> MemoryPlan:
        settings = EngineSettings(family="sglang", name="sglang", version="0.5.9", gpu_memory_utilization=utilization,
                                  **engine)  # type: ignore[arg-type]  # fmt: skip
        return plan_memory(get_model("Qwen/Qwen3.5-9B"), get_gpu("RTX 4090"), settings,
                           Parallelism(tensor_parallel_size=2), max_model_len=8192)  # fmt: skip

    made = sglang(0.8, max_num_seqs=200)
    assert made.max_num_seqs < 200
    assert made.starts
    assert any(f"enough for {made.max_num_seqs} requests at once" in note for note in made.notes)
    assert made.num_kv_blocks * made.block_bytes == pytest.approx(made.kv_pool_bytes, rel=1e-4)
    assert made.kv_tokens * made.kv_bytes_per_token == pytest.approx(made.kv_pool_bytes, rel=1e-4)
    assert made.budget_bytes == pytest.approx(made.weights_bytes + made.state_bytes + made.kv_pool_bytes)
    assert made.state_bytes == pytest.approx(0.9 * made.kv_pool_bytes, rel=0.01)
    assert sglang(0.8, num_speculative_tokens=3).max_num_seqs <= 48
    small = sglang(0.8, max_state_slots=2)
    assert small.outcome == "refused_state_cache"
    assert "too small to serve any requests" in small.refusal


# SGLang divides max_running_requests and max_mamba_cache_size by the attention ranks.
def test_states_of_attention_ranks() -> None:
    def ranks(number: int, **engine: object) -> MemoryPlan:
        settings = EngineSettings(family="sglang", name="sglang", version="0.5.9", **engine)  # type: ignore[arg-type]
        split = Parallelism(tensor_parallel_size=1, attention_data_parallel_size=number, expert_parallel=number > 1)
        return plan_memory(get_model("Qwen/Qwen3-Next-80B-A3B-Instruct"), get_gpu("B300"), settings, split,
                           max_model_len=8192, weight_dtype="fp8")  # fmt: skip

    assert ranks(4, num_speculative_tokens=3).max_num_seqs == 12
    assert ranks(1, num_speculative_tokens=3).max_num_seqs == 48
    assert ranks(4, max_state_slots=400, max_num_seqs=1000).max_num_seqs == 400 // 4 // 3


# server_args.py of SGLang: mem_fraction_static by tp_size (0.4.5), by device class (0.5.3), by purpose (0.5.4: 512 +
# 1.5 × 8,192 + 2 × 512 + 1,024 MiB of 81,560), 2 GiB more when drafting.
@pytest.mark.parametrize(
    ("version", "tp", "drafts", "share"),
    [
        ("0.4.5", 1, 0, 0.88), ("0.4.5", 8, 0, 0.81), ("0.4.5", 16, 0, 0.79), ("0.5.3", 8, 0, 1 - 13.5 / 79.65),
        ("0.5.3", 1, 0, 1 - 10 / 79.65), ("0.5.4", 8, 0, 1 - 14_848 / 81_560), ("", 8, 3, 1 - 16_896 / 81_560),
    ],
)  # fmt: skip
def test_sglang_takes_a_share_by_its_version(version: str, tp: int, drafts: int, share: float) -> None:
    engine = EngineSettings(family="sglang", version=version, num_speculative_tokens=drafts)
    resolved = resolve(engine, get_gpu("H100 SXM"), Parallelism(tensor_parallel_size=tp), 8192)
    assert resolved.gpu_memory_utilization == pytest.approx(share, abs=1e-4)


def test_sglang_leaves_room_for_a_tower() -> None:
    engine, gpu = EngineSettings(family="sglang", version="0.5.5"), get_gpu("H100 SXM")
    shares = [
        resolve(engine, gpu, Parallelism(), 8192, vision_parameters=size).gpu_memory_utilization
        for size in (0.0, 302e6, 604e6, 6e9)
    ]
    assert [share / shares[0] for share in shares] == pytest.approx([1.0, 0.95, 0.95 * 0.9, 0.95 * 0.8])


NEW = Edition("sglang", (0, 5), patch=9)


# server_args.py of 0.5.4 and later (#10975): prefill chunk and largest graph batch by device memory.
@pytest.mark.parametrize(
    ("gpu", "tp", "chunk", "batch"),
    [("T4", 1, 2048, 8), ("RTX 4090", 1, 2048, 24), ("RTX 4090", 4, 2048, 80), ("L40S", 1, 4096, 32),
     ("H100 SXM", 1, 8192, 256), ("H100 SXM", 8, 8192, 512), ("B200", 8, 16_384, 512)],
)  # fmt: skip
def test_chunk_and_graphs_by_device(gpu: str, tp: int, chunk: int, batch: int) -> None:
    split = Parallelism(tensor_parallel_size=tp)
    assert sglang_limits(NEW, get_gpu(gpu), split) == (chunk, batch)
    assert sglang_sequences(get_gpu(gpu), split) == 2 * batch


def test_attention_ranks_are_part_of_its_tensor_parallel_size() -> None:
    assert sglang_ranks(Parallelism(tensor_parallel_size=2, attention_data_parallel_size=4)) == 8


@pytest.mark.parametrize("patch", [1, 9])
@pytest.mark.parametrize("gpu", ["T4", "L4", "RTX 4090", "A100 SXM 80GB", "H200 SXM", "B200"])
def test_more_ranks_and_drafting_leave_less(gpu: str, patch: int) -> None:
    edition = Edition("sglang", (0, 5), patch=patch)
    shares = [sglang_share(edition, get_gpu(gpu), Parallelism(tensor_parallel_size=tp)) for tp in (1, 2, 4, 8)]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share < 1 for share in shares)
    assert sglang_share(edition, get_gpu(gpu), Parallelism(), drafts=True) <= shares[0]
