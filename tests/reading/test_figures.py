"""Figures of several ranks, devices and units."""

import re
from pathlib import Path

from planner.reading.figures import engine_of, figures_in
from planner.reading.text import lines_of
from planner.tables import read_table


def figures(text: str, engine: str) -> dict[str, float | str]:
    return {item.name: item.value for item in figures_in(lines_of(text), engine)}


def test_the_rank_with_the_smallest_pool_and_the_largest_weights_decides():
    text = "\n".join(
        f"(Worker_TP{rank}) INFO [gpu_worker.py:1] {line}"
        for rank, kv, weights in ((0, "8.25", "20.5"), (1, "7.75", "21.0"))
        for line in (f"Available KV cache memory: {kv} GiB", f"Model loading took {weights} GiB and 3 seconds")
    )
    assert figures(text, "vllm") == {"available_kv_gib": 7.75, "weights_gib_per_gpu": 21.0}


def test_a_model_that_is_loaded_twice_counts_once():
    text = (
        "load_tensors: CUDA0 model buffer size = 1024.00 MiB\nload_tensors: CUDA1 model buffer size = 512.00 MiB\n" * 2
    )
    assert figures(text, "llama.cpp") == {"weights_mib": 1536.0}


def test_sizes_in_mib_and_gib_become_gib():
    text = 'memory.weights.total="2.5 GiB" memory.required.kv="512.0 MiB"'
    assert figures(text, "ollama") == {"weights_gib": 2.5, "kv_gib": 0.5}


def test_ollama_is_told_from_the_llama_cpp_that_it_runs():
    text = "ollama[1]: load_tensors: offloading 5 layers\nollama[1]: llama_context: n_ctx = 8"
    assert engine_of(lines_of(text)) == "ollama"
    assert engine_of(lines_of("load_tensors: offloading 5 layers")) == "llama.cpp"
    assert engine_of(lines_of("nothing of note")) == ""


def test_every_line_of_the_table_has_one_figure_and_a_source():
    for row in read_table("reading/log_lines.csv"):
        assert re.compile(row["pattern"]).groups == 1, row["pattern"]
        assert row["source"]
        assert row["rank"] in ("first", "last", "least", "most", "sum")


def test_a_quick_look_finds_what_the_pattern_finds():
    lines = [
        line for path in (Path(__file__).parent / "published").glob("*.txt") for line in path.read_text().split("\n")
    ]
    for row in read_table("reading/log_lines.csv"):
        assert row["needs"] and row["needs"] == row["needs"].lower()
        found = [line for line in lines if re.search(row["pattern"], line, re.IGNORECASE)]
        assert all(row["needs"] in line.lower() for line in found), row["pattern"]
