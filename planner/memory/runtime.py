"""Memory that is neither weights nor cache: activation peak and communication buffers.

Each is a formula with a few constants of published vLLM start-up logs (`planner.memory.log_constants`): H100 with vLLM
0.11 to 0.19 from one laboratory, RTX 3090, RTX 4090, T4 and A100 from issue threads. Other engines run the same forward
pass and take the same formula.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inputs import Gpu, Parallelism
from planner.memory.defaults import Resolved
from planner.memory.edition import (
    AVAILABLE_MEMORY,
    LEAN_SAMPLER,
    SECOND_RUNNER_COPIES,
    SECOND_RUNNER_SAMPLES,
    SYMMETRIC_MEMORY,
    Edition,
)
from planner.memory.log_constants import constant
from planner.memory.sparse_workspace import index_logits_bytes
from planner.model import Layer, ModelShape, TensorGroup, VisionTower
from planner.units import GIB

#: since then at most 14 frames, and the prompt's image is not subtracted (logs of v0.23); before, 16 frames with the
#: image subtracted (v0.8.5). The version between the two is assumed
SEVEN_FRAME_PAIRS = (0, 11)
V0_WORKSPACE_BYTES = 0.03 * GIB  # estimate: of the first engine's forward pass, beside its vectors
SHARE_PER_PAIR = 0.04  # estimate: what each further pair of ranks adds to the communication buffers of two
BEFORE_HOPPER = ("Turing", "Volta", "Ampere", "Ada")  # no symmetric memory between GPUs
#: experts are computed in pieces of this many tokens (VLLM_FUSED_MOE_CHUNK_SIZE)
EXPERT_CHUNK_TOKENS = 65_536
#: per logit of a sequence when its drafted token is verified: two rows of 16-bit logits, those of the next token in 16
#: bits and fp32, and those of the drafted one twice in fp32, less the logits that sampling alone holds
#: (v1/sample/rejection_sampler.py `forward`)
VERIFYING_BYTES = 4 + 2 + 4 + 4 + 4 - (2 + 4)
#: memory that the NVIDIA driver reports but programs do not get: 0.3 GiB + 0.25 % (RTX 3090 24.0 -> 23.69, H100 79.65
#: -> 79.2, H200 140.4 -> 139.8, B200 179.06 -> 178.35 in "total capacity" messages; scatter ± 0.2 GiB)
DRIVER_RESERVE_BYTES = 0.3 * GIB
DRIVER_RESERVE_SHARE = 0.0025


def visible_memory_bytes(gpu: Gpu) -> float:
    """Memory that a program gets: what the driver reports, less what NVIDIA drivers keep. [bytes]."""
    if gpu.vendor.upper() != "NVIDIA" or gpu.unified_memory:
        return gpu.memory_bytes
    return gpu.memory_bytes * (1 - DRIVER_RESERVE_SHARE) - DRIVER_RESERVE_BYTES


def widest_mlp(layers: tuple[tuple[Layer, int], ...], tensor_parallel_size: int) -> float:
    """Widest dense MLP on one GPU: columns of gate, up and their product. [elements per token]."""
    widest = 0.0
    for layer, _ in layers:
        for linear in layer.linears:
            if linear.group in (TensorGroup.MLP, TensorGroup.SHARED_EXPERT) and linear.name.endswith("up_proj"):
                gated = linear.name.startswith("gate")
                widest = max(widest, linear.out_features * (1.5 if gated else 2) / tensor_parallel_size)
    return widest


def expert_workspace_bytes(
    layers: tuple[tuple[Layer, int], ...], tokens: int, parallelism: Parallelism, scheme: str
) -> float:
    """Workspace of the fused expert kernel on one GPU.

    Gate, up and outputs of every routed token in 16 bits. Block-quantised fp8 experts pad the tokens of each expert to
    128 and hold two 16-bit copies and one fp8 copy of the wider side. MXFP4 kernels need no workspace. [bytes]
    """
    if scheme == "mxfp4":
        return 0.0
    tp = parallelism.tensor_parallel_size if not parallelism.expert_parallel else 1
    largest = 0.0
    for layer, _ in layers:
        if layer.experts is not None:
            expert = next((x for x in layer.linears if x.group is TensorGroup.EXPERT), None)
            if expert is not None:
                routed = min(tokens, EXPERT_CHUNK_TOKENS) * layer.experts.experts_per_token
                columns = 2.0 * (expert.out_features / tp + expert.in_features)
                if scheme == "fp8_block":
                    routed += 128 * layer.experts.num_experts
                    columns = 4.0 * max(expert.out_features / tp, expert.in_features) + expert.in_features
                largest = max(largest, routed * columns)
    return largest


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationTerms:
    """Parts of the profile run's activation peak on one GPU. [bytes].

    The encoder runs first; its peak includes its outputs. `kept` stays allocated during forward pass and sampling.
    """

    forward: float
    sampler: float
    encoder: float
    kept: float
    experts: float  # of what is kept
    bytes_per_logit: float

    @property
    def total(self) -> float:
        """The peak: of the encoder, or of the language model with what is kept."""
        return max(max(self.forward, self.sampler) + self.kept, self.encoder)


def encoder_bytes(tower: VisionTower, tensor_parallel_size: int) -> float:
    """Peak of the encoder for the profile run's largest image on one GPU. [bytes]

    In 16 bits: a block's input, norm and output, learned positions, and the MLP's columns before and after the
    activation, which tensor parallelism divides. The pixels of all patches stay in fp32.
    """
    columns = (3 if tower.gated else 2) * tower.intermediate_size / tensor_parallel_size
    widths = (4 if tower.learned_positions else 3) * tower.width
    return tower.most_patches * (2.0 * (columns + widths) + 4.0 * tower.patch_elements)


def activation_terms(
    model: ModelShape,
    layers: tuple[tuple[Layer, int], ...],
    resolved: Resolved,
    parallelism: Parallelism,
    *,
    max_model_len: int,
    is_first: bool,
    is_last: bool,
    fp32: bool,
    expert_scheme: str,
    drafts: bool = False,
    second_runner: bool = False,
    encoder: str = "weights",
) -> ActivationTerms:
    """Activation peak of the engine's profile run on one GPU.

    The larger of the forward pass over max_num_batched_tokens tokens and the sampler over max_num_seqs rows of the
    vocabulary, which every tensor-parallel rank gathers. Multimodal models keep a batch of encoder outputs as well,
    fused expert kernels their workspace.

    Parameters
    ----------
    model : ModelShape
        Widths and vocabulary.
    layers : tuple of (Layer, int)
        Distinct layers of the stage and how many of each.
    resolved : Resolved
        Batch limits and version.
    parallelism : Parallelism
        Divides the widths.
    max_model_len : int
        Bounds the images and the video of the profile run. [tokens]
    is_first : bool
        Whether this stage holds the encoder.
    is_last : bool
        Whether this stage samples.
    fp32 : bool
        Whether the model runs in fp32.
    expert_scheme : str
        Scheme of the experts, which decides their workspace.
    drafts : bool
        Whether tokens are drafted: vLLM's first runner then verifies one of every sequence.
    second_runner : bool
        Whether vLLM's second runner profiles.
    encoder : str
        What the ranks divide of a vision tower: weights, images or nothing.

    Returns
    -------
    ActivationTerms
        Bytes.
    """
    tokens, edition = resolved.max_num_batched_tokens, resolved.edition
    width = 4 if fp32 else 2
    hidden = model.hidden_size
    columns = widest_mlp(layers, parallelism.tensor_parallel_size)
    v0 = edition.family == "vllm" and edition.is_v0
    forward = tokens * width * (columns + (constant("v0_hidden_vectors") if v0 else 2) * hidden)
    forward += V0_WORKSPACE_BYTES if v0 else constant("forward_workspace")
    forward += index_logits_bytes(layers, edition)
    per_logit = bytes_per_logit(edition, drafts=drafts, second_runner=second_runner) + width - 2
    sampler = 0.0
    if is_last:
        sampler = resolved.max_num_seqs * model.vocab_size * per_logit + tokens * hidden * width
    experts = kept = expert_workspace_bytes(layers, tokens, parallelism, expert_scheme)
    encoding = 0.0
    if model.vision_parameters and is_first:
        images = _encoder_terms(model, resolved, parallelism.tensor_parallel_size, encoder, max_model_len, width)
        kept += images.kept
        within_forward = v0 and images.peak  # V0 encodes within the language model's forward pass
        encoding = images.peak + (kept if within_forward else images.beside_peak)
    if parallelism.pipeline_parallel_size > 1 and not is_last:
        forward += 2 * tokens * hidden * width
    return ActivationTerms(
        forward=forward,
        sampler=sampler,
        encoder=encoding,
        kept=kept,
        experts=experts,
        bytes_per_logit=per_logit if is_last else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _EncoderTerms:
    """What a vision encoder takes in the profile run. [bytes]"""

    peak: float = 0.0  # 0 where no engine says how it profiles images
    beside_peak: float = 0.0  # outputs and deep features at that moment
    kept: float = 0.0  # by the language model's forward pass


def _encoder_terms(
    model: ModelShape, resolved: Resolved, ranks: int, split: str, max_model_len: int, width: int
) -> _EncoderTerms:
    """The encoder over the profile run's images, and the language model's batch of their embeddings.

    `split` is what the ranks divide of it, `width` the bytes of an element. Images go to the ranks whole
    (vLLM model_executor/models/vision.py, `run_dp_sharded_mrope_vision_model`). Qwen3-VL's encoder has its deep
    features when it comes to its last blocks, and the language model a buffer for them (vLLM qwen3_vl.py,
    `deepstack_input_embeds`).
    """
    embeddings = resolved.max_num_batched_tokens * model.hidden_size * width
    tower = model.vision_tower
    deep = tower.deep_features if tower else 0
    buffer = deep * embeddings
    if tower is None or resolved.edition.family != "vllm":
        return _EncoderTerms(beside_peak=buffer, kept=embeddings + buffer)
    images = profiled_images(model, resolved, max_model_len)
    outputs = images * tower.item_tokens * model.hidden_size * width
    share = -(-images // ranks) if split == "images" and not tower.videos_as_images else images
    return _EncoderTerms(
        peak=share * encoder_bytes(tower, ranks if split == "weights" else 1),
        beside_peak=outputs * max(1, deep) + buffer,
        kept=embeddings + outputs * (1 + deep) + buffer,
    )


def bytes_per_logit(edition: Edition, *, drafts: bool, second_runner: bool) -> float:
    """Bytes per logit in 16 bits at the sampler's peak in the profile run.

    vLLM's second runner kept the logits alone until 0.32, up to 0.25 with a copy in fp32 (v1/worker/gpu/sample/
    sampler.py). Its first runner also verifies a drafted token of every sequence.
    """
    v0 = edition.family == "vllm" and edition.is_v0
    if second_runner and not edition.since(SECOND_RUNNER_SAMPLES):
        return 2.0 if edition.since(SECOND_RUNNER_COPIES) else 6.0
    lean = edition.family != "vllm" or (edition.since(LEAN_SAMPLER) and not v0)
    verifies = drafts and edition.family == "vllm" and not v0 and not second_runner
    return constant("sampler_lean" if lean else "sampler_sort") + (VERIFYING_BYTES if verifies else 0)


def profiled_images(model: ModelShape, resolved: Resolved, max_model_len: int) -> int:
    """Number of largest images that vLLM's profile run puts through the encoder at once.

    V1 takes the item with the most tokens, image or video: as many as fit into max_num_batched_tokens and as
    max_num_seqs requests of max_model_len can bring, at least one. V0 takes one image and one video. A video of
    Qwen2-VL and 2.5-VL consists of pairs of frames, each as large as an image.

    Parameters
    ----------
    model : ModelShape
        Zero without a vision tower of known shape.
    resolved : Resolved
        Batch limits and version.
    max_model_len : int
        Longest sequence [tokens].

    Returns
    -------
    int
        Source: vLLM multimodal/encoder_budget.py (`max_items_per_batch`) and Qwen2VLProcessingInfo; logs of 98,304
        (v0.8.1 and v0.8.5) and 114,688 (v0.23) tokens of video at 128,000, of 2 and 4 images in 32,768 and 65,536.
    """
    tower, edition = model.vision_tower, resolved.edition
    if tower is None:
        return 0
    video = _frame_pairs(tower, resolved, max_model_len) if tower.videos_as_images else 0
    if edition.is_v0:
        return 1 + video
    pairs = max(1, video)
    item = pairs * tower.item_tokens
    most = resolved.max_num_seqs * min(max(1, max_model_len // item), resolved.images_per_prompt or max_model_len)
    return pairs * max(1, min(resolved.max_num_batched_tokens // item, most))


def _frame_pairs(tower: VisionTower, resolved: Resolved, max_model_len: int) -> int:
    """Pairs of frames in the profile run's video; before v0.11 beside one image."""
    largest = tower.item_tokens
    if resolved.edition.is_v0:
        return max(1, min(8, -(-(resolved.max_num_batched_tokens - largest) // largest)))
    if resolved.edition.since(SEVEN_FRAME_PAIRS):
        return max(1, min(7, max_model_len // largest))
    return max(1, min(8, (max_model_len - largest) // largest))


def _has_symmetric_memory(gpu: Gpu) -> bool:
    """Say whether ranks share memory over NVLink: it needs the switch's multicast, which bridges lack.

    Source: vLLM distributed/device_communicators/symm_mem.py, `multicast_ptr == 0`.
    """
    link = gpu.interconnect.lower()
    return "nvlink" in link and "bridge" not in link and gpu.architecture not in BEFORE_HOPPER


def _reads_available_memory(edition: Edition) -> bool:
    return edition.family == "vllm" and edition.since(AVAILABLE_MEMORY) and not edition.is_v0


def non_torch_terms(resolved: Resolved, parallelism: Parallelism, gpu: Gpu) -> tuple[float, float]:
    """Memory outside the framework's allocator on one GPU: context with libraries, and collective buffers. [bytes]."""
    edition, tp = resolved.edition, parallelism.tensor_parallel_size
    later = edition.family != "vllm" or edition.since(SYMMETRIC_MEMORY)
    host = constant("unified_host") if gpu.unified_memory and _reads_available_memory(edition) else 0.0
    linked = _has_symmetric_memory(gpu)
    if parallelism.pipeline_parallel_size > 1 and tp == 1:
        return constant("pipeline_rank") + host, 0.0
    base = constant("context_later" if later else "context") + host
    pair = constant("collectives_later" if later and linked else "collectives")
    return base, pair * (1 + SHARE_PER_PAIR * (tp / 2 - 1)) if tp > 1 else 0.0


def non_torch_bytes(resolved: Resolved, parallelism: Parallelism, gpu: Gpu) -> float:
    """Sum of `non_torch_terms`. [bytes]"""
    return sum(non_torch_terms(resolved, parallelism, gpu))
