"""Weights files."""

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.features import weights


def test_all_spellings():
  lines = [
    "# C=500\theld out",
    "LM 0.25",
    "Glue\t-1e-3",
    "WordPenalty=-0.5",
    "a= 3",
    "b = 4 # four",
    "",
    "[weight_vals]",
    "R:x=y=2",
    "R:x=z 7",
    "TM0= 0.2 0.3",
    "  spaced   1 ",
  ]
  assert weights.parse_weights(lines) == {
    "LM": 0.25,
    "Glue": -0.001,
    "WordPenalty": -0.5,
    "a": 3.0,
    "b": 4.0,
    "R:x=y": 2.0,
    "R:x=z": 7.0,
    "TM0_0": 0.2,
    "TM0_1": 0.3,
    "spaced": 1.0,
  }


@pytest.mark.parametrize(
  "line", ["name", "a x", "a nan", "a inf", "=3", "a=", "a 1_0", "a #1", "\x85"]
)
def test_bad_lines_are_named(line):
  with pytest.raises(InputError) as caught:
    weights.parse_weights(["ok 1", line], path="W")
  assert (caught.value.path, caught.value.line) == ("W", 2)


def test_a_name_twice():
  with pytest.raises(InputError, match="duplicate name"):
    weights.parse_weights(["a 1", "a 2"])


def test_round_trip():
  rng = np.random.default_rng(0)
  given = {f"f{n}": v for n, v in enumerate(rng.normal(size=20).tolist())}
  lines = weights.format_weights(given, comment="two\nlines")
  assert lines[:2] == ["# two", "# lines"]
  assert weights.parse_weights(lines) == given


def test_of_moses_ini_the_weights_and_limits():
  lines = [
    "# tuned",
    "[mapping]",
    "0 T 0",
    "[max-chart-span]",
    "20",
    "1000",
    "[feature]",
    "KENLM name=LM0 path=lm.gz order=4",
    "[cube-pruning-pop-limit]",
    "100",
    "[weight]",
    "",
    "LM0= 0.25",
    "TranslationModel0= 0.5 -1",
    "[threads]",
    "2",
  ]
  assert weights.parse_weights(lines) == {
    "LM0": 0.25,
    "TranslationModel0_0": 0.5,
    "TranslationModel0_1": -1.0,
  }
  assert weights.moses_limits(lines) == {"span": 20, "pop": 100}
  assert weights.moses_limits(["LM0 1"]) == {}


def test_limits_of_moses_that_cannot_be_are_left_alone():
  for text in ("9" * 5000, "-5", "0", "\u0663", "1e3", ""):
    for section in ("[max-chart-span]", "[stack]", "[ttable-limit]"):
      assert weights.moses_limits([section, text]) == {}
    setting = f"PhraseDictionaryMemory table-limit={text}"
    assert weights.moses_limits(["[feature]", setting]) == {}
  assert weights.moses_limits(["[distortion-limit]", "-1"]) == {
    "distortion": -1
  }


def test_travatar_ini():
  lines = [
    "[tm_file]",
    "rule-table.gz",
    "[binarize]",
    "right",
    "[weight_vals]",
    "egfp=0.05",
    "lm=0.3",
    "",
    "[pop_limit]",
    "2000",
  ]
  assert weights.parse_weights(lines) == {"egfp": 0.05, "lm": 0.3}
  assert weights.travatar_binarizer(lines) == "right"
  assert weights.travatar_binarizer(["a 1"]) == ""
  with pytest.raises(InputError, match="ini:2: unknown binarisation 'cky'"):
    weights.travatar_binarizer(["[binarize]", "cky"], path="ini")
