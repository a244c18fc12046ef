"""A config.json that is pasted or fetched: checked, and cut to the keys that matter."""

import json

import pytest

from planner.dashboard.config_text import MAX_BYTES, pruned
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config

from .published_config import LLAMA_3_8B


def test_pruning_keeps_the_model_and_drops_the_rest():
    short = pruned(json.dumps(LLAMA_3_8B))
    assert model_from_config(json.loads(short)) == model_from_config(LLAMA_3_8B)
    assert "transformers_version" not in short
    assert len(short) < 300


def test_too_large_is_told_in_megabytes():
    with pytest.raises(InvalidInput, match="MB"):
        pruned(" " * (MAX_BYTES + 1))
