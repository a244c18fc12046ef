"""Advice on what the simulation and the bill show: tails, lost requests, and prices of hosted APIs."""

from __future__ import annotations

from planner.answer.finding import Finding
from planner.cost import CostPlan, price_gap
from planner.scenario import Scenario
from planner.service import ServingMetrics
from planner.units import DAYS_PER_MONTH, counted, format_duration, format_number, format_percent, format_usd

FEW_REQUESTS_PER_DAY = 10_000
FELT_S = 0.2  # a shorter wait is not felt
SHARE_WORTH_A_WARNING = 0.01  # of requests; from there on the verdict names them too


def average_hides_tail(scenario: Scenario, metrics: ServingMetrics) -> Finding | None:
    """Mistake 3: reporting the average and hiding the tail, where the tail is longer than anybody asked for."""
    mean, p99, target = metrics.ttft_s.mean, metrics.ttft_s.p99, scenario.ttft_target_s
    if not (mean > 0 and p99 > 3 * mean and p99 > FELT_S) or (target is not None and not mean <= target < p99):
        return None
    beside = "" if target is None else f" (target {format_duration(target)})"
    return Finding(
        kind="average_only",
        severity="warning",
        text=f"The average hides the tail: mean TTFT is {format_duration(mean)}, but one request in 100 waits "
        f"{format_duration(p99)} or longer{beside}.",
    )


def rejects(scenario: Scenario, metrics: ServingMetrics) -> Finding | None:
    """Some requests are rejected; a share that costs nobody a target worth a word is a note."""
    if metrics.num_rejected == 0:
        return None
    share = metrics.num_rejected / max(1, metrics.num_requests)
    queue = scenario.engine_settings.max_queued_requests
    full = "" if queue is None else f", or beyond the {counted(queue, 'request')} that may wait"
    return Finding(
        kind="rejected",
        severity="warning" if share >= SHARE_WORTH_A_WARNING else "note",
        field="max_model_len",
        text=f"{format_percent(share)} of requests are rejected: longer than the context of "
        f"{scenario.max_model_len:,} tokens or than the KV cache{full}. Each counts as a missed target.",
    )


def abandons(scenario: Scenario, metrics: ServingMetrics) -> Finding | None:
    """Clients leave before they have their answer."""
    if metrics.num_abandoned == 0:
        return None
    share = metrics.num_abandoned / max(1, metrics.num_requests)
    limits = [("the first token", scenario.patience_s), ("the whole answer", scenario.timeout_s)]
    after = " or ".join(f"{format_duration(limit)} without {what}" for what, limit in limits if limit is not None)
    return Finding(
        kind="abandoned",
        severity="warning",
        field="patience_s" if scenario.patience_s is not None else "timeout_s",
        text=f"{format_percent(share)} of clients leave after {after}. Each counts as a missed target and lightens "
        "the load for the rest.",
    )


def preempts(metrics: ServingMetrics) -> Finding | None:
    """Sequences are evicted and recomputed."""
    share = metrics.num_preemptions / max(1, metrics.num_requests)
    if share < 0.01:
        return None
    return Finding(
        kind="preemption",
        severity="warning",
        text=f"The KV cache runs out under load: {counted(metrics.num_preemptions, 'preemption')}, each recomputed "
        "from the start. More KV cache or a lower max_num_seqs avoids that.",
    )


def unserved(scenario: Scenario, metrics: ServingMetrics, cost: CostPlan) -> Finding | None:
    """Some requests never finish; prices count those that do."""
    offered, served = cost.offered_requests_per_month, cost.requests_per_month
    if metrics.num_finished == 0 or not served:
        text = "No request finishes, so there is no price per token: the bill buys nothing."
    elif served < 0.995 * offered:
        text = (
            f"Only {format_percent(served / offered)} of requests finish: {format_number(served)} of "
            f"{format_number(offered)} a month. Prices per token and per request count finished requests only."
        )
    elif scenario.is_open_loop and metrics.verdict == "overloaded":
        text = (
            f"At the peak only {format_number(metrics.requests_per_s)} of {format_number(scenario.peak_rate_rps)} "
            "req/s finish. Prices per token assume that clients wait until the peak is over."
        )
    else:
        return None
    return Finding(kind="unserved", severity="warning", text=text)


def price_assumed(scenario: Scenario) -> Finding | None:
    """The bill rests on a price that nobody stated."""
    text = price_gap(scenario)
    if not text:
        return None
    field = "gpu_purchase_usd" if scenario.price_kind == "owned" else "usd_per_gpu_hour"
    return Finding(kind="price_assumed", severity="warning", field=field, text=text)


def hosted_instead(cost: CostPlan) -> Finding | None:
    """A hosted API is cheaper, or probably is at so few requests."""
    return api_cheaper(cost) or few_requests(cost)


def api_cheaper(cost: CostPlan) -> Finding | None:
    """Mistake 5: self-hosting for a few thousand requests a day, and the same trap at larger volumes."""
    if not cost.api_is_cheaper or cost.api_usd_per_month is None:
        return None
    per_day = cost.requests_per_month / DAYS_PER_MONTH
    few = per_day <= FEW_REQUESTS_PER_DAY
    requests = f"{counted(per_day, 'request')} a day cost"
    own, api = format_usd(cost.usd_per_month), format_usd(cost.api_usd_per_month)
    size = "few thousand" if per_day >= 1000 else "few"
    return Finding(
        kind="few_requests" if few else "api_cheaper",
        severity="warning",
        text=f"Self-hosting for a {size} requests a day: {requests} {own} a month here and {api} from a hosted API "
        f"({cost.api_source}), which is also less work."
        if few
        else f"A hosted API is cheaper: {requests} {api} a month there ({cost.api_source}), {own} here.",
    )


def few_requests(cost: CostPlan) -> Finding | None:
    """Mistake 5 where no hosted price is known: GPUs for a few thousand requests a day."""
    per_day = cost.requests_per_month / DAYS_PER_MONTH
    if cost.api_usd_per_month is not None or not 0 < per_day <= FEW_REQUESTS_PER_DAY:
        return None
    size = "few thousand" if per_day >= 1000 else "few"
    return Finding(
        kind="few_requests",
        severity="warning",
        field="api_usd_per_mtok_input",
        text=f"Self-hosting for a {size} requests a day: {counted(per_day, 'request')} a day cost "
        f"{format_usd(cost.usd_per_month)} a month here, {format_usd(cost.usd_per_thousand_requests)} per thousand. "
        "Headroom knows no hosted price of this model; enter one under Prices to compare.",
    )
