"""What vendors recommend for a model."""

import dataclasses
import datetime

import pytest

from planner.catalog.gpus import gpu_names
from planner.catalog.recommended import recommended_deployments
from planner.errors import InvalidInput
from planner.tables import read_table


def test_every_row_names_a_gpu_of_the_catalog_and_its_source():
    for row in read_table("catalog/recommended_deployments.csv"):
        assert row["gpu"] in gpu_names()
        assert row["source"].startswith("https://")
        if len(row["date"]) == 10:
            datetime.date.fromisoformat(row["date"])


def test_a_recommendation_is_found_by_every_checkpoint_of_the_model():
    # Z.ai's README: GLM-4.5 at its full context of 128K on 16 H200 in bf16, or on 8 in FP8.
    by_name = {name: recommended_deployments(name) for name in ("zai-org/GLM-4.5", "zai-org/GLM-4.5-FP8")}
    assert by_name["zai-org/GLM-4.5"] == by_name["zai-org/GLM-4.5-FP8"]
    full = {(x.model, x.gpus) for x in by_name["zai-org/GLM-4.5"] if x.max_model_len and x.gpu == "H200 SXM"}
    assert full == {("zai-org/GLM-4.5", 16), ("zai-org/GLM-4.5-FP8", 8)}


def test_a_split_is_that_of_the_source_as_far_as_it_says():
    # vLLM's recipe: "8xH200 / 8xH20 FP8 (DP=8, recommended)" with expert parallelism; GLM's names only the GPUs.
    (coder,) = (x for x in recommended_deployments("Qwen/Qwen3-Coder-480B-A35B-Instruct") if x.gpu == "H200 SXM")
    split = {"tensor_parallel_size": 1, "attention_data_parallel_size": 8, "expert_parallel": True}
    assert coder.splits_as(split)
    assert not coder.splits_as(split | {"attention_data_parallel_size": 4, "tensor_parallel_size": 2})
    assert recommended_deployments("zai-org/GLM-4.6")[0].splits_as(split)


def test_nothing_is_recommended_for_most_models():
    assert recommended_deployments("Qwen/Qwen3-8B") == ()


@pytest.mark.parametrize("changes", [{"gpus": 0}, {"tensor_parallel_size": 0}, {"max_model_len": 0}, {"source": ""}])
def test_a_row_that_cannot_be_is_refused(changes):
    row = recommended_deployments("zai-org/GLM-4.5")[0]
    with pytest.raises(InvalidInput) as caught:
        dataclasses.replace(row, **changes)
    assert caught.value.field == next(iter(changes))
