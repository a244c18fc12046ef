"""A start-up log's memory in a plan: for the deployment that printed it alone."""

import pytest

from planner import Scenario
from planner.errors import InvalidInput
from planner.reading import read
from planner.reading.printed import prints_memory, with_printed, without_printed
from planner.scenario import from_query, to_query

LOG = """\
INFO 03-20 03:37:40 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 16384, \
'gpu_memory_utilization': 0.8}
INFO 03-20 03:37:45 [core.py:101] Initializing a V1 LLM engine (v0.17.0) with config: model='Qwen/Qwen3-8B', \
dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None
INFO 03-20 03:38:45 [gpu_model_runner.py:2000] Model loading took 15.27 GiB memory and 5.1 seconds
INFO 03-20 03:38:55 [gpu_worker.py:300] Available KV cache memory: 44.10 GiB
INFO 03-20 03:38:56 [kv_cache_utils.py:1000] GPU KV cache size: 321,120 tokens
"""


@pytest.fixture(scope="module")
def reading():
    return read(LOG)


def test_the_logs_own_deployment_takes_its_figures(reading):
    made = with_printed(reading)
    assert made.printed_weights_gib == 15.27
    assert made.printed_kv_gib == 44.1
    assert made.printed_kv_tokens == 321_120
    assert made.printed_memory.kv_tokens == 321_120
    assert from_query(to_query(made)).scenario == made
    assert without_printed(made) == reading.scenario


def test_a_plan_of_the_same_deployment_keeps_its_traffic(reading):
    plan = Scenario(model="Qwen/Qwen3-8B", max_model_len=16384, gpu_memory_utilization=0.8, users=9)
    assert with_printed(reading, plan).users == 9
    assert with_printed(reading, plan).printed_memory is not None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": "Qwen/Qwen3-4B"}, "model"),
        ({"weight_dtype": "fp8"}, "weight_dtype"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size"),
        ({"gpu_memory_utilization": 0.9}, "gpu_memory_utilization"),
        ({"gpu_memory_utilization": None}, "gpu_memory_utilization"),
        ({"max_model_len": 8192}, "max_model_len"),
        ({"engine": "sglang"}, "engine"),
    ],
)
def test_another_deployment_is_refused_by_the_name_of_the_field(reading, change, field):
    plan = Scenario(model="Qwen/Qwen3-8B", max_model_len=16384, gpu_memory_utilization=0.8).replace(**change)
    with pytest.raises(InvalidInput) as caught:
        with_printed(reading, plan)
    assert caught.value.field == field


def test_the_gpu_counts_where_the_log_names_it():
    named = LOG + "INFO 03-20 03:38:40 [x.py:1] GPU 0: NVIDIA H100 80GB HBM3\n"
    found = read(named)
    plan = found.scenario.replace(gpu="L40S", gpu_total_gib=None)
    with pytest.raises(InvalidInput) as caught:
        with_printed(found, plan)
    assert caught.value.field == "gpu"


def test_a_file_without_memory_is_refused():
    command = read("vllm serve Qwen/Qwen3-8B --max-model-len 8192")
    assert not prints_memory(command)
    with pytest.raises(InvalidInput) as caught:
        with_printed(command)
    assert "start-up log" in caught.value.valid
