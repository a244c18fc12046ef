import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "missing.json"),
        ("plan", "--requests", "0"),
        ("plan", "--preset", "nothing"),
        ("plan", "--trace", "missing.csv"),
        ("plan", "--html", "/nonexistent/folder/x.html", "--requests", "100"),
        ("simulate", "--policy", "nothing"),
        ("simulate", "m=meta-llama/Llama-3.3-70B-Instruct"),
        ("validate", "missing.csv"),
        (),
        ("validate",),
        ("nonsense",),
        ("plan", "--nonsense"),
        ("plan", "--requests", "many"),
        ("plan", "file:///plan.json"),
        ("plan", "https://plan.example.com/plan.json"),
        ("plan", "u=1&" * 20_000),
        ("calibrate",),
        ("calibrate", "missing.csv"),
        ("plan", "--calibration", "missing.json"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, capsys):
    assert main(list(arguments)) == 2
    err = capsys.readouterr().err
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("error: ")


def test_the_module_runs_as_a_program():
    out = subprocess.run(
        [sys.executable, "-m", "planner", "plan", "-"], input="no json", capture_output=True, text=True, cwd=ROOT
    )
    assert out.returncode == 2
    assert "Traceback" not in out.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line():
    for arguments in (("seed",), ("plan", "--requests", "100", "--html", "/dev/full")):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "planner", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")
