"""Predicted columns of published start-up logs."""

import pandas as pd
import pytest

from planner.accuracy.memory import predict
from planner.accuracy.memory_rows import read_case
from planner.answer import size
from planner.scenario import Scenario
from planner.units import GIB
from tests.accuracy.published_rows import START_UP as ROW


def test_row_is_predicted() -> None:
    predicted, skipped = predict(pd.DataFrame([ROW]))
    row = predicted.iloc[0]
    assert skipped == {}
    assert row.pred_weights_gib_per_gpu == pytest.approx(14.99, rel=0.001)
    assert row.pred_available_kv_gib == pytest.approx(58.11, rel=0.01)
    assert row.pred_kv_tokens == pytest.approx(476_016, rel=0.01)
    assert row.pred_outcome == "started"


def test_a_row_is_sized_as_any_scenario() -> None:
    predicted, _ = predict(pd.DataFrame([ROW]))
    same = Scenario(model="meta-llama/Llama-3.1-8B-Instruct", gpu="H100 SXM", engine_version="0.19.0", block_size=16,
                    gpu_total_gib=read_case(ROW).scenario.gpu_total_gib, max_num_seqs=1024, gpu_memory_utilization=0.95,
                    max_num_batched_tokens=8192)  # fmt: skip
    memory = size(same).memory
    assert predicted.pred_kv_tokens[0] == memory.kv_tokens
    assert predicted.pred_available_kv_gib[0] == memory.kv_pool_bytes / GIB


def test_row_without_a_known_model_is_skipped_with_its_reason() -> None:
    predicted, skipped = predict(pd.DataFrame([ROW, ROW | {"id": "b", "model": "something private"}]))
    assert list(predicted.id) == ["a", "b"]
    assert predicted.drop(columns="id").iloc[1].isna().all()
    assert "something private" in skipped[1]


def test_row_without_a_gpu_predicts_weights_only() -> None:
    predicted, _ = predict(pd.DataFrame([ROW | {"gpu": "", "gpu_mem_gib": ""}]))
    assert predicted.pred_weights_gib_per_gpu[0] > 0
    assert pd.isna(predicted.pred_kv_tokens[0])
