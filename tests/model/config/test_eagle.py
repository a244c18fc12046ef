"""EAGLE-3 heads: parameters counted by hand after vLLM's models/llama_eagle3.py, and a file's size."""

import pytest

from planner.catalog.models import draft_head_names, get_model, model_names
from planner.inputs.hardware import Parallelism
from planner.memory.shards import pipeline_stages
from planner.model.config.build import model_from_config
from planner.model.config.eagle import eagle3_layers

HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "draft_vocab_size": 32_000,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
FUSION = 3 * 4096 * 4096
LAYER = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14_336
OUTPUT = 32_000 * 4096


def test_parameters_of_a_head() -> None:
    model = model_from_config(HEAD)
    assert model.num_parameters == pytest.approx(FUSION + LAYER + OUTPUT, abs=4 * 4096)  # and norms
    assert model.embedding_parameters == FUSION  # the embedding is the model's
    assert model.vocab_size == 128_256  # that of the model, which must be the same


def test_a_heads_file_is_as_large_as_published() -> None:
    # A head trained with SpecForge's config for Llama-3.1-8B: model.safetensors of 811 MB, embedding not included.
    model = get_model("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B")
    assert 2 * model.num_parameters / 2**20 == pytest.approx(811, rel=0.002)


def test_without_a_draft_vocabulary_the_head_has_the_models() -> None:
    whole = {name: value for name, value in HEAD.items() if name != "draft_vocab_size"}
    assert model_from_config(whole).lm_head_parameters == 128_256 * 4096


def test_ranks_divide_the_layer_and_the_output_but_not_the_fusion() -> None:
    model = model_from_config(HEAD)
    (stage,) = pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=4), False)
    sizes = dict(stage.weights_by_group)
    assert sizes["embedding"] == 2 * FUSION
    assert sizes["lm_head"] == 2 * OUTPUT / 4
    assert sizes["attention"] + sizes["mlp"] == 2 * LAYER / 4


def test_a_wider_model_is_fused_from_its_own_width() -> None:
    assert model_from_config(HEAD | {"target_hidden_size": 8192}).embedding_parameters == 3 * 8192 * 4096


def test_heads_draft_and_are_no_models() -> None:
    assert not set(draft_head_names()) & set(model_names())
    for name in draft_head_names():
        assert get_model(name).draft_vocab_size == 32_000 and get_model(name).source


def test_only_the_first_layer_reads_the_embedding() -> None:
    first, second = eagle3_layers(list(model_from_config(HEAD | {"num_hidden_layers": 2, "architectures": []}).layers))
    widths = [{linear.in_features for linear in x.linears if linear.name == "q_proj"} for x in (first, second)]
    assert widths == [{2 * 4096}, {4096}]
