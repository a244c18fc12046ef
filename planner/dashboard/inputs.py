"""The sidebar: the form, made from the Scenario's field declarations, one expander per group."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import streamlit as st

from planner.catalog import draft_head_names, engine_names, fetch_from_hub, gpu_names, length_set_names, model_names
from planner.cost import gpu_price
from planner.dashboard import urlstate
from planner.dashboard.config_text import pruned
from planner.dashboard.widgets import prose
from planner.dashboard.words import WORDS, field_label, short
from planner.errors import InvalidInput
from planner.model import kv_dtype_names, weight_dtype_names
from planner.scenario import (
    CONFIG,
    CUSTOM,
    OPEN_LOOP_KINDS,
    TARGETS,
    Scenario,
    fields_by_name,
    for_use,
    message,
    preset,
    preset_names,
    uses,
)
from planner.units import counted, format_duration, format_number, format_usd

LARGEST = 2**53 - 1  # the largest integer that a browser keeps exactly
GROUPS = {
    "model": "Model",
    "hardware": "Hardware",
    "engine": "Engine",
    "advanced": "Advanced engine settings",
    "traffic": "Traffic",
    "targets": "Targets",
    "prices": "Prices",
    "time": "Day and months",
    "simulation": "Simulation",
}
OPTIONS: dict[str, Callable[[], tuple[str, ...]]] = {
    "model": lambda: (*model_names(), CUSTOM, CONFIG),
    "gpu": lambda: (*gpu_names(), CUSTOM),
    "engine": engine_names,
    "weight_dtype": weight_dtype_names,
    "kv_cache_dtype": kv_dtype_names,
    "length_trace": length_set_names,
    "draft_model": lambda: ("", *draft_head_names(), *model_names()),
}
STEPS = {
    "ttft_target_s": 0.1,
    "tpot_target_s": 0.005,
    "itl_target_s": 0.05,
    "e2e_target_s": 1.0,
    "safety_margin": 0.05,
    "usd_per_gpu_hour": 0.1,
    "target_quantile": 0.01,
    "gpu_memory_utilization": 0.01,
    "speculative_acceptance": 0.05,
    "prompt_spread": 0.1,
    "output_spread": 0.1,
    "burst_cv": 0.5,
    "peak_factor": 0.5,
    "api_usd_per_mtok_input": 0.05,
    "api_usd_per_mtok_output": 0.05,
    "max_model_len": 1024,
    "users": 100,
    "num_requests": 500,
    "max_num_batched_tokens": 1024,
    "prompt_mean_tokens": 128.0,
    "output_mean_tokens": 32.0,
    "shared_prefix_tokens": 128,
    "hours_per_month": 10.0,
    "api_usd_per_mtok_cached_input": 0.05,
    "api_cached_share": 0.05,
    "gpu_purchase_usd": 1000.0,
    "depreciation_years": 0.5,
    "resale_share": 0.05,
    "power_usd_per_kwh": 0.01,
    "pue": 0.05,
    "server_power_factor": 0.1,
    "people_usd_per_month": 1000.0,
    "startup_s": 10.0,
    "disk_gb_s": 0.5,
    "cooldown_s": 60.0,
    "growth_per_month": 0.01,
    "price_trend_per_year": 0.05,
    "hidden_size": 128,
    "intermediate_size": 256,
    "vocab_size": 1000,
    "moe_intermediate_size": 128,
    "output_limit_tokens": 128,
    "long_prefill_token_threshold": 512,
    "block_size": 16,
    "kv_offload_gib": 16.0,
    "max_lora_rank": 8,
    "patience_s": 1.0,
    "timeout_s": 10.0,
    "lora_popularity": 0.1,
}
OPEN_AT_FIRST = ("model", "hardware", "traffic", "targets")
#: what few change, behind a fold in its group
MORE: dict[str, tuple[str, tuple[str, ...]]] = {
    "hardware": (
        "More: parallelism, prefill and decode",
        (
            *("pipeline_parallel_size", "expert_parallel", "attention_data_parallel_size", "deployment"),
            *("prefill_replicas", "decode_replicas", "kv_transfer_gb_s"),
        ),
    ),
    "traffic": (
        "More: shared prompts, limits",
        (
            *("shared_prefix_tokens", "num_prefix_groups"),
            *("output_limit_tokens", "exact_output_limit", "max_prompt_tokens"),
        ),
    ),
    "targets": (
        "More: other targets, margin, spares",
        ("itl_target_s", "e2e_target_s", "target_quantile", "safety_margin", "spare_replicas"),
    ),
}
SPREAD_LENGTHS = ("lognormal", "normal", "uniform")
#: what only prefill and decode on separate replicas need
OF_POOLS = ("prefill_replicas", "decode_replicas", "kv_transfer_gb_s")
#: what only a rate that changes from hour to hour needs
OF_THE_DAY = ("day_shape", "startup_s", "disk_gb_s", "autoscale_target", "cooldown_s")
#: what only owned GPUs cost
OWNED = (
    *("gpu_purchase_usd", "depreciation_years", "resale_share", "power_usd_per_kwh", "pue", "server_power_factor"),
    "people_usd_per_month",
)
PLACEHOLDERS = {  # what an empty field means, by field or group
    "engine": "engine default",
    "advanced": "engine default",
    "prices": "list price",
    "gpu_purchase_usd": "not counted",
    "startup_s": "estimate",
    "prefill_replicas": "as needed",
    "decode_replicas": "as needed",
    "kv_transfer_gb_s": "50 at most",
    "autoscale_target": "80 % of capacity",
    "api_cached_share": "as cached here",
    "patience_s": "never leaves",
    "timeout_s": "never leaves",
    "output_limit_tokens": "context length",
    "max_prompt_tokens": "no limit",
    "gpu_total_gib": "catalog value",
    "engine_version": "newest",
    "targets": "no target",
    "most_gpus": "no limit",
}


def relevant(name: str, s: dict[str, Any]) -> bool:
    """Whether a field matters, given the other widgets' values."""
    rules: dict[str, bool] = {
        "model_config": False,  # has its own editor
        "day_hours": False,  # has its own editor on the Fleet & time page
        "title": False,  # in the Share popover, beside the link
        "question": False,  # above the answer
        "spare_replicas": s["question"] == "need" and s["num_replicas"] is None,
        "safety_margin": any(s[field] is not None for field in TARGETS),
        "users": s["demand"] == "users",
        "requests_per_user_hour": s["demand"] == "users",
        "rate_rps": s["demand"] == "rate",
        "requests_per_day": s["demand"] == "daily",
        "demand": s["arrivals"] in OPEN_LOOP_KINDS,
        "peak_factor": s["arrivals"] in OPEN_LOOP_KINDS,
        "burst_cv": s["arrivals"] == "bursty",
        "concurrent_users": s["arrivals"] == "closed",
        "think_time_s": s["arrivals"] == "closed",
        "length_trace": s["lengths"] == "trace",
        "prompt_quantiles": s["lengths"] == "quantiles",
        "output_quantiles": s["lengths"] == "quantiles",
        "prompt_mean_tokens": s["lengths"] not in ("trace", "quantiles"),
        "output_mean_tokens": s["lengths"] not in ("trace", "quantiles"),
        "prompt_spread": s["lengths"] in SPREAD_LENGTHS,
        "output_spread": s["lengths"] in SPREAD_LENGTHS,
        "speculative_acceptance": bool(s["num_speculative_tokens"]),
        "draft_model": bool(s["num_speculative_tokens"]),
        "num_prefix_groups": bool(s["shared_prefix_tokens"]),
        "lora_popularity": bool(s["num_lora_adapters"]),
        "max_loras": bool(s["num_lora_adapters"]),
        "max_lora_rank": bool(s["num_lora_adapters"]),
        "router": s["arrivals"] in OPEN_LOOP_KINDS,
        "max_state_slots": s["engine"].startswith("sglang") or s["max_state_slots"] is not None,
        "mamba_full_memory_ratio": s["engine"].startswith("sglang") or s["mamba_full_memory_ratio"] is not None,
        "max_total_tokens": s["engine"].startswith(("sglang", "tensorrt")) or s["max_total_tokens"] is not None,
        "images_per_prompt": s["engine"].startswith("vllm") or s["images_per_prompt"] is not None,
        "encoder_data_parallel": s["engine"].startswith(("vllm", "sglang")) or s["encoder_data_parallel"],
        "engine_core": s["engine"].startswith("vllm") or s["engine_core"] != "auto",
        "decode_context_parallel_size": s["engine"].startswith("vllm") or s["decode_context_parallel_size"] > 1,
        "behind_dynamo": s["engine"].startswith(("vllm", "sglang", "tensorrt")) or s["behind_dynamo"],
        "plain_awq": s["engine"].startswith(("vllm", "sglang")) or s["plain_awq"],
        "moe_runner_backend": s["engine"].startswith("sglang") or s["moe_runner_backend"] != "auto",
        "receive_interval_steps": s["engine"].startswith("sglang") or s["receive_interval_steps"] > 1,
        "kv_unified": s["engine"].startswith("llama") or s["kv_unified"] != "auto",
        "gpu_total_gib": s["gpu"] != CUSTOM,
        **dict.fromkeys(OF_POOLS, s["deployment"] == "disaggregated"),
        "num_replicas": (s["question"] != "need" and s["deployment"] != "disaggregated")
        or s["num_replicas"] is not None,
        **dict.fromkeys(OF_THE_DAY, s["arrivals"] in OPEN_LOOP_KINDS),
        **dict.fromkeys(OWNED, s["price_kind"] == "owned"),
        "experts_per_token": bool(s["num_experts"]),
        "moe_intermediate_size": bool(s["num_experts"]),
    }
    for demand_field in ("users", "requests_per_user_hour", "rate_rps", "requests_per_day"):
        rules[demand_field] = rules[demand_field] and rules["demand"]
    if s["question"] == "take":
        rules |= dict.fromkeys(("users", "rate_rps", "requests_per_day", "concurrent_users"), False)  # it asks for them
    return rules.get(name, True)


