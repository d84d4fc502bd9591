import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmt.parse import arc_features, arc_parser, attachment_scores, eisner
from jaxmt.text import treebank
from jaxmt.text.ragged import Ragged
from tests.reference import dependency_trees as reference


def random_bank(tmp_path, *, sentences=60, seed=0):
  """Nouns hang on the verb, determiners on the next noun."""
  rng = np.random.default_rng(seed)
  lines = []
  for _ in range(sentences):
    before, after = rng.integers(0, 2), rng.integers(0, 2)
    verb = 2 * before
    rows = []
    size = 2 * (before + after) + 1
    for place in range(size):
      if place == verb:
        rows.append(f"v{rng.integers(5)}\tVERB\t0")
      elif (place < verb and place % 2 == 0) or (
        place > verb and (place - verb) % 2 == 1
      ):
        rows.append(f"d{rng.integers(3)}\tDET\t{place + 2}")
      else:
        rows.append(f"n{rng.integers(9)}\tNOUN\t{verb + 1}")
    lines += [*rows, ""]
  path = tmp_path / "bank"
  path.write_text("\n".join(lines) + "\n")
  return treebank.read_treebank(str(path))


CONFIG = {"bits": 10, "epochs": 4}


@pytest.mark.parametrize("loss", ["likelihood", "hinge", "perceptron"])
def test_learns_by_every_family_of_losses(tmp_path, loss):
  bank = random_bank(tmp_path)
  losses = []
  parser = arc_parser.train(
    bank,
    arc_parser.ArcConfig(loss=loss, **CONFIG),
    report=lambda epoch, loss: losses.append(loss),
  )
  heads = arc_parser.parse(parser, random_bank(tmp_path, seed=1))
  scores = attachment_scores.attachment(random_bank(tmp_path, seed=1), heads)
  assert losses[-1] <= losses[0]
  assert scores["accuracy"] > 95


def test_same_seed_same_bits(tmp_path):
  bank = random_bank(tmp_path)
  config = arc_parser.ArcConfig(**CONFIG)
  one, other = (arc_parser.train(bank, config) for _ in range(2))
  np.testing.assert_array_equal(one.weights["hashed"], other.weights["hashed"])


def test_features_do_not_see_padding(tmp_path):
  bank = random_bank(tmp_path)
  hashes = arc_features.token_hashes(bank, bank.tag_names)
  rows = np.arange(4)
  rng = np.random.default_rng(0)
  tags = arc_features.SPECIAL_TAGS + len(bank.tag_names)
  weights = {
    "hashed": jnp.asarray(rng.normal(size=1 << 12), jnp.float32),
    "between": jnp.asarray(rng.normal(size=(2, tags, tags, tags)), jnp.float32),
  }
  scored = [
    arc_features.arc_scores(
      weights, arc_features.batch_of(hashes, bank.words.offsets, rows, size)
    )
    for size in (12, 16)
  ]
  for row in rows:
    n = bank.lengths[row]
    np.testing.assert_allclose(
      scored[0][row, : n + 1, :n], scored[1][row, : n + 1, :n], atol=1e-4
    )


def test_tags_between_are_those_between():
  tags = np.array([[3, 4, 3, 5]])
  found = np.asarray(arc_features.tags_between(jnp.asarray(tags), num_tags=6))
  for head in range(-1, 4):
    for child in range(4):
      low, high = sorted((head, child))
      wanted = set(tags[0, low + 1 : high].tolist())
      assert set(np.flatnonzero(found[0, head + 1, child])) == wanted


def test_crossing_trees_become_the_nearest_projective_ones(tmp_path):
  rng = np.random.default_rng(3)
  rows = [rng.integers(-1, 5, 5) for _ in range(3000)]
  rows = [r for r in rows if reference.is_tree(r)][:40]
  text = "\n\n".join(
    "\n".join(f"w\tX\t{head + 1}" for head in row) for row in rows
  )
  (tmp_path / "bank").write_text(text + "\n")
  bank = treebank.read_treebank(str(tmp_path / "bank"))
  heads = arc_parser.projective_heads(bank)
  assert eisner.projective(heads).all()
  assert not eisner.projective(
    Ragged(flat=bank.heads, offsets=bank.words.offsets)
  ).all()
  trees = np.array(reference.projective_trees(5))
  for row, gold in enumerate(rows):
    best = (trees == gold).sum(axis=1).max()
    assert (heads[row] == gold).sum() == best


def test_gradient_of_the_likelihood_is_posterior_less_gold():
  rng = np.random.default_rng(0)
  arcs = jnp.asarray(rng.normal(size=(1, 5, 4)), jnp.float32)
  lengths = jnp.array([4])
  gold = eisner.arc_mask(np.array([[1, -1, 1, 2]]), np.array([4]))
  trees = eisner.ProjectiveTrees(lengths=lengths)
  loss = lambda x: arc_parser.LOSSES["likelihood"](
    trees, x, 1.0 - gold, oracles=gold
  )[0]
  np.testing.assert_allclose(
    jax.grad(loss)(arcs), eisner.marginals(arcs, lengths) - gold, atol=1e-5
  )


def test_words_with_the_same_tag_between_are_counted(tmp_path):
  rng = np.random.default_rng(2)
  tags = rng.integers(3, 6, (2, 7)).astype(np.int32)
  empty = np.zeros((2, 7), np.uint32)
  batch = arc_features.SentenceBatch(
    words=empty,
    lower=empty,
    suffixes=empty,
    prefixes=empty,
    tags=tags,
    lengths=np.array([7, 7], np.int32),
  )
  found = [np.asarray(x) for x in arc_features._repeated(batch)]
  for row in range(2):
    for head in range(-1, 7):
      for child in range(7):
        low, high = sorted((head, child))
        between = tags[row, low + 1 : high].tolist()
        for which, counts in zip((head, child), found, strict=True):
          tag = tags[row, child if which < 0 else which]
          expected = min(between.count(tag), 2)
          assert counts[row, head + 1, child] == expected
