"""Tables as they are put together: padding to graphs, launches, how sure they are."""

from planner.catalog.gpus import get_gpu, gpu_names
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time.model import explain_step, step_time_table
from tests.step_time.cases import LLAMA, ONE, VLLM, prefill


def test_decode_batches_are_padded_to_captured_graphs():
    table = step_time_table(get_model(LLAMA), get_gpu("H100 SXM"), VLLM, ONE)
    assert table.decode_s[17] == table.decode_s[24] > table.decode_s[16]
    eager = step_time_table(get_model(LLAMA), get_gpu("H100 SXM"), EngineSettings(cuda_graphs=False), ONE)
    assert eager.decode_s[17] <= eager.decode_s[24]


def test_every_accelerator_has_step_times_and_says_how_sure_they_are():
    model = get_model(LLAMA)
    measured = step_time_table(model, get_gpu("H100 SXM"), VLLM, ONE)
    for name in gpu_names():
        table = step_time_table(model, get_gpu(name), VLLM, ONE)
        assert 0 < table.decode_s[1] < 1
        assert 0 < table.relative_error < 0.5
        if name not in table.notes[0].split("measured on ")[-1]:
            assert "no kernel measurement" in table.notes[0]
    inherited = step_time_table(model, get_gpu("GH200"), VLLM, ONE)
    assert inherited.relative_error > measured.relative_error


def test_prompt_layers_of_latent_attention_launch_more_kernels():
    gpu = get_gpu("H200 SXM")
    engine = EngineSettings(family="sglang", version="0.5.9")
    short = prefill(1)
    latent = explain_step(get_model("deepseek-ai/DeepSeek-V3"), gpu, engine, Parallelism(tensor_parallel_size=8), short)
    plain = explain_step(get_model("Qwen/Qwen3-235B-A22B"), gpu, engine, Parallelism(tensor_parallel_size=8), short)
    # 61 layers against 94 at catalog/serving_overheads.csv's 2.5 and 0.7 ms a layer
    assert sum(latent.values()) > 61 * 2.5
    assert sum(plain.values()) < 61 * 2.5
