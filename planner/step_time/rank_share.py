"""One rank's share of a replica: model, device and settings, and the kernels that it runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from planner.inputs import AS_PREDICTED, EngineSettings, Gpu, Parallelism, StepScales
from planner.model import Layer, MixerKind, ModelShape, TensorGroup, kv_bits, resolve_scheme, weight_bits
from planner.step_time.kernel_rules import kernel_constant, runs_kernel
from planner.step_time.profile import EfficiencyProfile, chip_family, efficiency_profile

LARGE_HIDDEN = 6144  # SGLang chooses these kernels for DeepSeek V3 and its descendants, not for small MLA models


@dataclass(frozen=True, slots=True, kw_only=True)
class RankShare:
    """One rank's share of a replica, with the kernels it runs.

    Parameters
    ----------
    model, gpu, engine, parallelism
        What serves, on what, how set and how spread.
    weight_dtype, kv_cache_dtype : str
        Schemes of `planner.model`; "auto" is what the checkpoint holds.
    kernels_only : bool
        Leaves out what surrounds the kernels (sampling, launches, host), to compare with measurements of kernels.
    draft_model : ModelShape, optional
        Separate model that drafts tokens when the engine speculates; without one a layer of the model's own drafts.
    scales : StepScales
        What measurements of this deployment say about the predicted times.
    """

    model: ModelShape
    gpu: Gpu
    engine: EngineSettings
    parallelism: Parallelism
    weight_dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    kernels_only: bool = False
    draft_model: ModelShape | None = None
    scales: StepScales = AS_PREDICTED
    profile: EfficiencyProfile = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        profile = efficiency_profile(
            self.gpu, self.engine.family, as_measured=self.kernels_only, moe_backend=self.moe_backend
        )
        object.__setattr__(self, "profile", profile)

    @property
    def moe_backend(self) -> str:
        """Kernels of the experts: as set, or the engine's choice where it differs from what was measured.

        SGLang chooses others for large MLA models on Blackwell, some releases of vLLM for FP8 blocks on Hopper; FP8
        weights on a GPU without FP8 are widened by Marlin, of which INT4 was measured. vLLM on AMD runs Triton's unless
        asked for AITER's (VLLM_ROCM_USE_AITER in vllm/envs.py is off in 0.11.0 and in every release up to 0.33.0).
        """
        chosen = self.engine.moe_runner_backend
        if chosen != "auto":
            return chosen
        if self.engine.family == "vllm" and self.gpu.vendor == "AMD":
            return "triton"
        if self._runs_deep_gemm:
            return "deep_gemm"
        if self._runs_cutlass:
            return "flashinfer_cutlass"
        if self._widens_fp8:
            return "marlin_fp8"
        latent = any(layer.mixer.kind is MixerKind.MLA for layer, _ in self.model.layer_counts())
        large = self.model.hidden_size >= LARGE_HIDDEN
        return "flashinfer_trtllm" if self.engine.family == "sglang" and latent and large else ""

    @property
    def expert_weights(self) -> str:
        """Format of the experts' weights, as `weight_kernel` names it."""
        return weight_kernel(
            self.model, self.weight_dtype, weight_bits(self.model, self.weight_dtype, TensorGroup.EXPERT)
        )

    @property
    def _widens_fp8(self) -> bool:
        return self.model.is_moe and not self.gpu.fp8_tflops and self.expert_weights in ("fp8", "fp8_block")

    @property
    def _runs_deep_gemm(self) -> bool:
        if not self.model.is_moe or self.expert_weights != "fp8_block" or not self._runs("deep_gemm"):
            return False
        divided = 1 if self.parallelism.expert_parallel else self.tp * self.attention_ranks
        return divided < kernel_constant(self.engine.family, "deep_gemm", "most_ranks")

    @property
    def _runs_cutlass(self) -> bool:
        if not self.model.is_moe or self.expert_weights != "bf16" or self.attention_ranks > 1:
            return False
        return runs_kernel(self.engine.family, self.engine.version, "flashinfer_cutlass", chip_family(self.gpu))

    @property
    def runs_plain_awq(self) -> bool:
        """Whether matrices in AWQ run with AWQ's own kernels: the user asks for them, or the engine has no other."""
        if self.kernels_only or not self._runs("awq", asked=self.engine.plain_awq):
            return False
        return resolve_scheme(self.model, self.weight_dtype).name == "awq_int4"

    def _runs(self, kernel: str, *, asked: bool = False) -> bool:
        engine, generation = self.engine, self.gpu.architecture.removesuffix(" Ultra")
        return self.gpu.vendor == "NVIDIA" and runs_kernel(
            engine.family, engine.version, kernel, generation, asked=asked
        )

    @property
    def drafter(self) -> RankShare | None:
        """The separate draft model, with the model's parallelism; None without one."""
        if self.draft_model is None:
            return None
        alone = replace(self.engine, num_speculative_tokens=0)
        return replace(self, model=self.draft_model, weight_dtype="auto", engine=alone, draft_model=None)

    @property
    def tp(self) -> int:
        """Tensor-parallel width."""
        return self.parallelism.tensor_parallel_size

    @property
    def attention_ranks(self) -> int:
        """Data-parallel groups of attention."""
        return self.parallelism.attention_data_parallel_size

    @property
    def layers(self) -> tuple[tuple[Layer, float], ...]:
        """Distinct layers and how many of each the slowest pipeline stage holds."""
        stages = self.parallelism.pipeline_parallel_size
        share = -(-self.model.num_layers // stages) / self.model.num_layers
        return tuple((layer, count * share) for layer, count in self.model.layer_counts())

    @property
    def kv_bytes(self) -> float:
        """Bytes per cached element."""
        return kv_bits(self.kv_cache_dtype, self.weight_dtype) / 8

    @property
    def kv_kernel(self) -> str:
        """Kernel family of the KV-cache type."""
        return "bf16" if self.kv_bytes >= 2 else "fp8"

    @property
    def bandwidth(self) -> float:
        """Data-sheet memory bandwidth. [bytes/s]"""
        return self.gpu.memory_bandwidth_gb_s * 1e9


def weight_kernel(model: ModelShape, weight_dtype: str, bits: float) -> str:
    """Kernel family of matrices that a scheme stores in `bits`."""
    if bits >= 16:
        return "bf16"
    name = resolve_scheme(model, weight_dtype).name
    if name in ("fp8_block", "nvfp4", "mxfp4"):
        return name if bits < 8 or name == "fp8_block" else "fp8"
    if name == "int8":
        return name
    return "fp8" if name in ("fp8", "mxfp8", "bnb_int8", "fp8_fp4_experts") else "int4"
