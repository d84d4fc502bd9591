import dataclasses
import json

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.parse import dmv, induction, saved_parsers
from jaxmt.parse.arc_parser import ArcParser
from jaxmt.text import array_folder


def make(tags=("A", "B")):
  size = 3 + len(tags)
  rng = np.random.default_rng(0)
  return ArcParser(
    weights={
      "hashed": rng.normal(size=1 << 10).astype(np.float32),
      "between": rng.normal(size=(2, size, size, size)).astype(np.float32),
    },
    tag_names=tags,
  )


def test_what_is_read_is_what_was_written(tmp_path):
  path = str(tmp_path / "parser")
  saved_parsers.save(path, make())
  saved_parsers.save(path, make())  # replaces
  parser = saved_parsers.load(path)
  assert parser.tag_names == ("A", "B")
  for name, array in make().weights.items():
    np.testing.assert_array_equal(parser.weights[name], array)


def write(path, *, meta=None, **arrays):
  parser = make()
  with array_folder.open_writer(path) as out:
    out.meta = meta or {"format": "jaxmt parser", "version": 2, "kind": "arc"}
    for name, array in {**parser.weights, **arrays}.items():
      if array is not None:
        out.append(name, array)
    out.write_lines("tags", parser.tag_names)


@pytest.mark.parametrize(
  ("change", "cause"),
  [
    ({"between": np.zeros((2, 4, 4, 4), np.float32)}, "'between' is float32"),
    ({"between": np.zeros((2, 5, 5, 5), np.float64)}, "'between' is float64"),
    ({"between": None}, "lacks between.npy"),
    ({"hashed": np.zeros(1000, np.float32)}, "no table of 2\\^bits"),
    ({"hashed": np.full(1024, np.nan, np.float32)}, "numbers that cannot be"),
    ({"meta": {"format": "jaxmt parser", "kind": "arc"}}, "version None"),
    ({"meta": {"format": "else", "version": 2}}, "not a parser"),
  ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, cause):
  path = str(tmp_path / "parser")
  write(path, **change)
  with pytest.raises(InputError, match=cause) as caught:
    saved_parsers.load(path)
  assert "\n" not in str(caught.value)


def test_damage_is_found(tmp_path):
  path = tmp_path / "parser"
  saved_parsers.save(str(path), make())
  data = bytearray((path / "hashed.npy").read_bytes())
  data[-1] ^= 1
  (path / "hashed.npy").write_bytes(data)
  with pytest.raises(InputError, match="has been changed"):
    saved_parsers.load(str(path))
  (path / "manifest.json").write_text(json.dumps({"files": {}}))
  with pytest.raises(InputError, match="not a parser"):
    saved_parsers.load(str(path))


def test_parsers_of_tags(tmp_path):
  path = str(tmp_path / "parser")
  parser = induction.TagParser(
    kind="dmv",
    model=dmv.random(induction.num_tags("AB"), 0),
    tag_names=("A", "B"),
  )
  saved_parsers.save(path, parser)
  found = saved_parsers.load(path)
  np.testing.assert_array_equal(found.model.child, parser.model.child)
  assert (found.kind, found.tag_names) == (parser.kind, parser.tag_names)
  worse = dataclasses.replace(parser.model, stop=parser.model.stop + 1)
  saved_parsers.save(path, dataclasses.replace(parser, model=worse))
  with pytest.raises(InputError, match="'stop' has numbers that cannot be"):
    saved_parsers.load(path)


def test_a_kind_that_is_no_name(tmp_path):
  about = {"format": saved_parsers.FORMAT, "version": 2, "kind": ["arc"]}
  (tmp_path / "manifest.json").write_text(json.dumps({**about, "files": {}}))
  with pytest.raises(InputError, match="not a parser"):
    saved_parsers.load(str(tmp_path))
