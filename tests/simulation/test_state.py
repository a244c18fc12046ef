"""What the loop works on at its start: rules, times, jobs, and room for what may come."""

import dataclasses
import math

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.inputs.engine import KvReservation
from planner.simulation import state
from planner.simulation.records import UNFINISHED
from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork
from tests.simulation.cases import UNIT, limits, make

REQUESTS = make([0.0] * 9, [5] * 9, [7] * 9)


def rules(name="vllm", requests=REQUESTS, capacity=None, **changes):
    engine = dataclasses.replace(get_engine(name), **changes)
    return state.make_rules(engine, capacity or limits(), requests)[0]


@pytest.mark.parametrize("drafts", [1, 3, 8])
@pytest.mark.parametrize("chance", [0.0, 0.5, 0.8, 1.0])
def test_tokens_per_step_sum_the_chances_that_drafts_are_accepted(drafts, chance):
    # The first token is certain, draft k counts when it and all before it are accepted.
    engine = dataclasses.replace(get_engine("vllm"), num_speculative_tokens=drafts, speculative_acceptance=chance)
    assert state.tokens_per_step(engine) == pytest.approx(sum(chance**k for k in range(drafts + 1)))
    assert state.tokens_per_step(get_engine("vllm")) == 1.0


@pytest.mark.parametrize(
    ("name", "capacity", "changes", "slots"),
    [
        ("vllm", limits(seqs=4), {}, 4),
        ("vllm", limits(seqs=4), {"max_num_seqs": 3}, 3),
        ("vllm", limits(seqs=400), {}, 9),  # no more than there are requests
        ("vllm", limits(seqs=9, budget=12), {"num_speculative_tokens": 3, "speculative_acceptance": 0.5}, 3),
        ("one-at-a-time", limits(seqs=4), {}, 1),
        ("static", limits(seqs=4, budget=2), {}, 4),  # a static batch knows no token budget
    ],
)
def test_slots(name, capacity, changes, slots):
    assert rules(name, capacity=capacity, **changes)["slots"] == slots


def test_without_chunked_prefill_vllm_raises_its_budget_to_the_context():
    for name, family, budget in (("vllm", "vllm", 1000), ("vllm", "generic", 100)):
        found = rules(name, capacity=limits(budget=100), enable_chunked_prefill=False, family=family)
        assert found["budget"] == budget
    assert rules(capacity=limits(budget=5000), enable_chunked_prefill=False)["budget"] == 5000


@pytest.mark.parametrize(
    ("name", "reservation", "paged", "reserve_output"),
    [
        ("vllm", KvReservation.PAGED, 1, 0),
        ("vllm", KvReservation.OUTPUT_LIMIT, 0, 1),
        ("vllm", KvReservation.MODEL_LIMIT, 0, 0),
        ("static", KvReservation.PAGED, 0, 1),  # a static batch cannot grow block by block
        ("static", KvReservation.MODEL_LIMIT, 0, 0),
    ],
)
def test_how_much_cache_a_request_holds(name, reservation, paged, reserve_output):
    found = rules(name, kv_reservation=reservation)
    assert (found["paged"], found["reserve_output"]) == (paged, reserve_output)


@pytest.mark.parametrize(
    ("name", "prefill_first", "retract", "at_once", "static"),
    [
        ("vllm", 0, 0, 1, 0),
        ("sglang", 1, 1, 0, 0),
        ("tensorrt-llm", 0, 0, 0, 0),
        ("tgi", 1, 0, 0, 0),
        ("llama.cpp", 0, 0, 0, 0),
        ("static", 0, 0, 1, 1),
    ],
)
def test_what_tells_the_engines_apart(name, prefill_first, retract, at_once, static):
    found = rules(name)
    expected = {"prefill_first": prefill_first, "retract": retract, "at_once": at_once, "static": static}
    assert {field: found[field] for field in expected} == expected


@pytest.mark.parametrize(("users", "count"), [(0, 0), (4, 4), (40, 9)])
def test_no_more_users_than_requests(users, count):
    assert rules(requests=dataclasses.replace(REQUESTS, closed_loop_users=users))["users"] == count


def test_what_nothing_limits():
    found = rules()
    for name in ("threshold", "max_queued", "max_concurrent", "stop_waiting"):
        assert found[name] == state.UNBOUNDED
    assert (found["patience_s"], found["timeout_s"], found["impatient"]) == (math.inf, math.inf, 0)
    assert rules(max_queued_requests=0)["max_queued"] == 0  # zero is a limit
    assert rules(patience_s=2.0)["impatient"]


