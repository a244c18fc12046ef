"""Kernels one by one: limits in closed form."""

import numpy as np
import pytest

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
