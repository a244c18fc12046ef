"""The accuracy page's rows: measured beside predicted, those that count alone."""

import pandas as pd

from planner.accuracy.snapshot import STEP_ROWS_KEPT, rows_of, with_left_out
from planner.accuracy.validation import Validation
from tests.accuracy.published_rows import STEP


def done(kind: str, predicted: pd.DataFrame) -> Validation:
    return Validation(kind=kind, num_rows=len(predicted), predicted=predicted, skipped={}, errors=())


def test_measured_and_predicted_stand_in_one_line() -> None:
    frame = pd.DataFrame(
        [
            {"id": name, "source": "s", "url": "u", "engine": "vLLM", "model": "Llama", "gpu": "g", "notes": note,
             "arrival": "concurrency", "tpot_ms_mean": figure}
            for name, note, figure in (("a", "", 10.0), ("b", "SPECULATIVE DECODING ON", 5.0), ("c", "", None))
        ]
    )  # fmt: skip
    guesses = pd.DataFrame({"id": ["a", "b", "c"], "pred_tpot_ms_mean": [11.0, 6.0, 7.0]})
    peer = pd.DataFrame({"id": ["a"], "pred_tpot_ms_mean": [12.0]})
    (line,) = rows_of(frame, done("serving", guesses), peer).to_dict("records")
    assert (line["id"], line["class"], line["quantity"]) == ("a", "dense", "tpot_ms_mean")
    assert (line["measured"], line["predicted"], line["peer"], line["source"]) == (10.0, 11.0, 12.0, "u")


def test_step_times_are_thinned_evenly() -> None:
    frame = pd.DataFrame([STEP | {"id": str(number)} for number in range(3 * STEP_ROWS_KEPT)])
    guesses = pd.DataFrame({"id": frame["id"], "pred_step_ms": 7.0})
    rows = rows_of(frame, done("step", guesses))
    assert rows["id"].tolist() == ["0", str(STEP_ROWS_KEPT), str(2 * STEP_ROWS_KEPT)]


def test_left_out_predictions_replace_those_that_are_there() -> None:
    table = pd.DataFrame({"id": ["a", "b"], "quantity": ["tpot_ms_mean"] * 2, "left_out": [1.0, 2.0]})
    new = pd.DataFrame(
        {"id": ["a"], "quantity": ["tpot_ms_mean"], "family": ["vllm"], "group": ["s"], "evidence": ["measured"],
         "left_out": [3.0]}
    )  # fmt: skip
    joined = with_left_out(table, new)
    assert joined["left_out"].tolist()[:1] == [3.0]
    assert joined["left_out"].isna().tolist() == [False, True]
    assert joined["evidence"].tolist() == ["measured", ""]
