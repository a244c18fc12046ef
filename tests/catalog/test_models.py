"""The model catalog: names, suggestions, sources, and every published total."""

import json
from pathlib import Path

import pytest

from planner.catalog import models
from planner.catalog.gpus import get_gpu
from planner.catalog.models import find_model_id, get_model, model_names, recalled_facts
from planner.errors import InvalidInput
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.model.shape import MixerKind
from planner.scenario.scenario import Scenario
from planner.tables import read_table

# What hub totals hold beside main, tower and draft layers, by their note in the catalog's sources:
# a tied head stored twice, causal-mask and rotary buffers, fp8 scales, a correction bias left out.
STORED_BESIDE = {
    "openai-community/gpt2": 12 * 1024 * 1024,
    "meta-llama/Llama-2-7b-hf": 32 * 64,
    "meta-llama/Llama-2-13b-hf": 40 * 64,
    "meta-llama/Llama-2-70b-hf": 80 * 64,
    "Qwen/Qwen1.5-0.5B-Chat": 151_936 * 1024,
    "Qwen/Qwen3-0.6B": 151_936 * 1024,
    "Qwen/Qwen3-1.7B": 151_936 * 2048,
    "tiiuae/falcon-7b": 65_024 * 4544,
    "tiiuae/falcon-40b": 65_024 * 8192,
    "tiiuae/falcon-180B": 65_024 * 14_848,
    "deepseek-ai/DeepSeek-V3": 41_540_496,
    "MiniMaxAI/MiniMax-M2.5": 13_880_064,
    "MiniMaxAI/MiniMax-M3-MXFP8": 13_239_705_600,
    "stepfun-ai/Step-3.5-Flash-FP8": 11_612_160,
    "stepfun-ai/Step-3.7-Flash-FP8": 11_612_160,
    "meituan-longcat/LongCat-Flash-Lite-FP8": 2_223_992,
}


def with_exact_total() -> list[str]:
    names = [name for name in model_names() if get_model(name).published_parameters]
    return [name for name in names if not get_model(name).estimated_fields]


@pytest.mark.parametrize("name", with_exact_total())
def test_published_total_is_met_within_a_thousandth(name: str) -> None:
    model, total = get_model(name), get_model(name).published_parameters
    beside = STORED_BESIDE.get(name, 0)
    candidates = [
        model.num_parameters + beside + extra
        for extra in (
            0,
            model.vision_parameters,
            model.mtp_parameters,
            model.vision_parameters + model.mtp_parameters,
            # GLM-4.5 stores embedding and head again with its draft layer
            model.mtp_parameters + 2 * model.vocab_size * model.hidden_size,
        )
    ]
    assert min(abs(count / total - 1) for count in candidates) < 1e-3


def test_most_models_have_an_exact_total() -> None:
    assert len(with_exact_total()) > 0.8 * len(model_names())


def test_no_model_is_listed_twice_and_few_are_ever_dropped() -> None:
    assert len(model_names()) >= 440
    assert len(set(model_names())) == len(model_names())


def test_every_model_has_a_source() -> None:
    assert all(get_model(name).source for name in model_names())


def test_no_model_stands_twice() -> None:
    with Path(models.__file__).with_name("models.json").open(encoding="utf-8") as stream:
        ids = [entry["id"] for entry in json.load(stream)["models"]]
    assert len(set(ids)) == len(ids)
    # GPT-J's published total, from its own builder.
    assert get_model("EleutherAI/gpt-j-6b").num_parameters == 6_050_882_784


def test_recalled_facts_are_named() -> None:
    for name in model_names():
        facts = recalled_facts(name)
        assert set(facts) <= {"config", "vision_config", "published_parameters"}
        assert ("recalled" in get_model(name).source) == bool({"config", "vision_config"} & set(facts)), name
    assert recalled_facts("mistralai/Codestral-22B-v0.1") == ("config", "published_parameters")
    assert recalled_facts("Qwen/Qwen3-32B-AWQ") == ()


