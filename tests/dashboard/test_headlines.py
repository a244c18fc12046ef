"""Sentences of the pages against the plan that they are made from."""

import math

import pytest

from planner.dashboard import headlines
from tests.answer.cases import planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}


@pytest.mark.parametrize(("number", "said"), [(1, "1 GPU"), (12.0, "12 GPUs"), (math.inf, "no number of GPUs")])
def test_numbers_of_gpus(number, said):
    assert headlines.gpus(number).startswith(said)


@pytest.mark.parametrize("changes", [{}, REFUSED, {"arrivals": "closed"}, {"arrivals": "once"}, {"num_replicas": 3}])
def test_every_page_has_a_first_sentence(changes):
    done = planned(**changes)
    said = [headlines.memory_sentence(done), headlines.cost_sentence(done)]
    if done.fits:
        assert f"{done.memory.kv_tokens:,}" in said[0]
        said += [headlines.latency_sentence(done), headlines.policy_sentence(done), headlines.percentiles(done)]
    assert all(said)
    assert "nan" not in " ".join(said)