def test_prefix_groups_and_adapters_cost_nothing_when_nobody_has_one():
    grouped = dataclasses.replace(REQUESTS, prefix_group=np.arange(9) % 2)
    assert [rules(requests=r)["grouped"] for r in (REQUESTS, grouped)] == [0, 1]
    assert rules(requests=grouped, enable_prefix_caching=False)["grouped"] == 0
    bases, adapters = (dataclasses.replace(REQUESTS, adapter=np.full(9, k)) for k in (-1, 0))
    assert [rules(requests=r, max_loras=1)["lora"] for r in (REQUESTS, bases, adapters)] == [0, 0, 1]


def test_what_stands_in_front_of_the_scheduler():
    # Half a second of HTTP: the client waits that much longer, its patience ends that much earlier for the engine.
    engine = dataclasses.replace(get_engine("vllm"), patience_s=2.0, timeout_s=0.25, stream_interval_tokens=4)
    requests = make([0], [1], [1], closed_loop_users=1, think_time_s=3.0)
    found = state.make_rules(engine, limits(), requests)
    server = {"server_per_request_s": 0.01, "server_per_prompt_token_s": 0.03, "server_per_token_s": 0.02}
    state.add_front_end(found, engine, dataclasses.replace(UNIT, request_overhead_s=0.5, **server))
    expected = {"think_s": 3.5, "patience_s": 1.5, "timeout_s": 0.0}
    expected |= {"server_request_s": 0.01, "server_prompt_s": 0.03, "server_token_s": 0.005}
    assert {name: found[name][0] for name in expected} == expected


def test_slopes_beyond_the_tables_are_those_of_the_step_time_table():
    # The table's own rule, read off its public answer: one more token costs so much.
    rng = np.random.default_rng(3)
    table = StepTimeTable(
        decode_s=np.cumsum(rng.random(11)), mixed_s=np.cumsum(rng.random(4)), head_s=np.cumsum(rng.random(2))
    )
    tables, times = state.make_times(table)

    def more(work):
        steps = [table.terms_s(work(n)) for n in (500, 501)]
        return [steps[1][name] - steps[0][name] for name in ("linear", "head")]

    decode, _ = more(lambda n: StepWork(num_decodes=n))
    mixed, _ = more(lambda n: StepWork(chunks=(PrefillChunk(num_tokens=n),)))
    _, head = more(lambda n: StepWork(chunks=(PrefillChunk(num_tokens=1),), num_logit_rows=n))
    assert times["decode_slope"][0] == pytest.approx(decode)
    assert times["mixed_slope"][0] == pytest.approx(mixed)
    assert times["head_slope"][0] == pytest.approx(head)
    assert [times[f"{name}_last"][0] for name in ("decode", "mixed", "head")] == [10, 3, 1]
    assert tables[state.MIXED, :4].tolist() == table.mixed_s.tolist()
    flat = dataclasses.replace(table, head_s=np.array([2.0]))
    assert state.make_times(flat)[1]["head_slope"][0] == 0.0


def test_jobs_start_as_never_finished():
    requests = make([1.0, 2.0], [0, 7], [3, 4], limit=[2, 5000], priority=np.array([30, 10]), adapter=np.array([2, -1]))
    jobs = state.make_jobs(requests, 100)
    assert jobs["arrival"].tolist() == [1.0, 2.0]
    assert jobs["prompt"].tolist() == [1, 7]  # nothing to compute is still one token
    # A limit is never below the answer, nor beyond what the context leaves.
    assert jobs["limit"].tolist() == [3, 93]
    assert jobs["priority"].tolist() == [1, 0]  # classes are numbered, the first to serve is 0
    assert jobs["adapter"].tolist() == [2, -1]
    assert (jobs["status"] == UNFINISHED).all()
    assert np.isnan(jobs["finish"]).all()
    assert np.isnan(jobs["first_token"]).all()


def test_kv_that_comes_along_leaves_the_last_token_to_compute():
    requests = make([0, 0], [10, 10], [1, 1], kv_ready_tokens=np.array([10, 4]))
    assert state.make_jobs(requests, 100)["given"].tolist() == [9, 4]


def test_many_jobs_are_filled_like_few():
    n = 2 * state.ROWS_AT_ONCE + 3
    jobs = state.make_jobs(make(list(range(n)), [5] * n, list(range(1, n + 1))), 10**6)
    assert jobs["arrival"].tolist() == list(range(n))
    assert jobs["output"].tolist() == list(range(1, n + 1))
    columns = state.take_columns(jobs, ("output", "arrival"))
    assert columns["output"].tolist() == list(range(1, n + 1))
    assert columns["output"].flags.c_contiguous
    columns["output"][:] = 0
    assert jobs["output"][0] == 1  # a copy


