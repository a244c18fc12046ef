"""Left-out errors: fitted on made-up rows whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from planner.accuracy import folds
from planner.step_time import overhead, scaled_overheads


def rows(**columns):
    count = len(next(iter(columns.values())))
    plain = {"id": range(count), "engine": ["vLLM"] * count, "model": ["Llama-3.1-8B"] * count, "gpu": ["H100"] * count}
    usual = {"arrival": ["concurrency"] * count, "notes": [""] * count, "source": ["a"] * count}
    return pd.DataFrame(plain | usual | columns)


def test_a_scale_that_explains_every_row_is_found():
    slopes = np.linspace(0.2, 1.0, 40).reshape(40, 1, 1) * np.ones((40, 3, 1))
    scale = folds.fit_scales(slopes[..., 0] * np.log(1.3), slopes)
    assert np.exp(scale) == pytest.approx([1 / 1.3], rel=0.02)


def test_rows_that_do_not_count_change_nothing():
    slopes = np.ones((30, 3, 1))
    errors = np.full((30, 3), np.log(1.2))
    errors[:10] = np.nan
    assert np.exp(folds.fit_scales(errors, slopes)) == pytest.approx([1 / 1.2], rel=0.02)


def test_a_group_is_predicted_without_its_own_rows():
    # Three groups lie 20 % too high; the fourth lies right, and a fit to the others makes it too low.
    slopes = np.ones((40, 3, 1))
    errors = np.repeat([0.2, 0.2, 0.2, 0.0], 10)[:, None] * np.ones((40, 3))
    found = folds.left_out(errors, slopes, np.repeat(["a", "b", "c", "d"], 10).tolist())
    assert found[30:] == pytest.approx(np.full((10, 3), -0.2), abs=0.01)
    assert folds.left_out(errors, slopes, ["only"] * 40) == pytest.approx(errors)


def test_rows_of_unknown_kernels_inform_no_fit():
    # Ten rows of another vendor lie far too high; without them the rest is right, and so are they left out themselves.
    slopes = np.ones((30, 3, 1))
    errors = np.repeat([0.0, 0.0, 1.5], 10)[:, None] * np.ones((30, 3))
    groups = np.repeat(["a", "b", "c"], 10).tolist()
    informs = np.repeat([True, True, False], 10)
    assert folds.left_out(errors, slopes, groups, informs) == pytest.approx(errors, abs=1e-6)
    assert (folds.left_out(errors, slopes, groups)[:20] < -0.05).all()


def test_each_engine_is_fitted_to_rows_of_known_kernels():
    frame = rows(engine=["vLLM"] * 4, source=["a", "a", "b", "b"])
    base = np.array([0.0, 0.0, 1.5, 1.5])[:, None] * np.ones((4, 3 + len(folds.FURTHER)))
    slopes = np.ones((*base.shape, len(folds.FITTED)))
    found = folds.all_errors(frame, base, slopes, base, ["measured", "architecture", "none", ""])
    assert found["fitted"] == pytest.approx(base, abs=1e-6)
    assert found["no_source"] == pytest.approx(base, abs=1e-6)


def test_sensitivities_are_slopes_of_logarithms():
    frame = rows(ttft_ms_mean=["100"] * 2, tpot_ms_mean=["10"] * 2, output_tok_s_total=["50"] * 2)

    def predict(part):
        # TTFT grows with the request overhead to the power 1/2, nothing else moves.
        ratio = overhead("vllm", "", "request_overhead_ms") / stored
        column = pd.Series([1.0] * len(part))
        return (
            pd.DataFrame(
                {
                    "id": part["id"].to_numpy(),
                    "pred_ttft_ms_mean": 100 * ratio**0.5 * column,
                    "pred_tpot_ms_mean": 10 * column,
                    "pred_output_tok_s_total": 50 * column,
                }
            ),
            {},
        )

    stored = overhead("vllm", "", "request_overhead_ms")
    slopes = folds.sensitivities(frame, folds.log_errors(frame, predict(frame)[0]), predict)
    expected = np.zeros((2, 3 + len(folds.FURTHER), len(folds.FITTED)))
    expected[:, 0, folds.FITTED.index("request_overhead_ms")] = 0.5
    assert slopes == pytest.approx(expected)


def test_overheads_are_scaled_only_inside_the_block():
    before = overhead("vllm", "", "host_us")
    with scaled_overheads({("vllm", "host_us"): 2.0}):
        assert overhead("vllm", "", "host_us") == 2 * before
    assert overhead("vllm", "", "host_us") == before


def test_samples_of_one_file_are_one_source():
    frame = rows(source=["x(one)", "x(two)", "y-v1.0", "(z)"])
    assert folds.source_groups(frame).tolist() == ["x", "x", "y-v1.0", "?"]


def test_left_out_rows_hold_predictions_in_their_unit():
    frame = rows(ttft_ms_mean=["100", "50"], tpot_ms_mean=["10", ""], output_tok_s_total=["", ""],
                 gpu=["H100", "MI300X"], weight_dtype=["bf16"] * 2, isl=["100"] * 2, osl=["100"] * 2,
                 concurrency=["4"] * 2, notes=["", "SUSPECT: first run"])  # fmt: skip
    errors = np.full((2, 3 + len(folds.FURTHER)), np.nan)
    errors[0, :2], errors[1, 0] = [np.log(1.2), np.log(0.5)], 0.0
    found = folds.left_out_rows(frame, errors, folds.evidence_of_rows(frame))
    assert found["left_out"].tolist() == pytest.approx([120.0, 50.0, 5.0])
    assert found["evidence"].tolist() == ["measured", "", "measured"]  # a warm-up is evidence of nothing
    assert set(found["family"]) == {"vllm"}


def test_thinning_keeps_rows_of_every_pair():
    frame = rows(source=["a"] * 9 + ["b"], model=["m"] * 5 + ["n"] * 5)
    kept = folds.thinned(frame, 2)
    assert kept.groupby(["source", "model"]).size().to_dict() == {("a", "m"): 2, ("a", "n"): 2, ("b", "n"): 1}
    assert folds.thinned(frame, 0) is frame
