"""Padding of 4-bit (mxfp4) experts: each kernel rounds the sides of the matrices up to its own multiples.

Source: vLLM quantization/mxfp4.py (`create_weights` by backend, and how the backend is chosen from the device);
gpt-oss has sides of 2,880: padding adds 2 to 14 % to its experts.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import Gpu
from planner.memory.edition import TRITON_EXPERTS, Edition
from planner.model import Linear

VALUE_BITS, SCALE_BITS = 4.0, 8.0 / 32.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPadding:
    """Multiples to which the sides of an expert's matrices are padded.

    Parameters
    ----------
    width : int
        For the expert's inner width on one rank.
    hidden : int
        For the model's hidden size.
    row_values : int
        For the 4-bit values of a row, scales excluded: Triton aligns rows to 128 bytes.
    """

    width: int = 1
    hidden: int = 1
    row_values: int = 1


NONE = ExpertPadding()
TRITON = ExpertPadding(width=64, row_values=256)
MARLIN = ExpertPadding(width=128, hidden=256)
FLASHINFER = ExpertPadding(width=256, hidden=256)
CUTLASS = ExpertPadding(width=128, hidden=128)  # TensorRT-LLM on a GB10: gpt-oss-120b logs 63.52 GiB, this makes 63.3
AMD, AMD_CDNA4 = ExpertPadding(width=128, hidden=128), ExpertPadding(width=256, hidden=256)


def expert_padding(gpu: Gpu, edition: Edition, lora: bool) -> ExpertPadding:
    """Padding of the kernel that the engine chooses on this device.

    Parameters
    ----------
    gpu : Gpu
        Hopper runs Triton, data-centre Blackwell FlashInfer, AMD its own kernel, all others Marlin, or CUTLASS in
        TensorRT-LLM.
    edition : Edition
        llama.cpp pads nothing; vLLM has Triton kernels since PyTorch 2.8.
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
    if is_data_centre_blackwell(gpu):
        return FLASHINFER
    return CUTLASS if edition.family == "trtllm" else MARLIN


def is_data_centre_blackwell(gpu: Gpu) -> bool:
    """Whether this is Blackwell for data centres (compute capability 10), not for workstations or consumers (12)."""
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
