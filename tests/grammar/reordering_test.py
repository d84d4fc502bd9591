"""Files of reordering models that are none."""

import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import reordering


@pytest.mark.parametrize(
  "text, cause",
  [
    ("", "f: no phrase pairs"),
    ("a ||| b ||| 1 1 1\n", "3 scores a line, not 6"),
    ("a ||| b\n", "f:1: "),
    ("a ||| b ||| 1 1 1 1 1 x\n", "f:1: "),
  ],
)
def test_files_that_are_no_reordering_model(tmp_path, text, cause):
  path = tmp_path / "f"
  path.write_text(text)
  with pytest.raises(InputError, match=cause):
    reordering.read(str(path))
