"""Lists of partial translations against the hypotheses of the beams."""

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.decode.chart import decoder
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.grammar.match.matching import GLUE
from jaxmt.metrics import bleu
from jaxmt.metrics import encoded_text as metric_text
from jaxmt.train.violation import stage_lists
from jaxmt.tune import kbest_decoder, loop, methods
from jaxmt.tune.loop import Stages
from tests.reference import tiny_training
from tests.reference import violation as slow
from tests.train.violation import worlds


def test_stages_lie_evenly():
  words = stage_lists.words_of(np.array([8, 3, 2, 1, 0]), 3)
  assert words.tolist() == [
    [2, 4, 6],
    [1, 2, 0],
    [0, 1, 0],
    [0, 0, 0],
    [0, 0, 0],
  ]
  stages = stage_lists.of_text(np.array([8, 2]), 3)
  assert stages.sentence.tolist() == [0, 0, 0, 1, 1, 1]
  assert stages.share.tolist() == [0.25, 0.5, 0.75, 0, 0.5, 0]


@pytest.fixture(scope="module")
def world():
  settings = worlds.config()
  made = worlds.setting(settings)
  return made, worlds.both_sides(made, settings)


def test_lists_are_the_best_hypotheses_of_their_group(world):
  made, (pack, _, searched, top, result) = world
  model = made.model
  found = stage_lists.lists(model, result, stages=2, size=3)
  vector = np.array([model.weights.get(n, 0.0) for n in model.feature_names])
  vector = np.array([model.weights.get(name, 0.0) for name in found.names])
  sparse_names = [name for name in found.names if ":" in name]
  weights = dict(worlds.SPARSE)
  for number, name in enumerate(found.names):
    if name in sparse_names:
      vector[number] = weights.get(name, 0.0)
  scores = sparse.dot(found.features, vector)
  nodes, seen = searched.forest.nodes, 0
  for row, line in enumerate(pack.rows.tolist()):
    words = worlds.LINES[line].split()
    for stage, j in enumerate(stage_lists.words_of([len(words)], 2)[0]):
      mine = np.flatnonzero(found.sentence == 2 * row + stage)
      group = np.flatnonzero(
        (searched.node_sentence == row)
        & (searched.category == GLUE)
        & (nodes.begin == 0)
        & (nodes.end == j)
      )
      best = sorted(group, key=lambda node: -top.score[node])[:3]
      assert len(mine) == (len(best) if j else 0)
      for place, node in zip(mine, best, strict=False):
        tree = slow.tree_of(searched, top.back, node)
        assert found.lines[place] == " ".join(slow.spell(model, tree))
        assert scores[place] == pytest.approx(top.score[node], abs=2e-4)
        seen += 1
  assert seen > 20


def test_partial_bleu_counts_a_share_of_the_reference():
  refs = [["a b c d e f"], ["x y"]]
  found = []

  def decode(weights, numbers):
    lists = worlds_lists()
    found.append(lists)
    return lists

  def worlds_lists():
    from jaxmt.decode import candidate_lists

    rows = sparse.from_dense(np.array([[1.0], [0.5], [2.0], [1.0]]))
    return candidate_lists.from_rows(
      np.array([0, 1, 2, 3]),
      ["a b c d x f", "x y", "a b c", "x"],
      rows,
      ("hint",),
      sentences=4,
    )

  stages = Stages(sentence=np.array([0, 1]), share=np.array([0.5, 0.5]))
  pools = []

  def look(pool, weights, config, seed):
    pools.append(pool)
    return weights, []

  method = methods.Method(optimise=look, config=methods.find("mert").config)
  config = loop.LoopConfig(rounds=1)
  loop.run(
    decode, refs, method, loop.begin({"hint": 1.0}), config, 0, stages=stages
  )
  known = metric_text.encode_references(refs)
  rows = known.encode(["a b c d x f", "x y", "a b c", "x"])
  expected = bleu.statistics(known.references, rows, np.array([0, 1, 0, 1]))
  assert expected[:, -1].tolist() == [6, 2, 6, 2]
  expected = np.array(expected)
  expected[2:, -1] = [3, 1]
  np.testing.assert_array_equal(pools[0].statistics["bleu"], expected)
  with pytest.raises(InputError, match="stages need metric 'bleu'"):
    loop.run(
      decode,
      refs,
      method,
      loop.begin({"hint": 1.0}),
      loop.LoopConfig(rounds=1, batch_size=1),
      0,
      stages=stages,
    )


def test_a_loop_learns_from_partial_translations():
  model, _ = tiny_training.make()
  model = models.with_weights(model, tiny_training.WEIGHTS)
  lines, refs = worlds.LINES, [[line] for line in worlds.TARGETS]
  decode = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=5,
      stages=2,
      stage_lists=lambda model, part: stage_lists.lists(
        model, part, stages=2, size=5
      ),
    ),
    config=decoder.DecodeConfig(search=worlds.SMALL),
  )
  lengths = np.array([len(line.split()) for line in lines])
  start = dict.fromkeys(model.feature_names, 0.1)
  lists = decode(start, np.arange(len(lines)))
  assert lists.sentences == 3 * len(lines)
  assert (lists.sentence >= len(lines)).sum() > 20
  plain = kbest_decoder.make_decode(
    model,
    lines,
    kbest_decoder.ListOptions(
      size=5,
    ),
    config=decoder.DecodeConfig(search=worlds.SMALL),
  )(start, np.arange(len(lines)))
  whole = lists.sentence < len(lines)
  assert [lists.lines[k] for k in np.flatnonzero(whole)] == plain.lines
  state = loop.run(
    decode,
    refs,
    methods.configure(methods.find("mert"), {"restarts": "3"}),
    loop.begin(start),
    loop.LoopConfig(rounds=2),
    0,
    stages=stage_lists.of_text(lengths, 2),
  )
  assert state.best_score >= state.history[0]["score"]
  assert state.history[0]["pool"] > len(plain)
