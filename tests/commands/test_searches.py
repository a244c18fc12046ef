import json

import pytest

from planner.commands.parser import parser
from planner.commands.searches import restricted
from planner.scenario.scenario import Scenario
from tests.commands.running import run


def test_the_search_prints_the_best_with_its_price_and_a_line_for_each_row(capsys):
    options = ("--gpus", "L40S:4", "--price", "ondemand", "--requests", "200")
    code, out, _ = run("recommend", "?u=50", *options, capsys=capsys)
    assert code == 0
    lines = out.splitlines()
    assert "L40S" in lines[0]
    assert "USD per GPU-hour (CoreWeave 8x, on demand, 2026-09-20)" in lines[0]
    assert "considered" in lines[1]
    assert "hosted API" in lines[2]  # 50 users ask for little
    assert all(" × L40S " in line for line in lines[3:])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--gpus", "H9000:8"), "My GPUs (my_gpus)"),
        (("--vendor", "Nvidea"), "Vendor (gpu_vendor)"),
        (("--price", "owned"), "My GPUs (my_gpus)"),
        (("--max-gpus", "0"), "GPUs at most (most_gpus)"),
        (("--dask", "nowhere"), "--dask"),
    ],
)
def test_a_restriction_of_the_search_that_is_wrong_is_one_line(options, named, capsys):
    code, out, err = run("recommend", *options, capsys=capsys)
    assert (code, out) == (2, "")
    assert named in err
    assert len(err.splitlines()) == 1


def test_fits_lists_models_and_names_the_nearest_gpu(capsys):
    code, out, _ = run("fits", "RTX 4060", "--engine", "llama-server", "--json", capsys=capsys)
    rows = json.loads(out)
    assert code == 0
    assert rows
    assert all(row["engine"] == "llama-server" and row["link"].startswith("v=") for row in rows)
    code, out, err = run("fits", "RTX 4099", capsys=capsys)
    assert (code, out) == (2, "")
    assert "RTX 4090" in err


def test_only_the_restrictions_that_are_named_change_the_scenario():
    own = Scenario(gpu_vendor="NVIDIA")
    assert restricted(own, parser().parse_args(["recommend"])) == own
    options = parser().parse_args(["recommend", "--max-gpus", "8", "--one-server", "--vendor", "AMD"])
    assert restricted(own, options) == own.replace(most_gpus=8, one_node=True, gpu_vendor="AMD")
