"""The tables that need pandas, kept apart so that the first page loads without it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from planner.answer import Fit
from planner.dashboard.plan_tables import Table
from planner.dashboard.results import papers
from planner.dashboard.results import seed_rows as simulated_seed_rows
from planner.scenario import to_query
from planner.simulation import kv_bytes_per_token
from planner.tables import cell_of_text
from planner.units import GIB, KIB, MIB, format_percent

#: columns of an error table after its names, in the order of their weight, with headers that fit on a desk
ERROR_HEADERS = {
    "rows": ("rows", "Published measurements"),
    "median left out": ("median", "Median error, the row's source left out of the fit"),
    "p90 left out": ("9 in 10", "Nine of ten errors are at most this, the row's source left out of the fit"),
    "signed left out": ("signed", "Median of predicted ÷ measured − 1: above 0 we predict too much"),
    "shared rows": ("shared", "Rows that AIConfigurator predicts as well"),
    "ours, shared": ("ours", "Our median error on those rows, their source left out of the fit"),
    "AIConfigurator": ("AIConf.", "AIConfigurator 0.12: its median error on those rows"),
    "median, all": ("fitted", "Median error with every source fitted"),
}
ERROR_COLUMNS: dict[str, Any] = {
    name: st.column_config.TextColumn(width=230) for name in ("gpu", "engine", "model")
} | {
    name: st.column_config.NumberColumn(
        header, help=about, format="localized" if name.endswith("rows") else "%.1f %%", width=66
    )
    for name, (header, about) in ERROR_HEADERS.items()
}


SWEEP_COLUMNS: dict[str, Any] = {
    "model": st.column_config.TextColumn(width=190),
    "deployments": st.column_config.NumberColumn(format="localized", width=100),
    "runs": st.column_config.NumberColumn(format="localized", width=60),
} | {
    title: st.column_config.NumberColumn(short, help=title, format="%.1f %%", width=100)
    for title, short in {
        "Time per output token": "TPOT",
        "Time per output token, shape": "TPOT, shape",
        "Time to first token": "TTFT",
        "Time to first token, shape": "TTFT, shape",
    }.items()
}
ROW_COLUMNS: dict[str, Any] = {"source": st.column_config.LinkColumn("source")} | {
    name: st.column_config.NumberColumn(format="localized")
    for name in ("measured", "predicted", "left_out", "peer_predicted")
}


FIT_COLUMNS = {
    "model": st.column_config.TextColumn(width=190, help="Hugging Face id without its owner"),
    "GiB": st.column_config.NumberColumn(format="%.1f", help="All weights, over all GPUs of a copy"),
    "parameters (B)": st.column_config.NumberColumn(format="%.1f"),
    "longest context": st.column_config.NumberColumn(
        format="localized", help="Tokens of one request that has the cache for itself"
    ),
    "sessions": st.column_config.NumberColumn(
        format="localized", help="Requests of the chosen context at once; llama-server with 8 slots at most"
    ),
    "tok/s alone": st.column_config.NumberColumn(format="%.0f", help="One user's answer while decoding"),
    "tok/s, 8 users": st.column_config.NumberColumn(
        format="%.0f", help="Eight users together while decoding; fewer where fewer sessions fit"
    ),
    "plan": st.column_config.LinkColumn(display_text="open", help="Opens this plan in a new tab"),
}


def fit_frame(found: tuple[Fit, ...]) -> pd.DataFrame:
    """What fits on a GPU as a table."""
    return sheet(
        pd.DataFrame(
            {
                "model": item.model.rsplit("/", 1)[-1],
                "tok/s alone": item.tokens_per_s_alone,
                "longest context": item.longest_context_tokens,
                "sessions": item.sessions,
                "tok/s, 8 users": item.tokens_per_s_of_eight,
                "weights": item.weight_dtype.removeprefix("gguf_"),
                "GiB": item.weights_gib,
                "engine": item.engine,
                "parameters (B)": item.num_parameters / 1e9,
                "created": item.created or None,
                "plan": f"/?{to_query(item.scenario)}",
            }
            for item in found
        )
    )


def sheet(frame: pd.DataFrame) -> pd.DataFrame:
    """A table that a visitor may download and open in a spreadsheet: no cell of it becomes a formula there."""
    return frame.rename(columns=cell_of_text).map(cell_of_text)


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose fractions are written as percentages, "—" where there is none."""
    out = frame.copy()
    for name in out.columns:
        if pd.api.types.is_float_dtype(out[name]):
            out[name] = [format_percent(value).replace("-", "−") if value == value else "—" for value in out[name]]
    return sheet(out)


def in_percent(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose fractions are percentages, still numbers to sort by."""
    out = frame.copy()
    for name in out.columns:
        if pd.api.types.is_float_dtype(out[name]):
            out[name] = (100 * out[name]).round(1) + 0.0  # no "-0.0 %"
    return sheet(out)


def share_rows(frame: pd.DataFrame) -> list[dict[str, str]]:
    """The rows of `shares` as text."""
    return [
        {str(name): f"{value:,}" if isinstance(value, int) else str(value) for name, value in row.items()}
        for row in shares(frame).to_dict("records")
    ]


def error_rows(table: pd.DataFrame, column: str) -> list[dict[str, str]]:
    """An error table as text, for names too long for the cells of a sheet."""
    headers = {name: header for name, (header, _) in ERROR_HEADERS.items()} | {"AIConfigurator": "AIConfigurator"}
    return share_rows(table[[column, *headers]].rename(columns=headers))


def seed_rows() -> Table:
    """The seed article's table, from the general simulator."""
    rows = [
        (
            row.scheduling,
            f"{row.decode_steps:,}",
            f"{row.tokens_per_step:.2f}",
            format_percent(row.slots_busy_fraction),
            f"{row.median_wait_steps:,.0f}",
            f"{row.p95_wait_steps:,.0f}",
        )
        for row in simulated_seed_rows()
    ]
    header = ("scheduling", "decode steps", "tokens per step", "slots busy", "median wait", "95th percentile")
    return [dict(zip(header, row, strict=True)) for row in rows]


def seed_cache_rows() -> Table:
    """The seed article's two KV cache sizes: 2 × layers × width × 2 bytes per token."""
    rows = []
    for name, layers, width, sequences, length in (
        ("GPT-2 small, 12 layers, 768 wide", 12, 768, 8, 1024),
        ("32 layers, 4,096 wide", 32, 4096, 8, 4096),
    ):
        per_token = kv_bytes_per_token(layers, width)
        total = sequences * length * per_token
        rows.append(
            {
                "shape": name,
                "per token": f"{per_token / KIB:.0f} KiB",
                "sequences": f"{sequences} × {length:,} tokens",
                "together": f"{total / GIB:.0f} GiB" if total >= GIB else f"{total / MIB:.0f} MiB",
            }
        )
    return rows


def paper_results() -> pd.DataFrame:
    """Published comparisons of schedulers, re-run with equal step times and an equal KV pool.

    Rows with a published ratio come first, since the table shows ten rows without scrolling.
    """
    rows = []
    for row in sorted(papers(), key=lambda row: row.published_low is None):
        low, high = row.published_low, row.published_high
        published = "—" if low is None else f"{low:g}×" if high in (None, low) else f"{low:g} to {high:g}×"
        rows.append(
            {
                "paper": row.paper,
                "workload": row.workload,
                "system": row.system,
                "against": row.baseline,
                "published": published,
                "simulated": f"{row.simulated:.2f}×",
                "KV memory in use": format_percent(row.kv_useful_fraction),
                "reading": row.explained,
                "source": row.source,
            }
        )
    return sheet(pd.DataFrame(rows))
