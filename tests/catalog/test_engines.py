"""Engine presets: dated, sourced, and true to what the engines' documents say."""

from __future__ import annotations

import re

import pytest

from planner.catalog.engines import as_of, engine_names, get_engine, newest_version, version_at
from planner.errors import InvalidInput
from planner.inputs.engine import Batching, KvReservation, OnMemoryShortage, StepOrder


@pytest.mark.parametrize("name", engine_names())
def test_every_preset_has_a_source_and_a_date(name):
    engine = get_engine(name)
    assert engine.source.startswith("https://")
    assert re.fullmatch(r"20\d\d-\d\d", engine.source_date)


# Releases at which the next step began to be filled while one runs: vLLM 0.14, SGLang 0.4, TensorRT-LLM 1.0.
@pytest.mark.parametrize(
    ("name", "version", "ahead"),
    [
        ("vllm", "0.13", False),
        ("vllm", "0.14", True),
        ("sglang", "0.3.6", False),
        ("sglang", "0.4", True),
        ("tensorrt-llm", "0.18", False),
        ("tensorrt-llm", "1.2", True),
        ("tgi", "", False),
    ],
)
def test_releases_that_fill_a_step_ahead(name, version, ahead):
    assert get_engine(name, version).schedules_ahead is ahead


def test_what_distinguishes_the_engines():
    vllm, sglang = get_engine("vllm"), get_engine("sglang")
    assert (vllm.block_size, vllm.step_order) == (16, StepOrder.DECODE_FIRST)
    assert (sglang.block_size, sglang.step_order) == (1, StepOrder.PREFILL_FIRST)
    assert sglang.on_memory_shortage is OnMemoryShortage.RETRACT_SHORTEST
    assert get_engine("tensorrt-llm").kv_reservation is KvReservation.OUTPUT_LIMIT
    assert get_engine("tensorrt-llm-max-utilization").kv_reservation is KvReservation.PAGED
    tgi = get_engine("tgi")
    assert (tgi.max_concurrent_requests, tgi.waiting_served_ratio, tgi.max_waiting_steps) == (128, 0.3, 20)
    assert (get_engine("ollama").max_num_seqs, get_engine("ollama").max_queued_requests) == (1, 512)
    assert get_engine("ollama-loaded").max_queued_requests is None  # what happens once the model is loaded
    server = get_engine("llama-server")  # -np left open: four slots share one context
    assert (server.max_num_seqs, server.kv_unified, server.kv_reservation) == (4, True, KvReservation.PAGED)
    assert not get_engine("llama.cpp").kv_unified
    assert get_engine("fastertransformer").batching is Batching.STATIC
    assert get_engine("one-at-a-time").batching is Batching.SINGLE


@pytest.mark.parametrize(
    ("alias", "name"), [("trtllm", "tensorrt-llm"), ("TensorRT-LLM", "tensorrt-llm"), ("llamacpp", "llama.cpp")]
)
def test_other_spellings(alias, name):
    assert get_engine(alias).name == name


def test_an_unknown_engine_is_told_what_there_is():
    with pytest.raises(InvalidInput, match="closest: vllm"):
        get_engine("vlm")


def test_the_newest_release_is_the_default():
    # PyPI on 30 November 2026
    assert (newest_version("vllm"), newest_version("sglang")) == ("0.33.0", "0.5.23")
    assert get_engine("vllm").version == "0.33.0"
    assert get_engine("vllm-0.19").version == "0.19"


@pytest.mark.parametrize(
    ("day", "version"),
    [("2026-04-07", "0.19.0"), ("2026-04", "0.20.0"), ("2023", "0.2.6"), ("2022-01-01", "")],
)
def test_the_release_that_was_current_on_a_day(day, version):
    # uploads to PyPI: 0.19.0 on 3 April 2026, 0.20.0 on 27 April; 0.2.6 on 17 December 2023
    assert version_at("vllm", day) == version


def test_an_earlier_release_has_its_own_defaults():
    old, new = get_engine("vllm", "0.6.3"), get_engine("vllm", "0.33.0")
    assert (old.step_order, old.enable_chunked_prefill) == (StepOrder.PREFILL_FIRST, False)  # V0
    assert (new.step_order, new.enable_chunked_prefill) == (StepOrder.DECODE_FIRST, True)
    assert (old.async_scheduling, new.async_scheduling) == (False, True)  # by default from 0.14 on
    assert not get_engine("vllm", "0.2.7").cuda_graphs  # CUDA graphs came with 0.3
    assert get_engine("vllm", "0.3.0").cuda_graphs
    assert as_of(new) == new
