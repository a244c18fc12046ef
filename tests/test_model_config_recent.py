"""Architectures of 2025 and 2026: published totals, tensor shapes of the checkpoints, caches by hand."""

import math

import pytest

from planner.catalog.model_catalog import get_model
from planner.hardware import Parallelism
from planner.model import Linear, MixerKind, ModelShape
from planner.quantization import weight_bytes_by_group
from planner.sizing import kv_bytes_for
from planner.sizing.edition import Edition
from planner.sizing.kv_groups import KvLayout
from planner.sizing.kv_layout import build_layout
from planner.sizing.shards import pipeline_stages


def kinds(model: ModelShape) -> dict[MixerKind, int]:
    counted: dict[MixerKind, int] = {}
    for layer, count in model.layer_counts():
        counted[layer.mixer.kind] = counted.get(layer.mixer.kind, 0) + count
    return counted


def shapes(model: ModelShape, index: int) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and number of each matrix of a layer."""

    def shape(linear: Linear) -> tuple[int, int, int]:
        return linear.out_features, linear.in_features, linear.count

    return {linear.name: shape(linear) for linear in model.layers[index].linears}


def layout_of(name: str, tp: int, family: str = "vllm", version: tuple[int, int] = (0, 30), dtype: str = "auto",
              block: int = 16) -> KvLayout:  # fmt: skip
    model = get_model(name)
    stage = pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=tp), False)[0]
    return build_layout(
        stage.layers, tensor_parallel_size=tp, context_parallel=1, kv_cache_dtype=dtype, fp32=False,
        edition=Edition(family, version), block_size=block, num_speculative_tokens=0,
    )  # fmt: skip


# Totals that the hub publishes (safetensors metadata), tower and draft layers included where the file has them.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("moonshotai/Kimi-K3", 2_779_931_837_184),
    ],
)
def test_published_total_is_met_exactly(name: str, total: int) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    assert model.estimated_fields == ()


# Tensor shapes of layers 1 (states) and 3 (attention) in the checkpoint's inventory.
def test_kimi_k3_has_the_checkpoints_matrices() -> None:
    model = get_model("moonshotai/Kimi-K3")
    assert kinds(model) == {MixerKind.STATE: 69, MixerKind.MLA: 24}
    assert [index for index, layer in enumerate(model.layers) if layer.experts is None] == [0]
    state, attention = shapes(model, 1), shapes(model, 3)
    assert state["g_proj"] == attention["g_proj"] == (12_288, 7168, 1)
    assert state["f_b_proj"] == (12_288, 128, 1)
    assert attention["q_b_proj"] == (18_432, 1536, 1)
    assert attention["kv_b_proj"] == (24_576, 512, 1)
    assert state["latent_down_proj"] == (3584, 7168, 1)
    assert state["gate_up_proj"][:2] == (2 * 6144, 7168)  # the shared experts; named like the routed ones
    routed = [linear for linear in model.layers[1].linears if linear.count == 896]
    assert [(x.out_features, x.in_features) for x in routed] == [(2 * 3072, 3584), (3584, 3072)]


# The index of the 96 files: 1,560,860,324,864 bytes; convolutions and decays are fp32 there (22 MB).
def test_kimi_k3_quantises_its_routed_experts_only() -> None:
    sizes = weight_bytes_by_group(get_model("moonshotai/Kimi-K3"))
    fp32 = 69 * (3 * 12_288 * 4 + 12_288 + 2 * 128) + 92 * 896
    assert sum(sizes.values()) + 2 * fp32 == 1_560_860_324_864


# Hub size of nvidia/Kimi-K3-NVFP4: 1,609.9 GB.
def test_kimi_k3_in_nvfp4() -> None:
    assert sum(weight_bytes_by_group(get_model("nvidia/Kimi-K3-NVFP4")).values()) == pytest.approx(1609.9e9, rel=5e-4)


# 24 latent layers of 512 + 64 elements; 69 states of 96 × 128 × 128 fp32 and three convolution tails of 12,288 × 3
# (vLLM MambaStateShapeCalculator.kda_state_shape).
def test_cache_of_kimi_k3() -> None:
    model = get_model("moonshotai/Kimi-K3")
    state = 96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2
    assert kv_bytes_for(model, 1000) == 24 * 576 * 2 * 1000 + 69 * state
    assert kv_bytes_for(model, 1000, kv_cache_dtype="fp8") == 24 * 576 * 1000 + 69 * state
    assert model.rope_cache_elements == 0


# A state page on one of 8 GPUs holds 707 latent entries; kernels of latent attention want whole 128s (vLLM v0.33
# _align_hybrid_block_size), and 69 state layers are three groups of the 24 latent ones.
@pytest.mark.parametrize(("tp", "block"), [(8, 768), (16, 384), (32, 256)])
def test_blocks_of_kimi_k3(tp: int, block: int) -> None:
    layout = layout_of("moonshotai/Kimi-K3", tp)
    assert layout.main.block_tokens == block == math.ceil(6_512_640 / tp / 1152 / 128) * 128
    assert layout.block_bytes == 24 * block * 1152
    assert [(group.kind, group.num_groups) for group in layout.groups] == [(MixerKind.STATE, 3), (MixerKind.FULL, 1)]
