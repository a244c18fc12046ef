"""Left-out errors of the memory arithmetic: fitted on made-up rows whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from planner.accuracy import memory_folds
from planner.memory import stored_constants

FIGURES = len(memory_folds.FITTED_TO)


def made_up(multiples, rows=40):
    """Rows that each depend on two constants, predicted with multiples of 1 where `multiples` would be right."""
    slope = np.random.default_rng(3).uniform(0.5, 2.0, (rows, FIGURES, len(multiples)))
    return slope @ (1 - np.asarray(multiples)), slope


def logs(**columns):
    count = len(next(iter(columns.values())))
    names = ("id", "source_repo", "url", "engine", "version", "model", "gpu", "gpu_mem_gib", "n_gpus", "tp", "outcome")
    blank = {name: [""] * count for name in (*names, "evidence", "max_model_len", *memory_folds.FITTED_TO)}
    return pd.DataFrame(blank | {"id": [str(number) for number in range(count)]} | columns)


def test_constants_that_explain_every_row_are_found():
    base, slope = made_up([0.8, 1.5])
    assert memory_folds.fit_constants(base, slope, np.ones(2)) == pytest.approx([0.8, 1.5], rel=1e-3)


def test_one_row_far_off_does_not_move_the_constants():
    base, slope = made_up([0.8, 1.5])
    base[0] += 50.0
    assert memory_folds.fit_constants(base, slope, np.ones(2)) == pytest.approx([0.8, 1.5], rel=0.02)


def test_a_constant_that_no_row_informs_goes_back_to_what_is_assumed_without_logs():
    base, slope = made_up([0.8, 1.5])
    slope[..., 1] = 0.0
    assert memory_folds.fit_constants(base, slope, np.array([1.0, 0.25]))[1] == pytest.approx(0.25)


def test_no_constant_is_negative():
    base, slope = made_up([-0.5, 1.5])
    assert memory_folds.fit_constants(base, slope, np.ones(2))[0] == 0.0


def test_slopes_are_gibibytes_per_constant():
    # vLLM 0.19 on two H100: the collective buffers are part of what is not PyTorch's, and the pool loses them.
    frame = logs(
        engine=["vllm"],
        version=["0.19.0"],
        model=["meta-llama/Llama-3.1-8B-Instruct"],
        gpu=["H100"],
        n_gpus=["2"],
        tp=["2"],
        non_torch_gib=["2.1"],
        available_kv_gib=["60"],
    )
    base = memory_folds.differences(frame)
    found = memory_folds.slopes(frame, base)
    column = list(stored_constants()).index("collectives_later")
    place = {name: number for number, name in enumerate(memory_folds.FITTED_TO)}
    assert found[0, place["non_torch_gib"], column] == pytest.approx(1.83)
    assert found[0, place["available_kv_gib"], column] == pytest.approx(-1.83)
    assert base[0, place["non_torch_gib"]] == pytest.approx(2.08 - 2.1)
    assert np.isnan(base[0, place["cuda_graph_gib"]])


def test_a_model_is_predicted_without_its_own_logs():
    # Only the first model's rows say that the context takes 1.25 GiB instead of 0.25; left out, they are predicted
    # with what the others say.
    names = ["meta-llama/Llama-3.1-8B-Instruct"] * 2 + ["Qwen/Qwen3-8B"] * 6
    frame = logs(
        engine=["vllm"] * 8,
        version=["0.19.0"] * 8,
        model=names,
        gpu=["H100"] * 8,
        n_gpus=["1"] * 8,
        non_torch_gib=["1.25"] * 2 + ["0.25"] * 6,
    )
    base = memory_folds.differences(frame)
    slope = memory_folds.slopes(frame, base)
    found = memory_folds.left_out(frame, base, slope, memory_folds.models_of(frame))
    assert found["pred_non_torch_gib"].iloc[:2].to_numpy() == pytest.approx([0.25, 0.25], rel=0.02)


def test_sources_are_repositories_or_addresses():
    frame = logs(source_repo=["a/b", "", ""], url=["https://x", "https://y", ""])
    assert memory_folds.sources_of(frame).tolist() == ["a/b", "https://y", "?"]


def test_the_report_has_the_errors_by_method_and_the_outcomes():
    frame = logs(available_kv_gib=["10", "20"], outcome=["started", "refused_max_len_exceeds_kv"])
    right = pd.DataFrame({"id": ["0", "1"], "pred_available_kv_gib": [10.0, 20.0], "pred_outcome": ["started", "oom"]})
    wrong = right.assign(pred_available_kv_gib=[11.0, 20.0], pred_outcome="started")
    table = memory_folds.report(frame, {"stored": right, "no_model": wrong}).set_index("quantity")
    assert table.loc["available_kv_gib", "no_model_median_pct"] == pytest.approx(5.0)
    assert table.loc["available_kv_gib", "stored_median_pct"] == 0.0
    assert table.loc["outcome", ["stored_median_pct", "no_model_median_pct"]].tolist() == [100.0, 50.0]
