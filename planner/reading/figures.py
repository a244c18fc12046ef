"""Figures that an engine prints as it starts, by a table of its lines (`log_lines.csv`)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from planner.reading.text import Line
from planner.tables import read_table

LINES = "reading/log_lines.csv"
MOST_LINES = 10_000  # an engine names itself before it serves
#: an engine is told by any of the words that only it prints
ENGINE_WORDS = {
    "sglang": re.compile(
        r"ServerArgs\(|KV Cache is allocated\.|max_total_num_tokens=|sglang\.launch_server|Load weight end|\bsglang\b"
        r"|cuda graph end\."
    ),
    "tensorrt-llm": re.compile(r"\[TensorRT-LLM\]|\[TRT-LLM\]|trtllm-serve|TensorRT.LLM"),
    "tgi": re.compile(r"text_generation_launcher|text-generation-launcher|text_generation_router"),
    "ollama": re.compile(r"\bollama\b|OLLAMA_"),
    "llama.cpp": re.compile(
        r"llama_(?:context|init_from_model|new_context|kv_cache)|llm_load_|load_tensors:|llama-server"
    ),
    "lmdeploy": re.compile(
        r"\blmdeploy\b|\[TM\]\[(?:DEBUG|INFO|WARNING)\]|\bturbomind\b|(?:Turbomind|Pytorch)EngineConfig\("
    ),
    "vllm": re.compile(
        r"\bvllm\b|vLLM|VllmWorker|\((?:APIServer|EngineCore\w*|Worker\w*) pid=|LLM engine \(v|kv_cache_utils\.py"
        r"|gpu_worker\.py|gpu_model_runner\.py|GPU KV cache size: |Available KV cache memory: "
        r"|model_runner\.py:\d+\]|worker\.py:\d+\]"
    ),
}
_SIZE = re.compile(r"^(?P<value>-?[\d.,]+) (?P<unit>[GM])iB$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """One figure or setting that was read: its name, value and unit, and the line that says it."""

    name: str
    value: str | float
    unit: str
    line: int
    device: str = ""  # which device a figure belongs to, where each prints its own


def engine_of(lines: tuple[Line, ...]) -> str:
    """Family of the engine that prints such lines; "" when nothing tells.

    The engine with the most lines of its own; Ollama, whose runner prints llama.cpp's lines, wins over llama.cpp.
    """
    seen = lines[:MOST_LINES]
    counts = {name: sum(bool(words.search(line.text)) for line in seen) for name, words in ENGINE_WORDS.items()}
    if counts["ollama"] and counts["llama.cpp"] and counts["ollama"] * 20 >= counts["llama.cpp"]:
        return "ollama"
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


def figures_in(lines: tuple[Line, ...], engine: str) -> tuple[Understood, ...]:
    """Figures of a log, one for each name: of several ranks, the one that decides.

    Parameters
    ----------
    lines : tuple of Line
        The log.
    engine : str
        As `engine_of` finds it.

    Returns
    -------
    tuple of Understood
        In the order of their lines; GiB, MiB and tokens as the table's `unit` says.
    """
    found: dict[str, list[Understood]] = {}
    rank: dict[str, str] = {}
    families = (engine, "llama.cpp") if engine == "ollama" else (engine,)
    rows = [row for row in read_table(LINES) if row["engine"] in (*families, "any")]
    for line in lines:
        lower = line.text.lower()
        for row in rows:
            if row["needs"] not in lower:
                continue
            for match in _compiled(row["pattern"]).finditer(line.text):
                item = _understood(row, match, line.number)
                if item is not None:
                    rank.setdefault(item.name, row["rank"])
                    found.setdefault(item.name, []).append(item)
    chosen = [_decisive(items, rank[name]) for name, items in found.items()]
    return tuple(sorted(chosen, key=lambda item: item.line))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _understood(row: Mapping[str, str], match: re.Match[str], number: int) -> Understood | None:
    text = match[1]
    if not row["unit"]:
        return Understood(name=row["name"], value=text.strip(), unit="", line=number)
    scale = 1.0
    sized = _SIZE.match(text)
    if sized:
        text, scale = sized["value"], 1.0 if sized["unit"] == "G" else 1 / 1024
    try:
        value = float(text.replace(",", "")) * scale
    except ValueError:
        return None
    device = match[0].replace(match[1], "").strip() if row["rank"] == "sum" else ""
    return Understood(name=row["name"], value=value, unit=row["unit"], line=number, device=device)


def _decisive(items: list[Understood], rank: str) -> Understood:
    if rank == "last":
        return items[-1]
    if rank == "first" or not all(isinstance(item.value, float) for item in items):
        return items[0]
    if rank == "sum":
        # a log that loads a model twice prints every device twice, and one load is what runs
        latest = {item.device: float(item.value) for item in items}
        return dataclasses.replace(items[0], value=round(sum(latest.values()), 6), device="")
    return (min if rank == "least" else max)(items, key=lambda item: float(item.value))
