"""The form's groups in a line each: what they are set to. No streamlit."""

from __future__ import annotations

from planner.cost import gpu_price
from planner.dashboard.form_fields import MORE, relevant
from planner.dashboard.words import WORDS, short
from planner.scenario import Scenario, fields_by_name
from planner.units import counted, format_duration, format_number, format_usd


def set_behind(group: str, scenario: Scenario) -> str:
    """What is set behind a group's fold, in a few words."""
    declared = fields_by_name()
    labels = [
        str(declared[name].metadata["label"])
        for name in MORE[group][1]
        if getattr(scenario, name) != declared[name].default
    ]
    return f" · {labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''} set" if labels else ""


def summary(group: str, s: Scenario) -> str:
    """A group's settings in one line."""
    traffic = {
        "users": f"{counted(s.users, 'user')} × {format_number(s.requests_per_user_hour)}/h · "
        f"peak {format_number(s.peak_factor)}×",
        "rate": f"{format_number(s.rate_rps)} req/s at peak",
        "daily": f"{format_number(s.requests_per_day)} a day · peak {format_number(s.peak_factor)}×",
    }[s.demand]
    if s.arrivals in ("closed", "once"):
        traffic = (
            f"{counted(s.concurrent_users, 'concurrent user')}"
            if s.arrivals == "closed"
            else f"{s.num_requests:,} at once"
        )
    means = s.traffic
    lengths = f"{format_number(means.prompt_tokens.mean)} → {format_number(means.output_tokens.mean)} tokens"
    price, source = gpu_price(s)
    groups = s.attention_data_parallel_size
    replicas = "" if s.fixed_replicas is None else f" · {counted(s.fixed_replicas, 'replica')}"
    split = f"TP {s.tensor_parallel_size}" + (
        f" · PP {s.pipeline_parallel_size}" if s.pipeline_parallel_size > 1 else ""
    )
    split += f" · DP {groups}" if groups > 1 else ""
    lines = {
        "model": f"{short(s.model_shape.name)} · {WORDS['weight_dtype'].get(s.weight_dtype, s.weight_dtype)} · "
        f"{s.max_model_len:,} tokens",
        "hardware": f"{s.gpu} · {split}{replicas}",
        "advanced": ", ".join(_tuned(s)) or "engine defaults",
        "engine": f"{s.engine}" + (f" · {s.max_num_seqs:,} seqs" if s.max_num_seqs else ""),
        "traffic": f"{'the most' if s.asks == 'take' else traffic} · {lengths}",
        "targets": " · ".join(
            [f"{target.name} {format_duration(target.limit_s)}" for target in s.targets]
            + [f"p{format_number(100 * s.target_quantile)}"]
        )
        if s.targets
        else "none: sized by throughput",
        "prices": source if source.startswith("no price") else f"{format_usd(price)} per GPU-hour",
        "time": f"{WORDS['day_shape'][s.day_shape].split(',')[0].lower()} · "
        f"{format_number(100 * s.growth_per_month)} % growth a month",
        "simulation": f"{s.num_requests:,} requests · seed {s.seed}",
    }
    return lines[group]


def _tuned(s: Scenario) -> list[str]:
    """The advanced settings that differ from their defaults, by label."""
    fields = fields_by_name().items()
    own = [(name, item) for name, item in fields if item.metadata["group"] == "advanced"]
    held = {name: getattr(s, name) for name in fields_by_name()}
    changed = [item for name, item in own if held[name] != item.default and relevant(name, held)]
    labels = [str(item.metadata["label"]) for item in changed]
    return labels if len(labels) <= 2 else [labels[0], f"{len(labels) - 1} more"]
