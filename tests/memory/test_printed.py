"""What the engine printed replaces the estimate, and is never averaged with it."""

import math

import pytest

from planner.answer.planning import size
from planner.inputs.printed import PrintedMemory
from planner.memory.demand import Demand, limits_of
from planner.memory.printed import PRINTED_PARTS, as_printed, blocks_of_logged, printed_formulas, printed_note
from planner.memory.ranks import all_ranks
from planner.memory.sizing import plan_memory
from planner.scenario import Scenario
from planner.units import GIB

BASE = Scenario(num_requests=50)


def planned(printed=None, scenario=BASE):
    return plan_memory(
        scenario.model_shape,
        scenario.gpu_spec,
        scenario.engine_settings,
        scenario.parallelism,
        max_model_len=scenario.max_model_len,
        printed=printed,
    )


def test_each_printed_figure_stands_and_the_rest_is_estimated():
    estimate = planned()
    found = planned(PrintedMemory(weights_bytes=16.0 * GIB, kv_pool_bytes=40.0 * GIB))
    assert found.weights_bytes == 16.0 * GIB
    assert math.fsum(value for _, value in found.weights_by_group) == pytest.approx(16.0 * GIB)
    assert found.kv_pool_bytes == 40.0 * GIB
    assert found.activation_bytes == estimate.activation_bytes
    # the tokens are those of the printed pool: 128 KiB each (32 layers × 2 × 8 heads × 128 × 2 bytes)
    assert found.kv_tokens == pytest.approx(40.0 * GIB / (128 * 1024), rel=1e-3)
    assert (found.kv_pool_low_bytes, found.kv_pool_high_bytes) == (40.0 * GIB, 40.0 * GIB)
    assert found.weights_error == 0.0 and found.kv_pool_error == 0.0


@pytest.mark.parametrize(
    "scenario",
    [
        BASE,
        BASE.replace(engine_version="0.9.0"),
        BASE.replace(engine="sglang"),
        BASE.replace(engine="tensorrt-llm"),
        BASE.replace(model="google/gemma-3-12b-it", engine_version="0.11.0"),
        BASE.replace(model="google/gemma-3-12b-it"),
    ],
    ids=lambda item: f"{item.engine} {item.engine_version} {item.model}",
)
def test_printed_tokens_give_the_blocks_that_the_engine_has(scenario):
    estimate = planned(scenario=scenario)
    # what an engine prints of the pool that we plan must lead back to the same blocks
    found = planned(PrintedMemory(kv_tokens=estimate.kv_tokens), scenario)
    assert found.kv_tokens == estimate.kv_tokens
    assert found.logged_kv_blocks == pytest.approx(
        estimate.logged_kv_blocks, abs=1 + estimate.blocks_per_sequence / 100
    )
    half = planned(PrintedMemory(kv_tokens=estimate.kv_tokens // 2), scenario)
    assert half.num_kv_blocks == pytest.approx(estimate.num_kv_blocks / 2, rel=0.01)
    assert half.max_concurrency == pytest.approx(estimate.max_concurrency / 2, rel=0.01)


def test_what_printed_its_cache_has_started():
    tight = BASE.replace(gpu="L4", max_model_len=131072)
    assert not planned(scenario=tight).starts
    assert planned(PrintedMemory(kv_tokens=140_000), tight).starts


def test_a_cache_too_small_for_one_sequence_is_refused_as_the_engine_does():
    found = planned(PrintedMemory(kv_pool_bytes=0.5 * GIB))
    assert not found.starts
    assert "0.50 GiB" in found.refusal


def test_the_estimate_stands_beside():
    estimate = planned()
    found = planned(PrintedMemory(weights_bytes=16.0 * GIB, kv_tokens=300_000))
    assert found.estimated == (
        ("weights", 16.0 * GIB, estimate.weights_bytes),
        ("kv_tokens", 300_000.0, float(estimate.kv_tokens)),
    )
    note = printed_note(found.estimated)
    assert "weights 16.00 GiB (estimate " in note and f"tokens 300,000 (estimate {estimate.kv_tokens:,})" in note
    assert note in found.notes
    shown = {item.name: item for item in found.formulas}
    assert (shown["weights"].value, shown["weights"].source) == (16.0, "your start-up log")
    assert printed_formulas(found.formulas, ()) == found.formulas
    assert set(PRINTED_PARTS) >= {name for name, *_ in found.estimated}


def test_a_rank_takes_blocks_from_tokens_alone():
    demand = Demand(
        model=BASE.model_shape,
        gpu=BASE.gpu_spec,
        engine=BASE.engine_settings,
        parallelism=BASE.parallelism,
        max_model_len=8192,
    )
    resolved = limits_of(demand)
    rank = all_ranks(demand, resolved)[0]
    tokens = 512 * 8192
    assert blocks_of_logged(tokens, rank.layout, 8192, resolved) == tokens // rank.layout.main.block_tokens
    printed = as_printed(rank, PrintedMemory(kv_tokens=tokens), 8192, resolved)
    assert printed.pool_bytes == printed.num_blocks * rank.layout.block_bytes
    assert printed.weights_bytes == rank.weights_bytes


def test_the_plan_uses_it_for_its_own_deployment_alone():
    from planner.scenario import MEMORY_PARTS, fingerprint

    own = BASE.replace(printed_kv_tokens=100_000, printed_of=fingerprint(BASE, MEMORY_PARTS))
    done = size(own)
    assert done.memory.kv_tokens == 100_000
    assert done.bands["kv_pool"].is_own and not done.bands["weights"].is_own
    for change in ({"gpu": "L40S"}, {"max_num_seqs": 64}, {"gpu_memory_utilization": 0.5}, {"engine": "sglang"}):
        other = size(own.replace(**change))
        assert other.memory == size(BASE.replace(**change)).memory
        warned = [item for item in other.findings if item.kind == "printed_memory"]
        assert warned and warned[0].severity == "warning"
    assert size(own.replace(users=3)).memory.kv_tokens == 100_000
