"""Kernels one by one: limits in closed form."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.step_time import kernels
from planner.step_time.kernels import Device

DEVICE = Device(bandwidth=1e12, peak=1e14, num_sms=100)


def test_gemm_limits():
    p = kernels.GemmParameters(fixed_us=0.0, bandwidth=0.5, activation=1e9, wave=0.0)
    one = kernels.gemm_parts(p, DEVICE, np.array([1.0]), np.array([4096.0]), np.array([4096.0]), 16).total[0]
    assert one == pytest.approx(4096 * 4096 * 2 / 0.5e12, rel=0.01)  # bytes over the reached bandwidth
    big = kernels.gemm_parts(p, DEVICE, np.array([8192.0]), np.array([8192.0]), np.array([8192.0]), 16).total[0]
    assert big == pytest.approx(2 * 8192**3 / (p.compute_8192 * 1e14), rel=0.01)  # FLOP over the reached peak


def test_distinct_experts():
    tokens = np.array([1.0, 8.0, 64.0, 1e6])
    # E (1 - (1 - k/E)^T): DeepSeek-V3 touches 8, 57, 222 of 256 experts with 1, 8, 64 tokens under even routing.
    even = kernels.distinct_experts(256, 8, tokens, evenness=1e9)
    assert even[:3] == pytest.approx([8, 57, 222], rel=0.01)
    skewed = kernels.distinct_experts(256, 8, tokens)
    assert skewed[0] == pytest.approx(8, rel=0.01)
    assert np.all(np.diff(skewed) > 0)
    assert np.all(skewed <= even + 1e-9)
    assert skewed[-1] <= 256


def test_fused_quantisation_reads_one_byte_of_each_activation():
    # An infinitely fast multiplier leaves the fixed time, the weights and the activations: 2 m n + r m k bytes.
    p = kernels.GemmParameters(fixed_us=0, activation=1, bandwidth=1, serial_ns=0)
    device = Device(bandwidth=1e12, peak=1e30, num_sms=100)
    m, n, k = np.array([1000.0]), np.array([4096.0]), np.array([8192.0])
    plain = kernels.gemm_parts(p, device, m, n, k, 8)
    fused = kernels.gemm_parts(p, device, m, n, k, 8, fused_quantisation=True)
    assert plain.activations == pytest.approx((2 * 1000 * 4096 + 4 * 1000 * 8192) / 1e12)
    assert fused.activations == pytest.approx((2 * 1000 * 4096 + 1000 * 8192) / 1e12)


def test_a_cache_without_shared_heads_is_read_by_another_kernel():
    p = kernels.DecodeAttentionParameters(floor_us=0, base_us=0, sequence_us=0, bandwidth=0.8, bandwidth_single=0.4)
    size = np.array([1e9, 1e9])
    seconds = kernels.decode_attention_s(p, DEVICE, np.array([1.0, 1.0]), size, np.array([True, False]))
    assert seconds == pytest.approx([1e9 / 0.8e12, 1e9 / 0.4e12])


def test_parts_sum_to_the_whole():
    parts = kernels.Parts(fixed=np.array([1.0]), weights=np.array([2.0]), compute=np.array([3.0]),
                          activations=np.array([4.0]))  # fmt: skip
    assert parts.total[0] == 10


@given(st.floats(1, 1e5), st.floats(64, 1e5), st.floats(64, 1e5))
def test_a_product_takes_at_least_its_bytes_and_its_arithmetic(m, n, k):
    p = kernels.GemmParameters()
    made = kernels.gemm_parts(p, DEVICE, *(np.array([x]) for x in (m, n, k)), 16)
    assert made.total[0] >= 2 * n * k / DEVICE.bandwidth
    assert made.total[0] >= 2 * m * n * k / DEVICE.peak


# Four experts, each token visits one: under popularities of a Gamma distribution of shape a, two tokens touch
# 4 × (1 − (1 + λ/a)^−a) of them with λ = 2 ln(4/3).
def test_experts_by_hand():
    p = kernels.ExpertParameters(fixed_us=0, expert_us=0, padding=0, bandwidth=1, activation=1e9, compute=1e9)
    sizes = {"hidden": 100.0, "intermediate": 50.0, "num_experts": 4, "top_k": 1, "bits": 16}
    touched = 4 * (1 - (1 + 2 * math.log(4 / 3) / kernels.ROUTING_EVENNESS) ** -kernels.ROUTING_EVENNESS)
    made = kernels.expert_parts(p, DEVICE, np.array([2.0]), **sizes)
    assert made.total[0] == pytest.approx(touched * 3 * 100 * 50 * 2 / 1e12, rel=1e-6)


# DeepGEMM computes whole tiles for every expert that a rank holds, also for those without a token: two tokens of four
# experts in rows of 128 are 2 + 4 × 127 rows, bound by arithmetic.
def test_aligned_experts_by_hand():
    p = kernels.ExpertParameters(fixed_us=0, expert_us=0, padding=0, bandwidth=1e9, activation=1e9, compute=1)
    sizes = {"hidden": 100.0, "intermediate": 50.0, "num_experts": 4, "top_k": 1, "bits": 8}
    made = kernels.expert_parts(p, DEVICE, np.array([2.0]), aligned_rows=128, **sizes)
    assert made.total[0] == pytest.approx((2 + 4 * 127) * 2 * 3 * 100 * 50 / DEVICE.peak, rel=1e-6)
    half = kernels.expert_parts(p, DEVICE, np.array([2.0]), aligned_rows=128, resident=0.5, **sizes)
    assert half.total[0] == pytest.approx((1 + 2 * 127) * 2 * 3 * 100 * 50 / DEVICE.peak, rel=1e-6)


# llama.cpp multiplies up to 8 tokens row by row: 8 tokens of one expert are 8 rows, 9 fill a tile of 9 + 24.
@pytest.mark.parametrize(("tokens", "rows"), [(8.0, 8), (9.0, 9 + 24)])
def test_experts_of_few_tokens_fill_no_tile_by_hand(tokens, rows):
    p = kernels.ExpertParameters(fixed_us=0, expert_us=0, padding=24, bandwidth=1e9, activation=1e9, compute=1)
    sizes = {"hidden": 100.0, "intermediate": 50.0, "num_experts": 1, "top_k": 1, "bits": 4}
    made = kernels.expert_parts(p, DEVICE, np.array([tokens]), vector_tokens=8, **sizes)
    assert made.total[0] == pytest.approx(rows * 2 * 3 * 100 * 50 / DEVICE.peak, rel=1e-6)


# Latent attention: bytes (512 + 64) × 2 a token, FLOP 2 × (2 × 512 + 64) a head and token.
@pytest.mark.parametrize(("heads", "seconds"), [(1.0, 576 * 2 / 1e12), (1000.0, 1000 * 2 * 1088 / 1e14)])
def test_latent_decode_is_bound_by_bytes_or_by_heads(heads, seconds):
    p = kernels.LatentDecodeParameters(floor_us=0, base_us=0, bandwidth=1, compute=1, activation=1e9)
    made = kernels.latent_decode_s(p, DEVICE, np.array([1.0]), np.array([1e6]), heads=np.array([heads]),
                                   latent=np.array([512.0]), rope=np.array([64.0]), element_bytes=2)  # fmt: skip
    assert made[0] == pytest.approx(1e6 * seconds, rel=1e-3)


# 1,000 pairs of 4 heads × 2 × 256 FLOP at half of 100 TFLOP/s, and 2 bytes of each element moved.
def test_prefill_by_hand():
    p = kernels.PrefillAttentionParameters(fixed_us=10, compute=0.5, activation=0.5, softmax=0)
    made = kernels.prefill_attention_s(p, DEVICE, *(np.array([x]) for x in (1000.0, 100.0, 64.0, 4 * 2 * 256.0)))
    assert made[0] == pytest.approx(10e-6 + 1000 * 2048 / 0.5e14 + 2 * 100 * 64 / 0.5e12)


def test_collectives_between_and_beyond_the_measured_sizes():
    sizes, seconds = np.array([1e3, 1e6]), np.array([1e-5, 1e-3])
    read = kernels.collective_s(sizes, seconds, np.array([1e3, 10**4.5, 1e6, 4e6, 1.0]))
    # halfway between on both logarithmic scales; beyond, at the rate of the last
    assert read == pytest.approx([1e-5, 1e-4, 1e-3, 4e-3, 1e-5])


def test_parameters_as_a_vector_keep_the_order_of_their_fields():
    assert list(kernels.vector(kernels.LatentPrefillParameters(fixed_us=1, compute=2, activation=3))) == [1, 2, 3]
