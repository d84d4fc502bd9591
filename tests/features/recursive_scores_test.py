"""A network of derivations in the search: by recursion, and at weight 0."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import derivation, node_features, translation_forest
from jaxmt.decode import model as models
from jaxmt.decode.chart import beam_forest
from jaxmt.decode.chart.decoder import DecodeConfig
from jaxmt.errors import InputError
from jaxmt.features import recursive_scores, sentence_models
from jaxmt.features.recursive_scores import NAME
from jaxmt.grammar import table as tables
from jaxmt.train import recursive_training
from tests.reference import recursive_recurrent as slow
from tests.reference import tiny_training as tiny
from tests.train import tiny_btg

LINES = ["das kleine haus ist alt", "haus klein", "alt ist neues haus"]
WIDE = DecodeConfig(
  search=dataclasses.replace(
    tiny.WIDE, beam=256, pop=1024, taper=((64, 10_000),)
  )
)


def searched(network=None, *, config=WIDE, weight=1.0):
  """`(model, parts)` of the search, with a network or without."""
  model = tiny_btg.model()
  if network is not None:
    model = recursive_training.with_network(model, network, weight)
  return model, recursive_training.search(model, LINES, config=config)


def listed(model, parts, size=40):
  """Strings with scores of the best derivations of each sentence."""
  out = {}
  for part in parts:
    forest = beam_forest.extract(model, part)
    lists = translation_forest.kbest(model, part.source, forest, size=size)
    strings = translation_forest.strings(model, part.source, lists)
    for row, sentence in enumerate(part.rows.tolist()):
      chosen = range(*lists.offsets[row : row + 2].tolist())
      out[sentence] = [(strings[n], float(lists.score[n])) for n in chosen]
  return out


def test_scores_are_those_of_recursion():
  network = tiny_btg.network()
  model, parts = searched(network, config=DecodeConfig(search=tiny.SEARCH))
  base = tiny_btg.model()
  order = [base.feature_names.index(name) for name in network.names]
  order.append(base.feature_names.index(base.units.words))
  order.append(base.feature_names.index(base.units.lm))
  order.append(base.feature_names.index("MaxEntReordering"))
  table, checked = model.table, 0
  for part in parts:
    best = part.best()
    source = models.select_source(models.make_source(base, LINES), part.rows)
    # What the log-linear model knows of every subtree, without the search.
    below = node_features.partial_features(base, source, best)[:, order]
    below[:, -3] /= base.units.per_word
    below /= network.scale

    def tree(node, best=best, below=below, part=part):
      rule = int(best.rule[node])
      tails = [t for t in best.child[node].tolist() if t >= 0]
      if not tails:
        pair = recursive_scores.RARE
        if rule < len(table):
          pair = network.pair_number(
            [table.source_words.words[s] for s in table.source[rule].tolist()],
            [table.target_words.words[s] for s in table.target[rule].tolist()],
          )
        return "leaf", pair, below[node]
      if len(tails) == 1:
        return tree(tails[0])
      rest = below[node] - below[tails[0]] - below[tails[1]]
      if table.target[rule].tolist()[0] == -2:
        tails = tails[::-1]
      return "join", tree(tails[0]), tree(tails[1]), rest

    words = derivation.read_off(base, best).words
    plain = translation_forest.derivation_features(base, source, best, words)
    weights = [base.weights.get(name, 0.0) for name in base.feature_names]
    for row in range(len(best)):
      # The first node of a derivation is its top; glue above it is one part.
      _, s = slow.top(network, tree(int(best.offsets[row])))
      want = plain[row] @ weights + s @ network.output
      np.testing.assert_allclose(best.score[row], want, atol=2e-4)
      checked += 1
  assert checked == len(LINES)


def test_weight_zero_of_the_network_is_the_log_linear_model():
  plain = listed(*searched())
  silent = listed(*searched(tiny_btg.network(output=0.0)))
  other = listed(*searched(tiny_btg.network(output=0.0), weight=-3.0))
  assert plain.keys() == silent.keys()
  for sentence, want in plain.items():
    for found in (silent[sentence], other[sentence]):
      np.testing.assert_allclose(
        [score for _, score in found], [score for _, score in want], atol=1e-4
      )
      # Equal scores may stand in any order.
      clear = want[min(9, len(want) - 1)][1] - 1e-3
      top = lambda rows, clear=clear: sorted(
        text for text, score in rows if score > clear
      )
      assert top(found) == top(want)
  assert max(map(len, plain.values())) > 10
  changed = listed(*searched(tiny_btg.network(output=2.0)))
  assert changed[0][0] != plain[0][0]


def test_hypotheses_with_other_histories_do_not_merge():
  merged = lambda parts: sum(
    int((np.asarray(part.beams.score) > -1e29).sum()) for part in parts
  )
  _, plain = searched()
  _, parts = searched(tiny_btg.network(output=0.0))
  assert merged(parts) > merged(plain)


def test_a_folder_is_read_as_written_and_checked(tmp_path):
  network = tiny_btg.network()
  path = str(tmp_path / "n")
  sentence_models.write(path, [network])
  table, reordering = tiny_btg.parts()
  (read,) = sentence_models.read_all([path], table)
  for name, value in network.to_values().items():
    np.testing.assert_array_equal(read.to_values()[name], value)
  lm = tiny.language_model()
  assert sentence_models.features([read]) == ()
  ((feature, _),) = sentence_models.stateful([read], table, lm, reordering)
  assert feature.names == (NAME,)
  with pytest.raises(InputError, match="bracketing grammars"):
    read.check(_with_names(tiny.extracted().table, network.names))
  with pytest.raises(InputError, match="needs the rule feature"):
    read.check(tiny.extracted().table)
  values = network.to_values()
  for name, change, message in (
    ("recursive_encoder", lambda a: a[:-1], "wrong type or shape"),
    ("recursive_leaves", lambda a: a[:-1], "wrong type or shape"),
    ("recursive_output", lambda a: a * np.float32("nan"), "no usable"),
    ("recursive_scale", lambda a: 0 * a, "not above 0"),
    ("recursive_pairs", lambda a: [a[0], *a[:-1]], "one twice"),
  ):
    with pytest.raises(InputError, match=message):
      recursive_scores.from_values(values | {name: change(values[name])})


def _with_names(table, names):
  """A table that has features of these names, too."""
  missing = [name for name in names if name not in table.feature_names]
  return tables.with_features(
    table, missing, np.zeros((len(table), len(missing)))
  )
