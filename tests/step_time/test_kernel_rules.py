"""Rules and constants of kernels: every line has a source, and what no line says is an error."""

import pytest

from planner.catalog.engines import engine_names, get_engine
from planner.inputs.engine_version import first_of
from planner.step_time.kernel_rules import kernel_constant, runs_kernel
from planner.tables import read_table

ROWS = read_table("catalog/kernel_rules.csv")


def test_lines_name_known_engines_and_say_where_they_come_from():
    families = {get_engine(name).family for name in engine_names()} | {""}
    for row in ROWS:
        assert row["engine"] in families
        assert row["source"]
        assert not row["until"] or first_of(row["since"]) < first_of(row["until"])
        assert row["value"] in ("always", "asked") if row["parameter"] == "runs" else float(row["value"]) > 0


# The line of DeepGEMM: since 0.11.1, before 0.15, on Hopper.
@pytest.mark.parametrize(
    ("version", "architecture", "runs"),
    [
        ("0.11.0", "Hopper", False),
        ("0.11.1", "Hopper", True),
        ("0.14.1", "Hopper", True),
        ("0.15.0", "Hopper", False),
        ("0.12.0", "Blackwell", False),
        ("", "Hopper", False),
    ],
)
def test_a_rule_holds_between_its_releases(version, architecture, runs):
    assert runs_kernel("vllm", version, "deep_gemm", architecture) is runs


def test_what_is_asked_for_runs_only_then():
    assert not runs_kernel("sglang", "", "awq", "Ada")
    assert runs_kernel("sglang", "", "awq", "Ada", asked=True)


def test_an_unknown_constant_is_an_error():
    with pytest.raises(LookupError, match="no tile_rows of awq in trtllm"):
        kernel_constant("trtllm", "awq", "tile_rows")
