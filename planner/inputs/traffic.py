"""What users ask of the service: rates, arrival pattern, lengths and the targets to meet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import lt

from planner.errors import InvalidInput, require_choice, require_int, require_number


class ArrivalKind(StrEnum):
    """When requests arrive."""

    POISSON = "poisson"
    BURSTY = "bursty"  # Gamma inter-arrival times with coefficient of variation `cv`
    ONCE = "once"  # all at once
    CLOSED = "closed"  # `users` clients that wait for their answer, think, and ask again
    ON_OFF = "on_off"  # Poisson bursts: `on_fraction` of each `period_s` carries all arrivals
    DIURNAL = "diurnal"  # Poisson, rate follows a day


class LengthKind(StrEnum):
    """How token counts are distributed."""

    CONSTANT = "constant"
    NORMAL = "normal"
    LOGNORMAL = "lognormal"
    QUANTILES = "quantiles"  # a row of quantiles of a real trace
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Distribution of token counts; draws are rounded to whole tokens and clipped to [minimum, maximum].

    CONSTANT uses `mean`; NORMAL and LOGNORMAL `mean` and `spread` (standard deviation ÷ mean, of the
    distribution itself, not of its logarithm); UNIFORM runs over mean·(1 ± spread); EXPONENTIAL uses
    `mean`; QUANTILES interpolates `quantiles`, given at equal steps from 0 to 100 %.
    """

    kind: LengthKind = LengthKind.LOGNORMAL
    mean: float = 512.0
    spread: float = 1.0
    quantiles: tuple[float, ...] = ()
    minimum: int = 1
    maximum: int = 10_000_000

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, LengthKind)
        require_number("mean", self.mean, at_least=1, at_most=1e7)
        require_number("spread", self.spread, at_least=0, at_most=10)
        require_int("minimum", self.minimum)
        require_int("maximum", self.maximum, at_least=self.minimum)
        falls = any(map(lt, self.quantiles[1:], self.quantiles))
        if self.kind is LengthKind.QUANTILES and (len(self.quantiles) < 2 or falls):
            raise InvalidInput("quantiles", self.quantiles, "at least two values that never fall")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When requests arrive. `rate_rps` is the mean rate; CLOSED ignores it."""

    kind: ArrivalKind = ArrivalKind.POISSON
    rate_rps: float = 1.0
    cv: float = 1.0
    users: int = 1
    think_time_s: float = 0.0
    on_fraction: float = 0.25
    period_s: float = 60.0
    peak_factor: float = 2.0  # DIURNAL: peak ÷ mean of a weekday
    weekend_factor: float = 1.0  # DIURNAL: rate of the last two of seven days ÷ that of a weekday

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, ArrivalKind)
        require_number("rate_rps", self.rate_rps, above=0, at_most=1e6)
        require_number("cv", self.cv, above=0, at_most=100)
        require_int("users", self.users, at_most=1_000_000)
        require_number("think_time_s", self.think_time_s, at_least=0, at_most=1e6)
        require_number("on_fraction", self.on_fraction, above=0, at_most=1)
        require_number("period_s", self.period_s, above=0, at_most=1e7)
        require_number("peak_factor", self.peak_factor, at_least=1, at_most=100)
        require_number("weekend_factor", self.weekend_factor, above=0, at_most=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests offered to the whole service at its peak.

    With LoRA adapters every request names one of them; adapter k of n is asked for in proportion to
    1 / k^`lora_popularity` (Zipf). Popularity of adapters is rarely published: 1.0 is an assumption.
    """

    arrivals: Arrivals
    prompt_tokens: Lengths
    output_tokens: Lengths
    shared_prefix_tokens: int = 0  # leading prompt tokens that all requests have in common
    num_prefix_groups: int = 1  # distinct shared prefixes
    output_limit_tokens: int | None = None  # max_tokens that clients send; None = the model's limit
    exact_output_limit: bool = False  # clients send the answer's own length as max_tokens, as benchmarks do
    num_lora_adapters: int = 0  # adapters that requests ask for; 0: all want the base model
    lora_popularity: float = 1.0  # Zipf exponent of the adapters' popularity; 0: all alike

    def __post_init__(self) -> None:
        require_int("shared_prefix_tokens", self.shared_prefix_tokens, at_least=0)
        require_int("num_prefix_groups", self.num_prefix_groups)
        if self.output_limit_tokens is not None:
            require_int("output_limit_tokens", self.output_limit_tokens)
        require_int("num_lora_adapters", self.num_lora_adapters, at_least=0, at_most=1_000_000)
        require_number("lora_popularity", self.lora_popularity, at_least=0, at_most=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """Targets at a quantile of requests. None = not a target; `itl_s` limits the longest gap of a request.

    `window` says which requests count: "steady", those after warm-up, or "all", first wave and last answers
    included, as benchmark clients report.
    """

    ttft_s: float | None = 1.0
    tpot_s: float | None = 0.05
    itl_s: float | None = None
    e2e_s: float | None = None
    quantile: float = 0.95
    window: str = "steady"

    def __post_init__(self) -> None:
        for name in ("ttft_s", "tpot_s", "itl_s", "e2e_s"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), above=0, at_most=1e6)
        require_choice("window", self.window, ("steady", "all"))
        require_number("quantile", self.quantile, at_least=0.5, at_most=0.999)
