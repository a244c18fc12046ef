import pytest

from planner.catalog import base_model_id, get_model
from planner.catalog.formats import ALIKE, one_of_each_kind, published_formats
from planner.errors import InvalidInput
from planner.model import weight_dtype_names
from planner.tables import read_table


def names(found):
    return {item.quantization for item in found}


def test_every_row_is_a_scheme_of_a_model_that_the_catalog_knows():
    for row in read_table("catalog/published_formats.csv"):
        assert row["quantization"] in weight_dtype_names()
        assert any(row["quantization"] in group for group in ALIKE)
        assert get_model(row["model"]).quantization != row["quantization"]
        assert row["checkpoint"]
        assert row["source"]


def test_a_model_in_block_fp8_is_not_offered_in_fp8_per_tensor():
    # DeepSeek-V3 is published with weight_block_size [128, 128]; NVIDIA has it in NVFP4, QuixiAI in AWQ.
    assert names(published_formats("deepseek-ai/DeepSeek-V3")) == {"awq_int4", "nvfp4"}


def test_a_checkpoint_has_the_formats_of_the_model_that_it_was_made_of():
    formats = published_formats("Qwen/Qwen3-32B-FP8")
    assert formats[0].quantization == "bf16"
    assert formats[0].checkpoint == "Qwen/Qwen3-32B"
    assert names(formats) | {"fp8_block"} == names(published_formats("Qwen/Qwen3-32B")) | {"bf16"}
    assert {item.checkpoint for item in published_formats("Qwen/Qwen3-32B") if item.quantization == "awq_int4"} == {
        "Qwen/Qwen3-32B-AWQ"
    }


def test_of_formats_alike_the_publishers_own_is_kept():
    # Qwen3-32B: fp8 per channel by RedHatAI, in blocks by Qwen itself; NVFP4 by NVIDIA and by RedHatAI.
    kept = {item.quantization: item.checkpoint for item in one_of_each_kind("Qwen/Qwen3-32B")}
    assert kept["fp8_block"] == "Qwen/Qwen3-32B-FP8"
    assert "fp8" not in kept
    assert ("nvfp4" in kept) != ("nvfp4_linear" in kept)
    for group in ALIKE:
        assert sum(name in kept for name in group) <= 1


def test_nothing_like_the_models_own_format_is_tried_beside_it():
    assert not names(one_of_each_kind("deepseek-ai/DeepSeek-V3")) & {"fp8", "fp8_block"}
    assert base_model_id("openai/gpt-oss-120b") == "openai/gpt-oss-120b"
    assert "mxfp4" not in names(one_of_each_kind("openai/gpt-oss-120b"))


def test_an_unknown_model_is_told():
    with pytest.raises(InvalidInput, match="model"):
        published_formats("nobody/nothing-9000B")
