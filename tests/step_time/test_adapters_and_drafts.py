"""LoRA, drafts and 8-bit integers: what they cost, against published runs."""

import numpy as np
import pytest

from planner.accuracy.serving import serve
from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.scenario import Scenario
from planner.step_time.layers import adapters_s
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.profile import peak_flops
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepWork

ONE = Parallelism()
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def replica(gpu, model=LLAMA, weights="auto", **engine):
    return RankShare(
        model=get_model(model),
        gpu=get_gpu(gpu),
        engine=EngineSettings(**engine),
        parallelism=ONE,
        weight_dtype=weights,
    )


def decode(batch, tokens=1):
    return StepWork(num_decodes=batch, tokens_per_decode=tokens, kv_tokens=500 * batch, num_logit_rows=batch)


def test_an_adapter_costs_a_third_of_the_throughput():
    # Llama-2-7B on one A100, 1,000 requests of 246 + 235 tokens at once, vLLM 0.6.5: 2694 tokens/s without and 1788
    # with an adapter (vllm-project/vllm#11267)
    burst = Scenario(
        model="meta-llama/Llama-2-7b-hf",
        gpu="A100 SXM 80GB",
        engine_version="0.6.5",
        max_model_len=4096,
        lengths="constant",
        prompt_mean_tokens=246,
        output_mean_tokens=235,
        arrivals="once",
        num_requests=1000,
        measured_requests="all",
        max_loras=1,
    )
    base, adapted = (serve(burst.replace(num_lora_adapters=n)).output_tokens_per_s for n in (0, 1))
    assert adapted / base == pytest.approx(1788 / 2694, abs=0.08)


def test_a_prompt_reads_its_adapter_once():
    share = replica("A100 SXM 80GB", max_loras=1)
    layer = share.model.layer_counts()[0][0]
    few, many = adapters_s(share, layer, np.array([16.0, 4096.0]), True)
    assert few == many
    one, two, three = adapters_s(share, layer, np.array([1.0, 2.0, 3.0]), False)
    assert three - two == pytest.approx(two - one)


def test_without_slots_there_is_no_adapter():
    work = decode(8)
    terms = [explain_step(replica("H100 SXM", max_loras=n, max_lora_rank=16), work) for n in (0, 4)]
    assert terms[0]["weights_read"] == terms[1]["weights_read"]
    assert terms[1]["elementwise_and_launch"] > terms[0]["elementwise_and_launch"]


@pytest.mark.parametrize(("drafts", "measured_ms"), [(2, 10.2), (7, 15.2)])
def test_a_drafting_step_takes_what_eagle_measured(drafts, measured_ms):
    # EAGLE-3 on Llama-3.1-8B at batch 1, acceptance length × TPOT; 7.07 ms without drafts (vllm-project/vllm#20780)
    plain = step_time_table(replica("H100 SXM")).step_s(decode(1))
    work = decode(1, 1 + drafts)
    drafting = step_time_table(replica("H100 SXM", num_speculative_tokens=drafts)).step_s(work)
    assert drafting - plain == pytest.approx((measured_ms - 7.07) * 1e-3, rel=0.25)


def test_integers_multiply_at_their_own_rate():
    # A100: 624 TOPS in INT8, no FP8 (data sheet); the kernels of H100's INT8 are as fast as those of FP8
    assert peak_flops(get_gpu("A100 SXM 80GB"), "int8") == (624e12, "bf16")
    assert peak_flops(get_gpu("H100 SXM"), "int8")[1] == "fp8"
    work = StepWork(chunks=(PrefillChunk(num_tokens=8192),), num_logit_rows=1)
    both = [explain_step(replica("A100 SXM 80GB", weights=name), work)["gemm_compute"] for name in ("bf16", "int8")]
    assert both[0] / both[1] == pytest.approx(2, rel=0.1)


def test_per_tensor_experts_of_hopper_are_no_slower_than_block_scaled_ones():
    # H100 and H200 multiply FP8 at one rate whatever the scales; the block-scaled kernel only adds scales to it.
    model = "Qwen/Qwen3-235B-A22B"
    plain, block = (
        step_time_table(replica("H200 SXM", model=model, weights=name)).step_s(decode(8))
        for name in ("fp8", "fp8_block")
    )
    assert plain < 1.2 * block


def test_small_all_reduces_take_the_norm_with_them():
    # docs.vllm.ai/en/v0.18.2/design/fusions: from there on by default with TP > 1, for few tokens, and 5 to 20 % faster
    def step(version, tp, tokens):
        share = RankShare(
            model=get_model("meta-llama/Llama-3.1-70B-Instruct"),
            gpu=get_gpu("B200"),
            engine=EngineSettings(version=version),
            parallelism=Parallelism(tensor_parallel_size=tp),
            weight_dtype="fp8",
        )
        return explain_step(share, decode(tokens))["elementwise_and_launch"]

    assert step("0.14", 8, 8) - step("0.18", 8, 8) == pytest.approx(80 * 2 * 3e-3)  # two kernels of 3 us a layer
    assert step("0.14", 1, 8) == step("0.18", 1, 8)
    assert step("0.14", 8, 256) == step("0.18", 8, 256)  # 4 MiB, above the 1 MiB of eight GPUs


def test_short_prompts_run_in_graphs_and_long_ones_launch_every_kernel():
    # Qwen3-4B, 129 tokens: 5.7 ms with graphs and 16.6 without (github.com/wejoncy/sfllm/pull/46); the GPU is not named
    def prompt_ms(tokens, **engine):
        share = replica("H100 SXM", model="Qwen/Qwen3-4B", version="0.11", **engine)
        return explain_step(share, StepWork(chunks=(PrefillChunk(num_tokens=tokens),), num_logit_rows=1))

    admitting = 2  # prompt_step_us of that version
    graphed, eager = (sum(prompt_ms(129, cuda_graphs=on).values()) - admitting for on in (True, False))
    assert graphed == pytest.approx(5.7, rel=0.2)
    assert eager == pytest.approx(16.6, rel=0.2)
    # beyond the largest captured size of 512 tokens, launches are the floor again
    assert prompt_ms(520)["prompt_launches"] > prompt_ms(504)["prompt_launches"] + 3


def test_eager_steps_are_bound_by_launches():
    # Qwen3-14B AWQ with --enforce-eager: 20.6 ms a token on A100, V1 (vllm-project/vllm#20469)
    share = replica("A100 SXM 80GB", model="Qwen/Qwen3-14B", weights="awq_int4", version="0.9.1", cuda_graphs=False)
    assert step_time_table(share).step_s(decode(1)) == pytest.approx(20.6e-3, rel=0.1)
