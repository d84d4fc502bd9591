"""Stages around the rule table: extracted, mixed, filtered, made a model."""

import dataclasses

import numpy as np
import pytest

from jaxmt.decode import model as models
from jaxmt.errors import InputError
from jaxmt.experiment.stages import corpus, grammar, lm, mix_theta, system, tune
from jaxmt.experiment.stages.align import Links
from jaxmt.features import sentence_models
from jaxmt.features.phrase_similarity import SimilarityModel
from jaxmt.features.recursive_scores import RecursiveModel
from jaxmt.grammar import estimate, pair_quality
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import Kind
from jaxmt.text import vocabulary

TEXT = corpus.Corpus(
  train_source=["das haus", "ein haus", "das buch", "ein altes buch"],
  train_target=["the house", "a house", "the book", "an old book"],
  train_trees=[
    "(NP (D das) (N haus))",
    "(NP (D ein) (N haus))",
    "(NP (D das) (N buch))",
    "(NP (D ein) (A altes) (N buch))",
  ],
  tune_source=["ein buch"],
  tune_references=[["a book", "one book"]],
  tune_trees=["(NP (D ein) (N buch))"],
  test_source=["das haus"],
  test_references=[["the house"]],
)
LINKS = Links(links=["0-0 1-1", "0-0 1-1", "0-0 1-1", "0-0 1-1 2-2"])


def extract(**changes):
  config = grammar.GrammarStageConfig(**changes)
  grammar.check(config)
  return grammar.extract(config, corpus=TEXT, links=LINKS)


@pytest.fixture(scope="module")
def joint():
  return extract()


def test_kinds_of_rules(joint):
  kinds = {
    name: set(made.table.kind.tolist())
    for name, made in (
      ("joint", joint),
      ("hiero", extract(kind="hiero")),
      ("t2s", extract(kind="t2s")),
    )
  }
  always = {Kind.GLUE, Kind.PASS_THROUGH}
  assert kinds["hiero"] == {*always, Kind.HIERO}
  assert kinds["t2s"] == {*always, Kind.TREE_TO_STRING}
  assert kinds["joint"] == kinds["hiero"] | kinds["t2s"]
  metrics = joint.metrics
  assert metrics["hiero"] + metrics["tree_to_string"] == metrics["rules"] - 3
  assert len(joint.provenance) == len(TEXT.train_source)
  assert extract(provenance=False).provenance is None


