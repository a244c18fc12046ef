"""Published words become fields of the Scenario. Expected values are those of the flags that the rows cite."""

import csv

import pytest

from planner.accuracy.memory_gpus import DEVICES
from planner.accuracy.names import ENGINES, MODELS, SCHEMES
from planner.accuracy.row_reader import number_in, read_fields, typed
from planner.accuracy.serving_rows import FACTS
from planner.accuracy.serving_rows import SETTINGS as SERVING
from planner.catalog import engine_names, gpu_names, model_names
from planner.catalog.models import find_model_id
from planner.errors import InvalidInput
from planner.model import weight_dtype_names
from planner.scenario import Scenario, fields_by_name
from planner.tables import PLANNER, read_table

TABLE = "accuracy/data/memory_patterns.csv"
TABLES = (TABLE, SERVING, DEVICES, ENGINES, MODELS, SCHEMES)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8192 (default)", 8192),
        ("1M", 1_000_000),
        ("32k", 32_768),
        ("~525000", 525_000),
        ("262,144", 262_144),
        ("8-1", 7),
        ("-5", -5),
        ("79.19-60.87", 18.32),
        ("(default V0: =max_model_len)", None),
        ("", None),
        ("9" * 400, None),
    ],
)
def test_numbers_in_cells(text: str, number: float | None) -> None:
    assert number_in(text) == (None if number is None else pytest.approx(number))


def test_values_take_the_type_of_their_field() -> None:
    assert typed("max_num_seqs", "1,024") == 1024
    assert typed("gpu_memory_utilization", ".9") == 0.9
    assert typed("expert_parallel", "yes") is True
    assert typed("engine_version", "0.19.0") == "0.19.0"
    with pytest.raises(InvalidInput, match="max_num_seqs"):
        typed("max_num_seqs", "many")
    with pytest.raises(InvalidInput, match="no_such_field"):
        typed("no_such_field", "1")


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"version": "0.6.5-dev (V0)"}, {"engine_version": "0.6.5", "engine_core": "v0"}),
        ({"version": "0.1.dev9876+gabc"}, {}),
        ({"version": "0.26.1rc1.dev608+g99a10304d"}, {"engine_version": "0.26.1rc1.dev608"}),
        ({"max_num_seqs": "4", "other_flags": "--max-num-seqs 8"}, {"max_num_seqs": 4}),
        ({"other_flags": "--max-num-seqs 8"}, {"max_num_seqs": 8}),
        ({"engine": "llama.cpp", "max_model_len": "32768 total (4 slots x 8192)"},
         {"max_model_len": 8192, "max_num_seqs": 4}),
        ({"block_size": "1568 (attention block after mamba alignment, padding 0.13%)"}, {}),
        ({"engine": "vllm", "block_size": "784"}, {}),
        ({"engine": "LMDeploy", "block_size": "64"}, {"block_size": 64}),
        ({"notes": "MTP off"}, {}),
        ({"notes": "speculative-num-draft-tokens 4"}, {"num_speculative_tokens": 3}),
        ({"kv_cache_dtype": "auto", "other_flags": "--kv-cache-dtype fp8"}, {}),
    ],
)  # fmt: skip
def test_rows_are_read(row: dict[str, str], fields: dict[str, object]) -> None:
    assert read_fields(row, TABLE) == fields


@pytest.mark.parametrize("table", TABLES)
def test_lines_name_fields_of_the_scenario_and_their_source(table: str) -> None:
    for line in read_table(table):
        assert line["source"]
        if table == SERVING and line["field"] in FACTS:
            continue
        assert line["field"] in fields_by_name()
        choices = fields_by_name()[line["field"]].metadata["choices"]
        assert not choices or "\\" in line["value"] or line["value"] in ("", *choices)


def test_values_are_names_of_the_catalog() -> None:
    for line in read_table(MODELS):
        if "\\" in line["value"]:
            before, _, after = line["value"].partition("\\1")
            assert any(name.startswith(before) and name.endswith(after) for name in model_names())
        else:
            assert find_model_id(line["value"]) == line["value"]
    assert {line["value"] for line in read_table(DEVICES) if line["field"] == "gpu"} <= set(gpu_names())
    # "quantized" is no scheme: a row that says no more is not predicted
    schemes = {line["value"] for line in read_table(SCHEMES)} - {"quantized"}
    schemes |= {line["value"] for line in read_table(SERVING) if line["field"] == "weight_dtype"}
    assert schemes <= set(weight_dtype_names())
    assert {line["value"] for line in read_table(ENGINES)} <= set(engine_names())


@pytest.mark.parametrize("table", TABLES)
def test_no_line_of_the_table_is_broken(table: str) -> None:
    with (PLANNER / table).open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(line for line in file if not line.startswith("#")))
    assert {len(line) for line in lines} == {6}


def test_several_conditions_must_all_hold() -> None:
    short = {"isl": "217.4", "osl": "201.7", "notes": "vllm bench serve, request-rate inf"}
    assert read_fields(short, SERVING, FACTS)["drawn"] == "exponential"
    assert "drawn" not in read_fields(short | {"isl": "1996.8"}, SERVING, FACTS)
    assert "drawn" not in read_fields(short | {"notes": "case: # random 128 input; vllm bench serve"}, SERVING, FACTS)


def test_what_is_read_is_a_scenario() -> None:
    row = {"tp": "2", "other_flags": "--mem-fraction-static 0.8 --max-running-requests 16"}
    made = Scenario(engine="sglang", **read_fields(row, TABLE))
    assert (made.tensor_parallel_size, made.gpu_memory_utilization, made.max_num_seqs) == (2, 0.8, 16)
