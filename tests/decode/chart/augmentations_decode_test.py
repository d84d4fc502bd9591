"""Augmented decoding of a text: batches, threads, devices, and no weight."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import derivation, translation_forest
from jaxmt.decode.chart import augmentations, beam_forest, decoder
from jaxmt.decode.chart.search import SearchConfig
from jaxmt.runtime import parallel
from tests.reference import chart_augmented as oracle
from tests.reference import chart_cases as cases

CONFIG = decoder.DecodeConfig(
  search=SearchConfig(
    beam=8,
    pop=24,
    corners=8,
    widths=(48,),
    tile=8,
    forest=True,
    backend="device",  # as augmented searches: the same without losses
  ),
  batch_cells=150,
)
HOOK = augmentations.loss_augmented(beam=2, margin=1, cost=2.0)


@pytest.fixture(scope="module")
def text():
  case = cases.random_case(
    5, order=3, arity=2, sentences=40, longest=8, rules=40
  )
  model, source = cases.to_model(case, arity=2)
  rng = np.random.default_rng(0)
  references = [
    " ".join("abcdu"[k] for k in rng.integers(0, 5, size=len(words)))
    for words in case.sentences
  ]
  return model, source, references


def decode(text, config=CONFIG, *, mesh=None, augmentation=None):
  """Strings, model scores, augmented scores and forests by sentence."""
  model, source, references = text
  rows = {}
  for parts in decoder.decode(
    model,
    source,
    config=config,
    mesh=mesh,
    augmentation=augmentation,
    references=None if augmentation is None else references,
  ):
    for part in parts:
      best = part.best()
      words = derivation.read_off(model, best).words
      strings = translation_forest.spell(model, part.source, words)
      made = beam_forest.extract(model, part)
      extra = made.edges.augmented
      values = made.score if extra is None else extra
      edges = made.edge_offsets[made.node_offsets]
      for place, row in enumerate(part.rows.tolist()):
        own = values[edges[place] : edges[place + 1]]
        rows[row] = (strings[place], float(best.score[place]), own.tolist())
  return [rows[row] for row in range(len(source))]


def test_batches_threads_and_devices_change_nothing(text):
  want = decode(text, augmentation=HOOK)
  assert [one[0] for one in want] != [one[0] for one in decode(text)]
  wider = dataclasses.replace(CONFIG, batch_cells=300, threads=2)
  assert decode(text, wider, augmentation=HOOK) == want
  assert decode(text, mesh=parallel.make_mesh(3), augmentation=HOOK) == want


def test_without_weights_it_is_plain_search(text):
  nothing = augmentations.loss_augmented(beam_weight=0.0, goodness_weight=0.0)
  assert decode(text, augmentation=nothing) == decode(text)


def test_goodness_rises_with_its_weight(text):
  _, _, references = text

  def mean(weight):
    hook = augmentations.loss_augmented(goodness_weight=weight)
    strings = [one[0].split() for one in decode(text, augmentation=hook)]
    return np.mean(
      [
        oracle.log_goodness(words, reference.split())
        for words, reference in zip(strings, references, strict=True)
      ]
    )

  assert mean(0.0) < mean(2.0) < mean(100.0)


def test_references_and_augmentation_go_together(text):
  model, source, references = text
  with pytest.raises(ValueError, match="together"):
    next(decoder.decode(model, source, config=CONFIG, augmentation=HOOK))
  with pytest.raises(ValueError, match="together"):
    next(decoder.decode(model, source, config=CONFIG, references=references))
  with pytest.raises(ValueError, match="39 references, 40 sentences"):
    next(
      decoder.decode(
        model,
        source,
        config=CONFIG,
        augmentation=HOOK,
        references=references[:-1],
      )
    )
