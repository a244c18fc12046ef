"""The model, GPU, engine and traffic that the inputs describe."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

from planner.catalog import (
    as_of,
    checkpoint,
    day_shape,
    get_engine,
    get_gpu,
    get_model,
    length_quantiles,
)
from planner.errors import InvalidInput
from planner.inputs import (
    AS_PREDICTED,
    ArrivalKind,
    Arrivals,
    EngineSettings,
    Gpu,
    KvReservation,
    LengthKind,
    Lengths,
    OnMemoryShortage,
    Parallelism,
    PrintedMemory,
    ServiceLevel,
    StepScales,
    Traffic,
)
from planner.model import (
    ModelShape,
    custom_shape,
    shape_from_config,
    with_media,
    with_state_dtype,
)
from planner.scenario.advanced import ROUTERS as ROUTERS
from planner.scenario.fields import CONFIG, CUSTOM, MAX_LORAS, OPEN_LOOP_KINDS, TAKEN_OVER, Inputs
from planner.scenario.fingerprint import MEMORY_PARTS, Load, differing
from planner.scenario.measured import ERRORS, PRINTED, SCALES
from planner.scenario.quantiles import quantiles_of
from planner.scenario.settings import MAX_CONFIG_TEXT as MAX_CONFIG_TEXT
from planner.scenario.targets import TARGETS, Target, targets_of
from planner.scenario.times import HOURS
from planner.units import GIB, SECONDS_PER_DAY, SECONDS_PER_HOUR

MOST_RPS = 1_000_000
MOST_USERS = 100_000_000
NO_LIMIT = 10_000_000  # tokens
NETWORK_GB_S = 50.0  # one 400 Gb/s port per GPU: NVIDIA DGX H100 user guide, eight ConnectX-7 for eight GPUs
MOST_PERCENT = 100  # of the peak, in an hour of a drawn day


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedInputs(Inputs):
    """The inputs, and the value objects that they describe, each built on demand so that a Scenario stays small."""

    @property
    def model_shape(self) -> ModelShape:
        """The model as it is loaded: with the chosen state type, and without the parts that the media setting drops."""
        held = checkpoint(self.published_shape, self.weight_dtype)
        return with_media(with_state_dtype(held, self.state_dtype), self.media)

    @property
    def published_shape(self) -> ModelShape:
        """The model as published, whatever the engine settings."""
        if self.model == CONFIG:
            return shape_from_config(self.model_config)
        if self.model == CUSTOM:
            return custom_shape(
                self.num_layers,
                self.hidden_size,
                self.num_attention_heads,
                self.num_kv_heads,
                self.head_dim,
                self.intermediate_size,
                self.vocab_size,
                self.num_experts,
                self.experts_per_token,
                self.moe_intermediate_size,
            )
        return get_model(self.model)

    @property
    def draft_shape(self) -> ModelShape | None:
        """The separate draft model; None without one or without speculation."""
        if not (self.draft_model and self.num_speculative_tokens):
            return None
        return with_state_dtype(get_model(self.draft_model), self.state_dtype)

    @property
    def gpu_spec(self) -> Gpu:
        """The accelerator, from the catalog or entered by hand."""
        if self.gpu != CUSTOM:
            listed = get_gpu(self.gpu)
            if self.gpu_total_gib is None:
                return listed
            size_gb = listed.memory_gb * self.gpu_total_gib / listed.memory_gib
            return dataclasses.replace(listed, memory_gib=self.gpu_total_gib, memory_gb=size_gb)
        return Gpu(
            name=CUSTOM,
            memory_gb=self.gpu_memory_gib * GIB / 1e9,
            memory_gib=self.gpu_memory_gib,
            memory_bandwidth_gb_s=self.gpu_bandwidth_gb_s,
            bf16_tflops=self.gpu_bf16_tflops,
            fp16_tflops=self.gpu_bf16_tflops,
            fp8_tflops=self.gpu_fp8_tflops or None,
            link_gb_s=self.gpu_link_gb_s,
            gpus_per_node=self.gpus_per_node,
            usd_per_hour_typical=self.usd_per_gpu_hour,
            spec_source="entered by hand",
        )

    @property
    def engine_settings(self) -> EngineSettings:
        """The engine preset with the user's settings on top."""
        preset = self._engine_preset()
        own: dict[str, Any] = {}
        for name in TAKEN_OVER:
            if getattr(self, name) is not None:
                own[name] = getattr(self, name)
        for name in (
            "long_prefill_token_threshold",
            "kv_offload_gib",
            "stream_interval_tokens",
            "receive_interval_steps",
        ):
            if getattr(self, name):
                own[name] = getattr(self, name)
        if self.chunked_prefill != "auto":
            own["enable_chunked_prefill"] = self.chunked_prefill == "on"
        if self.async_scheduling != "auto":
            own["async_scheduling"] = False
        if self.ngram_tables != "auto":
            own["ngram_on_gpu"] = self.ngram_tables == "gpu"
        if not self.enable_prefix_caching:
            own["enable_prefix_caching"] = False
        if preset.kv_unified and self.max_num_seqs is not None:  # llama-server -np: one context per slot
            own |= {"kv_unified": False, "kv_reservation": KvReservation.MODEL_LIMIT}
            own["on_memory_shortage"] = OnMemoryShortage.NEVER
        if self.kv_unified != "auto" and preset.family == "llamacpp":
            own["kv_unified"] = self.kv_unified == "on"
        if self.enforce_eager:
            own["cuda_graphs"] = False
        if self.offline:
            own["offline"] = True
        if self.behind_dynamo:
            own["behind_dynamo"] = True
        if self.encoder_data_parallel:
            own["encoder_data_parallel"] = True
        if self.plain_awq:
            own["plain_awq"] = True
        if self.moe_runner_backend != "auto":
            own["moe_runner_backend"] = self.moe_runner_backend
        if self.latent_cache == "off":
            own["latent_cache"] = False
        if self.state_prefixes != "auto":
            own["cache_state_prefixes"] = self.state_prefixes == "on"
        if self.num_speculative_tokens:
            own["num_speculative_tokens"] = self.num_speculative_tokens
            own["speculative_acceptance"] = self.speculative_acceptance
        if self.num_lora_adapters:
            own["max_loras"] = self.max_loras or MAX_LORAS.get(preset.family, 1)
            own["max_lora_rank"] = self.max_lora_rank
        return dataclasses.replace(preset, **own) if own else preset

    def _engine_preset(self) -> EngineSettings:
        """The preset at the release and core that the user names."""
        preset = get_engine(self.engine, self.engine_version)
        if self.engine_core == "auto" or preset.family != "vllm":
            return preset
        return as_of(
            dataclasses.replace(get_engine(self.engine), version=preset.version, use_v1=self.engine_core == "v1")
        )

    @property
    def parallelism(self) -> Parallelism:
        """How one replica is split over GPUs."""
        return Parallelism(
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=self.pipeline_parallel_size,
            expert_parallel=self.expert_parallel,
            attention_data_parallel_size=self.attention_data_parallel_size,
            decode_context_parallel_size=self.decode_context_parallel_size,
        )

    @property
    def not_calibrated_for(self) -> tuple[str, ...]:
        """The parts in which this deployment differs from the one that the calibration was measured on."""
        return differing(self, self.calibration_of) if self.calibration_runs else ()

    @property
    def is_calibrated(self) -> bool:
        """Whether the plan has a calibration that was measured on this deployment."""
        return self.calibration_runs > 0 and not self.not_calibrated_for

    @property
    def load(self) -> Load:
        """The arrivals and lengths in figures, however they are entered."""
        traffic, amount = self.traffic, 0.0
        if self.arrivals == "once":
            amount = self.num_requests
        elif self.asks != "take":
            amount = self.peak_rate_rps if self.is_open_loop else self.concurrent_users
        lengths = (traffic.prompt_tokens.mean, traffic.output_tokens.mean, self.shared_prefix_tokens)
        return Load(self.arrivals, amount, *lengths)

    @property
    def is_calibrated_for_other_load(self) -> bool:
        """Whether the calibration was made for other traffic on this deployment; False where that is not known."""
        known = self.calibration_load
        return self.is_calibrated and bool(known) and known not in (self.load.text, self.load.digest)

    @property
    def step_scales(self) -> StepScales:
        """The calibration's factors on predicted times; all 1 without one, or where it is of another deployment."""
        if not self.is_calibrated:
            return AS_PREDICTED
        return StepScales(**{scale: getattr(self, field) for scale, field in SCALES.items()})

    @property
    def calibrated_errors(self) -> dict[str, float]:
        """Standard deviation of ln(measured ÷ predicted) that the calibration leaves, by figure.

        Empty without one, and where it was made for another load: how far off it is here nobody has said.
        """
        if not self.is_calibrated or self.is_calibrated_for_other_load:
            return {}
        return {figure: getattr(self, field) for figure, field in ERRORS.items() if getattr(self, field)}

    @property
    def not_printed_for(self) -> tuple[str, ...]:
        """The parts in which this deployment differs from the one whose start-up log the printed memory is from."""
        printed = any(getattr(self, field) is not None for field in PRINTED.values())
        return differing(self, self.printed_of, MEMORY_PARTS) if printed else ()

    @property
    def printed_memory(self) -> PrintedMemory | None:
        """What the engine of this deployment printed; None without a log, or where it is of another deployment."""
        figures = {part: getattr(self, field) for part, field in PRINTED.items()}
        if all(value is None for value in figures.values()) or self.not_printed_for:
            return None
        in_bytes = {part: value * GIB for part, value in figures.items() if value is not None and part != "kv_tokens"}
        return PrintedMemory(**in_bytes, kv_tokens=self.printed_kv_tokens)

    @property
    def asks(self) -> str:
        """The question that the inputs ask: need, take, or will, which a number of replicas makes of need."""
        return "will" if self.question == "need" and self.num_replicas is not None else self.question

    @property
    def fixed_replicas(self) -> int | None:
        """The number of replicas that is given; None where the plan finds the fewest."""
        return None if self.asks == "need" else self.num_replicas or 1

    @property
    def fixed_pools(self) -> tuple[int | None, int | None]:
        """Prefill and decode replicas that are given, one of each to say what they take; None: as many as needed."""
        given = self.prefill_replicas, self.decode_replicas
        return (given[0] or 1, given[1] or 1) if self.question == "take" else given

    @property
    def fixes_pools(self) -> bool:
        """Whether the number of prefill or of decode replicas, which stand apart, is given."""
        return self.deployment == "disaggregated" and self.fixed_pools != (None, None)

    @property
    def is_open_loop(self) -> bool:
        """Whether requests arrive at a given rate, so that there is a rate to size for."""
        return self.arrivals in OPEN_LOOP_KINDS

    @property
    def peak_rate_rps(self) -> float:
        """Requests per second at the peak, from the demand as stated. [req/s]"""
        if self.demand == "users":
            return self.users * self.requests_per_user_hour * self.peak_factor / SECONDS_PER_HOUR
        if self.demand == "daily":
            return self.requests_per_day * self.peak_factor / SECONDS_PER_DAY
        return self.rate_rps

    @property
    def mean_rate_rps(self) -> float:
        """Requests per second averaged over the month: the peak divided by the peak factor. [req/s]"""
        return self.peak_rate_rps / self.peak_factor

    def at_load(self, load: float) -> Self:
        """The scenario at another load, in the terms in which it states its own.

        Parameters
        ----------
        load : float
            Requests per second at the peak of an open loop, 10⁶ at most; users of a closed loop, requests of a burst;
            whole users and requests are rounded down.
        """
        load = min(load, MOST_RPS) if self.is_open_loop else load
        changed: dict[str, Any] = {"rate_rps": load}
        if self.arrivals == "closed":
            changed = {"concurrent_users": max(1, int(load))}
        elif self.arrivals == "once":
            changed = {"num_requests": max(1, int(load))}
        elif self.demand == "users":
            each_rps = self.requests_per_user_hour * self.peak_factor / SECONDS_PER_HOUR
            changed = {"users": min(max(1, math.floor(load / each_rps + 1e-9)), MOST_USERS)}
        elif self.demand == "daily":
            changed = {"requests_per_day": load * SECONDS_PER_DAY / self.peak_factor}
        return dataclasses.replace(self, **changed)

    @property
    def hourly_rates_rps(self) -> tuple[float, ...]:
        """Requests per second in each hour of the day, from midnight on. [req/s]

        The peak is that of the plan. A shape of the catalog is raised to the power at which its mean is the peak ÷ the
        peak factor; a drawn or flat day stays as it is.
        """
        peak = self.peak_rate_rps
        if self.day_shape == "drawn":
            return tuple(peak * percent / 100 for percent in hours_of_day(self.day_hours))
        shape = day_shape(self.day_shape)
        power = 1.0 if self.day_shape == "flat" else _power_for_mean(shape, 1 / self.peak_factor)
        return tuple(peak * share**power for share in shape)

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decode run on separate replicas."""
        return self.deployment == "disaggregated"

    @property
    def kv_transfer_bytes_per_s(self) -> float:
        """Bandwidth of the KV cache from one replica to another, over all of its GPUs. [bytes/s]"""
        each = self.kv_transfer_gb_s
        if each is None:
            each = min(NETWORK_GB_S, self.gpu_spec.link_gb_s / 2)
        return each * 1e9 * self.parallelism.gpus_per_replica

    @property
    def traffic(self) -> Traffic:
        """The peak traffic of the whole service."""
        _check_rate(self)
        arrivals = Arrivals(
            kind=ArrivalKind(self.arrivals),
            rate_rps=min(self.peak_rate_rps, MOST_RPS),  # above it only where arrivals have no rate
            cv=self.burst_cv if self.arrivals == "bursty" else 1.0,
            users=self.concurrent_users,
            think_time_s=self.think_time_s,
        )
        return Traffic(
            arrivals=arrivals,
            prompt_tokens=self._lengths("prompt"),
            output_tokens=self._lengths("output"),
            shared_prefix_tokens=self.shared_prefix_tokens,
            num_prefix_groups=self.num_prefix_groups,
            output_limit_tokens=self.output_limit_tokens,
            exact_output_limit=self.exact_output_limit,
            num_lora_adapters=self.num_lora_adapters,
            lora_popularity=self.lora_popularity,
        )

    def _lengths(self, side: str) -> Lengths:
        if self.lengths in ("trace", "quantiles"):
            if self.lengths == "trace":
                values = length_quantiles(f"{self.length_trace}_{'in' if side == 'prompt' else 'out'}")
            else:
                values = quantiles_of(f"{side}_quantiles", getattr(self, f"{side}_quantiles"))
            longest = self.max_prompt_tokens or NO_LIMIT if side == "prompt" else NO_LIMIT
            mean = math.fsum(values) / len(values)
            return Lengths(kind=LengthKind.QUANTILES, mean=mean, quantiles=values, maximum=longest)
        return Lengths(
            kind=LengthKind(self.lengths),
            mean=getattr(self, f"{side}_mean_tokens"),
            spread=getattr(self, f"{side}_spread"),
            maximum=self.max_prompt_tokens or NO_LIMIT if side == "prompt" else NO_LIMIT,
        )

    @property
    def targets(self) -> tuple[Target, ...]:
        """The latency targets that are on, as the user gave them."""
        return targets_of({field: getattr(self, field) for field in TARGETS})

    @property
    def service_level(self) -> ServiceLevel:
        """What the plan is held to: the targets less the safety margin, and the share of requests to meet them."""
        kept = 1 - self.safety_margin
        limits = {TARGETS[target.field][1]: target.limit_s * kept for target in self.targets}
        return ServiceLevel(
            **dict.fromkeys(("ttft_s", "tpot_s"), None) | limits,
            quantile=self.target_quantile,
            window=self.measured_requests,
        )


def hours_of_day(text: str) -> tuple[int, ...]:
    """The 24 percentages of a drawn day.

    Raises
    ------
    InvalidInput
        When the text is none.
    """
    parts = text.split(".")
    valid = len(parts) == HOURS and all(part.isdecimal() and int(part) <= MOST_PERCENT for part in parts)
    if not valid or not any(map(int, parts)):
        raise InvalidInput(
            "day_hours", text, f"{HOURS} whole percentages of the peak, 0 to {MOST_PERCENT}, with dots between them"
        )
    return tuple(map(int, parts))


def _power_for_mean(shape: tuple[float, ...], mean: float) -> float:
    """The power to which shares of a peak are raised so that they average to `mean`."""
    low, high = 0.0, 50.0
    for _ in range(60):
        power = (low + high) / 2
        if math.fsum(share**power for share in shape) / len(shape) > mean:
            low = power
        else:
            high = power
    return low


def _check_rate(scenario: DerivedInputs) -> None:
    """Raise on an impossible rate and name the input that causes it.

    Raises
    ------
    InvalidInput
        Names users, requests per day or the rate.
    """
    if scenario.is_open_loop and scenario.peak_rate_rps > MOST_RPS:
        field = {"users": "users", "daily": "requests_per_day", "rate": "rate_rps"}[scenario.demand]
        rate = scenario.peak_rate_rps
        raise InvalidInput(
            field,
            getattr(scenario, field),
            f"a value that gives at most {MOST_RPS:,.0f} req/s at the peak; this one gives {rate:,.0f}",
        )
