"""Blocks of the KV cache by hand. The whole loop is held against an independent one (test_equality.py)."""

from types import SimpleNamespace

import pytest

from planner.simulation.kernel.blocks import blocks_for


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (16, 1), (17, 2), (4096, 256)])
def test_a_block_that_is_begun_is_taken(tokens, blocks):
    assert blocks_for.py_func(SimpleNamespace(block_size=16), tokens) == blocks
