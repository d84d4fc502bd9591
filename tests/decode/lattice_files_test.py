"""Lattices as text: every path a derivation, the best one the translation."""

import gzip

import numpy as np
import pytest

from jaxmt.decode import lattice_files, portable_forest
from jaxmt.decode.chart import beam_forest, search
from jaxmt.decode.chart import decoder as chart_decoder
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.decode.phrase import phrase_decoder, stack_forest
from jaxmt.errors import InputError
from tests.reference import chart_cases
from tests.reference import phrase_enumeration as enumeration

CONFIG = DecodeConfig(search=search.make_config(beam=300, pop=300))


def spelled(seed, limit):
  case = enumeration.random_case(seed, count=8)
  model, source = enumeration.to_model(case, distortion=limit)
  (result,) = next(iter(phrase_decoder.decode(model, source, config=CONFIG)))
  forest = stack_forest.extract(model, result)
  return case, portable_forest.spell(
    model, result.source, forest, sentence=result.rows
  )


def paths(arcs, final):
  """All (score, words) from state 0; arcs: (from, to, word, score)."""

  def walk(state):
    if state == final:
      yield 0.0, ()
      return
    for one, two, word, score in arcs:
      if one == state:
        for rest, words in walk(two):
          own = () if word in ("<eps>", "!NULL") else (word,)
          yield score + rest, (*own, *words)

  return sorted(walk(0), reverse=True)


def read(path):
  with gzip.open(path, "rt") as stream:
    return stream.read().splitlines()


def read_openfst(path):
  lines = [line.split("\t") for line in read(path)]
  final = int(lines[-1][0])
  assert lines[0][0] == "0", "the first state stands first"
  return [(int(a), int(b), w, -float(c)) for a, b, w, _, c in lines[:-1]], final


def read_slf(path):
  fields = [dict(f.split("=", 1) for f in line.split()) for line in read(path)]
  scale = float(next(f["lmscale"] for f in fields if "lmscale" in f))
  sizes = next(f for f in fields if "N" in f)
  links = [f for f in fields if "J" in f]
  assert int(sizes["L"]) == len(links)
  assert int(sizes["N"]) == sum("I" in f for f in fields)
  arcs = [
    (int(f["S"]), int(f["E"]), f["W"], float(f["a"]) + scale * float(f["l"]))
    for f in links
  ]
  (final,) = {b for _, b, _, _ in arcs} - {a for a, _, _, _ in arcs}
  return arcs, final


@pytest.mark.parametrize("format", lattice_files.FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_paths_are_the_derivations(tmp_path, format, seed):
  case, forest = spelled(seed, 2)
  lattice_files.write(f"{tmp_path}/", [forest], format=format)
  for row, words in enumerate(case.sentences):
    every = enumeration.scored(case, words, limit=2)
    if len(every) > 300:
      continue
    if format == "openfst":
      found = paths(*read_openfst(tmp_path / f"{row}.fst.gz"))
    else:
      found = paths(*read_slf(tmp_path / f"{row}.slf.gz"))
    assert len(found) == len(every)
    np.testing.assert_allclose(
      [one[0] for one in found], [one[0] for one in every], atol=1e-3
    )
    assert list(found[0][1]) == every[0][1]
  if format == "openfst":
    symbols = (tmp_path / "symbols.txt").read_text().splitlines()
    assert symbols[0] == "<eps>\t0" and len(symbols) > 1


def test_charts_are_no_lattices(tmp_path):
  case = chart_cases.random_case(0, order=2, arity=2, longest=4)
  model, source = chart_cases.to_model(case, arity=2)
  config = DecodeConfig(search=search.make_config(beam=4, pop=8, forest=True))
  (result,) = next(iter(chart_decoder.decode(model, source, config=config)))
  forest = portable_forest.spell(
    model, result.source, beam_forest.extract(model, result)
  )
  with pytest.raises(InputError, match="only phrase lattices"):
    lattice_files.write(f"{tmp_path}/x", [forest], format="slf")