def test_users_of_a_closed_loop_say_themselves_when_they_come():
    requests = make([3.0, 4.0], [1, 1], [1, 1], closed_loop_users=1)
    assert state.make_jobs(requests, 100)["arrival"].tolist() == [0.0, 0.0]


def test_a_text_is_one_adapters_own():
    group, adapter = np.array([0, 0, 0, 1, -1, -1]), np.array([-1, 0, 0, 0, 0, -1])
    found = state.text_groups(make([0] * 6, [1] * 6, [1] * 6, prefix_group=group, adapter=adapter))
    assert found[1] == found[2]
    assert len({found[0], found[1], found[3]}) == 3
    assert found[4:].tolist() == [-1, -1]
    plain = make([0] * 6, [1] * 6, [1] * 6, prefix_group=group, adapter=np.full(6, -1))
    assert state.text_groups(plain).tolist() == group.tolist()


@pytest.mark.parametrize(("output", "window", "drafts"), [(7, 0, 0), (7, 4000, 0), (300, 10, 7)])
def test_no_event_lies_further_ahead_than_the_calendar_is_long(output, window, drafts):
    requests = make([0, 0], [1, 1], [output, 1])
    engine = dataclasses.replace(get_engine("vllm"), num_speculative_tokens=drafts, speculative_acceptance=0.5)
    found = state.make_rules(engine, limits(size=16), requests)
    calendar = state.make_calendar(requests, found, window)
    half = len(calendar) // 2
    assert half & (half - 1) == 0  # places are found with a mask
    assert half > max(output, window, 16) + drafts + 1
    assert half < 8 * (max(output, window, 16) + drafts + 3)
    assert (calendar["due"] == state.NO_SLOT).all()


def test_an_answer_beyond_the_context_costs_no_memory():
    requests = make([0], [1], [10**9])
    found = state.make_rules(get_engine("vllm"), limits(max_len=1000), requests)
    assert len(state.make_calendar(requests, found, 0)) < 10_000


def test_slots_are_handed_out_from_the_first():
    found = state.make_rules(get_engine("vllm"), limits(seqs=3), REQUESTS)
    slots = state.make_slots(found)
    assert slots["spare"].tolist() == [2, 1, 0]  # a stack: the last is taken first
    assert (slots["class_tail"] == -1).all()
    classes = dataclasses.replace(REQUESTS, priority=np.arange(9))
    assert len(state.make_slots(state.make_rules(get_engine("vllm"), limits(seqs=3), classes))) == 9


def test_groups_know_how_much_of_their_text_anyone_asks_for():
    requests = make(
        [0] * 4, [50] * 4, [1] * 4, prefix_group=np.array([0, 1, 1, -1]), prefix_tokens=np.array([17, 15, 48, 50])
    )
    found = state.make_rules(get_engine("vllm"), limits(size=16), requests)
    assert state.make_groups(requests, found)["limit"].tolist() == [1, 3]  # whole blocks of 16


def test_there_is_room_for_every_run_of_free_blocks():
    # Two a request at most, and no more than there are blocks; numbered from 1, and one to spare.
    found = state.make_rules(get_engine("vllm"), limits(blocks=1000), REQUESTS)
    assert len(state.make_runs(found, 9)) == 18 + 2
    assert len(state.make_runs(found, 10**6)) == 1000 + 2
    off = state.make_rules(dataclasses.replace(get_engine("vllm"), enable_prefix_caching=False), limits(), REQUESTS)
    assert len(state.make_runs(off, 9)) == 2


@pytest.mark.parametrize("timeline", [False, True])
def test_the_state_before_the_first_step(timeline):
    found = state.make_rules(get_engine("sglang"), limits(seqs=3, blocks=50), REQUESTS)
    counters, tallies = state.make_state(found, fed=9, closed=True, timeline=timeline)
    assert (counters["free_blocks"][0], counters["free_slots"][0], counters["fed"][0]) == (50, 3, 9)
    assert counters["ratio"][0] == get_engine("sglang").new_token_ratio
    samples = state.SAMPLE_WIDTH * state.MAX_SAMPLES if timeline else 0
    assert len(tallies) == state.SAMPLES_FROM + samples
    assert counters["next_sample"][0] == (1 if timeline else state.UNBOUNDED)
    assert not tallies.any()
