"""The same grammar, language model and weights as another decoder's."""

import gzip

import numpy as np
import pytest

from jaxmt.decode import loading, translate
from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder, search
from jaxmt.features import weights as weight_files
from jaxmt.grammar import formats
from jaxmt.grammar.match.matching import MatchConfig
from jaxmt.lm import arpa_read
from jaxmt.lm import tables as lm_tables
from tests import util


@pytest.mark.slow
def test_scores_are_the_peers_or_better():
  folder = util.corpus("cdec-multi30k-de-en")
  model = models.make_model(
    formats.read(str(folder / "grammar.scfg.gz"), "cdec"),
    lm_tables.build_tables(arpa_read.read_arpa(str(folder / "lm4.arpa.gz"))),
    weights=weight_files.parse_weights(
      (folder / "weights.txt").read_text().split("\n")
    ),
    units=models.DIALECTS["cdec"],
    limits=MatchConfig(pass_through="all"),
  )
  lines = (folder / "source.de").read_text().split("\n")[:-1]
  found = translate.translate(
    model,
    translate.cut_lines(lines, longest=100),
    config=decoder.DecodeConfig(
      search=search.make_config(beam=30, pop=200, backend="device")
    ),
  )
  with gzip.open(folder / "cdec.pop200.kbest1.gz", "rt") as text:
    peers = [line.rstrip("\n").split(" ||| ") for line in text]
  scores = np.array([one.score for one in found])
  theirs = np.array([float(peer[3]) for peer in peers])
  assert scores.mean() >= theirs.mean()
  assert np.mean(scores >= theirs - 1e-3) >= 0.95
  names = list(model.feature_names)
  weights = np.array([model.weights.get(name, 0.0) for name in names])
  agree = 0
  for one, peer in zip(found, peers, strict=True):
    ours = np.array([one.features.get(name, 0.0) for name in names])
    np.testing.assert_allclose(ours @ weights, one.score, atol=1e-4)
    values = dict(pair.split("=") for pair in peer[2].split())
    same = peer[1] == one.text and all(
      abs(float(values.get(name, 0.0)) - value) < 1e-3
      for name, value in zip(names, ours.tolist(), strict=True)
      if name != "Match"
    )
    if same:
      agree += 1
      assert abs(one.score - float(peer[3])) < 1e-3
  assert agree > 80


def test_scores_are_those_of_travatar():
  folder = util.corpus("travatar-enja")
  loaded = loading.load_files(
    str(folder / "rule-table.gz"),
    lm=str(folder / "lm5.ja.arpa.gz"),
    weights=str(folder / "travatar.ini"),
    dialect="travatar",
  )
  lines = (folder / "source.en").read_text().split("\n")[:-1]
  spans = loading.read_spans(
    str(folder / "source.en.tree"), loaded.model, lines, binarize="right"
  )
  assert loaded.binarize == "right"
  run = lambda beam, pop: translate.translate(
    loaded.model,
    translate.cut_lines(lines, longest=100),
    config=decoder.DecodeConfig(search=search.make_config(beam=beam, pop=pop)),
    spans=spans,
  )
  found = run(500, 3000)
  with gzip.open(folder / "kbest1.pop2000.gz", "rt") as text:
    peers = [line.rstrip("\n").split(" ||| ") for line in text]
  agree = 0
  for one, peer in zip(found, peers, strict=True):
    values = {
      name: float(value)
      for name, value in (pair.split("=") for pair in peer[3].split())
    }
    # The derivation is the same if all features of its rules are.
    rules = set(values) - {"lm", "lmunk"}
    if one.text == peer[1] and all(
      abs(one.features.get(name, 0.0) - values[name]) < 1e-3 for name in rules
    ):
      agree += 1
      assert abs(one.features["lm"] - values["lm"]) < 1e-3
      assert abs(one.score - float(peer[2])) < 1e-3
  assert agree >= 55, agree
  # Enough candidates for Travatar's scores at these pop limits.
  scores = {500: [one.score for one in found]}
  scores[100] = [one.score for one in run(100, 500)]
  for pop, ours in scores.items():
    with gzip.open(folder / f"kbest1.pop{pop}.gz", "rt") as text:
      theirs = [float(line.split(" ||| ")[2]) for line in text]
    assert np.mean(ours) >= np.mean(theirs)


@pytest.mark.slow
def test_scores_are_those_of_moses_for_hierarchical_rules():
  """With its moses.ini as weights, PhrasePenalty and limits among them."""
  folder = util.corpus("moses-multi30k-de-en")
  lines = (folder / "source.de").read_text().split("\n")[:60]
  weights = str(folder / "hiero" / "moses.ini")
  loaded = loading.load_files(
    str(folder / "hiero" / "rule-table.gz"),
    lm=str(util.corpus("cdec-multi30k-de-en") / "lm4.arpa.gz"),
    weights=weights,
    dialect="moses",
    lines=lines,
  )
  assert models.unknown_weights(
    loaded.model, {**loading.read_weights(weights), "PhrasePenalty1": 1.0}
  ) == ["PhrasePenalty1"]
  found = translate.translate(
    loaded.model,
    translate.cut_lines(lines, longest=100),
    config=decoder.DecodeConfig(search=search.make_config(beam=30, pop=200)),
  )
  with gzip.open(folder / "hiero" / "kbest1.pop1000.gz", "rt") as text:
    peers = [line.rstrip("\n").split(" ||| ") for line in text]
  agree = 0
  for one, (_, text, values, score) in zip(found, peers, strict=False):
    theirs, name, place = {}, "", 0
    for token in values.split():
      if token.endswith("="):
        name, place = token[:-1], 0
      else:
        both = (f"{name}_{place}", name)
        theirs[next((n for n in both if n in one.features), name)] = token
        place += 1
    same = text.strip() == one.text and all(
      abs(one.features.get(name, 0.0) - float(value)) < 2e-3
      for name, value in theirs.items()
    )
    if same:
      agree += 1
      assert abs(one.score - float(score)) < 2e-3
  assert agree >= 50, agree
