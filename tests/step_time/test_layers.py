"""Matrices, experts and collectives of a layer."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.model.shape import MixerKind
from planner.step_time.layers import (
    TOKEN_TERMS,
    collectives_s,
    expert_parts,
    head_s,
    linear_parts,
    norm_exchange_s,
    shared_expert_parts,
    state_s,
    token_terms_s,
)
from planner.step_time.model import explain_step
from tests.step_time.cases import LLAMA, ONE, VLLM, decode, replica, share


def test_tensor_parallelism_divides_weights_and_adds_collectives():
    where = (get_model(LLAMA), get_gpu("H100 SXM"), VLLM)
    alone = explain_step(replica(*where, ONE), decode(1, 16))
    four = explain_step(replica(*where, Parallelism(tensor_parallel_size=4)), decode(1, 16))
    assert alone["collectives"] == 0
    assert four["collectives"] > 0
    assert four["weights_read"] == pytest.approx(alone["weights_read"] / 4, rel=0.02)


TOKENS = np.array([1.0, 64.0])


def test_all_terms_are_there_and_none_is_negative():
    terms = token_terms_s(share("openai/gpt-oss-20b", tp=2), TOKENS, prompt=False)
    assert set(terms) == set(TOKEN_TERMS)
    assert all(np.all(value >= 0) for value in terms.values())


# One token reads each matrix of a layer once: q and o 4,096², k and v 4,096 × 1,024, three of 4,096 × 14,336.
def test_one_token_reads_the_matrices_of_a_layer():
    replica = share()
    (layer, _), *_ = replica.layers
    read = sum(part.weights.sum(axis=0)[0] for part in linear_parts(replica, layer, np.array([1.0])))
    size = 2 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14_336)
    assert 0.5 < size / 3.35e12 / read < 1


# AITER on MI355X multiplies MXFP4 by MXFP4, at four times the rate of 16 bits; elsewhere the weights are unpacked and
# multiplied in 16 bits, as INT4 weights are.
@pytest.mark.parametrize(("gpu", "in_four_bits"), [("MI355X", True), ("MI300X", False), ("H100 SXM", False)])
def test_matrices_in_mxfp4(gpu, in_four_bits):
    def compute_s(weights):
        replica = share(gpu=gpu, weights=weights)
        (layer, _), *_ = replica.layers
        return sum(part.compute.sum(axis=0)[0] for part in linear_parts(replica, layer, np.array([8192.0])))

    ratio = compute_s("mxfp4") / compute_s("int4_g128")
    assert ratio < 0.5 if in_four_bits else ratio == pytest.approx(1, rel=0.01)


def test_one_gpu_exchanges_nothing():
    replica = share()
    (layer, _), *_ = replica.layers
    assert np.all(collectives_s(replica, layer, TOKENS) == 0)
    two = share(tp=2)
    assert np.all(np.diff(collectives_s(two, layer, np.array([1.0, 1e3, 1e5]))) > 0)


# Expert parallelism holds whole experts: a fourth of them each, where tensor parallelism holds a fourth of each.
def test_experts_are_dealt_or_divided():
    model, tokens = "Qwen/Qwen3-30B-A3B", np.array([4096.0])
    one, four = share(model), share(model, tp=4)
    (layer, _), *_ = one.layers
    whole, part = (expert_parts(replica, layer, tokens) for replica in (one, four))
    assert part.weights[0] + part.compute[0] == pytest.approx((whole.weights[0] + whole.compute[0]) / 4, rel=0.2)


# 48 states of 48 × 128 × 128 fp32 read and written once a token; a prompt of 640 updates 10 chunks of 64.
def test_states_are_read_and_written():
    replica = share("Qwen/Qwen3.5-27B")
    mixer = next(layer.mixer for layer, _ in replica.layers if layer.mixer.kind is MixerKind.STATE)
    few, many = (state_s(replica, mixer, np.array([number]), False)[0] for number in (1.0, 101.0))
    assert (many - few) / 100 == pytest.approx(2 * 48 * 128 * 128 * 4 / (0.6 * 3.35e12))
    prompt = state_s(replica, mixer, np.array([640.0]), True)[0]
    assert prompt - few == pytest.approx(9 * (many - few) / 100)


def test_the_head_reads_the_vocabulary_and_nothing_without_rows():
    heads = head_s(share(), np.array([0.0, 1.0]))
    assert heads[0] == 0
    assert heads[1] > 128_256 * 4096 * 2 / 3.35e12
    assert heads[1] > head_s(share(kernels_only=True), np.array([1.0]))[0]


def test_only_pipelines_hop():
    halves = share(split=Parallelism(pipeline_parallel_size=2))
    assert np.all(token_terms_s(share(), TOKENS, prompt=False)["pipeline_hops"] == 0)
    assert np.all(token_terms_s(halves, TOKENS, prompt=False)["pipeline_hops"] > 0)
    assert token_terms_s(halves, TOKENS, prompt=False)["weights_read"] == pytest.approx(
        token_terms_s(share(), TOKENS, prompt=False)["weights_read"] / 2
    )


# MiniMax-M2 norms queries and keys over all heads: two sums over ranks, whatever the GPU.
def test_norm_over_all_heads():
    model = "MiniMaxAI/MiniMax-M2"

    def exchange(**settings):
        replica = share(model, **settings)
        return norm_exchange_s(replica, replica.layers[0][0])

    for gpu in ("H100 SXM", "B200"):
        alone, two = exchange(gpu=gpu), exchange(gpu=gpu, tp=2)
        assert alone > 0
        smallest = share(model, tp=2, gpu=gpu).profile.all_reduce(2)[1][0]
        assert two - alone == pytest.approx(2 * smallest)
    plain = share()
    assert norm_exchange_s(plain, plain.layers[0][0]) == 0


def shared_expert_us(replica, tokens, *, prompt=False):
    """What the shared expert of a layer adds alone, and what it adds beside the routed experts. [µs]"""
    layer = next(layer for layer, _ in replica.layers if layer.experts)
    tokens = np.array([float(tokens)])
    own = linear_parts(replica, layer, tokens, shared_expert=True)
    beside = shared_expert_parts(replica, layer, tokens, expert_parts(replica, layer, tokens), prompt)
    return [1e6 * sum(part.total.sum(axis=0)[0] for part in parts) for parts in (own, beside)]


R1 = "deepseek-ai/DeepSeek-R1"


# DeepSeek-R1 with 58 layers of experts on eight B200: 23.35 ms a token at 32 sequences became 22.09 with vLLM's second
# stream (github.com/vllm-project/vllm/pull/26440), 67 tokens/s became 73 with TensorRT-LLM's (tech_blog/blog1).
@pytest.mark.parametrize(
    ("family", "version", "weights", "tokens", "saved_ms"),
    [("vllm", "0.12.0", "auto", 32, 23.35 - 22.09), ("trtllm", "1.0.0", "nvfp4", 1, 1e3 / 67 - 1e3 / 73)],
)
def test_a_shared_expert_runs_beside_the_routed_ones(family, version, weights, tokens, saved_ms):
    alone, beside = shared_expert_us(share(R1, "B200", tp=8, weights=weights, family=family, version=version), tokens)
    assert (alone - beside) * 58e-3 == pytest.approx(saved_ms, rel=0.3)


@pytest.mark.parametrize(
    ("gpu", "version", "tokens", "prompt"),
    [
        ("B200", "0.11.0", 32, False),
        ("MI300X", "0.12.0", 32, False),
        ("B200", "0.12.0", 257, False),
        ("B200", "0.12.0", 32, True),
    ],
)
def test_a_shared_expert_has_no_stream_of_its_own(gpu, version, tokens, prompt):
    alone, beside = shared_expert_us(share(R1, gpu, tp=8, version=version), tokens, prompt=prompt)
    assert beside == pytest.approx(alone)


def test_two_streams_do_no_work_twice_as_fast():
    replica = share("Qwen/Qwen3.5-397B-A17B", "B200", tp=8, family="trtllm", version="1.0.0")
    layer = next(layer for layer, _ in replica.layers if layer.experts)
    tokens = np.array([4096.0])
    routed = expert_parts(replica, layer, tokens)
    own = linear_parts(replica, layer, tokens, shared_expert=True)
    beside = shared_expert_parts(replica, layer, tokens, routed, prompt=False)
    work = sum(part.total.sum(axis=0)[0] - part.fixed.sum(axis=0)[0] for part in own)
    assert sum(part.total.sum(axis=0)[0] for part in beside) >= work - routed.fixed[0]