def sidebar(scenario: Scenario, errors: dict[str, str]) -> None:
    """Draw all inputs, each error under its field."""
    held = urlstate.values()
    with st.sidebar:
        _start_from()
        _sum_up(scenario, {_group_of(name) for name in errors})
        for group, title in GROUPS.items():
            section = st.expander(
                f"**{title}**", key=f"group_{group}", expanded=group in OPEN_AT_FIRST, on_change="rerun"
            )
            with section:
                if group == "traffic" and section.open:
                    _fill_for_use(scenario)
                if section.open:
                    _group(group, held, errors)
        left = [text for name, text in errors.items() if name not in fields_by_name()]
        for text in left:
            st.error(prose(text))


def _required() -> str:
    """The fields that always have a number, as a selector of CSS."""
    fields = fields_by_name().items()
    names = (name for name, item in fields if item.metadata["kind"] != "text" and not item.metadata["optional"])
    return f":is({', '.join(f'.st-key-{urlstate.key(name)}' for name in names)})"


def _sum_up(scenario: Scenario, wrong: set[str]) -> None:
    # Beside each title by style, not in it: a title that changes would draw its group anew and close it.
    rules = [f"{_required()} [data-testid=stNumberInputClearButton] {{ display: none; }}"]  # nothing to clear them to
    for group in GROUPS:
        said, looks = summary(group, scenario), "opacity: 0.78"
        said = said.replace(" %", "\u00a0%").replace("seed ", "seed\u00a0")
        if group in wrong:
            said, looks = "check this", "color: color-mix(in srgb, red 60%, currentColor)"
        rules.append(f'.st-key-group_{group} summary p::after {{ content: "{in_style(f" {said}")}"; {looks}; }}')
        if group in MORE:
            kept = in_style(_set_behind(group, scenario))
            rules.append(f'.st-key-group_{group} .st-key-more_{group} summary p::after {{ content: "{kept}"; }}')
    st.html(f"<style>{''.join(rules)}</style>")


