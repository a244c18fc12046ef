"""Tables as they are put together: padding to graphs, launches, how sure they are."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu, gpu_names
from planner.catalog.models import get_model
from planner.inputs.engine import Batching, EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.cuda_graphs import captured_sizes
from planner.step_time.build import MAX_DECODES, build_table, graph_size, prompt_grid, prompt_launch_s, relative_error
from planner.step_time.model import explain_step, step_time_table
from planner.step_time.overheads import overhead
from tests.step_time.cases import LLAMA, ONE, VLLM, prefill, replica, share


def test_decode_batches_are_padded_to_captured_graphs():
    table = step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE))
    assert table.decode_s[17] == table.decode_s[24] > table.decode_s[16]
    eager = step_time_table(replica(get_model(LLAMA), get_gpu("H100 SXM"), EngineSettings(cuda_graphs=False), ONE))
    assert eager.decode_s[17] <= eager.decode_s[24]


# vLLM #49390: on data-centre Blackwell graphs up to 1,024 from v0.28 on, in steps of 16; before, none above 512.
def test_large_decode_batches_are_padded_where_larger_graphs_are_captured():
    model, gpu = get_model(LLAMA), get_gpu("B200")
    before, after = (
        step_time_table(replica(model, gpu, EngineSettings(version=name), ONE)) for name in ("0.27", "0.28")
    )
    launched_s = 32 * 750e-6  # kernel by kernel, at the launch of catalog/serving_overheads.csv
    assert before.decode_s[513] == pytest.approx(launched_s)
    assert after.decode_s[769] == after.decode_s[770] == after.decode_s[784] < after.decode_s[785] < launched_s
    assert after.decode_s[1025] == pytest.approx(launched_s)


def test_every_accelerator_has_step_times_and_says_how_sure_they_are():
    model = get_model(LLAMA)
    measured = step_time_table(replica(model, get_gpu("H100 SXM"), VLLM, ONE))
    for name in gpu_names():
        table = step_time_table(replica(model, get_gpu(name), VLLM, ONE))
        assert 0 < table.decode_s[1] < 1
        assert 0 < table.relative_error < 0.5
        if name not in table.notes[0].split("measured on ")[-1]:
            assert "no kernel measurement" in table.notes[0]
    inherited = step_time_table(replica(model, get_gpu("GH200"), VLLM, ONE))
    assert inherited.relative_error > measured.relative_error


def test_prompt_layers_of_latent_attention_launch_more_kernels():
    gpu = get_gpu("H200 SXM")
    engine = EngineSettings(family="sglang", version="0.5.9")
    short = prefill(1)
    latent = explain_step(
        replica(get_model("deepseek-ai/DeepSeek-V3"), gpu, engine, Parallelism(tensor_parallel_size=8)), short
    )
    plain = explain_step(
        replica(get_model("Qwen/Qwen3-235B-A22B"), gpu, engine, Parallelism(tensor_parallel_size=8)), short
    )
    # 61 layers against 94 at catalog/serving_overheads.csv's 2.5 and 0.7 ms a layer
    assert sum(latent.values()) > 61 * 2.5
    assert sum(plain.values()) < 61 * 2.5


# Batch sizes that vLLM captures: 1, 2, 4, 8, then steps of 8 to 256 and of 16 to 512.
@pytest.mark.parametrize(
    ("batch", "graph"),
    [(1, 1), (3, 4), (5, 8), (9, 16), (17, 24), (256, 256), (257, 272), (511, 512), (513, 513)],
)
def test_batches_are_padded_to_the_next_graph(batch, graph):
    captured, none = (
        captured_sizes(engine, get_gpu("H100 SXM"), ONE) for engine in (VLLM, EngineSettings(cuda_graphs=False))
    )
    assert graph_size(np.array([float(batch)]), captured)[0] == graph
    assert graph_size(np.array([float(batch)]), none)[0] == batch


@pytest.mark.parametrize("most", [1, 300, 2048, 16_384])
def test_the_grid_of_prompts_rises_from_one_to_the_most(most):
    grid = prompt_grid(most)
    assert grid[0] == 1
    assert grid[-1] >= most
    assert np.all(np.diff(grid) > 0)


# 32 layers at the 450 µs of catalog/serving_overheads.csv for vLLM V1, 150 µs up to the largest captured size.
def test_launching_a_prompt_by_hand():
    tokens = np.array([512.0, 513.0])
    assert prompt_launch_s(share(), tokens, (8, 512)) == pytest.approx([32 * 150e-6, 32 * 450e-6])
    assert prompt_launch_s(share(), tokens, ()) == pytest.approx([32 * 450e-6] * 2)
    halves = Parallelism(pipeline_parallel_size=2)
    assert prompt_launch_s(share(split=halves), tokens, ()) == pytest.approx([16 * 450e-6] * 2)


def test_layers_of_experts_launch_more_kernels():
    # catalog/serving_overheads.csv: 900 us a layer of experts on vLLM V1, all 48 layers of Qwen3-30B-A3B have them
    tokens = np.array([2000.0])
    experts = share(model="Qwen/Qwen3-30B-A3B")
    assert prompt_launch_s(experts, tokens, (8, 512)) == pytest.approx([48 * 900e-6])


def test_a_short_convolution_launches_no_more_than_attention():
    # catalog/serving_overheads.csv, SGLang: 700 us a layer, 2,500 us one with a recurrent state. LFM2's 18 convolutions
    # are one kernel between two products; 36 of the 48 layers of Qwen3-Next are gated delta nets.
    tokens = np.array([2000.0])
    assert prompt_launch_s(share(model="LiquidAI/LFM2.5-8B-A1B", family="sglang"), tokens, ()) == pytest.approx(
        [24 * 700e-6]
    )
    recurrent = share(model="Qwen/Qwen3-Next-80B-A3B-Instruct", family="sglang")
    assert prompt_launch_s(recurrent, tokens, ()) == pytest.approx([36 * 2500e-6 + 12 * 700e-6])


# server_args.py of SGLang 0.5.6.post2 chooses trtllm_mla for DeepSeek-V3 on SM100, and other kernels for its sparse
# descendants and on Hopper; catalog/serving_overheads.csv: 1,500 us a layer with trtllm_mla, 2,500 with others.
@pytest.mark.parametrize(
    ("model", "gpu", "version", "us"),
    [
        ("deepseek-ai/DeepSeek-V3", "B200", "0.5.6", 1500),
        ("deepseek-ai/DeepSeek-V3", "B300", "0.5.9", 1500),
        ("deepseek-ai/DeepSeek-V3", "B200", "0.5.5", 2500),
        ("deepseek-ai/DeepSeek-V3", "H200 SXM", "0.5.6", 2500),
        ("deepseek-ai/DeepSeek-V3.2", "B200", "0.5.6", 2500),
    ],
)
def test_layers_of_latents_launch_by_their_kernels(model, gpu, version, us):
    made = share(model=model, gpu=gpu, family="sglang", version=version)
    assert prompt_launch_s(made, np.array([2000.0]), ()) == pytest.approx([61 * us * 1e-6])


# vllm/v1/cudagraph_dispatcher.py: no graph above max_cudagraph_capture_size (512 on H100); SGLang's
# cuda_graph_runner.py can_run: batch <= max_bs (256 on one GPU of 80 GB). TensorRT-LLM captures what it batches.
@pytest.mark.parametrize(
    ("family", "largest", "layer_s"), [("vllm", 512, 900e-6), ("sglang", 256, 700e-6), ("trtllm", 512, 0.0)]
)
def test_a_batch_that_no_graph_holds_is_launched_kernel_by_kernel(family, largest, layer_s):
    # 48 layers of experts at the launch of catalog/serving_overheads.csv
    table = build_table(share(model="Qwen/Qwen3-30B-A3B", family=family), 1024)
    if layer_s:
        assert table.decode_s[largest] < 0.8 * table.decode_s[largest + 1]
        assert table.decode_s[largest + 1] == pytest.approx(48 * layer_s)
    else:
        assert table.decode_s[largest + 1] < 1.1 * table.decode_s[largest]


def test_prompts_through_experts_in_mxfp4():
    # InferenceX, gpt-oss-120b on an H200 with vLLM 0.18 and 4 users: 86 and 96 ms to the first token of 922 tokens. The
    # server takes 9, its tokeniser 3 and half a decode step 3 ms; of the 40 requests three start behind the first and
    # wait for a step of three prompts besides, 2.5 times as long: 15 + 1.19 steps.
    experts = share(model="openai/gpt-oss-120b", gpu="H200 SXM", version="0.18.0", max_cudagraph_capture_size=2048)
    assert build_table(experts, 2048).mixed_s[922] == pytest.approx((91e-3 - 15e-3) / 1.19, rel=0.1)


def test_kernels_alone_have_no_host():
    assert build_table(share(kernels_only=True), 512).host_s == 0
    assert build_table(share(), 512).host_s > 0


def test_a_static_batch_costs_its_host_no_time_per_sequence():
    static = build_table(share(family="generic", batching=Batching.STATIC), 512)
    continuous = build_table(share(family="generic"), 512)
    assert (static.host_per_sequence_s, static.host_s) == (0.0, continuous.host_s)
    assert continuous.host_per_sequence_s > 0


def test_a_gpu_without_measurements_is_less_sure():
    assert relative_error(share(gpu="GH200")) == pytest.approx(relative_error(share()) + 0.06)
    assert relative_error(share(gpu="Gaudi 2")) > relative_error(share(gpu="GH200"))


# Each overhead of catalog/serving_overheads.csv in the unit that its name says.
def test_overheads_of_a_table_are_in_seconds():
    table, version = build_table(share(version="0.19.0"), 512), ("vllm", "0.19.0")
    assert table.host_s == pytest.approx(overhead(*version, "host_us") / 1e6)
    assert table.host_per_sequence_s == pytest.approx(overhead(*version, "host_us_per_sequence") / 1e6)
    assert table.request_overhead_s == pytest.approx(overhead(*version, "request_overhead_ms") / 1e3)
    assert table.server_per_request_s == pytest.approx(overhead(*version, "api_ms_per_request") / 1e3)
    assert table.server_per_prompt_token_s == pytest.approx(overhead(*version, "tokenise_us_per_token") / 1e6)
    assert table.server_per_token_s == pytest.approx(overhead(*version, "api_us_per_token") / 1e6)
    assert table.pipeline_stages == 1


# FastAPI in front of TensorRT-LLM streams 7.81 answers/s of 500 tokens (triton-inference-server/server#8045). Behind
# Dynamo 128 streams of Llama-3.1-8B get a token every 9.79 ms (silicon_sample.csv of AIConfigurator).
def test_a_streamed_token_costs_what_the_server_in_front_takes():
    def seconds(family, **engine):
        return build_table(share(family=family, **engine), 512).server_per_token_s

    assert seconds("trtllm", version="1.2.0") == pytest.approx(1 / (7.81 * 500), rel=0.001)
    assert seconds("trtllm", version="1.2.0", behind_dynamo=True) <= 9.79e-3 / 128
    assert seconds("sglang", behind_dynamo=True) <= seconds("sglang")
    assert seconds("vllm", behind_dynamo=True) <= seconds("vllm")


@pytest.mark.parametrize("most", [64, 600, 5000])
def test_a_table_goes_as_far_as_a_step_may(most):
    table = build_table(share(kernels_only=True), most)
    assert len(table.mixed_s) == most + 1
    assert len(table.decode_s) == len(table.head_s) == min(most, MAX_DECODES) + 1
    assert table.decode_s[0] == table.mixed_s[0] == table.head_s[0] == 0


def test_who_launches_a_prompt_holds_the_scheduler():
    # 32 layers at 450 µs and 2 ms to prepare the step (serving_overheads.csv); with several GPUs vLLM's workers launch.
    assert build_table(share(), 8192).launch_s == pytest.approx(32 * 450e-6 + 2e-3)
    assert build_table(share(split=Parallelism(tensor_parallel_size=2)), 8192).launch_s == 0.0