@pytest.mark.parametrize(
    "written", ["meta-llama/Llama-3.1-8B-Instruct", "LLAMA-3.1-8B-INSTRUCT", " llama-3.1-8b-instruct "]
)
def test_model_is_found_by_id_or_unique_ending(written: str) -> None:
    assert get_model(written).name == "meta-llama/Llama-3.1-8B-Instruct"


def test_ambiguous_ending_is_not_guessed() -> None:
    assert find_model_id("instruct") is None


def test_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        get_model("meta-llama/Llama-3.1-8B-Instrukt")
    assert caught.value.field == "model"
    assert "Llama-3.1-8B-Instruct" in str(caught.value)


def test_suggestions_are_of_the_family_or_there_are_none() -> None:
    with pytest.raises(InvalidInput) as caught:
        get_model("Qwen/Qwen9-70B")
    named = str(caught.value).partition("such as ")[2].split(", ")[:3]
    assert all(name.startswith("Qwen/Qwen") for name in named)
    with pytest.raises(InvalidInput) as caught:
        get_model("zzz/yyy")
    assert "such as" not in str(caught.value)


@pytest.mark.parametrize("written", ["", "x" * 10_000, "../../etc/passwd"])
def test_odd_names_are_refused(written: str) -> None:
    with pytest.raises(InvalidInput):
        get_model(written)


def test_same_model_is_made_once() -> None:
    assert get_model("openai/gpt-oss-20b") is get_model("openai/gpt-oss-20b")


def test_layer_numbers_are_those_of_the_model_cards() -> None:
    assert get_model("moonshotai/Kimi-K2-Instruct").num_layers == 61
    assert get_model("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16").num_layers == 88
    attention = [x for x in get_model("nvidia/Nemotron-H-8B-Reasoning-128K").layers if x.mixer.kind is MixerKind.FULL]
    assert len(attention) == 4


def test_hub_models_are_found_by_id_and_ending_and_sum_exactly() -> None:
    for written in ("utter-project/EuroLLM-22B-Instruct-2512", "eurollm-22b-instruct-2512"):
        model = get_model(written)
        assert model.num_parameters == model.published_parameters == 22_637_328_384
    assert "utter-project/EuroLLM-22B-Instruct-2512" not in model_names()


# config.json of google/gemma-3-270m, 1b, 4b, 12b and 27b, allenai/Olmo-3, mistralai/Mistral-7B-v0.1.
@pytest.mark.parametrize(
    ("name", "window", "full"),
    [
        ("unsloth/gemma-3-270m", 512, 3),
        ("unsloth/gemma-3-1b-it", 512, 4),
        ("rajpurkarlab/medgemma-4b-it-crimson", 1024, 5),
        ("cjvt/GaMS3-12B-Instruct", 1024, 8),
        ("microsoft/harrier-oss-v1-27b", 1024, 10),
        ("unsloth/gemma-2-9b-it", 4096, 21),
        ("allenai/Olmo-3-1025-7B", 4096, 8),
        ("allenai/Olmo-3.1-32B-Think", 4096, 16),
        ("mistralai/Mistral-7B-v0.1", 4096, 0),
    ],
)
def test_windows_of_hub_models(name: str, window: int, full: int) -> None:
    mixers = [layer.mixer for layer in get_model(name).layers]
    assert {mixer.window_tokens for mixer in mixers if mixer.kind is MixerKind.SLIDING} == {window}
    assert sum(mixer.kind is MixerKind.FULL for mixer in mixers) == full


def test_every_hub_model_of_a_windowed_family_has_its_window() -> None:
    for row in read_table("catalog/hub_models.csv"):
        if row["model_type"] in ("gemma2", "gemma3_text", "olmo3", "exaone4"):
            assert row["sliding_window"], row["id"]
            assert row["sliding_window_pattern"], row["id"]


