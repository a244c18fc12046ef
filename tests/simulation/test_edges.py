"""Bad input, hopeless capacity, and installations that cannot be written to."""

from __future__ import annotations

import dataclasses
import importlib.util

import numba
import numpy as np
import pytest

from planner.catalog.engines import engine_names, get_engine
from planner.errors import InvalidInput
from planner.service.capacity import capacity_rps
from planner.service.replica import Replica
from planner.simulation import kernel
from planner.simulation.kernel import compiling
from planner.simulation.machine import simulate
from planner.simulation.records import REJECTED
from planner.step_time.step_table import StepTimeTable
from tests.simulation.cases import UNIT, limits, make


def test_nothing_to_do_is_an_error():
    with pytest.raises(InvalidInput, match="at least one request"):
        simulate(make([], [], []), get_engine("vllm"), limits(), UNIT)


@pytest.mark.parametrize("name", engine_names())
def test_without_memory_every_request_is_turned_away(name):
    result = simulate(make([0, 1], [5, 5], [5, 5]), get_engine(name), limits(blocks=0), UNIT)
    assert (result.status == REJECTED).all()
    assert result.num_steps == 0


def test_too_long_for_the_context_or_the_pool_is_turned_away():
    requests = make([0, 0, 0], [95, 10, 60], [6, 10, 2])
    result = simulate(requests, get_engine("vllm"), limits(max_len=100, blocks=60), UNIT)
    assert (result.status == REJECTED).tolist() == [True, False, True]


def test_a_huge_answer_that_is_turned_away_costs_no_memory():
    result = simulate(make([0, 0], [5, 5], [10_000_000, 2]), get_engine("vllm"), limits(), UNIT)
    assert (result.status == REJECTED).tolist() == [True, False]


def test_samples_are_few_and_even():
    n = 300
    requests = make([0.0] * n, [1] * n, [100] * n)
    result = simulate(requests, get_engine("vllm"), limits(seqs=2), UNIT, timeline=True)
    times = result.timeline.time_s
    assert result.num_steps == 15_000
    assert 2048 <= len(times) <= 4096
    assert set(np.diff(times)) == {4.0}
    assert (result.timeline.running == 2).all()


def test_pipeline_stages_overlap_micro_batches():
    # Four stages of 1 s: one sequence takes four seconds a token, four take four seconds together.
    table = StepTimeTable(decode_s=np.ones(9), mixed_s=np.ones(9), head_s=np.zeros(9), pipeline_stages=4)
    one = simulate(make([0], [1], [3]), get_engine("vllm"), limits(), table)
    four = simulate(make([0] * 4, [1] * 4, [3] * 4), get_engine("vllm"), limits(), table)
    assert one.finish_s.tolist() == [12]
    assert four.finish_s.tolist() == [12] * 4


def test_front_end_latency_is_added_outside_the_steps():
    table = StepTimeTable(decode_s=np.ones(9), mixed_s=np.ones(9), head_s=np.zeros(9), request_overhead_s=0.5)
    result = simulate(make([0], [1], [2]), get_engine("vllm"), limits(), table)
    assert (result.first_token_s[0], result.finish_s[0], result.busy_s) == (1.5, 2.5, 2.0)


def test_a_read_only_installation_compiles_in_memory(monkeypatch):
    plain = numba.njit

    def cannot_cache(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", cannot_cache)
    assert kernel.compiled_entry(lambda x: x + 1)(1) == 2


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[::-1]])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_compile_cache_heals(kind, damage, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source = tmp_path / "part.py"
    source.write_text("def twice(x):\n    return 2 * x\n")

    def load():
        spec = importlib.util.spec_from_file_location("part", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return kernel.compiled_entry(module.twice)

    assert load()(3) == 6
    (file,) = (tmp_path / "__pycache__").glob(f"*.{kind}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    entry = load()
    assert entry(3) == 6
    assert sum(entry.stats.cache_hits.values()) == 0  # compiled anew, not what lay there
    again = load()
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1  # and kept


def test_a_full_disk_does_not_stop_the_simulator(tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("planner.simulation.kernel.compiling._CheckedFile._open_for_write", full)
    source = tmp_path / "part.py"
    source.write_text("def thrice(x):\n    return 3 * x\n")
    spec = importlib.util.spec_from_file_location("part", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert kernel.compiled_entry(module.thrice)(3) == 9


def test_the_cache_on_disk_knows_all_sources_of_the_loop():
    # numba looks at one file only, so the name under which it files machine code holds a digest of all of them.
    digest = compiling.source_digest()
    assert digest in kernel.advance.py_func.__qualname__
    assert compiling.source_digest.__wrapped__() == digest


def test_capacity_does_not_hang_on_how_long_clients_wait():
    # Two slots, 10 steps of 1 s each: 0.2 a second, whoever would have left or been turned away meanwhile.
    requests = make([0.1 * k for k in range(200)], [1] * 200, [10] * 200)
    for changes in (
        {"patience_s": 3.0},
        {"timeout_s": 12.0},
        {"max_queued_requests": 1},
        {"max_concurrent_requests": 2},
    ):
        engine = dataclasses.replace(get_engine("vllm"), **changes)
        replica = Replica(engine=engine, limits=limits(seqs=2 if "max_conc" not in str(changes) else 9), step_time=UNIT)
        assert capacity_rps(replica, requests) == pytest.approx(0.2, rel=0.02)
