"""A plan as two dated pages to print or forward: one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from html import escape

from planner.answer.outcome import Plan, offered_rps
from planner.answer.report import TRACED, figures
from planner.answer.report_figures import chain_chart, load_chart, memory_chart
from planner.answer.search import Candidate, Change
from planner.scenario import Scenario, fields_by_name, to_query
from planner.units import counted, format_duration, format_number, format_percent, format_usd

Row = tuple[str, ...]
# What fits on two pages of A4; what is left out is in the link.
MOST_INPUTS, MOST_NOTES, MOST_REASONS, MOST_ALTERNATIVES, MOST_SHOWN, MOST_OF_TITLE = 18, 4, 4, 4, 160, 70
WORDS = {("weight_dtype", "auto"): "as published", ("kv_cache_dtype", "auto"): "as the checkpoint"}
ALWAYS = ("gpu", "engine", "max_model_len", "weight_dtype", "kv_cache_dtype", "tensor_parallel_size")
UNSAID = ("title", "model", "seed")


def plan_html(
    done: Plan,
    *,
    link: str = "",
    made: date | None = None,
    alternatives: Sequence[Candidate] = (),
    changes: Sequence[Change] = (),
) -> str:
    """Write a plan as two printable pages; all text is escaped, and nothing is loaded from elsewhere.

    Parameters
    ----------
    done : Plan
        The plan.
    link : str
        The whole address that opens it; without one the query is given.
    made : date, optional
        The date on it, today's by default.
    alternatives : sequence of Candidate
        Other deployments that were considered, the best first.
    changes : sequence of Change
        What single changes would do.
    """
    day = (made or date.today()).isoformat()
    title = done.scenario.title or "Capacity plan"
    first = _first_page(done, title, day)
    second = _second_page(done, link or f"?{to_query(done.scenario)}", day, alternatives, changes)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}, {day}</title><style>{_STYLE}</style><main>{first}{second}</main></html>"
    )


def _first_page(done: Plan, title: str, day: str) -> str:
    tiles = "".join(
        f"<div class=tile><b>{escape(name)}</b><span>{escape(value)}</span><i>{escape(beside)}</i></div>"
        for name, value, beside in figures(done)
    )
    charts = _chart("What fills one GPU", memory_chart(done))
    if done.chain:
        charts += _chart(f"Why {counted(done.num_gpus, 'GPU')}: what each reason alone would need", chain_chart(done))
    load = load_chart(done)
    if load:
        charts += _chart("p95 time to first token against load", load)
    why = _bullets(
        done.reasons, "Why this answer" if done.fits else "What would make it start", most=250, lines_shown=MOST_REASONS
    )
    return (
        f"<section><header><h1>{escape(_short(title, MOST_OF_TITLE))}</h1><p class=date>Headroom · {day}</p></header>"
        f"<p class=question>{escape(question(done))}</p><p class=answer>{escape(_short(done.headline, 600))}</p>"
        f"{_verdict(done)}<p class=sure>{escape(confidence(done))}</p><div class=tiles>{tiles}</div>"
        f"<div class=charts>{charts}</div>{why}{_footer(day, 1)}</section>"
    )


def _second_page(done: Plan, link: str, day: str, alternatives: Sequence[Candidate], changes: Sequence[Change]) -> str:
    parts = [_heading("Inputs", _pairs(inputs(done.scenario)))]
    if done.cost is not None:
        parts.append(_heading("Money", _table(money_rows(done), header=True)))
    if alternatives:
        title = "Alternatives that were considered"
        if len(alternatives) > MOST_ALTERNATIVES:
            title += f" (the first {MOST_ALTERNATIVES} of {len(alternatives)}; the link shows all)"
        parts.append(_heading(title, _table(alternative_rows(alternatives), header=True)))
    few = MOST_NOTES - 1 if alternatives else MOST_NOTES
    parts.append(_bullets(change_lines(changes), "What would change the answer", lines_shown=few))
    parts.append(_bullets([finding.text for finding in done.findings], "What to know before you sign", lines_shown=few))
    parts.append(_heading("Assumptions and sources", _pairs(sources(done), wide=True)))
    traced = f"<p class=link>{escape(TRACED)}</p>" if done.is_traced else ""
    return f"<section>{''.join(parts)}{traced}<p class=link>This plan: {_address(link)}</p>{_footer(day, 2)}</section>"


def _verdict(done: Plan) -> str:
    """The verdict in its sentence."""
    if done.verdict is None:
        return ""
    return f"<p class=sure>Verdict: it {escape(done.verdict.text)}.</p>"


def question(done: Plan) -> str:
    """What was asked, in a sentence."""
    s = done.scenario
    rate = f"{format_number(s.peak_rate_rps)} requests per second at the peak"
    who = {
        "closed": f"{counted(s.concurrent_users, 'user')} at once",
        "once": f"{counted(s.num_requests, 'request')} that arrive together",
    }.get(s.arrivals, f"{counted(s.users, 'user')}, {rate}" if s.demand == "users" else rate)
    limits = ", ".join(f"{target.name} {format_duration(target.limit_s)}" for target in s.targets)
    held = f" within {limits} for {format_percent(s.target_quantile)} of them" if limits else ""
    return f"Question: what serves {done.model.name} to {who}{held}, and what does it cost?"


def confidence(done: Plan) -> str:
    """How sure the verdict is, and on what evidence, in a sentence."""
    if not done.fits:
        return "The engine's own start-up rules decide this; no measurement is needed."
    parts = []
    for key, name in (("ttft", "TTFT"), ("tpot", "TPOT")):
        band = done.bands[key]
        if math.isfinite(band.median_fraction):
            parts.append(
                f"{name}: half of {band.behind} are within {format_percent(band.median_fraction)} of the prediction."
            )
    if done.step_time is not None:
        parts += [f"{note[:1].upper()}{note[1:]}." for note in done.step_time.notes[:2]]
    return " ".join(parts) or "No comparable system has published measurements, so the error is unknown."


def inputs(scenario: Scenario) -> list[tuple[str, str]]:
    """What was entered: the model, the hardware, and every input that is not the default."""
    found = [("Model", scenario.model)]
    for name, item in fields_by_name().items():
        value, meta = getattr(scenario, name), item.metadata
        if name in UNSAID or (value == item.default and name not in ALWAYS):
            continue
        found.append(
            (
                str(meta["label"]) + (f" ({meta['unit']})" if meta["unit"] else ""),
                _short(WORDS.get((name, str(value)), _said(value)), 44),
            )
        )
    if len(found) > MOST_INPUTS:
        more = len(found) - MOST_INPUTS + 1
        found = [*found[: MOST_INPUTS - 1], ("And", f"{counted(more, 'input')} more, in the link")]
    return found


def _said(value: object) -> str:
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return format_number(value, 6)
    return f"{value:,}" if isinstance(value, int) else str(value) or "none"


def money_rows(done: Plan) -> tuple[Row, ...]:
    """The bill of own GPUs beside a hosted API, header first."""
    c = done.cost
    assert c is not None
    api_month = format_usd(c.api_usd_per_month) if c.api_usd_per_month is not None else "—"
    api_year = format_usd(12 * c.api_usd_per_month) if c.api_usd_per_month is not None else "—"
    api_token = format_usd(c.api_usd_per_million_tokens) if c.api_usd_per_million_tokens is not None else "—"
    gpu, low_high = done.gpu, "—"
    if gpu.usd_per_hour_low and gpu.usd_per_hour_high and done.scenario.usd_per_gpu_hour is None:
        scale = c.num_gpus * done.scenario.hours_per_month
        low_high = f"{format_usd(gpu.usd_per_hour_low * scale)} to {format_usd(gpu.usd_per_hour_high * scale)}"
    return (
        ("", "These GPUs", "Hosted API"),
        ("A month", format_usd(c.usd_per_month), api_month),
        ("A year", format_usd(12 * c.usd_per_month), api_year),
        ("A month at the lowest and highest published GPU price", low_high, "—"),
        ("Per GPU and hour", format_usd(c.usd_per_gpu_hour), "—"),
        ("Per million tokens", format_usd(c.usd_per_million_tokens), api_token),
        ("Requests a month", format_number(c.requests_per_month), format_number(c.requests_per_month)),
    )


def alternative_rows(found: Sequence[Candidate]) -> tuple[Row, ...]:
    """Other deployments, header first."""
    rows: list[Row] = [("GPUs", "Split", "Weights", "A month", "p95 TTFT", "p95 TPOT", "Outcome")]
    for item in found[:MOST_ALTERNATIVES]:
        s = item.scenario
        rows.append(
            (
                f"{item.num_gpus or '—'} × {s.gpu}",
                f"TP {s.tensor_parallel_size} × PP {s.pipeline_parallel_size}",
                "as published" if s.weight_dtype == "auto" else s.weight_dtype,
                format_usd(item.usd_per_month) if item.usd_per_month is not None else "—",
                format_duration(item.ttft_s) if item.ttft_s is not None else "—",
                format_duration(item.tpot_s) if item.tpot_s is not None else "—",
                item.status,
            )
        )
    return tuple(rows)


def change_lines(changes: Sequence[Change]) -> list[str]:
    """What single changes do, and in one line those that do nothing."""
    idle = [change.label for change in changes if change.text.endswith("no change")]
    lines = [f"{change.label}: {change.text}" for change in changes if change.label not in idle]
    return [*lines, *([f"no change: {', '.join(idle)}"] if idle else [])]


def sources(done: Plan) -> list[tuple[str, str]]:
    """What the figures rest on, each with where it comes from."""
    s = done.scenario
    found = [
        ("Model", done.model.source or "entered by hand"),
        ("GPU", done.gpu.spec_source),
        (
            "Engine",
            f"{done.engine.name} {done.engine.version}" + (f", {done.engine.source}" if done.engine.source else ""),
        ),
        ("GPU price", done.cost.price_source if done.cost else ""),
        ("API price", done.cost.api_source if done.cost and done.cost.api_usd_per_month is not None else ""),
        ("Traffic", _traffic(done)),
        ("Simulated", f"{counted(done.metrics.num_requests, 'request')}, seed {s.seed}" if done.metrics else ""),
        ("Estimated", ", ".join((*done.gpu.estimated_fields, *done.model.estimated_fields))),
        (
            "Not known",
            "your prompts, chance prefix matches, networks between nodes, what fewer bits do to quality, future prices",
        ),
    ]
    return [(name, _short(text, MOST_SHOWN)) for name, text in found if text]


def _traffic(done: Plan) -> str:
    prompt, output = format_number(done.mean_prompt_tokens), format_number(done.mean_output_tokens)
    rate = f"{format_number(offered_rps(done))} req/s, {done.scenario.arrivals} arrivals"
    return f"{prompt} prompt and {output} output tokens a request on average, {rate}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _table(rows: Sequence[Row], *, header: bool = False) -> str:
    out = []
    for index, row in enumerate(rows):
        tag = "th" if header and index == 0 else "td"
        out.append("<tr>" + "".join(f"<{tag}>{escape(_short(cell, 90))}</{tag}>" for cell in row) + "</tr>")
    return f"<table>{''.join(out)}</table>"


def _pairs(rows: Sequence[tuple[str, str]], *, wide: bool = False) -> str:
    return (
        f"<dl{' class=wide' if wide else ''}>"
        + "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in rows)
        + "</dl>"
    )


def _heading(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}"


def _bullets(lines: Sequence[str], title: str, *, most: int = MOST_SHOWN, lines_shown: int = MOST_NOTES) -> str:
    """A list of so many lines at most; the last says how many the page has no room for."""
    if not lines:
        return ""
    left = len(lines) - lines_shown
    kept = [*lines[: lines_shown - 1], f"and {left + 1} more, behind the link"] if left > 0 else lines
    shown = "".join(f"<li>{escape(_short(line, most))}</li>" for line in kept)
    return f"<h2>{escape(title)}</h2><ul>{shown}</ul>"


def _chart(title: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"


def _address(link: str) -> str:
    shown = escape(_short(link, 420))
    return f'<a href="{escape(link)}">{shown}</a>' if link.startswith(("http://", "https://")) else shown


def _footer(day: str, page: int) -> str:
    return f"<footer>Headroom, {day} · page {page} of 2</footer>"


_STYLE = (
    "@page{size:A4;margin:12mm 13mm}*{box-sizing:border-box}"
    "body{font:9pt/1.3 system-ui,'Segoe UI',Roboto,sans-serif;color:#1b1d22;background:#fff;margin:0}"
    "main{max-width:184mm;margin:0 auto;padding:8mm 4mm}"
    "header{display:flex;justify-content:space-between;align-items:baseline;gap:1rem;border-bottom:2px solid #1b1d22}"
    "h1{font-size:15pt;margin:0 0 1.5mm;overflow-wrap:anywhere}.date{margin:0;white-space:nowrap}"
    ".question{color:#4c515c;margin:3mm 0 1mm}.answer{font-size:12pt;line-height:1.3;font-weight:600;margin:0 0 1mm}"
    ".sure{margin:0 0 3mm}h2{font-size:10.5pt;margin:2.4mm 0 .8mm;break-after:avoid}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(33mm,1fr));gap:1.6mm}"
    ".tile{border:1px solid #c9ced6;border-radius:2mm;padding:1.6mm 2.4mm}"
    ".tile b,.tile i{display:block;font-weight:400;font-style:normal;color:#4c515c;font-size:8.4pt}"
    ".tile span{font-size:12pt;font-weight:600}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(84mm,1fr));gap:3mm;margin-top:4mm}"
    "figure{margin:0;break-inside:avoid}figcaption{font-weight:600;margin-bottom:1mm}svg{width:100%;height:auto}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #c9ced6;padding:.7mm 1.6mm .7mm 0;"
    "text-align:left;vertical-align:top;font-size:8.8pt}th{color:#4c515c;font-weight:400}"
    "dl{margin:0;columns:2;column-gap:8mm;font-size:8.6pt}dl.wide{columns:1;font-size:8.2pt}dl.wide dt{flex-basis:18mm}"
    "dl div{display:flex;gap:2mm;break-inside:avoid;"
    "border-bottom:1px solid #e4e7eb;padding:.5mm 0}dt{flex:0 0 36%;color:#4c515c}dd{margin:0;overflow-wrap:anywhere}"
    "ul{margin:0;padding-left:4.5mm}li{margin:.4mm 0;font-size:9pt}"
    ".link{margin:4mm 0 0;font-size:8.4pt;overflow-wrap:anywhere}a{color:#1d4ed8}"
    "footer{color:#4c515c;font-size:8pt;margin-top:4mm}"
    "@media screen{section+section{margin-top:12mm}}"
    "@media print{main{padding:0;max-width:none}section+section{break-before:page;zoom:.92}}"
)
