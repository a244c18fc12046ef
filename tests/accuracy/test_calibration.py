"""The fit: parameters that made synthetic measurements are found again."""

import json

import numpy as np
import pandas as pd
import pytest

from planner.__main__ import main
from planner.accuracy import calibration
from planner.catalog.gpus import get_gpu
from planner.errors import InvalidInput
from planner.step_time import kernels
from planner.step_time.profile import device_of

H100 = get_gpu("H100 SXM")


def gemm_rows(parameters, noise=0.0):
    rng = np.random.default_rng(5)
    m = rng.choice([1, 4, 16, 64, 128, 256, 512, 1024, 2048, 8192], 400).astype(float)
    n, k = (rng.choice([1024, 2048, 4096, 8192, 14336, 28672], 400).astype(float) for _ in range(2))
    seconds = kernels.gemm_parts(parameters, device_of(H100), m, n, k, 16.0).total
    latency = 1e6 * seconds * np.exp(noise * rng.standard_normal(400))
    return pd.DataFrame(
        {
            "kernel": "gemm",
            "gpu": "H100 SXM",
            "engine": "vllm",
            "dtype": "bf16",
            "m": m,
            "n": n,
            "k": k,
            "latency_us": latency,
        }
    )


def test_gauss_newton_finds_a_line_in_log_space():
    x = np.linspace(1, 100, 50)
    found, residual = calibration.gauss_newton(
        lambda p: p[0] + p[1] * x, 3.0 + 0.5 * x, np.array([1.0, 1.0]), prior_sd=100.0
    )
    assert found == pytest.approx([3.0, 0.5], rel=1e-3)
    assert np.abs(residual).max() < 1e-3


def test_outliers_hardly_move_the_fit():
    x = np.linspace(1, 100, 60)
    measured = 2.0 * x
    measured[::10] *= 20
    found, _ = calibration.gauss_newton(lambda p: p[0] * x, measured, np.array([1.0]))
    assert found[0] == pytest.approx(2.0, rel=0.02)


def test_gemm_parameters_are_found_again():
    truth = kernels.GemmParameters(
        fixed_us=6.0,
        bandwidth=0.7,
        activation=1.0,
        wave=0.2,
        compute_64=0.4,
        compute_256=0.6,
        compute_1024=0.7,
        compute_8192=0.65,
    )
    found = calibration.fit_kernel("gemm", gemm_rows(truth, noise=0.03), H100, "bf16")
    for name, slack in (("fixed_us", 0.1), ("bandwidth", 0.05), ("compute_1024", 0.05), ("compute_8192", 0.05)):
        assert found[name] == pytest.approx(getattr(truth, name), rel=slack)
    assert found["residual"] < 0.04


def test_a_parameter_that_no_row_touches_stays_where_it_was():
    rows = gemm_rows(kernels.GemmParameters())
    found = calibration.fit_kernel("gemm", rows[rows.m <= 64], H100, "bf16")
    assert found["compute_8192"] == pytest.approx(kernels.GemmParameters().compute_8192, rel=0.02)


def test_collectives_never_get_faster_with_size():
    rows = pd.DataFrame(
        {"ranks": 2, "bytes": [256, 512, 1024, 1 << 20, 1 << 30], "latency_us": [4.0, 40.0, 4.5, 9.0, 3000.0]}
    )
    times = calibration.fit_all_reduce(rows)["2"]
    assert times[0] == pytest.approx(4.0)
    assert times[1] == pytest.approx(4.5)  # the hiccup at 512 bytes is gone
    assert times == sorted(times)


# AIConfigurator 0.12.0 (Apache-2.0): Llama-3.1-8B, B200, vLLM 0.24.0, decode behind 1,024 tokens.
STEPS = [
    (1, 1, 3.4821),
    (1, 64, 4.8912),
    (1, 256, 9.1830),
    (2, 1, 2.8316),
    (2, 64, 3.5526),
    (4, 64, 2.9725),
    (4, 256, 4.7805),
]


def step_rows(factor):
    return pd.DataFrame(
        [
            {
                "id": f"s{tp}-{batch}",
                "model": "meta-llama/Llama-3.1-8B-Instruct",
                "gpu": "B200",
                "engine": "vllm",
                "engine_version": "0.24.0",
                "tp": tp,
                "weight_dtype": "bfloat16",
                "moe_dtype": None,
                "kv_dtype": "bfloat16",
                "moe_tp": None,
                "moe_ep": None,
                "phase": "decode",
                "batch": batch,
                "isl": 1024,
                "ctx": 1024,
                "step_ms": factor * ms,
            }
            for tp, batch, ms in STEPS
        ]
    )


def test_slower_steps_make_a_slower_profile():
    same = calibration.fit_steps(step_rows(1.0), "test", "2026-11-29")["B200"]["vllm"]
    slow = calibration.fit_steps(step_rows(1.3), "test", "2026-11-29")["B200"]["vllm"]
    assert same["scales"]["matrices"] == pytest.approx(1.0, abs=0.12)
    assert slow["scales"]["matrices"] > 1.15
    assert slow["gemm"]["bf16"]["bandwidth"] < same["gemm"]["bf16"]["bandwidth"]
    assert slow["residual"] < 0.1
    assert slow["source"] == "test"


def test_command_line_writes_profiles(tmp_path, capsys):
    measurements, out = tmp_path / "kernels.csv", tmp_path / "profiles.json"
    gemm_rows(kernels.GemmParameters()).to_csv(measurements, index=False)
    arguments = ["calibrate", str(measurements), "--out", str(out), "--source", "a lab", "--date", "2026-11-29"]
    assert (main(arguments), capsys.readouterr()) == (0, ("", ""))
    profile = json.loads(out.read_text())["H100 SXM"]["vllm"]
    assert profile["source"] == "a lab"
    assert set(profile["gemm"]["bf16"]) >= {"fixed_us", "bandwidth", "residual", "rows"}


@pytest.mark.parametrize("text", ["a,b\n1,2\n", ""])
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="measurements"):
        calibration.fit_file(str(path))


def test_a_file_that_lacks_columns_is_refused_in_one_line(tmp_path, capsys):
    path = tmp_path / "steps.csv"
    path.write_text("model,step_ms\nx,1\n")
    assert main(["calibrate", str(path)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "gpu" in error
