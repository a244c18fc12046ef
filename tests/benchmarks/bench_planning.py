"""What a model, a memory plan and a step-time table cost, beside parsing the catalog's own file in the same run.

Run: python -m tests.benchmarks.bench_planning

Prints times and their ratio to the baseline, `json.loads` of catalog/models.json; asserts nothing, since times belong
to a machine. Where a ratio doubles against an earlier run on any machine, something became slower.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model, model_names
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.step_time.model import step_time_table
from planner.tables import PLANNER

REPEATS = 5
GPU, ENGINE = "H100 SXM", EngineSettings()
HYBRID = "Qwen/Qwen3.5-27B"
MODELS = ("meta-llama/Llama-3.1-8B-Instruct", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3")


def best_s(work: Callable[[int], object], count: int = 1) -> float:
    """Least time of a few repeats, for one of `count` pieces of work. [s]"""
    times = []
    for repeat in range(REPEATS):
        start = time.perf_counter()
        work(repeat)
        times.append(time.perf_counter() - start)
    return min(times) / count


def whole_catalog(_repeat: int) -> None:
    """Make every model anew."""
    get_model.cache_clear()
    for name in model_names():
        get_model(name)


def memory_plans(repeat: int) -> None:
    """Size a hybrid at 100 contexts that no earlier repeat had."""
    for length in range(1000 + 100 * repeat, 1100 + 100 * repeat):
        plan_memory(get_model(HYBRID), get_gpu(GPU), ENGINE, Parallelism(), max_model_len=length)


def step_tables(repeat: int) -> None:
    """Add up the kernels of three models at three widths."""
    for name in MODELS:
        for tp in (2, 4, 8):
            split = Parallelism(tensor_parallel_size=tp)
            step_time_table(get_model(name), get_gpu(GPU), ENGINE, split, max_tokens=16_300 + repeat)


def main() -> None:
    """Run the measurements and print them."""
    text = (PLANNER / "catalog" / "models.json").read_text(encoding="utf-8")
    baseline = best_s(lambda _repeat: json.loads(text))
    print(f"baseline, json.loads of models.json: {1e3 * baseline:.2f} ms")
    for name, seconds in (
        (f"whole catalog, {len(model_names())} models", best_s(whole_catalog)),
        ("one memory plan of a hybrid", best_s(memory_plans, 100)),
        ("one step-time table", best_s(step_tables, 9)),
    ):
        print(f"{name}: {1e3 * seconds:.2f} ms, {seconds / baseline:.2f} times the baseline")


if __name__ == "__main__":
    main()
