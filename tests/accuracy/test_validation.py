"""Measurement files from many hands: an odd cell or a missing column costs its row, never the file."""

import pandas as pd
import pytest

from planner.accuracy.validation import format_validation, kind_of, read_rows, validate
from planner.errors import InvalidInput
from tests.accuracy.published_rows import STEP

SERVING = {
    "id": "a", "source": "s", "engine": "vLLM", "engine_version": "0.11", "model": "Llama-3.1-8B",
    "gpu": "H100-SXM-80GB", "n_gpus": "1", "tp": "1", "pp": "1", "ep": "1", "weight_dtype": "FP8", "kv_dtype": "",
    "isl": "128", "osl": "16", "arrival": "concurrency", "concurrency": "4", "request_rate_rps": "", "n_requests": "8",
    "output_tok_s_total": "500", "notes": "",
}  # fmt: skip
MEMORY = {
    "id": "a", "engine": "vllm", "version": "0.19.0", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100",
    "gpu_mem_gib": "79.19", "tp": "1", "max_model_len": "8192", "weights_gib_per_gpu": "14.99", "outcome": "started",
}  # fmt: skip
ODD = ("inf", "-inf", "nan", "", "1e-300", "1e300", "1e20", "-4", "0.5", "many", "9" * 5000, "[[1]]")


def written(tmp_path, rows):
    path = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("row", [STEP, SERVING, MEMORY], ids=["step", "serving", "memory"])
def test_one_odd_cell_never_costs_the_file(tmp_path, row):
    rows = [row | {column: cell} for column in row if column != "id" for cell in ODD]
    done = validate(written(tmp_path, [*rows, row]))
    assert done.num_rows == len(rows) + 1
    assert len(done.predicted) == done.num_rows
    assert len(done.skipped) < done.num_rows
    assert done.num_rows - 1 not in done.skipped  # the whole row at the end is predicted
    assert all("\n" not in reason and len(reason) <= 200 for reason in done.skipped.values())
    blank = done.predicted.drop(columns="id").isna().all(axis=1)
    assert set(blank[blank].index) == set(done.skipped)


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [
        (STEP, "batch", "-4"),
        (STEP, "ctx", "-100"),
        (STEP, "ctx", "inf"),
        (STEP, "tp", "inf"),
        (STEP, "phase", "foo"),
        (STEP, "model", ""),
        (STEP, "gpu", "nan"),
        (SERVING, "tp", "1e-300"),
        (SERVING, "pp", "inf"),
        (SERVING, "concurrency", "1e20"),
        (SERVING, "isl", "-1"),
        (SERVING, "n_requests", "inf"),
        (SERVING, "model", ""),
    ],
)
def test_a_cell_that_no_run_can_have_skips_its_row_with_the_reason(tmp_path, row, column, cell):
    done = validate(written(tmp_path, [row | {column: cell}, row]))
    assert list(done.skipped) == [0]
    named = {"model": "shape", "gpu": "gpu"}.get(column, column)
    assert named in done.skipped[0]


@pytest.mark.parametrize("row", [STEP, SERVING, MEMORY], ids=["step", "serving", "memory"])
def test_a_missing_column_is_one_of_blanks(tmp_path, row):
    for column in row:
        done = validate(written(tmp_path, [{name: cell for name, cell in row.items() if name != column}]))
        needed = {"model", "gpu", "batch", "ctx", "isl", "osl"} if row is not MEMORY else {"model", "engine"}
        needed -= {"isl"} if row is STEP else set()
        needed |= {"concurrency"} if row is SERVING else set()  # a closed loop of how many?
        assert (len(done.skipped) == 1) == (column in needed), (column, done.skipped)
        assert format_validation(done)


@pytest.mark.parametrize("column", ["step_ms", "output_tok_s_total", "weights_gib_per_gpu"])
def test_a_file_that_does_not_say_what_ran_is_refused(tmp_path, column):
    with pytest.raises(InvalidInput, match="model, gpu"):
        validate(written(tmp_path, [{"id": "a", column: "1"}]))


@pytest.mark.parametrize(("row", "kind"), [(STEP, "step"), (SERVING, "serving"), (MEMORY, "memory")])
def test_inputs_alone_tell_the_kind_too(row, kind):
    measured = {"step_ms", "output_tok_s_total", "weights_gib_per_gpu"}
    assert kind_of(pd.DataFrame([{name: cell for name, cell in row.items() if name not in measured}])) == kind


def test_rows_are_counted_not_ids(tmp_path):
    done = validate(written(tmp_path, [STEP, STEP | {"batch": "-1"}, STEP | {"phase": "foo"}]))
    body = done.to_dict()
    assert (body["rows"], body["predicted"], body["skipped"]) == (3, 1, 2)
    assert sum(body["skip_reasons"].values()) == 2


def test_rows_with_one_id_keep_their_own_predictions(tmp_path):
    # the second row's step is measured as the first's: only a row-by-row match gives two different errors
    done = validate(written(tmp_path, [STEP, STEP | {"batch": "256", "ctx": "8192"}]))
    (line,) = [item for item in done.errors if item.group == "class"]
    first, second = done.predicted.pred_step_ms / 7.0 - 1
    assert line.signed_median_pct == pytest.approx(100 * (first + second) / 2)
    assert second > first + 0.5


def test_blank_ids_are_row_numbers(tmp_path):
    frame = read_rows(written(tmp_path, [STEP | {"id": ""}, STEP]))
    assert frame["id"].tolist() == ["0", "a"]


def test_an_infinite_rate_is_everything_at_once(tmp_path):
    open_loop = SERVING | {"arrival": "poisson", "request_rate_rps": "inf"}
    done = validate(written(tmp_path, [open_loop, open_loop | {"arrival": "offline", "request_rate_rps": ""}]))
    assert done.skipped == {}
    first, second = done.predicted.pred_output_tok_s_total
    assert first == second
