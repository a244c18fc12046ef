"""Devices of published start-up logs. Sizes are those that the cited logs print."""

import pytest

from planner.accuracy.memory_gpus import gpu_fields
from planner.accuracy.memory_rows import read_case
from planner.inputs.hardware import Gpu
from planner.memory.runtime import visible_memory_bytes
from planner.scenario import Scenario
from planner.units import GIB
from tests.accuracy.published_rows import START_UP as ROW


def device(name: str, memory: str) -> Gpu:
    fields = gpu_fields({"gpu": name, "gpu_mem_gib": memory})
    assert fields
    return Scenario(**fields).gpu_spec


@pytest.mark.parametrize(
    ("name", "memory", "visible_gib"),
    [
        ("H100", "79.18", 79.18),
        ("80GB-class (79.22GiB; H100)", "", 79.22),
        ("RTX 3090", "24", 23.6),
        ("H200", "141 GB", 139.8),
    ],
)
def test_memory_that_the_engine_saw(name: str, memory: str, visible_gib: float) -> None:
    assert visible_memory_bytes(device(name, memory)) / GIB == pytest.approx(visible_gib, abs=0.15)


def test_a_row_without_a_gpu_has_the_one_of_the_form() -> None:
    assert gpu_fields({"gpu": "", "gpu_mem_gib": ""}) == {}
    assert gpu_fields({"gpu": "Nvidia (not named)"}) == {}
    read = read_case(ROW | {"gpu": "", "gpu_mem_gib": ""})
    assert not read.gpu_known
    assert read.scenario.gpu == Scenario().gpu


@pytest.mark.parametrize(
    ("name", "memory", "expected_gib"),
    [("", "24", 23.6), ("24GB-class", "", 23.6), ("RTX 5060 Ti 16GB + RTX 5090 32GB", "", 15.65)],
)
def test_unnamed_and_mixed_gpus(name: str, memory: str, expected_gib: float) -> None:
    assert visible_memory_bytes(device(name, memory)) / GIB == pytest.approx(expected_gib, abs=0.1)


# Devices that the GPU catalog lacks, and parts of devices; memory as data sheets and profiles say.
@pytest.mark.parametrize(
    ("name", "memory", "listed_gib"),
    [
        ("H100 MIG 3g.40gb", "", 40),
        ("A100 MIG 2g.20gb", "", 20),
        ("GRID A100D-40C", "", 40),
        ("NVIDIA L40S-24Q", "", 24),
        ("Tesla P40", "", 24),
        ("Quadro RTX 8000", "", 48),
        ("RTX 4070 Ti Super 16GB", "", 16),
        ("RTX 2080 Ti 22GB", "", 22),
        ("Ascend 910C", "", 64),
        ("Jetson AGX Thor", "", 122.82),  # tegrastats: 125,772 MB
        ("Jetson AGX Orin 64GB", "", 61.37),
        ("NVIDIA H20-3e", "", 140.4),
        ("NVIDIA H200 NVL", "", 140.4),
        ("RTX 5060 Ti 16GB", "", 15.93),
        ("RTX PRO 5000 Blackwell 72GB", "", 71.69),
    ],
)
def test_devices_and_parts_of_them(name: str, memory: str, listed_gib: float) -> None:
    assert device(name, memory).memory_gib == pytest.approx(listed_gib, abs=0.1)


# Only what stands directly in parentheses is the board's memory; other figures of the name are not.
def test_memory_in_a_gpu_name() -> None:
    assert device("RTX 5090 (desktop, 25.11 GiB free)", "32").memory_gib == device("RTX 5090", "32").memory_gib
    assert visible_memory_bytes(device("RTX 5090 (31.36 GiB)", "")) / GIB == pytest.approx(31.36)


# A device that the catalog has is that device: stand-ins made an RTX 5060 Ti of 448 GB/s an RTX 5090.
@pytest.mark.parametrize("name", ["RTX 5060 Ti 16GB", "RTX 4070 Ti Super", "RTX PRO 4500 Blackwell", "H20-3e"])
def test_devices_of_the_catalog_stand_for_themselves(name: str) -> None:
    fields = gpu_fields({"gpu": name, "gpu_mem_gib": ""})
    assert fields["gpu"] not in ("RTX 5090", "RTX 4090", "H200 SXM")
