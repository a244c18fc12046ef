"""The widths that the array types promise: 64 bits for counts and times, 8 for states."""

from typing import get_args

import numpy as np
import pytest

from planner.arrays import Bytes, Floats, Ints
from planner.step_time.step_table import StepTimeTable


@pytest.mark.parametrize(("alias", "kind", "size"), [(Floats, "f", 8), (Ints, "i", 8), (Bytes, "i", 1)])
def test_element_types(alias, kind, size):
    element = np.dtype(get_args(get_args(alias)[1])[0])
    assert (element.kind, element.itemsize) == (kind, size)


def test_a_table_of_step_times_is_of_that_type():
    assert StepTimeTable.unit(8).decode_s.dtype == np.float64
