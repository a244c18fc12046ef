"""Vendors' deployments are among the candidates, and the reason for a cheaper one follows from both plans."""

import dataclasses

import pytest

from planner.answer.search.bounds import by_memory
from planner.answer.search.outcome import MEETS, MISSES, Candidate
from planner.answer.search.recommend import RECOMMENDED, recommend
from planner.answer.search.space import choices, deployments
from planner.answer.search.vendors import advice, recommended_among, recommended_for
from planner.catalog.recommended import recommended_deployments
from planner.scenario.scenario import Scenario
from planner.tables import read_table

from .spaces import few_requests

ROWS = [(row["model"], row["gpu"], int(row["gpus"])) for row in read_table("catalog/recommended_deployments.csv")]


@pytest.mark.parametrize(("model", "gpu", "gpus"), ROWS)
def test_what_a_vendor_recommends_is_in_the_space_and_starts(model, gpu, gpus):
    scenario = Scenario(model=model, gpu=gpu, max_model_len=4096, num_requests=100)
    (asked,) = (x for x in recommended_deployments(model) if (x.model, x.gpu, x.gpus) == (model, gpu, gpus))
    found = recommended_among(scenario, asked, deployments(scenario, choices(scenario, (gpu,))[0]))
    bounds = by_memory(scenario, [item.changes for item in found], few_requests)
    assert any(not bound.out for bound in bounds)
    assert {item.gpus_per_replica for item in found} == {gpus}


def test_a_search_shows_the_vendors_deployment_and_says_why_another_is_cheaper():
    scenario = Scenario(model="meta-llama/Llama-3.1-405B-Instruct-FP8", gpu="MI300X", users=60, num_requests=200)
    scenario = scenario.replace(ttft_target_s=5.0, tpot_target_s=0.2, tensor_parallel_size=4)
    search = recommend(scenario, gpus=("MI300X", "MI325X"), weight_dtypes=("auto",), budget=few_requests)
    shown = [row for row in search.candidates if row.recommended_by]
    assert {(row.scenario.gpu, row.scenario.tensor_parallel_size) for row in shown} == {("MI300X", 4), ("MI325X", 4)}
    assert search.advice.startswith("SGLang's cookbook recommends 4 × MI300X (TP 4)")
    assert recommended_for(scenario.replace(model="custom")) == ()


def test_no_model_has_more_recommended_deployments_than_a_search_plans():
    assert all(len(recommended_deployments(model)) <= RECOMMENDED for model, _, _ in ROWS)


def row(**changes):
    scenario = Scenario(model="zai-org/GLM-4.5", gpu="H200 SXM", tensor_parallel_size=16, users=60)
    figures = {"status": MEETS, "num_replicas": 1, "num_gpus": 16, "usd_per_month": 52_560.0, "usd_per_gpu_hour": 4.5}
    return Candidate(**{"scenario": scenario, "slo_rate_rps": 20.0} | figures | changes)


def test_the_reasons_are_those_of_both_plans():
    # 60 users × 30 requests an hour × 2 at the peak = 1 req/s. 355 B parameters in bf16 are about 660 GiB.
    (theirs,) = (x for x in recommended_deployments("zai-org/GLM-4.5") if x.gpus == 16 and x.gpu == "H200 SXM")
    narrow = row().scenario.replace(weight_dtype="fp8", tensor_parallel_size=4)
    ours = row(scenario=narrow, num_gpus=4, usd_per_month=13_140.0)
    said = advice(theirs, row(), ours)
    assert said.startswith("Z.ai's README recommends 16 × H200 SXM (TP 16) for zai-org/GLM-4.5: 52,560 USD a month")
    assert "theirs is for contexts of 131,072 tokens, and this plan has 8,192" in said
    assert "theirs meets the targets up to 20 req/s, and 1 req/s arrive" in said
    assert "GiB instead of" in said
    assert "4 GPUs suffice" in said
    assert "costs" not in said.split("because")[1]  # the same price of a GPU-hour


def test_what_misses_or_is_cheapest_is_said():
    theirs = dataclasses.replace(recommended_deployments("zai-org/GLM-4.5")[0], by="vLLM's recipes")
    missed = advice(theirs, row(status=MISSES, reason="TPOT 97 ms, target 50 ms"), row())
    assert missed.endswith("for this traffic it misses the targets: TPOT 97 ms, target 50 ms.")
    assert advice(theirs, row(), row()).endswith("which is the cheapest here too.")
    assert advice(theirs, row(), row()).startswith("vLLM's recipes recommend ")