def _set_behind(group: str, scenario: Scenario) -> str:
    """What is set behind a group's fold, in a few words."""
    declared = fields_by_name()
    labels = [
        str(declared[name].metadata["label"])
        for name in MORE[group][1]
        if getattr(scenario, name) != declared[name].default
    ]
    return f" · {labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''} set" if labels else ""


def in_style(text: str) -> str:
    """Text as it stands in a quoted string of CSS; whatever could end the string is escaped."""
    return "".join(sign if sign.isalnum() else f"\\{ord(sign):x} " for sign in text)


def _group_of(name: str) -> str:
    fields = fields_by_name()
    if name not in fields:
        return ""
    group = str(fields[name].metadata["group"])
    return {"shape": "model", "gpu": "hardware"}.get(group, group)


def _group(group: str, held: dict[str, Any], errors: dict[str, str]) -> None:
    title, behind = MORE.get(group, ("", ()))
    for name, item in fields_by_name().items():
        own = item.metadata["group"]
        if own == group and name not in behind and relevant(name, held):
            _field(name, item.metadata, errors.get(name))
        if name == "model" and group == "model":
            if held["model"] == CONFIG:
                _config_editor(errors.get("model_config"))
            elif held["model"] == CUSTOM:
                _nested("shape", held, errors)
        if name == "gpu" and group == "hardware" and held["gpu"] == CUSTOM:
            _nested("gpu", held, errors)
    if behind:
        _more(group, title, behind, held, errors)


