"""Files of Moses' tuner that promise what they do not have."""

import pytest

from jaxmt.errors import InputError
from jaxmt.tune.formats import mert_data


@pytest.mark.parametrize(
  "header, row, cause",
  [
    ("0 1 9999999999", "1 2", "no row has that many"),
    ("0 1 -1", "1 2", "no row has that many"),
    ("99999999999999999999 1 2", "1 2", "sentence 99999999999999999999"),
    ("-1 1 2", "1 2", "sentence -1 is not from 0"),
    ("0 1 2", "1 nan", ":2: expected 2 numbers"),
    ("0 1 2", "1 1e999", ":2: expected 2 numbers"),
  ],
)
def test_sizes_that_no_file_has(header, row, cause):
  lines = [f"FEATURES_TXT_BEGIN_0 {header} a b", row, "FEATURES_TXT_END_0"]
  with pytest.raises(InputError, match=cause):
    mert_data.parse_features(lines, path="f")


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "3000000000"])
def test_statistics_that_are_no_counts(value):
  lines = ["SCORES_TXT_BEGIN_0 0 1 9 BLEU", f"1 2 3 4 5 6 7 8 {value}"]
  with pytest.raises(InputError, match="f:2: expected 9 numbers"):
    mert_data.parse_scores([*lines, "SCORES_TXT_END_0"], path="f")
