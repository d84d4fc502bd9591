"""Walls and zones: what is read, and what the search then does."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import search
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import markup, phrase_decoder, phrase_model
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
    ('<n translation="x"> a', "tag '<n>' does not end"),
    ('<n translation="x||y" prob="1"> a </n>', "2 translations, 1 prob"),
    ('<n translation="x" prob="0"> a </n>', "no probability above 0"),
    ('<n translation="x" prob="nan"> a </n>', "no probability above 0"),
    ('<n translation="x|| "> a </n>', "an empty translation"),
    ('<n translation="x"></n> a', "1 to 31 can be"),
    ('<n translation="x"> a <m translation="y"> b </m> </n>', "overlap"),
    ('<n prob="1"> a </n>', "unexpected tag"),
    ('<zone translation="x"> a </zone>', "unexpected tag"),
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
    marks = markup.make_marks(*zip(*limits, strict=True))
    source = dataclasses.replace(source, marks=marks)
    (result,) = next(
      iter(phrase_decoder.decode(model, source, config=CONFIG, kernel=kernel))
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


def test_marked_translations_are_read():
  lines, marks = markup.parse(
    [
      'the <n translation="old house||home" prob="0.75||0.25">haus</n> is',
      "nothing",
      '<np translation="x y">a b</np><wall/> <n translation="z"> c </n>',
    ]
  )
  assert lines == ["the haus is", "nothing", "a b c"]
  assert marks.options[0].tolist() == [[1, 2, 0], [1, 2, 1]]
  assert marks.options[2].tolist() == [[0, 2, 2], [2, 3, 3]]
  assert marks.walls[2].tolist() == [2]
  assert marks.phrases[0].target == ("old", "house")
  assert marks.phrases[0].log_probability == pytest.approx(np.log(0.75))
  assert marks.phrases[2].source == ("a", "b")
  assert marks.phrases[2].log_probability == 0.0


# Begin, end, target words, ln p.
MARKED = (
  (1, 3, ("a", "new"), -0.3),
  (1, 3, ("b",), -0.1),
  (3, 4, ("a",), 0.0),
)


def _marked_options(options, *, exclusive):
  """The options of a sentence with marked translations."""
  own = [(*one, np.zeros(6), False) for one in MARKED]
  for one in options:
    touched = any(one[0] < e and one[1] > b for b, e, *_ in MARKED)
    copied = one[5] and any(one[:2] == (b, e) for b, e, *_ in MARKED)
    if not (touched if exclusive else copied):
      own.append(one)
  return own


def _as_probability(model):
  """The model whose one score of a phrase is known as a probability."""
  names = {"score": "source_given_target"}
  table = dataclasses.replace(
    model.table,
    feature_names=tuple(names.get(n, n) for n in model.table.feature_names),
  )
  weights = {**enumeration.WEIGHTS, "source_given_target": 1.0}
  return models.with_weights(dataclasses.replace(model, table=table), weights)


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("kernel", [True, False])
def test_marked_translations_compete_or_stand_alone(
  monkeypatch, exclusive, kernel
):
  differs = 0
  words = ["f", "g", "q", "f"]
  options_of = enumeration.options_of
  marks = markup.make_marks(
    [()],
    [()],
    [[(*one[:2], number) for number, one in enumerate(MARKED)]],
    phrases=[
      markup.MarkedPhrase(
        source=tuple(words[begin:end]), target=target, log_probability=ln_p
      )
      for begin, end, target, ln_p in MARKED
    ],
    exclusive=exclusive,
  )
  for seed in range(4 if kernel else 1):
    case = enumeration.random_case(seed, count=20, longest=5)
    case = dataclasses.replace(case, sentences=[words])
    model = _as_probability(enumeration.to_model(case, distortion=3)[0])
    model, own = phrase_model.with_marked(model, marks)
    source = models.make_source(model, [" ".join(words)])
    source = dataclasses.replace(source, marks=own)
    (result,) = next(
      iter(phrase_decoder.decode(model, source, config=CONFIG, kernel=kernel))
    )
    free = enumeration.scored(case, words, limit=3)
    with monkeypatch.context() as patch:
      patch.setattr(
        enumeration,
        "options_of",
        lambda *inputs: _marked_options(
          options_of(*inputs), exclusive=exclusive
        ),
      )
      every = enumeration.scored(case, words, limit=3)
    assert result.best().score[0] == pytest.approx(every[0][0], abs=1e-4)
    differs += abs(every[0][0] - free[0][0]) > 1e-6
  assert differs