def _more(group: str, title: str, names: tuple[str, ...], held: dict[str, Any], errors: dict[str, str]) -> None:
    """The fold of a group, open at first where one of its fields is set or wrong."""
    declared = fields_by_name()
    is_set = any(held[name] != declared[name].default or name in errors for name in names)
    at_first = st.session_state.setdefault(f"_more_{group}", is_set)  # another one later would draw the fold anew
    fold = st.expander(title, key=f"more_{group}", expanded=at_first, on_change="rerun", type="compact")
    if fold.open:
        with fold:
            fields(tuple(name for name in names if relevant(name, held)), errors)


def _nested(group: str, held: dict[str, Any], errors: dict[str, str]) -> None:
    with st.container(border=True):
        for name, item in fields_by_name().items():
            if item.metadata["group"] == group and relevant(name, held):
                _field(name, item.metadata, errors.get(name))


HEADINGS = {  # subheadings inside a group, above the named field
    "chunked_prefill": "Prefill and KV cache",
    "num_speculative_tokens": "Speculative decoding",
    "num_lora_adapters": "LoRA",
    "patience_s": "Clients and replicas",
    "usd_per_gpu_hour": "GPUs",
    "api_usd_per_mtok_input": "Hosted API",
    "gpu_purchase_usd": "Owned GPUs and power",
    "day_shape": "24 hours",
    "growth_per_month": "24 months",
}


def _field(name: str, meta: Any, error: str | None) -> None:
    """Draw one field with the widget for its kind."""
    label = field_label(name)
    about = meta["help"] or None
    key, value = urlstate.key(name), urlstate.fill(name)
    if name in HEADINGS:
        st.markdown(f"**{HEADINGS[name]}**")
    common: dict[str, Any] = {"key": key, "help": about, "persist_state": "session"}
    if name in OPTIONS or meta["choices"]:
        choices = list(meta["choices"] or OPTIONS[name]())
        if value not in choices:
            choices.insert(0, value)
        words = WORDS.get(name, {})
        st.selectbox(label, choices, format_func=lambda value: words.get(value, short(value)), **common)
    elif meta["kind"] == "flag":
        st.checkbox(label, **common)
    elif meta["kind"] == "text":
        st.text_input(label, **common)
    else:
        _number(name, label, meta, value, common)
    if error:
        st.error(prose(error))


def _number(name: str, label: str, meta: Any, value: float | None, common: dict[str, Any]) -> None:
    # The Scenario checks the bounds, so its message appears under the field; the browser would just clamp.
    whole = meta["kind"] == "count"
    if meta["optional"]:
        empty = PLACEHOLDERS.get(name) or PLACEHOLDERS.get(meta["group"], "automatic")
    else:
        empty = f"{getattr(urlstate.saved(), name):.12g}"  # the plan keeps the last value
    if value is not None and not isinstance(value, int if whole else float):
        st.session_state[common["key"]] = int(value) if whole else float(value)
    low, high = (-LARGEST, LARGEST) if whole else (-1e15, 1e15)
    step = STEPS.get(name, 1 if whole else 1.0)
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        step=int(step) if whole else float(step),
        format="%d" if whole else "%.12g",
        value=None,  # else an emptied field would hold its lowest value
        placeholder=empty,
        **common,
    )


@lru_cache(maxsize=1)
def refusals_in_style() -> str:
    """CSS that says below a number what the browser keeps back: numbers larger than it can hold exactly."""
    rules = []
    for name, item in fields_by_name().items():
        meta = item.metadata
        if meta["kind"] not in ("count", "number"):
            continue
        most = LARGEST if meta["maximum"] is None else meta["maximum"]
        valid = f"at most {format_number(most, 16)}"
        if meta["minimum"] is not None:
            valid = f"{format_number(meta['minimum'], 16)} to {format_number(most, 16)}"
        text = (
            f"{field_label(name)}: this number is out of range. Expected {valid}. The plan keeps the last valid value."
        )
        rules.append(f".st-key-{urlstate.key(name)} [data-invalid=true]::after{{content:{json.dumps(text)}}}")
    return "".join(rules)