def test_what_cannot_be_extracted():
  with pytest.raises(InputError, match="kind"):
    extract(kind="dependency")
  without = dataclasses.replace(TEXT, train_trees=None)
  with pytest.raises(InputError, match="needs trees"):
    grammar.extract(
      grammar.GrammarStageConfig(kind="t2s"), corpus=without, links=LINKS
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_mixing_is_a_sum_of_probabilities(joint, share):
  table = joint.table
  own = np.stack([table_lib.feature(table, n) for n in estimate.THETA], 1)
  other = np.random.default_rng(0).uniform(-5, 0, own.shape)
  mixed = mix_theta.mix(
    mix_theta.MixConfig(weight=share),
    grammar=joint,
    learned=system.Theta(theta=other),
  ).theta
  wanted = share * np.exp(own) + (1 - share) * np.exp(other)
  np.testing.assert_allclose(np.exp(mixed), wanted, rtol=1e-5)
  changed = system.rule_table(joint, system.Theta(theta=mixed))
  names = changed.feature_names
  assert names == table.feature_names
  np.testing.assert_array_equal(
    changed.features[:, [names.index(n) for n in estimate.THETA]], mixed
  )
  others = [k for k, name in enumerate(names) if name not in estimate.THETA]
  np.testing.assert_array_equal(
    changed.features[:, others], table.features[:, others]
  )


def test_a_filtered_table_and_its_model(joint):
  few = system.rule_table(joint, lines=TEXT.tune_source)
  everything = system.rule_table(joint)
  assert len(few) < len(everything)
  made = lm.language_model(lm.LmStageConfig(order=2), corpus=TEXT)
  model = system.make_model(
    system.SearchStageConfig(span=3),
    joint,
    table=few,
    lm=made,
    weights={"glue": 1.0},
  )
  assert model.limits.span == 3 and len(model.table) == len(few)
  assert model.lm.order == 2 and "house" in model.lm.index
  config = system.decode_config(system.SearchStageConfig(), model)
  assert config.threads >= 1
  spans = system.constituents(model, TEXT, "tune", binarize=False)
  assert spans is not None and len(spans) == 1
  assert system.constituents(model, TEXT, "test", binarize=False) is None


def test_turning_a_corpus_round():
  links = ["0-1 1-0", "", "0-0 1-0", "2-0 2-1"]
  text = dataclasses.replace(TEXT, train_links=links)
  turned = corpus.reverse(None, corpus=text)
  assert turned.train_source == TEXT.train_target
  assert turned.train_target == TEXT.train_source
  assert turned.train_links == ["0-1 1-0", "", "0-0 0-1", "0-2 1-2"]
  assert turned.tune_source == ["a book"]
  assert turned.tune_references == [["ein buch"]]
  assert not any(name.endswith("trees") for name in turned.to_values())


@pytest.mark.parametrize(
  ("changes", "reason"),
  [
    ({"method": "mret"}, "no method"),
    ({"options": ("restarts",)}, "name=value"),
    ({"options": ("nothing=1",)}, "no option"),
    ({"templates": ("nothing",)}, "nothing"),
  ],
)
def test_bad_settings_of_tuning(changes, reason):
  with pytest.raises(InputError, match=reason):
    tune.check(tune.TuneStageConfig(**changes))


def test_probabilities_of_weighted_sentence_pairs(joint):
  weighted = extract(weighted=True)
  names = joint.table.feature_names
  assert weighted.table.feature_names == (*names, *pair_quality.NAMES)
  np.testing.assert_array_equal(
    weighted.table.features[:, : len(names)], joint.table.features
  )
  columns = weighted.table.features[:, len(names) :]
  assert (columns <= 0).all() and (columns < 0).any()
  with pytest.raises(InputError, match="needs 'provenance'"):
    extract(weighted=True, provenance=False)


@pytest.mark.parametrize("kind", ["hiero", "joint", "phrase", "btg"])
def test_weighted_probabilities_of_all_kinds(kind):
  weighted = extract(kind=kind, weighted=True)
  columns = [
    table_lib.feature(weighted.table, name) for name in pair_quality.NAMES
  ]
  assert all((column <= 0).all() for column in columns)
  assert (np.concatenate(columns) < 0).any()


@pytest.mark.parametrize("kind", ["hiero", "joint", "phrase", "btg"])
def test_rules_of_the_best_pairs_alone(kind):
  weights = np.array([1.0, 3.0, 0.5, 2.0])
  assert pair_quality.best_pairs(weights, 0.5).tolist() == [0, 1, 0, 1]
  assert pair_quality.best_pairs(np.ones(4), 0.5).tolist() == [1, 1, 0, 0]
  assert pair_quality.best_pairs(weights, 0.01).sum() == 1
  whole, half = extract(kind=kind), extract(kind=kind, keep=0.5)
  assert len(half.table) < len(whole.table)
  used = half.provenance.rules.lengths > 0
  assert len(used) == len(TEXT.train_source) and used.sum() == 2
  # The same as of a corpus of these pairs.
  rows = np.flatnonzero(used).tolist()
  pick = lambda lines: [lines[row] for row in rows]
  text = dataclasses.replace(
    TEXT,
    train_source=pick(TEXT.train_source),
    train_target=pick(TEXT.train_target),
    train_trees=pick(TEXT.train_trees),
  )
  alone = grammar.extract(
    grammar.GrammarStageConfig(kind=kind),
    corpus=text,
    links=Links(links=pick(LINKS.links)),
  )
  assert len(alone.table) == len(half.table)
  np.testing.assert_allclose(
    np.sort(alone.table.features.sum(1)), np.sort(half.table.features.sum(1))
  )
  with pytest.raises(InputError, match=r"'grammar\.keep'"):
    extract(keep=0.0)


def _trained_folders(folder):
  """Random models of the corpus' words, as folders: similarity, network."""
  rng = np.random.default_rng(0)
  draw = lambda *shape: rng.normal(0, 0.5, shape).astype(np.float32)
  sides = {}
  for side in ("source", "target"):
    lines = getattr(TEXT, f"train_{side}")
    words = vocabulary.build([lines])
    layers = {
      "vectors": draw(len(words), 3),
      "encoder": draw(6, 3),
      "encoder_bias": draw(3),
      "decoder": draw(3, 6),
      "decoder_bias": draw(6),
      "transform": draw(3, 3),
      "transform_bias": draw(3),
    }
    sides[side] = (words, {"params": layers})
  similar = SimilarityModel(
    words=(sides["source"][0], sides["target"][0]),
    parameters={side: own for side, (_, own) in sides.items()},
    unit=False,
  )
  names = ("target_given_source",)
  network = RecursiveModel(
    pairs=("das ||| the",),
    names=names,
    scale=np.ones(4, np.float32),
    leaves=draw(2, 2),
    encoder=draw(12, 2),
    output=draw(2),
  )
  paths = [str(folder / name) for name in ("similar", "network")]
  sentence_models.write(paths[0], [similar])
  sentence_models.write(paths[1], [network])
  return paths


def test_trained_models_prune_and_score(tmp_path):
  similar, network = _trained_folders(tmp_path)
  whole = extract(kind="btg")
  pruned = extract(
    kind="btg", models=(similar, network), similarity=1.1, similar_best=1
  )
  assert 0 < len(pruned.table) < len(whole.table)
  assert pruned.metrics["similar"] == len(pruned.table)
  sides = lambda table: {
    tuple(table.source[rule].tolist()) for rule in range(len(table))
  }
  assert sides(pruned.table) == sides(whole.table)
  tables = lm.language_model(lm.LmStageConfig(order=2), corpus=TEXT)
  model, _ = system.part_model(
    system.SearchStageConfig(),
    "test",
    corpus=TEXT,
    grammar=grammar.Grammar.from_values(pruned.to_values()),
    lm=tables,
    weights={},
  )
  assert "RecursiveScore" in model.feature_names
  assert not models.unknown_weights(model, {"SimilaritySource": 1.0})
  with pytest.raises(InputError, match="bracketing grammars"):
    extract(kind="hiero", models=(network,))
  with pytest.raises(InputError, match="needs 'grammar"):
    extract(kind="btg", similarity=0.5)
  with pytest.raises(InputError, match="none of the models"):
    extract(kind="btg", models=(network,), similarity=0.5)
