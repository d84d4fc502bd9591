"""Semi-supervised rounds, on threads and on Ray; given word vectors."""

import itertools
import os

import numpy as np
import pytest

from jaxmt.align.itg import evidence, itg_model
from jaxmt.errors import InputError
from jaxmt.models.word_vectors import WordVectors
from jaxmt.runtime.runner import Runner
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training, supervised_alignment
from tests.train import itg_training_test

CONFIG = itg_training.ItgConfig(rounds=1, pruner_pairs=10, steps=10)


@pytest.fixture(name="text", scope="module")
def _text():
  """120 pairs, of which the last 30 are hand-aligned."""
  rng = np.random.default_rng(5)
  rows = [itg_training_test.sentence(rng) for _ in range(120)]
  links = Ragged(
    flat=np.array([link for row in rows[90:] for link in row[2]], np.int32),
    offsets=ragged.row_offsets([len(row[2]) for row in rows[90:]]),
  )
  return supervised_alignment.Encoded(
    source=ragged.from_rows([row[0] for row in rows]),
    target=ragged.from_rows([row[1] for row in rows]),
    source_words=[],
    target_words=[],
    gold=itg_training.Gold(
      lines=np.arange(90, 120), sure=links, possible=links
    ),
  )


@pytest.fixture(name="learnt", scope="module")
def _learnt(text):
  return evidence.learn(text.source, text.target, iterations=3)


def rounds(learnt, text, runner):
  return supervised_alignment.semi_supervised(
    learnt, text, CONFIG, rounds=2, heldout=0.3, runner=runner
  )


def same(one, two):
  np.testing.assert_array_equal(one.offsets, two.offsets)
  np.testing.assert_array_equal(one.flat, two.flat)


def test_rounds_stop_by_held_out_pairs_and_keep_the_best(
  learnt, text, monkeypatch
):
  aligner, links, history = rounds(learnt, text, Runner(kind="serial"))
  scores = [record["heldout_f1"] for record in history]
  assert 1 <= len(scores) <= 3
  assert all(a < b for a, b in itertools.pairwise(scores[:-1]))
  # What the aligner gives for the held-out pairs is the best round.
  judge = text.gold.take(np.arange(21, 30))
  found = supervised_alignment._f1(
    itg_model.align(aligner, text.source, text.target, lines=judge.lines), judge
  )
  assert round(found, 4) == max(scores)
  same(links, itg_model.align(aligner, text.source, text.target))
  # Small shards on threads give the same.
  monkeypatch.setattr(itg_model, "_SHARD", 7)
  _, again, other = rounds(learnt, text, Runner(workers=3))
  assert other == history
  same(again, links)


@pytest.mark.skipif(
  not os.environ.get("JAXMT_SLOW"), reason="starts Ray: JAXMT_SLOW=1"
)
def test_rounds_on_ray(learnt, text):
  _, links, history = rounds(learnt, text, Runner(kind="serial"))
  _, again, other = rounds(learnt, text, Runner(kind="ray", workers=1))
  assert other == history
  same(again, links)


def test_too_few_pairs_for_rounds(learnt, text):
  one = supervised_alignment.Encoded(
    **{**vars(text), "gold": text.gold.take(np.arange(1))}
  )
  with pytest.raises(InputError, match="two hand-aligned pairs"):
    rounds(learnt, one, Runner(kind="serial"))


def test_hand_aligned_sentences_are_bounded(tmp_path):
  for suffix, text in (("fr", "x\n"), ("en", "a\n"), ("align", "0-0\n")):
    (tmp_path / f"g.{suffix}").write_text(text)
  prefix = str(tmp_path / "g")
  assert supervised_alignment.read_gold(prefix).source == ["x"]
  (tmp_path / "g.en").write_text("a " * 1001 + "\n")
  with pytest.raises(InputError, match=r"g\.en:1: 1001 words"):
    supervised_alignment.read_gold(prefix)


def test_vectors_of_words():
  given = WordVectors(
    words=("a", "b"), vectors=np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
  )
  found = supervised_alignment.vectors_of(["NULL", "b", "c", "a"], given)
  assert np.isnan(found[[0, 2]]).all()
  np.testing.assert_array_equal(found[[1, 3]], [[3.0, 4.0], [1.0, 2.0]])
