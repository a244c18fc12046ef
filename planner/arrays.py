"""Array types of the whole package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


Ints = NDArray[np.int64]


Bytes = NDArray[np.int8]


Bools = NDArray[np.bool_]
