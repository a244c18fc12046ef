"""Padding of 4-bit (mxfp4) experts: every kernel wants its own multiples of the matrix sides.

Source: vLLM quantization/mxfp4.py (`create_weights` by backend, and how the backend is chosen from the device);
gpt-oss has sides of 2,880, so that padding adds 2 to 14 % to its experts.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import Gpu
from planner.memory.edition import TRITON_EXPERTS, Edition
from planner.model import Linear

VALUE_BITS, SCALE_BITS = 4.0, 8.0 / 32.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPadding:
    """Multiples to which an expert's sides are padded.

    Parameters
    ----------
    width : int
        Of the expert's inner width on one rank.
    hidden : int
        Of the model's width.
    row_values : int
        Of the 4-bit values in a row, without their scales: Triton aligns rows to 128 bytes.
    """

    width: int = 1
    hidden: int = 1
    row_values: int = 1


NONE = ExpertPadding()
TRITON = ExpertPadding(width=64, row_values=256)
MARLIN = ExpertPadding(width=128, hidden=256)
FLASHINFER = ExpertPadding(width=256, hidden=256)
AMD, AMD_CDNA4 = ExpertPadding(width=128, hidden=128), ExpertPadding(width=256, hidden=256)


def expert_padding(gpu: Gpu, edition: Edition, lora: bool) -> ExpertPadding:
    """Padding of the kernel that the engine takes on this device.

    Parameters
    ----------
    gpu : Gpu
        Hopper runs Triton, data-centre Blackwell FlashInfer, AMD its own; all others Marlin.
    edition : Edition
        llama.cpp pads nothing; vLLM had no Triton kernels for PyTorch before 2.8.
    lora : bool
        With adapters NVIDIA devices run Marlin.

    Returns
    -------
    ExpertPadding
        Multiples.
    """
    if edition.family in ("llamacpp", "generic"):
        return NONE
    if gpu.vendor == "AMD":
        return AMD_CDNA4 if gpu.architecture == "CDNA4" else AMD
    if lora or (edition.family == "vllm" and edition.release < TRITON_EXPERTS):
        return MARLIN
    if gpu.architecture == "Hopper":
        return TRITON
    return FLASHINFER if is_data_centre_blackwell(gpu) else MARLIN


def is_data_centre_blackwell(gpu: Gpu) -> bool:
    """Blackwell as sold to data centres, unlike the workstation and consumer GPUs of the name."""
    return gpu.architecture.startswith("Blackwell") and "nvlink" in gpu.interconnect.lower()


def padded_share(linear: Linear, ranks: int, padding: ExpertPadding) -> float:
    """Bytes of an expert matrix on one of `ranks` GPUs, as a share of the whole matrix unpadded."""
    down = linear.name.startswith("down")
    columns = linear.out_features // 2 if linear.name.startswith("gate") else linear.out_features
    inner, hidden = (linear.in_features, linear.out_features) if down else (columns, linear.in_features)
    own = _up(-(-inner // ranks), padding.width)
    wide = _up(hidden, padding.hidden)
    row = own if down else wide
    share = own * wide / (inner * hidden)
    values = share * _up(row, padding.row_values) / row
    return (VALUE_BITS * values + SCALE_BITS * share) / (VALUE_BITS + SCALE_BITS)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
