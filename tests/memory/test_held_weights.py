"""What engines add to the weights of a GPU, or keep on the CPU: n-gram tables, absorbed products, draft models."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand
from planner.memory.held_weights import draft_bytes_per_gpu, lora_bytes
from planner.memory.sizing import plan_memory
from planner.model.shape import Layer, Linear, Mixer, MixerKind, Shard, TensorGroup
from planner.units import GIB

NAME = "Qwen/Qwen3.8-Flash-Next"


def planned(gpu: str, family: str = "vllm", **engine: object) -> tuple[float, str]:
    """Bytes of the n-gram table on the GPU and the note that speaks of it."""
    settings = EngineSettings(family=family, **engine)  # type: ignore[arg-type]
    made = plan_memory(get_model(NAME), get_gpu(gpu), settings, Parallelism(tensor_parallel_size=2),
                       max_model_len=4096, weight_dtype="nvfp4")  # fmt: skip
    note = next(note for note in made.notes if "n-gram" in note)
    return dict(made.weights_by_group).get("ngram", 0.0), note


# vLLM's EngramConfig.cpu_offload and SGLang's ple_offload_embedding are on by default; each rank keeps its share.
@pytest.mark.parametrize("family", ["vllm", "sglang", "llamacpp"])
def test_the_table_stands_in_host_memory_by_default(family: str) -> None:
    held, note = planned("H100 SXM", family)
    assert held == 0
    assert note.startswith("The n-gram tables take 47.7 GiB of host memory")


# Kimi-K2.5 on 8 H100 with --mm-encoder-tp-mode data, vLLM 0.15: 72.02 GiB of weights. Its tower and projector have
# 471,143,920 parameters in 16 bits. vLLM builds Gemma 4's tower without parallel layers, and Pixtral's with them alone.
def test_each_rank_holds_the_tower_whole_where_images_are_shared_out() -> None:
    def weights(name: str, ranks: int, asked: bool) -> float:
        settings = EngineSettings(version="0.20.0", encoder_data_parallel=asked)
        made = plan_memory(get_model(name), get_gpu("H100 SXM"), settings, Parallelism(tensor_parallel_size=ranks),
                           max_model_len=4096)  # fmt: skip
        return dict(made.weights_by_group)["vision"]

    assert weights("moonshotai/Kimi-K2.5", 8, False) == 471_143_920 * 2 / 8
    assert weights("moonshotai/Kimi-K2.5", 8, True) == 471_143_920 * 2
    pixtral, gemma = "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "google/gemma-4-31B-it"
    assert weights(pixtral, 2, True) == weights(pixtral, 2, False) == weights(pixtral, 1, False) / 2
    assert weights(gemma, 2, False) == weights(gemma, 1, False)
    whole = plan_memory(get_model("moonshotai/Kimi-K2.5"), get_gpu("H100 SXM"),
                        EngineSettings(version="0.15.0", encoder_data_parallel=True),
                        Parallelism(tensor_parallel_size=8), max_model_len=8192)  # fmt: skip
    assert whole.weights_bytes / GIB == pytest.approx(72.02, rel=1e-3)


TABLE = 51_200_245_760


def test_the_table_on_the_gpus_when_asked_or_where_memory_is_shared() -> None:
    held, note = planned("H100 SXM", ngram_on_gpu=True)
    assert held == TABLE / 2
    assert "of GPU memory, divided over 2 GPUs" in note
    shared, note = planned("GB10")
    assert shared == TABLE / 2
    assert "shared with the CPU" in note
    assert planned("GB10", ngram_on_gpu=False)[0] == 0  # a mapped file
    assert planned("GB10", "llamacpp")[0] == 0
    assert planned("H100 SXM", "trtllm")[0] == TABLE / 2


def test_other_tables_stay_on_the_gpus() -> None:
    made = plan_memory(get_model("meituan-longcat/LongCat-Flash-Lite"), get_gpu("H200 SXM"), EngineSettings(),
                       Parallelism(), max_model_len=4096)  # fmt: skip
    assert dict(made.weights_by_group)["ngram"] == 2 * get_model("meituan-longcat/LongCat-Flash-Lite").ngram_parameters


# DeepSeek-R1 on eight H200: 83.88 GiB per GPU in vLLM 0.7 with absorbed products; 105.59 in SGLang 0.4.6, DP attention.
@pytest.mark.parametrize(
    ("family", "version", "tp", "dp", "gib"), [("vllm", "0.7.3", 8, 1, 83.88), ("sglang", "0.4.6", 1, 8, 105.59)]
)
def test_latent_attention_weighs_what_the_log_says(family: str, version: str, tp: int, dp: int, gib: float) -> None:
    parallelism = Parallelism(tensor_parallel_size=tp, attention_data_parallel_size=dp)
    engine = EngineSettings(family=family, version=version)
    made = plan_memory(
        get_model("deepseek-ai/DeepSeek-R1"), get_gpu("H200 SXM"), engine, parallelism, max_model_len=8192
    )
    assert made.weights_bytes / GIB == pytest.approx(gib, rel=0.006)


# Llama-3.2-1B: 1,235,814,400 parameters in 16 bits; two ranks halve all but its 33 norms of 2,048 (published config).
# Each keeps the rotary table of 131,072 positions and 64 columns (vLLM rotary_embedding, cos_sin_cache).
@pytest.mark.parametrize("tp", [1, 2])
def test_a_draft_model_is_divided_as_the_model_is(tp: int) -> None:
    draft = get_model("meta-llama/Llama-3.2-1B-Instruct")
    demand = Demand(model=get_model("meta-llama/Llama-3.1-8B-Instruct"), gpu=get_gpu("H100 SXM"),
                    engine=EngineSettings(), parallelism=Parallelism(tensor_parallel_size=tp), max_model_len=8192,
                    draft_model=draft)  # fmt: skip
    norms, table = 33 * 2048, 131_072 * 64
    assert draft_bytes_per_gpu(demand) == 2 * ((1_235_814_400 - norms) / tp + norms + table)


# Column-parallel: B is divided, A replicated; row-parallel the other way round (vllm/lora/layers).
@pytest.mark.parametrize(("shard", "elements"), [(Shard.COLUMN, 100 + 400 / 4), (Shard.ROW, 100 / 4 + 400)])
def test_the_divided_side_of_an_adapter_is_divided(shard: Shard, elements: float) -> None:
    linear = Linear(name="o_proj", in_features=100, out_features=400, group=TensorGroup.ATTENTION, shard=shard)
    layer = Layer(mixer=Mixer(kind=MixerKind.NONE), linears=(linear,), experts=None, norm_parameters=0)
    engine = EngineSettings(max_loras=3, max_lora_rank=8)
    held = lora_bytes(((layer, 5),), engine, Parallelism(tensor_parallel_size=4))
    assert held == 2 * 3 * 8 * 5 * elements
