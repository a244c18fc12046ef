"""Memory that a program sees, and the activation peak with its encoders."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand, limits_of
from planner.memory.runtime import activation_terms, encoder_bytes, profiled_images, visible_memory_bytes
from planner.memory.sizing import plan_memory
from planner.units import GIB
from tests.memory.cases import QWEN27, QWEN35


# The largest image of Qwen2.5-VL: 65,536 patches of 14 × 14 in two frames; width 1,280, gated columns of 3,420.
def test_encoder_peak_by_hand() -> None:
    tower = get_model("Qwen/Qwen2.5-VL-7B-Instruct").vision_tower
    assert tower is not None
    by_hand = 65_536 * (2 * (3 * 3420 + 3 * 1280) + 4 * 3 * 2 * 14 * 14)
    assert encoder_bytes(tower, 1) == by_hand
    assert encoder_bytes(tower, 2) == by_hand - 65_536 * 2 * 3 * 3420 / 2


# Two ranks that share out two images each run one, with a tower that is not divided.
def test_ranks_share_out_the_images_of_the_profile_run() -> None:
    model, engine = (
        get_model("Qwen/Qwen3-VL-8B-Instruct"),
        EngineSettings(version="0.20.2", max_num_batched_tokens=32_768),
    )
    demand = Demand(model=model, gpu=get_gpu("H100 SXM"), engine=engine, max_model_len=65_536,
                    parallelism=Parallelism(tensor_parallel_size=2))  # fmt: skip
    resolved, tower = limits_of(demand), model.vision_tower
    assert tower is not None
    assert profiled_images(model, resolved, 65_536) == 2
    layers = tuple(model.layer_counts())
    peaks = {
        split: activation_terms(
            model, layers, resolved, demand.parallelism, max_model_len=65_536, is_first=True, is_last=True,
            fp32=False, expert_scheme="bf16", encoder=split,
        ).encoder
        for split in ("weights", "images", "nothing")
    }  # fmt: skip
    assert peaks["images"] - peaks["weights"] == encoder_bytes(tower, 1) - 2 * encoder_bytes(tower, 2)
    assert peaks["nothing"] - peaks["images"] == encoder_bytes(tower, 1)


# Qwen3-VL-30B (hidden size 2,048): three features of inner blocks beside the largest image's 16,384 tokens, and a
# buffer for those of a step. A log of vLLM 0.20.2 on RTX PRO 6000 leaves 33.59 GiB for the cache.
def test_deep_features_of_qwen3_vl() -> None:
    model, gpu = get_model("Qwen/Qwen3-VL-30B-A3B-Instruct"), get_gpu("RTX PRO 6000 Blackwell Workstation")
    engine = EngineSettings(version="0.20.2", max_num_seqs=4, gpu_memory_utilization=0.7)
    demand = Demand(model=model, gpu=gpu, engine=engine, max_model_len=32_768, parallelism=Parallelism())
    resolved, tower = limits_of(demand), model.vision_tower
    assert tower is not None
    terms = activation_terms(
        model, tuple(model.layer_counts()), resolved, demand.parallelism, max_model_len=32_768, is_first=True,
        is_last=True, fp32=False, expert_scheme="bf16",
    )  # fmt: skip
    assert terms.encoder == encoder_bytes(tower, 1) + 2 * 2048 * 3 * (16_384 + resolved.max_num_batched_tokens)
    assert terms.kept - terms.experts == 2 * 2048 * (4 * 16_384 + (3 + 1) * resolved.max_num_batched_tokens)
    made = plan_memory(model, gpu, engine, Parallelism(), max_model_len=32_768, weight_dtype="fp8")
    assert made.kv_pool_bytes / GIB == pytest.approx(33.59, rel=0.005)


# Activations of vLLM's profile run with Qwen3.5-class towers: 2.17 to 2.22 GiB on one GPU, 1.59 on each of two.
@pytest.mark.parametrize(("tp", "low", "high"), [(1, 2.17, 2.22), (2, 1.59, 1.59)])
def test_encoder_sets_the_activation_peak(tp: int, low: float, high: float) -> None:
    made = plan_memory(get_model(QWEN27), get_gpu("RTX 5090"),
                       EngineSettings(version="0.26.1", max_num_batched_tokens=2048, max_num_seqs=1),
                       Parallelism(tensor_parallel_size=tp), max_model_len=4096, weight_dtype="nvfp4")  # fmt: skip
    assert low * 0.88 < made.activation_bytes / GIB < high * 1.12


# DGX Spark: nvidia-smi names no memory; free -h and torch say 121.69 GiB, none of it kept by a driver.
def test_memory_shared_with_the_cpu() -> None:
    spark = get_gpu("GB10")
    assert spark.unified_memory
    assert visible_memory_bytes(spark) == 121.69 * GIB
    older, newer = (
        plan_memory(get_model(QWEN35), spark, EngineSettings(version=version), Parallelism(), max_model_len=8192)
        for version in ("0.11.2", "0.12.0")
    )
    assert newer.non_torch_bytes - older.non_torch_bytes == pytest.approx(6 * GIB)


# V0 profiles a video as long as the context lets it be: 32,768 tokens hold an image and one pair of frames, 128,000
# seven pairs (vLLM pull 12604: "'image': 16384, 'video': 114688"); a log of vLLM 0.7.4: activations of 4.06 GiB at
# 32,768, and at 128,000 they left room for 3,040 tokens on 32 GB.
def test_video_of_the_first_engine() -> None:
    model, engine = get_model("Qwen/Qwen2.5-VL-3B-Instruct"), EngineSettings(version="0.7.4")
    short, long = (
        plan_memory(model, get_gpu("RTX 5090"), engine, Parallelism(), max_model_len=length)
        for length in (32_768, 128_000)
    )
    assert short.activation_bytes / GIB == pytest.approx(4.06, rel=0.06)
    assert short.starts
    assert not long.starts


# What vLLM's logs say of the profile run: "budget of 98304 tokens, 1 video items" at 128,000 in v0.8.1 and v0.8.5,
# 114,688 in v0.23.0; "16384 tokens, 1 image items" at 2,048 in v0.9.0; 2 and 4 images in steps of 32,768 and 65,536.
@pytest.mark.parametrize(
    ("model", "version", "length", "step", "images"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.8.1", 128_000, 2048, 98_304 // 16_384),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.23.0", 128_000, 2048, 114_688 // 16_384),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.9.0", 2048, 2048, 1),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.7.1", 128_000, 128_000, (16_384 + 114_688) // 16_384),
        ("Qwen/Qwen3.6-35B-A3B", "0.19.2", 262_144, 4096, 1),
        ("Qwen/Qwen3.6-35B-A3B", "0.19.2", 32_768, 32_768, 2),
        ("Qwen/Qwen3.6-27B", "0.23.1", 262_144, 65_536, 4),
    ],
)
def test_images_of_the_profile_run(model: str, version: str, length: int, step: int, images: int) -> None:
    engine = EngineSettings(version=version, max_num_batched_tokens=step, max_num_seqs=256)
    demand = Demand(model=get_model(model), gpu=get_gpu("H100 SXM"), engine=engine, max_model_len=length,
                    parallelism=Parallelism())  # fmt: skip
    assert profiled_images(demand.model, limits_of(demand), length) == images


# Qwen2.5-VL-7B: v0.9.0 on an L4 (22.04 GiB) at 2,048 tokens had 1.81 GiB for the cache; v0.23.0 on 79.25 GiB at a share
# of 0.22 and its default of 128,000 lacked 14.28 GiB.
@pytest.mark.parametrize(
    ("gpu", "version", "share", "length", "gib", "scatter_gib"),
    [("L4", "0.9.0", 0.9, 2048, 1.81, 0.3), ("A100 SXM 80GB", "0.23.0", 0.22, 128_000, -14.28, 0.05 * 15)],
)
def test_what_the_encoder_leaves(
    gpu: str, version: str, share: float, length: int, gib: float, scatter_gib: float
) -> None:
    model = get_model("Qwen/Qwen2.5-VL-7B-Instruct")
    engine = EngineSettings(version=version, gpu_memory_utilization=share)
    made = plan_memory(model, get_gpu(gpu), engine, Parallelism(), max_model_len=length)
    assert made.kv_pool_bytes / GIB == pytest.approx(gib, abs=scatter_gib)  # 5 % of seven pairs of frames


# Gemma 4 (26B) on 32 GB with steps of 16,384: "profiled with 6 video items"; logs of v0.19.2 and v0.20.2 leave 4.0 and
# 4.3 GiB for activations and buffers. The tower is not divided by tensor parallelism.
def test_videos_of_gemma4() -> None:
    model = get_model("google/gemma-4-26B-A4B-it")
    assert model.vision_tower is not None
    assert dict(model.encoder_splits)["vllm"] == "nothing"
    assert encoder_bytes(model.vision_tower, 1) == 32 * 70 * 9 * (2 * (3 * 4304 + 3 * 1152) + 4 * 3 * 16 * 16)
    engine = EngineSettings(version="0.20.2", max_num_batched_tokens=16_384, max_num_seqs=2)
    demand = Demand(model=model, gpu=get_gpu("RTX 5090"), engine=engine, max_model_len=256_000,
                    parallelism=Parallelism(), weight_dtype="nvfp4")  # fmt: skip
    assert profiled_images(model, limits_of(demand), 256_000) == 6
    made = plan_memory(model, demand.gpu, engine, Parallelism(), max_model_len=256_000, weight_dtype="nvfp4")
    assert 4.0 * 0.95 < (made.activation_bytes + made.non_torch_bytes) / GIB < 4.3 * 1.05
