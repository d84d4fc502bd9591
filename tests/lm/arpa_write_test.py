"""Writing ARPA files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmt.lm import arpa_read, arpa_write
from jaxmt.text import files
from tests.lm import language_models


@pytest.mark.parametrize(
  "name",
  [
    "market.1.arpa",
    "market.3.arpa",
    "market.4.prune112.fallback.arpa",
    "market.6.prune01.fallback.arpa",
  ],
)
def test_read_and_write_give_the_same_bytes(tmp_path, name):
  content = (language_models.TESTDATA / name).read_bytes()
  copy = str(tmp_path / "copy.arpa")
  arpa_write.write_arpa(copy, language_models.read(name))
  assert files.read_bytes(copy) == content


def test_files_of_other_toolkits_settle_after_one_round(tmp_path):
  first, second = str(tmp_path / "1.arpa"), str(tmp_path / "2.arpa")
  arpa_write.write_arpa(first, language_models.read("srilm.arpa"))
  arpa_write.write_arpa(second, arpa_read.read_arpa(first))
  assert files.read_bytes(first) == files.read_bytes(second)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_numbers_survive_and_are_shortest(value):
  out = np.zeros(40, np.uint8)
  end = arpa_write._write_float(out, 0, np.float32(value))
  text = out[:end].tobytes().decode()
  assert np.float32(text) == np.float32(value)
  digits = text.lstrip("-").split("e")[0].replace(".", "").strip("0")
  shortest = np.format_float_scientific(np.float32(abs(value)), unique=True)
  wanted = shortest.split("e")[0].replace(".", "").strip("0")
  if abs(value) > 1e-30:  # below, float64 powers of ten are not exact
    assert len(digits) <= len(wanted)
