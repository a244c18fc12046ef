"""Errors of the Accuracy page by hand."""

import pandas as pd
import pytest

from planner.answer.planning import size
from planner.dashboard.published import (
    accuracy_rows,
    against_peer,
    class_in_words,
    error_table,
    left_out,
    left_out_rows,
    memory_left_out,
    memory_left_out_rows,
    quantities,
    rows_like,
    sentence,
)
from planner.scenario.scenario import Scenario


@pytest.fixture
def rows():
    return pd.DataFrame(
        {
            "quantity": ["tpot_ms_mean"] * 4,
            "class": ["dense", "dense", "dense", "moe"],
            "model": ["x/Llama-3.1-8B-Instruct", "b", "c", "d"],
            "gpu": ["NVIDIA H100-SXM-80GB", "L40S", "L40S", "L40S"],
            "engine": ["vLLM 0.9", "SGLang", "vLLM", "vLLM"],
            "measured": [10.0, 10.0, 10.0, 10.0],
            "predicted": [11.0, 8.0, 13.0, 10.0],
            "left_out": [12.0, 8.0, float("nan"), 10.0],
            "peer_predicted": [14.0, float("nan"), float("nan"), 9.0],
        }
    )


def test_errors_by_class(rows):
    dense = error_table(rows, "class").set_index("class").loc["dense"]
    assert dense["rows"] == 3
    assert dense["median, all"] == pytest.approx(0.2)  # of 10 %, 20 %, 30 %
    assert dense["median left out"] == pytest.approx(0.2)  # of 20 %, 20 %
    assert dense["signed left out"] == pytest.approx(0.2)  # of +20 %, −20 %, +30 %
    assert dense["shared rows"] == 1
    assert dense["ours, shared"] == pytest.approx(0.2)
    assert dense["AIConfigurator"] == pytest.approx(0.4)


def test_classes_are_words(rows):
    assert list(error_table(rows, "class")["class"]) == ["dense", "mixture of experts"]
    assert class_in_words("sliding-window hybrid moe") == "sliding window, hybrid, mixture of experts"
    assert class_in_words("dense gqa") == "dense, grouped-query attention"


def test_peer_is_compared_on_the_rows_that_it_predicts(rows):
    # ours, source left out, 20 % and 0 %, the peer 40 % and 10 %: medians 10 % and 25 %
    assert "2 of these rows" in against_peer(rows)
    assert "25 %, ours 10.0 % with each row's source left out" in against_peer(rows)


def test_rows_like_the_scenario(rows):
    plan = size(Scenario())
    assert list(rows_like(rows, plan, "this GPU").index) == [0]
    assert list(rows_like(rows, plan, "this engine").index) == [0, 2, 3]
    assert list(rows_like(rows, plan, "this model").index) == [0]
    assert list(rows_like(rows, plan, "this class (dense or MoE)").index) == [0, 1, 2]
    assert len(rows_like(rows, plan, "all")) == 4


def test_words(rows):
    assert quantities(rows) == ["tpot_ms_mean"]
    said = sentence(rows, [{"quantity": "kv_tokens", "no_model_median_pct": "0.13"}])
    assert said.endswith("did not see: TPOT 20 %, KV cache tokens 0.1 %")  # median of 0, 20, 20, 30 %


def test_memory_errors_without_the_logs_of_each_model():
    rows = [
        {"quantity": "kv_tokens", "no_model_median_pct": "0.13", "no_model_p90_pct": "10.12"},
        {"quantity": "outcome", "no_model_median_pct": "93.96", "no_model_p90_pct": ""},
    ]
    said = memory_left_out(rows)
    assert "KV cache in tokens 0.1 % (9 in 10 within 10 %), start or refusal right in 94 %" in said
    assert memory_left_out([]) == ""
    assert "memory for the KV cache" in memory_left_out(memory_left_out_rows())


def test_errors_of_rows_left_out_of_the_fit():
    line = {"quantity": "ttft_ms_mean", "group": "moe", "no_source_median_pct": "21.2", "no_source_p90_pct": "73.0"}
    said = left_out([line, line | {"group": "moe · vLLM"}, line | {"quantity": "req_s"}])
    assert said.endswith("the median error is: TTFT 21 % (mixture of experts, 9 in 10 within 73 %).")
    assert left_out([]) == ""
    assert len(left_out(left_out_rows()).split(";")) == 6  # three quantities, dense and mixture of experts


def test_links_of_rows_are_whole():
    found = accuracy_rows()
    assert found is not None
    assert found["source"].str.contains("#").any()  # an anchor belongs to its link
    assert found.loc[found["kind"] == "serving", "left_out"].notna().mean() > 0.9