def _start_from() -> None:
    def chosen() -> None:
        name = st.session_state["start_from"]
        if name:
            start = preset(name)
            urlstate.put(**{field: getattr(start, field) for field in fields_by_name()})
            st.session_state["start_from"] = None

    st.selectbox(
        "Start from an example",
        [name for name in preset_names() if name not in uses()],
        index=None,
        placeholder="Start from an example…",
        format_func=lambda name: preset(name).title or name.replace("-", " ").capitalize(),
        key="start_from",
        on_change=chosen,
        label_visibility="collapsed",
    )


def _fill_for_use(scenario: Scenario) -> None:
    titles = uses()

    def chosen() -> None:
        name = st.session_state["fill_for"]
        if name:
            adopt(for_use(scenario, name))
            st.session_state["fill_for"] = None

    st.selectbox(
        "Lengths and targets for a use",
        tuple(titles),
        index=None,
        placeholder="Fill in for a use…",
        format_func=lambda name: titles[name],
        key="fill_for",
        on_change=chosen,
        help="Fills lengths, context and targets as usual for chat, RAG, code, agents, summaries or batches; model, "
        "GPUs and the amount of traffic stay.",
    )


def question(scenario: Scenario, planned_replicas: int, planned_pools: tuple[int, int] | None) -> None:
    """The switch between the three questions; the form and the answer follow it.

    Parameters
    ----------
    scenario : Scenario
        Of this run.
    planned_replicas : int
        What the plan has, which a question about given GPUs starts from.
    planned_pools : tuple of int or None
        The same of prefill and decode replicas, where they are apart.
    """
    state, key = st.session_state, urlstate.key("question")

    def chosen() -> None:
        asked = state[key] or scenario.asks
        number = None if asked == "need" else scenario.num_replicas or max(1, planned_replicas)
        if scenario.is_disaggregated:
            given = (None, None) if asked == "need" else planned_pools or (1, 1)
            urlstate.put(question=asked, num_replicas=None, prefill_replicas=given[0], decode_replicas=given[1])
            return
        urlstate.put(question=asked, num_replicas=number)

    if state.get(key) != scenario.asks:
        state[key] = scenario.asks
    words = WORDS["question"]
    st.segmented_control(
        "Question",
        list(words),
        format_func=lambda name: words[name],
        key=key,
        on_change=chosen,
        label_visibility="collapsed",
        width="stretch",
        persist_state="session",
        help=str(fields_by_name()["question"].metadata["help"]),
    )


def _config_editor(error: str | None) -> None:
    """Paste, upload or fetch a config.json."""
    state, used = st.session_state, urlstate.fill("model_config")
    if used:
        st.caption(f"In use: a config.json of {len(used):,} characters; the link carries it.")
    st.text_area(
        "Paste a config.json", key="config_paste", height=110, on_change=_take_paste, placeholder='{"model_type": …'
    )
    st.file_uploader(
        "or upload it (at most 5 MB)", type=["json"], key="config_file", on_change=_take_file, max_upload_size=5
    )
    st.text_input("or fetch it from Hugging Face by id", key="config_hub", placeholder="owner/name")
    st.button("Fetch", on_click=_take_hub, key="config_fetch")
    message = state.get("_config_error") or error
    if message:
        st.error(prose(message))
    elif not used:
        st.info("The plan keeps the last model until you give a config.json.")


def _take(read: Callable[[], str]) -> None:
    state = st.session_state
    state["_config_error"] = None
    try:
        urlstate.put(model_config=pruned(read()), model=CONFIG)
    except InvalidInput as error:
        state["_config_error"] = f"{message(error)} The plan keeps the last model."


def _take_paste() -> None:
    text = st.session_state["config_paste"]
    if text.strip():
        _take(lambda: text)
        if len(text) > 100_000:
            st.session_state["config_paste"] = ""  # do not send it back and forth with every click


def _take_file() -> None:
    file = st.session_state["config_file"]
    if file is not None:
        _take(lambda: file.getvalue().decode("utf-8", errors="replace"))


def _take_hub() -> None:
    _take(lambda: fetch_from_hub(st.session_state["config_hub"] or ""))


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


def fields(names: tuple[str, ...], errors: dict[str, str]) -> None:
    """Draw single fields, each error under its field; for pages that have some of the inputs."""
    declared = fields_by_name()
    for name in names:
        _field(name, declared[name].metadata, errors.get(name))


def adopt(scenario: Scenario) -> None:
    """Load a whole scenario into the widgets; for callbacks."""
    urlstate.put(**{name: getattr(scenario, name) for name in fields_by_name()})
