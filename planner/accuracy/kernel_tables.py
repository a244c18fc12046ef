"""Published kernel tables as one frame that `planner.accuracy.calibration` fits.

Reads the folder `systems/data` of ai-dynamo/aiconfigurator (Apache-2.0), which holds measured kernel
times as `<system>/<family>/<engine>/<version>/<table>_perf.parquet`. The newest version of each table
that has the usual shapes counts. Large tables are thinned at random (the same rows every time): a fit
of a handful of parameters gains nothing from a hundred thousand rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from planner.errors import InvalidInput

SYSTEMS = {
    "a100_sxm": "A100 SXM 80GB",
    "h100_sxm": "H100 SXM",
    "h200_sxm": "H200 SXM",
    "b200_sxm": "B200",
    "b300_sxm": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "l40s": "L40S",
    "rtx_pro_6000_server": "RTX PRO 6000 Blackwell Server",
}
DTYPES = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
}
ENGINES = ("vllm", "sglang", "trtllm")
MAX_ROWS = 1500
MAX_LATENT_TOKENS = 4e6
#: routing of the expert tables that are read: popular experts, as the shape of real routers
EXPERT_ROUTING = "power_law_1.2"
#: latent attention of DeepSeek-V3 and Kimi K2, the only shape in the tables
LATENT = {"latent": 512, "rope": 64, "nope": 128, "value": 128}


def read_kernel_tables(folder: str | Path) -> pd.DataFrame:
    """Read all kernel tables of a checkout.

    Parameters
    ----------
    folder : str or Path
        `systems/data` of the checkout.

    Returns
    -------
    pandas.DataFrame
        `kernel`, `gpu`, `engine`, `dtype`, `latency_us` and the sizes of each call.

    Raises
    ------
    InvalidInput
        When the folder holds no such table.
    """
    frames = []
    for system, gpu in SYSTEMS.items():
        for engine in ENGINES:
            for table, read in _READERS.items():
                for path in _newest_first(Path(folder) / system, engine, table):
                    rows = read(pd.read_parquet(path))
                    if len(rows):
                        frames.append(rows.assign(gpu=gpu, engine=engine))
                        break
    if not frames:
        raise InvalidInput("measurements", str(folder), "the folder systems/data of an aiconfigurator checkout")
    together = pd.concat(frames, ignore_index=True)
    together["latency_us"] = together.pop("latency") * 1e3
    return together


def _newest_first(system: Path, engine: str, table: str) -> list[Path]:
    found = [path for path in system.glob(f"*/{engine}/*/{table}_perf.parquet") if path.stat().st_size > 500]
    return sorted(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.parent.name)], reverse=True)


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    # Older tables have no windows; a window's attention follows from the full one.
    return rows[rows["window_size"] == 0] if "window_size" in rows else rows


def _fastest(rows: pd.DataFrame, dtype: str, sizes: dict[str, str], kernel: str) -> pd.DataFrame:
    """Shortest time of each call (engines pick the fastest kernel), thinned per dtype."""
    rows = rows[rows[dtype].isin(DTYPES)]
    best = rows.groupby([dtype, *sizes])["latency"].min().reset_index().rename(columns=sizes)
    best["dtype"] = best.pop(dtype).map(DTYPES)
    thinned = [part.sample(min(len(part), MAX_ROWS), random_state=3) for _, part in best.groupby("dtype")]
    return pd.concat(thinned).assign(kernel=kernel) if thinned else best.assign(kernel=kernel)


def _gemm(rows: pd.DataFrame) -> pd.DataFrame:
    large = (rows.n >= 512) & (rows.k >= 512) & (rows.n * rows.k >= 2**20)
    usual = (rows.m <= 16384) & (rows.n <= 65536) & (rows.k <= 28672)
    return _fastest(rows[large & usual], "gemm_dtype", {"m": "m", "n": "n", "k": "k"}, "gemm")


def _experts(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[(rows.distribution == EXPERT_ROUTING) & (rows.moe_ep_size == 1) & (rows.inter_size >= 512)]
    # Shapes of experts with two matrices instead of three, and of experts in a latent space.
    rows = rows[(rows.topk != 22) & ~rows.hidden_size.isin([2688, 2816])]
    sizes = {
        "num_tokens": "m",
        "hidden_size": "hidden",
        "inter_size": "intermediate",
        "topk": "top_k",
        "num_experts": "experts",
        "moe_tp_size": "tensor_parallel",
    }
    return _fastest(rows, "moe_dtype", sizes, "experts")


_HEADS = {"num_heads": "heads", "num_key_value_heads": "kv_heads", "head_dim": "head_dim"}


def _decode(rows: pd.DataFrame) -> pd.DataFrame:
    rows = _plain(rows)
    rows = rows[rows.head_dim.isin([64, 128]) & (rows.beam_width == 1)].assign(tokens=rows.step + rows.isl)
    group = rows.num_heads // rows.num_key_value_heads
    rows = rows[(rows.tokens >= 16) & (group <= 16) & (rows.num_heads <= 64) & (rows.num_key_value_heads <= 16)]
    return _fastest(rows, "kv_cache_dtype", {"batch_size": "batch", "tokens": "tokens"} | _HEADS, "decode_attention")


def _prefill(rows: pd.DataFrame) -> pd.DataFrame:
    rows = _plain(rows)
    rows = rows[rows.head_dim.isin([64, 128]) & (rows.num_heads <= 64) & (rows.attn_dtype == "bfloat16")]
    rows = rows[(rows.isl >= 64) & (rows.step == 0) & (rows.batch_size * rows.isl <= 65536)]
    return _fastest(rows, "kv_cache_dtype", {"batch_size": "batch", "isl": "tokens"} | _HEADS, "prefill_attention")


def _latent(kernel: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def read(rows: pd.DataFrame) -> pd.DataFrame:
        rows = _plain(rows[rows.mla_dtype == "bfloat16"])
        rows = rows.assign(tokens=rows.step + rows.isl if kernel == "latent_decode" else rows.isl)
        usual = (rows.tokens >= 64) & (rows.tokens * rows.batch_size <= MAX_LATENT_TOKENS) & (rows.num_heads >= 4)
        sizes = {"batch_size": "batch", "tokens": "tokens", "num_heads": "heads"}
        return _fastest(rows[usual], "kv_cache_dtype", sizes, kernel).assign(**LATENT)

    return read


def _all_reduce(rows: pd.DataFrame) -> pd.DataFrame:
    if "kernel_source" in rows:
        rows = rows[~rows.kernel_source.str.contains("eager")]
    best = rows.groupby(["num_gpus", "message_size"])["latency"].min().reset_index()
    sizes = best.rename(columns={"num_gpus": "ranks"}).assign(bytes=best.message_size * 2)
    return sizes.drop(columns="message_size").assign(kernel="all_reduce", dtype="bf16")


_READERS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "gemm": _gemm,
    "moe": _experts,
    "generation_attention": _decode,
    "context_attention": _prefill,
    "generation_mla": _latent("latent_decode"),
    "context_mla": _latent("latent_prefill"),
    "custom_allreduce": _all_reduce,
}
