"""Requests as arrays refuse what no client sends."""

import dataclasses

import numpy as np
import pytest

from planner.errors import InvalidInput
from planner.workload.requests import Requests

THREE = Requests(
    arrival_s=np.array([0.0, 0.0, 2.5]),
    prompt_tokens=np.array([10, 20, 0]),
    output_tokens=np.array([1, 2, 3]),
    output_limit_tokens=np.array([8, 8, 8]),
    prefix_group=np.array([-1, 0, 0]),
    prefix_tokens=np.array([0, 5, 0]),
)


def test_one_entry_per_request():
    assert len(THREE) == 3
    assert (THREE.closed_loop_users, THREE.priority, THREE.adapter, THREE.notes) == (0, None, None, ())


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("prompt_tokens", np.array([1, 2]), "prompt_tokens"),
        ("prefix_group", np.array([0, 0, 0, 0]), "prefix_group"),
        ("output_limit_tokens", np.array([]), "output_limit_tokens"),
        ("arrival_s", np.array([0.0, 2.0, 1.0]), "arrival_s"),
        ("output_tokens", np.array([1, 0, 3]), "output_tokens"),
        ("prompt_tokens", np.array([1, -1, 3]), "output_tokens"),
        ("adapter", np.array([0, 1]), "adapter"),
        ("adapter", np.array([0, -2, 1]), "adapter"),
    ],
)
def test_what_cannot_be_names_its_array(field, value, named):
    with pytest.raises(InvalidInput) as caught:
        dataclasses.replace(THREE, **{field: value})
    assert caught.value.field == named


def test_no_request_at_all_is_a_workload():
    empty = {item.name: getattr(THREE, item.name)[:0] for item in dataclasses.fields(Requests)
             if isinstance(getattr(THREE, item.name), np.ndarray)}  # fmt: skip
    assert len(dataclasses.replace(THREE, **empty)) == 0


def test_adapters_are_numbered_from_the_base_model_on():
    assert dataclasses.replace(THREE, adapter=np.array([-1, 0, 5])).adapter.tolist() == [-1, 0, 5]
