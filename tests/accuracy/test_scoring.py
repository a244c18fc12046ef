"""Which rows count, and errors worked out by hand."""

import math

import pandas as pd
import pytest

from planner.accuracy.scoring import guesses, measured_values, serving_class, serving_counts, serving_report


def test_scoring_by_hand():
    frame = pd.DataFrame(
        [
            {"id": i, "source": "s", "engine": "vLLM", "gpu": "g", "model": "Llama", "arrival": "concurrency",
             "notes": note, "tpot_ms_mean": 10.0}
            for i, note in (("a", ""), ("b", ""), ("c", ""), ("d", "SPECULATIVE DECODING ON"))
        ]
    )  # fmt: skip
    predicted = pd.DataFrame({"id": ["a", "b", "d"], "pred_tpot_ms_mean": [11.0, 9.8, 99.0]})
    assert serving_class(frame).unique().tolist() == ["dense"]
    assert serving_counts(frame, "tpot_ms_mean").tolist() == [True, True, True, False]
    (line,) = [x for x in serving_report(frame, predicted) if x.group == "class"]
    assert (line.rows, line.predicted) == (3, 2)
    assert line.signed_median_pct == pytest.approx(4.0)  # median of +10 % and −2 %
    assert line.median_pct == pytest.approx(6.0)
    assert line.p90_pct == pytest.approx(2 + 0.9 * 8)


def test_only_positive_finite_figures_were_measured():
    frame = pd.DataFrame({"step_ms": ["1", "0", "-1", "inf", "1e400", "nan", "fast", None]})
    assert measured_values(frame, "step_ms").tolist()[0] == 1
    assert measured_values(frame, "step_ms").notna().sum() == 1
    assert measured_values(frame, "ttft").isna().all()


def test_another_tools_predictions_are_found_by_id():
    frame = pd.DataFrame({"id": ["a", "b", "c"]})
    peer = pd.DataFrame({"id": ["c", "a"], "pred_x": [3.0, 1.0]})
    found = guesses(frame, peer, "x")
    assert found.tolist()[::2] == [1.0, 3.0]
    assert math.isnan(found[1])
    assert guesses(frame, peer, "y").isna().all()
