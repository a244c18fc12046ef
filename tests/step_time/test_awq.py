"""AWQ's own kernels: which releases and settings run them, and their limits in closed form."""

import numpy as np
import pytest

from planner.step_time.awq import awq_parts
from planner.step_time.kernels import Device, GemmParameters
from tests.step_time.cases import share

#: nothing but the weights' bytes and the tiles' FLOP takes time
BARE = GemmParameters(fixed_us=0, bandwidth=1, serial_ns=0, activation=1e12, wave=0)
L4 = Device(bandwidth=300e9, peak=121e12, num_sms=58)


def seconds(tokens, family, device=L4, n=4096.0, k=4096.0):
    m = np.atleast_1d(np.array(tokens, dtype=float))
    return awq_parts(BARE, BARE, device, m, np.array(n), np.array(k), 4.156, family).total


@pytest.mark.parametrize(
    ("weights", "engine", "plain"),
    [
        ("awq_int4", {"plain_awq": True, "version": "0.23.0"}, True),
        ("awq_int4", {"plain_awq": True, "version": "0.26.0"}, False),  # auto_awq.py: the flag is no other choice
        ("awq_int4", {"family": "sglang", "plain_awq": True}, True),
        ("awq_int4", {"version": "0.5.2"}, True),  # vllm-project/vllm#6612 is in 0.5.3
        ("awq_int4", {"version": "0.5.3"}, False),
        ("awq_int4", {"family": "sglang", "version": "0.4.6"}, False),
        ("gptq_int4", {"plain_awq": True, "version": "0.19.0"}, False),
        ("bf16", {"plain_awq": True, "version": "0.19.0"}, False),
        ("awq_int4", {"family": "trtllm", "plain_awq": True}, False),
    ],
)
def test_who_runs_them(weights, engine, plain):
    assert share(weights=weights, **engine).runs_plain_awq is plain


# Marlin asks for compute capability 8.0; vLLM's for 7.5 since pull/29901. T4 has 7.5, A10 8.6.
@pytest.mark.parametrize(
    ("gpu", "engine", "plain"),
    [
        ("T4", {"version": "0.11.0"}, True),
        ("T4", {"version": "0.18.0"}, False),
        ("T4", {"family": "sglang", "version": "0.5.9"}, True),
        ("A10", {"version": "0.11.0"}, False),
        ("MI300X", {"version": "0.5.2"}, False),
    ],
)
def test_turing_has_no_other_until_marlin_runs_there(gpu, engine, plain):
    assert share(gpu=gpu, weights="awq_int4", **engine).runs_plain_awq is plain


def test_sglang_reads_4_bits_writes_16_and_reads_them_again():
    # Bytes of a weight: 4.156/8 + 2 at the rate of small kernels, 0.8 of 300 GB/s, and 2 at the full rate.
    size = 4096 * 4096
    assert seconds(1, "sglang")[0] == pytest.approx(size * ((4.156 / 8 + 2) / 240e9 + 2 / 300e9) + 3e-6, rel=0.01)


# github.com/sgl-project/sglang/pull/4104: 18,944 × 37,888 weights in 3,465 µs with vLLM and 897 with SGLang.
def test_vllm_writes_16_bits_slower_from_256_tokens_on():
    far = Device(bandwidth=300e9, peak=1e30, num_sms=58)  # products take no time beside their weights
    size, product = 4096 * 4096, 4096 * 4096 * 2 / 300e9
    write = size * (4.156 / 8 + 2) / 240e9
    assert seconds(256, "vllm", far)[0] - product - 3e-6 == pytest.approx(write * 3465 / 897, rel=0.01)
    assert seconds(256, "sglang", far)[0] - product - 3e-6 == pytest.approx(write, rel=0.01)
    # below, nothing is written out: the packed weights, and 8 partial products of 255 x 4,096 in 16 bits there and back
    fused = size * 4.156 / 8 / 300e9 + 2 * 8 * 2 * 255 * 4096 / 240e9
    assert seconds(255, "vllm", far)[0] - 3e-6 == pytest.approx(fused, rel=0.01)


def test_awq_gemm_multiplies_whole_tiles_of_16_tokens():
    slow = Device(bandwidth=1e30, peak=121e12, num_sms=58)
    one, also_one, two, four = seconds([1, 16, 17, 64], "vllm", slow) - 3e-6
    assert one == pytest.approx(2 * 16 * 4096 * 4096 / (0.177 * 121e12), rel=0.01)
    assert also_one == pytest.approx(one, rel=0.01)
    assert [two / one, four / one] == pytest.approx([2, 4], rel=0.01)


# Mistral-7B on A100 with vLLM's kernel at every number of tokens: 100 prompts of 1,024 tokens with 64 of output take
# 100 / 3.28 s (github.com/vllm-project/vllm/pull/2566, "Main"). Its 32 layers have four products.
def test_awq_gemm_against_the_published_rate():
    a100 = Device(bandwidth=2.04e12, peak=312e12, num_sms=108)
    n, k = np.array([6144.0, 4096.0, 28_672.0, 4096.0]), np.array([4096.0, 4096.0, 4096.0, 14_336.0])
    tile = 32 * (seconds(16, "vllm", a100, n, k) - 3e-6).sum()
    assert tile * 100 * (1024 + 64) / 16 == pytest.approx(100 / 3.28, rel=0.02)
