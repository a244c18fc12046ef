"""Kernel tables of a checkout as one frame."""

import pandas as pd
import pytest

from planner.accuracy import calibration
from planner.accuracy.kernel_tables import read_kernel_tables
from planner.errors import InvalidInput


def test_published_tables_are_read_newest_version_first(tmp_path):
    for version, latency in (("0.9.0", 1.0), ("0.24.0", 0.02)):
        folder = tmp_path / "h100_sxm" / "gemm" / "vllm" / version
        folder.mkdir(parents=True)
        table = pd.DataFrame(
            {
                "gemm_dtype": ["bfloat16", "bfloat16", "unheard_of"],
                "m": [1, 1, 1],
                "n": [4096, 4096, 4096],
                "k": 4096,
                "latency": [latency, 2 * latency, latency],
                "kernel_source": "a",
            }
        )
        table.to_parquet(folder / "gemm_perf.parquet")
    rows = read_kernel_tables(tmp_path)
    assert rows[["kernel", "gpu", "engine", "dtype"]].to_numpy().tolist() == [["gemm", "H100 SXM", "vllm", "bf16"]]
    assert rows["latency_us"].tolist() == pytest.approx([20.0])  # milliseconds in the tables, the fastest kernel


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="systems/data"):
        calibration.fit_file(str(tmp_path))