# Llama 3.1, Llama 3.2 and Gemma 3 state the positions with RoPE scaling: 131,072 (config.json of each).
@pytest.mark.parametrize(
    "name",
    ["meta-llama/Llama-3.1-8B", "unsloth/Llama-3.2-1B", "unsloth/Llama-3.1-70B", "microsoft/harrier-oss-v1-27b"],
)
def test_contexts_of_hub_models_count_rope_scaling_once(name: str) -> None:
    assert get_model(name).longest_context == 131_072


def test_towers_of_the_catalog_complete_the_published_total() -> None:
    model = get_model("openbmb/MiniCPM-V-2_6")
    assert model.num_parameters + model.vision_parameters == model.published_parameters == 8_099_175_152
    assert model.estimated_fields == ()


# PyPI llmfit 1.1.17 hf_models.json: totals of whole checkpoints; Pixtral's 24 layers of 1,024 and its projector.
def test_small_document_readers_sum_exactly() -> None:
    reader = get_model("lightonai/LightOnOCR-2-1B")
    assert reader.num_parameters + reader.vision_parameters == 1_005_647_872
    for name, total in (("datalab-to/chandra-ocr-2", 5_295_564_288), ("datalab-to/surya-ocr-2", 686_154_304)):
        model = get_model(name)
        assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    glm = get_model("zai-org/GLM-OCR")
    assert (glm.num_layers, glm.layers[0].mixer.num_kv_heads, glm.estimated_fields) == (16, 8, ())


# Derivatives that keep the config (unsloth, huihui-ai) have 32,768 positions; the model card tells of YaRN to 131,072.
def test_contexts_that_need_rope_scaling() -> None:
    model = get_model("Qwen/Qwen2.5-72B-Instruct")
    assert (model.max_position_embeddings, model.longest_context) == (32_768, 131_072)
    assert get_model("Qwen/Qwen2.5-1.5B-Instruct").longest_context == 32_768
    made = {
        length: plan_memory(model, get_gpu("H200 SXM"), EngineSettings(), Parallelism(tensor_parallel_size=4),
                            max_model_len=length)
        for length in (32_768, 65_536)
    }  # fmt: skip
    assert [any("RoPE scaling" in note for note in made[length].notes) for length in made] == [False, True]
    assert made[32_768].longest_context_tokens == 131_072
    with pytest.raises(InvalidInput) as caught:
        Scenario(model="Qwen/Qwen2.5-72B-Instruct", max_model_len=200_000)
    assert "at most 131,072" in str(caught.value)


# vllm-project/recipes pull 810, vllm-project/vllm pull 57497: this publisher keeps other groups wide than most.
def test_checkpoints_by_publisher_are_found_by_their_whole_id() -> None:
    wide = get_model("inferact/qwen3.8-27b-nvfp4")
    assert (wide.quantization, dict(wide.group_bits)) == ("nvfp4", {"attention": 16.0, "lm_head": 16.0})
    assert wide.num_parameters == get_model("Qwen/Qwen3.8-27B").num_parameters
    for usual in ("Qwen3.8-27B-NVFP4", "someone/Qwen3.8-27B-NVFP4"):
        assert (get_model(usual).quantization, get_model(usual).group_bits) == ("nvfp4", ())
    for row in read_table("catalog/checkpoints.csv"):
        assert row["source"]
        assert get_model(row["id"]).name == row["id"]


# vLLM's recipe of Intern-S2-Preview: 36B in all, 3B active, 262,144 tokens; BF16, and FP8 in blocks of 128 x 128.
def test_intern_s2_preview_has_the_shape_of_qwen3_5() -> None:
    model = get_model("internlm/Intern-S2-Preview")
    whole = model.num_parameters + model.vision_parameters + model.mtp_parameters
    assert whole / 1e9 == pytest.approx(36, rel=0.01)
    assert model.max_position_embeddings == 262_144
    assert (model.quantization, get_model("internlm/Intern-S2-Preview-FP8").quantization) == ("", "fp8_block")
