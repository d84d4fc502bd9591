"""Walls and zones: what is read, and what the search then does."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import decoder, markup
from jaxmt.errors import InputError
from tests.reference import phrase_enumeration as enumeration

CONFIG = DecodeConfig(search=search.make_config(beam=400, pop=400))


def test_tags_are_taken_out():
  lines, marks = markup.parse(
    ["a <wall/> b c", "", "<zone> a b <zone> c d </zone> </zone> e", "a < b >"]
  )
  assert lines == ["a b c", "", "a b c d e", "a < b >"]
  assert marks.walls[0].tolist() == [1]
  assert sorted(marks.zones[2].tolist()) == [[0, 4], [2, 4]]
  chosen = markup.select_marks(marks, np.array([2, 0]))
  assert chosen.walls[1].tolist() == [1] and len(chosen.zones[0]) == 2


@pytest.mark.parametrize(
  ("line", "cause"),
  [
    ("<zone> a", "does not end"),
    ("a </zone>", "unexpected tag '</zone>'"),
    ("a <walls/>", "unexpected tag '<walls/>'"),
  ],
)
def test_bad_tags_are_named(line, cause):
  with pytest.raises(InputError, match=cause):
    markup.parse(["fine", line], path="f")


@pytest.mark.parametrize("kernel", [True, False])
def test_searches_keep_to_walls_and_zones(kernel):
  changed = 0
  for seed in range(6 if kernel else 2):
    case = enumeration.random_case(seed, count=20, longest=6)
    case = dataclasses.replace(
      case, sentences=[["f", "g", "h", "f", "g", "h"][seed % 2 :]] * 3
    )
    size = len(case.sentences[0])
    limits = [((2,), ()), ((), ((1, 4),)), ((4,), ((0, 2), (1, size - 1)))]
    model, source = enumeration.to_model(case, distortion=3)
    rows = lambda place, shape, limits=limits: markup._rows(
      [one[place] for one in limits], shape
    )
    source = dataclasses.replace(
      source, marks=markup.Marks(walls=rows(0, ()), zones=rows(1, (2,)))
    )
    (result,) = next(
      iter(decoder.decode(model, source, config=CONFIG, kernel=kernel))
    )
    best = result.best().score[np.argsort(result.rows)]
    free = enumeration.scored(case, case.sentences[0], limit=3)
    for row, (walls, zones) in enumerate(limits):
      every = enumeration.scored(
        case, case.sentences[row], limit=3, walls=walls, zones=zones
      )
      expected = every[0][0] if every else 0.0
      assert best[row] == pytest.approx(expected, abs=1e-4)
      changed += bool(every) and every[0][0] < free[0][0] - 1e-6
  assert changed
