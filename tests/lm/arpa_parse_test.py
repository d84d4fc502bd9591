"""Numbers in ARPA files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.lm import arpa_parse


@given(
  st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(
      r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
    ),
    st.from_regex(r"[+-]?\.[0-9]{1,9}", fullmatch=True),
  )
)
def test_numbers_are_read_as_python_reads_them(text):
  data = np.frombuffer((text + "\n").encode(), np.uint8)
  value, end, good = arpa_parse._number(data, 0)
  assert good and end == len(text)
  assert value == pytest.approx(float(text), rel=1e-14, abs=0)
