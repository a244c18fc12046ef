"""Attention of a deployment: bytes read and pairs computed by hand."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time.attention import ATTENTION_FIELDS, attention_fields
from planner.step_time.model import step_time_table
from planner.step_time.profile import device_of
from tests.step_time.cases import LLAMA, ONE, VLLM, replica, share


def test_served_attention_reads_no_faster_than_memory():
    # The A100 table of TensorRT-LLM shows 1.3 times the memory's bandwidth: what it read still lay in the cache.
    table = step_time_table(replica(get_model(LLAMA), get_gpu("A100 SXM 80GB"), EngineSettings(family="trtllm"), ONE))
    bytes_per_token = 32 * 2 * 8 * 128 * 2
    assert bytes_per_token / table.attention_per_kv_token_s <= 0.92 * 2039e9 * 1.001


def test_sparse_latent_attention_pads_its_heads():
    # GLM-5 holds 64 heads: eight a rank at TP 8, computed as 64, so that the width does not divide this cost
    model, gpu = get_model("zai-org/GLM-5"), get_gpu("H200 SXM")
    costs = [
        step_time_table(replica(model, gpu, EngineSettings(family="sglang"), Parallelism(tensor_parallel_size=tp)))
        for tp in (4, 8)
    ]
    assert costs[0].window_prefill_pair_s == pytest.approx(costs[1].window_prefill_pair_s)
    # 64 heads · 2 · (2 · 512 + 64) FLOP a pair and layer at 0.64 of 989.5 TFLOP/s (FlashMLA's README: 640 on H800)
    assert costs[1].window_prefill_pair_s == pytest.approx(
        model.num_layers * 64 * 2 * 1088 / (0.64 * 989.5e12), rel=0.01
    )


# On one of four GPUs 57 layers read one KV head of the 2,048 chosen tokens (512 bytes each) and every token's index key
# (128 × 2 bytes); the three dense layers read everything.
def test_sparse_layers_of_minimax_m3_read_what_their_indexer_chooses():
    wide = Parallelism(tensor_parallel_size=4)
    table = step_time_table(replica(get_model("MiniMaxAI/MiniMax-M3"), get_gpu("H200 SXM"), VLLM, wide))
    assert table.window_tokens == 2048
    read = table.attention_per_kv_token_s / table.window_per_kv_token_s
    assert read == pytest.approx((57 * 256 + 3 * 512) / (57 * 512))


# Llama 3.1 8B: 32 layers of 8 KV heads × 128 × (key, value); half the bytes in 8 bits, an eighth on one of eight GPUs.
def test_cache_read_per_token_by_hand():
    plain = attention_fields(share())
    reached = 32 * 2 * 8 * 128 * 2 / plain["attention_per_kv_token_s"] / 3.35e12
    assert 0.6 < reached <= 0.92  # of the data sheet's 3.35 TB/s
    assert attention_fields(share(tp=8))["attention_per_kv_token_s"] == pytest.approx(
        plain["attention_per_kv_token_s"] / 8
    )
    # Beyond the number of KV heads each rank reads a whole head.
    wide = [attention_fields(share(tp=tp))["attention_per_kv_token_s"] for tp in (8, 16)]
    assert wide[0] == pytest.approx(wide[1])


def test_a_model_without_windows_has_no_window_terms():
    found = attention_fields(share())
    assert set(found) == {*ATTENTION_FIELDS, "window_tokens"}
    assert found["window_tokens"] == 0
    assert found["window_per_kv_token_s"] == found["window_prefill_pair_s"] == found["window_floor_s"] == 0


# gpt-oss-20b: 12 full layers and 12 with windows of 128, of the same heads.
def test_half_the_layers_of_gpt_oss_slide():
    found = attention_fields(share("openai/gpt-oss-20b"))
    assert found["window_tokens"] == 128
    assert found["window_per_kv_token_s"] == pytest.approx(found["attention_per_kv_token_s"])
    assert found["window_prefill_pair_s"] == pytest.approx(found["prefill_pair_s"])


# The latent of DeepSeek-V3 is read whole on every rank, its heads are divided.
def test_latents_are_not_divided():
    one, eight = (attention_fields(share("deepseek-ai/DeepSeek-V3", "H200 SXM", tp=tp)) for tp in (1, 8))
    assert eight["prefill_pair_s"] == pytest.approx(one["prefill_pair_s"] / 8)
    assert eight["attention_per_kv_token_s"] > one["attention_per_kv_token_s"] / 8


def test_attention_ranks_share_the_sequences():
    moe = "Qwen/Qwen3-30B-A3B"
    one = attention_fields(share(moe))
    two = attention_fields(share(moe, split=Parallelism(attention_data_parallel_size=2, expert_parallel=True)))
    for name in ("attention_per_kv_token_s", "attention_per_sequence_s", "prefill_pair_s", "prefill_token_s"):
        assert two[name] == pytest.approx(one[name] / 2)
    assert two["attention_base_s"] == one["attention_base_s"]


def test_half_the_layers_take_half_the_fixed_time():
    whole, half = attention_fields(share()), attention_fields(share(split=Parallelism(pipeline_parallel_size=2)))
    for name in ("fixed", "attention_base_s", "attention_floor_s", "attention_per_sequence_s"):
        assert half[name] == pytest.approx(whole[name] / 2)


# 61 latents of 512 + 64 elements in 16 bits, read once for all heads; 2 × (2 × 512 + 64) FLOP a head and token.
@pytest.mark.parametrize("tp", [1, 8])
def test_latents_are_bound_by_bytes_or_by_heads(tp):
    replica = share("deepseek-ai/DeepSeek-V3", "H200 SXM", tp=tp)
    reached, _ = replica.profile.parameters("latent_decode", "bf16")
    device = device_of(replica.gpu)
    read = 576 * 2 / (reached.bandwidth * device.bandwidth)
    multiply = 128 / tp * 2 * 1088 / (reached.compute * device.peak)
    found = attention_fields(replica)
    assert found["attention_per_kv_token_s"] == pytest.approx(61 * max(read, multiply))
    assert found["window_per_kv_token_s"] == 0


# DeepSeek-V3.2: an fp8 key of 128 of every token, the latents of the 2,048 that it chooses for at least 64 heads
# (FlashMLA's README: 410 TFLOP/s of 989.5 on H800).
def test_sparse_latents_read_the_index_of_all_and_the_latents_of_few():
    replica = share("deepseek-ai/DeepSeek-V3.2", "H200 SXM", tp=8)
    reached, _ = replica.profile.parameters("latent_decode", "bf16")
    device = device_of(replica.gpu)
    found = attention_fields(replica)
    assert found["window_tokens"] == 2048
    assert found["attention_per_kv_token_s"] == pytest.approx(61 * 128 / (reached.bandwidth * device.bandwidth))
    read = 576 * 2 / (reached.bandwidth * device.bandwidth)
    multiply = 64 * 2 * 1088 / (0.41 * device.peak)
    assert found["window_per_kv_token_s"] == pytest.approx(61 * max(read, multiply), rel=0.02)


# Tables of latent attention hold the attention kernel and one of the products around it. A served layer of DeepSeek-R1
# runs two small kernels more (TensorRT-LLM tech_blog/blog1: the norms of both latents, rotation and cache): 61 × 6 µs.
def test_latents_are_normalised_and_rotated():
    served, kernels_alone = (
        attention_fields(share("deepseek-ai/DeepSeek-R1", "B200", tp=8, family="trtllm", kernels_only=alone))
        for alone in (False, True)
    )
    assert served["attention_base_s"] - kernels_alone["attention_base_s"] == pytest.approx(61 * 6e-6, rel=0.1)
