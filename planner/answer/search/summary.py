"""The search's outcome in a sentence, and a deployment in words."""

from __future__ import annotations

from planner.answer.search.outcome import MEETS, Candidate, Search, cheapest_as_sure
from planner.answer.verdict import SURE
from planner.model import scheme
from planner.scenario import Scenario
from planner.units import counted, format_duration, format_percent, format_usd


def split_in_words(scenario: Scenario) -> str:
    """How a replica is split, and what is not as usual: "TP 4, EP, attention DP 2"; "" for one GPU."""
    said = []
    if scenario.tensor_parallel_size > 1:
        said.append(f"TP {scenario.tensor_parallel_size}")
    if scenario.pipeline_parallel_size > 1:
        said.append(f"PP {scenario.pipeline_parallel_size}")
    if scenario.attention_data_parallel_size > 1:
        said.append(f"attention DP {scenario.attention_data_parallel_size}")
    if scenario.expert_parallel:
        said.append("EP")
    return ", ".join(said)


def format_in_words(scenario: Scenario) -> str:
    """Weights and KV cache in words."""
    name = scenario.weight_dtype
    words = "published" if name == "auto" else scheme(name).in_words
    weights = f"{words} weights" if words in ("published", name) else f"weights in {words}"
    return weights if scenario.kv_cache_dtype == "auto" else f"{weights}, {scenario.kv_cache_dtype} KV cache"


def changed_settings(scenario: Scenario, base: Scenario) -> str:
    """Engine settings that differ from the base's, in words."""
    said = []
    if scenario.engine != base.engine:
        said.append(scenario.engine)
    if scenario.max_num_seqs not in (None, base.max_num_seqs):
        said.append(f"{scenario.max_num_seqs} sequences at most")
    if scenario.max_num_batched_tokens not in (None, base.max_num_batched_tokens):
        said.append(f"{scenario.max_num_batched_tokens:,} tokens a step")
    if scenario.num_speculative_tokens != base.num_speculative_tokens:
        acceptance = f"{scenario.speculative_acceptance:.0%}".replace("%", " %")
        said.append(f"drafts {scenario.num_speculative_tokens} (assumes that {acceptance} are accepted)")
    if scenario.is_disaggregated:
        said.append("prefill and decode apart")
    if scenario.enable_prefix_caching != base.enable_prefix_caching:
        said.append("prefix caching")
    return ", ".join(said)


def summary_of(rows: tuple[Candidate, ...], scenario: Scenario, *, finished: bool) -> str:
    """The best deployment with its price, or what is in the way."""
    good = [row for row in rows if row.status == MEETS]
    if not good:
        if not finished:
            return "No deployment that meets the targets yet."
        closest = f" {rows[0].num_gpus} × {rows[0].scenario.gpu} comes closest: {rows[0].reason}" if rows else ""
        return f"No deployment tried meets these targets.{closest}"
    best, so_far = good[0], "" if finished else " so far"
    sound = cheapest_as_sure(rows, SURE)
    if sound is None or sound is best or not best.probability < SURE:
        sure = f", {best.chance_in_words}" if best.chance_in_words else ""
        none = f" None of those planned is {format_percent(SURE)} sure." if best.probability < SURE else ""
        return (
            f"{_named(best, scenario)} is the cheapest deployment{so_far} that meets the targets: {_bill(best)}{sure}."
            f"{none}"
        )
    return (
        f"{_named(sound, scenario)} is the cheapest deployment{so_far} that is at least {format_percent(SURE)} sure to "
        f"meet the targets, of those planned: {_bill(sound)}. {_named(best, scenario)} would cost "
        f"{format_usd(best.usd_per_month or 0.0)} a month, but is only {best.chance_in_words}."
    )


def _bill(row: Candidate) -> str:
    """What a row costs, at which price and whose."""
    price, source = format_usd(row.usd_per_gpu_hour or 0.0), row.price_source.split(" (")[0]
    return f"{format_usd(row.usd_per_month or 0.0)} a month at {price} per GPU-hour ({source})"


def _named(row: Candidate, scenario: Scenario) -> str:
    settings = changed_settings(row.scenario, scenario)
    how = ", ".join(part for part in (split_in_words(row.scenario), format_in_words(row.scenario), settings) if part)
    return f"{row.num_gpus} × {row.scenario.gpu} ({how})"


def tally(found: Search) -> str:
    """What became of the candidates, in a sentence."""
    parts = (
        (found.rejected_by_memory, "do not start"),
        (found.rejected_when_idle, "miss the targets even on an idle replica"),
        (found.over_the_limit, "need more GPUs than the limit"),
        (found.pruned_by_bound, "cannot be the cheapest of their vendor or evidence"),
        (found.candidates_simulated, "planned whole"),
    )
    said = ", ".join(f"{count:,} {text}" for count, text in parts if count)
    return f"{counted(found.candidates_considered, 'deployment')} considered in {found.wall_s:.1f} s: {said}."


def search_text(found: Search, scenario: Scenario) -> str:
    """A search for the terminal: the best, what became of the others, and a line for each row."""
    lines = [found.summary, tally(found)]
    hosted = found.best.api_note if found.best is not None else ""
    lines += [text for text in (found.left_out, found.advice, hosted) if text]
    for row in found.candidates:
        settings = changed_settings(row.scenario, scenario)
        how = ", ".join(filter(None, (split_in_words(row.scenario), format_in_words(row.scenario), settings)))
        quantile = f"p{row.scenario.target_quantile * 100:g}"
        ttft, tpot = format_duration(row.ttft_s or 0.0), format_duration(row.tpot_s or 0.0)
        recommended = f", recommended by {row.recommended_by}" if row.recommended_by else ""
        sure = f", {format_percent(row.probability)} sure" if row.probability == row.probability else ""
        lines.append(
            f"  {row.num_gpus or 0:>4} × {row.scenario.gpu:26} {row.usd_per_month or 0.0:>12,.0f} USD/month at "
            f"{format_usd(row.usd_per_gpu_hour or 0.0)}/GPU-h  {quantile} TTFT {ttft}, TPOT {tpot}  {row.status}"
            f"{sure}, {row.rests_on}{recommended}  {how}"
        )
    return "\n".join(lines)
