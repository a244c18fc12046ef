"""The step-time table: closed forms of its terms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork, windowed_pairs


def table(**changes):
    size = 65
    plain = {
        "decode_s": np.arange(size) * 1e-3,
        "mixed_s": np.arange(size) * 2e-3,
        "head_s": np.arange(size) * 1e-5,
        "attention_base_s": 1e-4,
        "attention_per_sequence_s": 1e-5,
        "attention_per_kv_token_s": 1e-7,
        "attention_floor_s": 5e-4,
        "prefill_pair_s": 1e-8,
        "prefill_token_s": 1e-6,
        "host_s": 1e-3,
    }
    return StepTimeTable(**(plain | changes))


def test_unit_table_costs_one_whatever_the_step_holds():
    unit = StepTimeTable.unit(64)
    assert unit.step_s(StepWork(num_decodes=5, kv_tokens=1000)) == 1
    assert unit.step_s(StepWork(num_decodes=1, chunks=(PrefillChunk(num_tokens=20),), num_logit_rows=2)) == 1


@pytest.mark.parametrize(("window", "read"), [(0, 300), (40, 40), (900, 300)])
def test_a_step_of_equal_sequences_reads_each_up_to_its_window(window, read):
    work = table(window_tokens=window).decode_work(7, 300)
    assert work == StepWork(num_decodes=7, kv_tokens=2100, window_kv_tokens=7 * read, num_logit_rows=7)


def test_decode_attention_has_a_floor_then_a_slope():
    short = table().terms_s(StepWork(num_decodes=4, kv_tokens=100))
    long = table().terms_s(StepWork(num_decodes=4, kv_tokens=10_000))
    assert short["decode_attention"] == pytest.approx(5e-4)
    assert long["decode_attention"] == pytest.approx(1e-4 + 4e-5 + 1e-3)


def test_a_step_without_decodes_has_no_decode_attention():
    terms = table().terms_s(StepWork(chunks=(PrefillChunk(num_tokens=8),), num_logit_rows=1))
    assert terms["decode_attention"] == 0
    assert terms["head"] == pytest.approx(1e-5)
    assert terms["linear"] == pytest.approx(16e-3)


def test_causal_pairs_of_a_chunk_behind_a_context():
    # Query i of 3 behind 10 sees 10 + i keys: 11 + 12 + 13.
    assert table(prefill_token_s=0.0).prefill_attention_s(3, 10) == pytest.approx(36e-8)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 40))
def test_windowed_pairs_count_what_each_query_sees(num_tokens, context, window):
    expected = sum(min(context + i + 1, window) for i in range(num_tokens))
    assert windowed_pairs(num_tokens, context, window) == pytest.approx(expected)


def test_two_chunks_equal_one_prompt_in_attention():
    whole = table().prefill_attention_s(40, 0)
    split = table().prefill_attention_s(15, 0) + table().prefill_attention_s(25, 15)
    assert split == pytest.approx(whole)


def test_overlapped_host_time_shows_only_where_it_exceeds_the_device():
    work = StepWork(num_decodes=10, kv_tokens=10)
    assert table(host_s=5e-3).terms_s(work)["host"] == 0
    assert table(host_s=5e-3, host_overlaps=False).terms_s(work)["host"] == pytest.approx(5e-3)
    hidden = table(host_s=0.5).step_s(work)
    assert hidden == pytest.approx(0.5)


@given(st.integers(0, 200), st.integers(0, 100_000), st.integers(0, 200))
def test_terms_sum_to_the_step_and_more_work_takes_no_less(decodes, kv_tokens, prompt):
    chunks = (PrefillChunk(num_tokens=prompt),) if prompt else ()
    work = StepWork(num_decodes=decodes, kv_tokens=kv_tokens, chunks=chunks, num_logit_rows=decodes)
    more = StepWork(num_decodes=decodes, kv_tokens=kv_tokens + 1, chunks=chunks, num_logit_rows=decodes)
    times = table()
    assert times.step_s(work) == pytest.approx(sum(times.terms_s(work).values()))
    assert times.step_s(more) >= times.step_s(work)


def test_beyond_its_end_a_table_goes_on_at_its_last_slope():
    assert table().terms_s(StepWork(num_decodes=100))["linear"] == pytest.approx(0.1)
