"""The embedded corpus: form, size, variety, independence of the splits."""

import collections
import dataclasses
import hashlib
import os
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxmt.corpora import statistics, synthetic
from jaxmt.corpora.synthetic import SyntheticConfig
from jaxmt.corpora.treebank.structure import Draw
from jaxmt.text import links as links_lib
from jaxmt.text import trees
from tests import util
from tests.reference import bracketed

SPLITS = ("train", "tune", "test")
SMALL = SyntheticConfig(train=200, tune=40, test=40)

# The bytes of the small corpus. They change with the grammar and with nothing
# else: not with the machine, not with the version of Python or numpy.
GOLDEN = "b1c6a29e1275cac124a59250a9e4499651e823b6e4cf7cc4109bab4928ec9e95"


@pytest.fixture(scope="module")
def corpus():
  return synthetic.generate(SyntheticConfig())


@pytest.fixture(scope="module")
def small():
  return synthetic.generate(SMALL)


def digest(corpus) -> str:
  text = repr({n: dataclasses.asdict(getattr(corpus, n)) for n in SPLITS})
  return hashlib.sha256(text.encode()).hexdigest()


def test_monolingual_text_goes_on_where_training_ends(small):
  more = synthetic.generate(dataclasses.replace(SMALL, monolingual=60))
  longer = synthetic.generate(dataclasses.replace(SMALL, train=260))
  assert digest(more) == digest(small)
  assert len(more.monolingual.source) == 60
  assert not set(more.monolingual.source) & set(more.train.source)
  assert more.monolingual.references[0] == longer.train.references[0][200:]
  assert not small.monolingual.source


def tags(tree) -> list[str]:
  """The parts of speech of a tree, left to right."""
  label, inside = tree
  if isinstance(inside, str):
    return [label]
  return [tag for kid in inside for tag in tags(kid)]


def translations(split) -> dict[str, collections.Counter]:
  """For each source word, how often each English word is linked to it."""
  counts = collections.defaultdict(collections.Counter)
  for source, target, line in zip(
    split.source, split.references[0], split.links[0], strict=True
  ):
    source_words, target_words = source.split(), target.split()
    for link in line.split():
      s, t = link.split("-")
      counts[source_words[int(s)]][target_words[int(t)]] += 1
  return counts


def sizes(lines):
  return np.array([len(line.split()) for line in lines])


def test_sizes_are_as_asked(corpus):
  for name, size, references in (
    ("train", 4000, 1),
    ("tune", 300, 3),
    ("test", 300, 3),
  ):
    split = getattr(corpus, name)
    assert len(split.source) == len(split.trees) == len(split.tags) == size
    assert len(split.references) == len(split.links) == references
    for lines in (*split.references, *split.links):
      assert len(lines) == size


def test_same_seed_same_bytes(small):
  assert digest(synthetic.generate(SMALL)) == digest(small)
  assert digest(small) == GOLDEN


def test_hash_order_of_strings_does_not_matter(small):
  code = (
    "import dataclasses, hashlib; from jaxmt.corpora import synthetic;"
    f"made = synthetic.generate(synthetic.{SMALL!r});"
    f"parts = {{n: dataclasses.asdict(getattr(made, n)) for n in {SPLITS!r}}};"
    "print(hashlib.sha256(repr(parts).encode()).hexdigest())"
  )
  for seed in ("1", "2"):
    done = subprocess.run(
      [sys.executable, "-c", code],
      env={**os.environ, "PYTHONHASHSEED": seed},
      cwd=util.ROOT,
      capture_output=True,
      text=True,
    )
    assert done.stdout.strip() == digest(small), done.stderr


def test_other_seeds_give_other_sentences(small):
  other = synthetic.generate(dataclasses.replace(SMALL, seed=1))
  shared = set(other.train.source) & set(small.train.source)
  assert len(shared) < 0.1 * len(small.train.source)


@pytest.mark.parametrize("name", SPLITS)
def test_no_split_depends_on_the_size_of_another(small, name):
  others = {other: 7 for other in SPLITS if other != name}
  made = synthetic.generate(dataclasses.replace(SMALL, **others))
  assert getattr(made, name) == getattr(small, name)


def test_a_smaller_split_is_the_beginning_of_a_larger_one(corpus, small):
  for name in SPLITS:
    short, long = getattr(small, name), getattr(corpus, name)
    size = len(short.source)
    assert short.source == long.source[:size]
    assert short.trees == long.trees[:size]
    for r in range(len(short.references)):
      assert short.references[r] == long.references[r][:size]
      assert short.links[r] == long.links[r][:size]


def test_no_sentence_occurs_twice_anywhere(corpus):
  every = [s for name in SPLITS for s in getattr(corpus, name).source]
  assert len(set(every)) == len(every)


def test_trees_are_well_formed_and_their_leaves_are_the_words(corpus):
  for name in SPLITS:
    split = getattr(corpus, name)
    for line, source in zip(split.trees, split.source, strict=True):
      tree = bracketed.parse(line)
      assert bracketed.leaves(tree) == source.split(" ")
      assert bracketed.format_tree(tree) == line
    parsed = trees.parse_trees(split.trees)
    trees.check_leaves(parsed, split.source)
    assert not parsed.failed.any()


def test_labels_are_those_of_the_chinese_treebank(corpus):
  known = (
    "IP CP NP VP PP LCP DNP DP QP CLP ADJP ADVP VRD VCP"
    " NN NR NT PN VV VA VC VE P AD CC CS CD M DT JJ LC BA LB SB"
    " DEC DEG DER AS SP PU"
  ).split()
  found = trees.parse_trees(corpus.train.trees).labels
  assert sorted(found) == sorted(known)


def test_links_lie_inside_their_sentences(corpus):
  for name in SPLITS:
    split = getattr(corpus, name)
    for lines, references in zip(split.links, split.references, strict=True):
      parsed = links_lib.parse_links(
        lines,
        source_lengths=sizes(split.source),
        target_lengths=sizes(references),
      )
      assert links_lib.format_links(parsed) == lines  # sorted, each once
      assert (parsed.lengths > 0).all()


def test_content_words_are_linked(corpus):
  """A word of meaning has a translation; particles may have none."""
  split = corpus.test
  linked = total = 0
  for line, links in zip(split.trees, split.links[0], strict=True):
    parts = tags(bracketed.parse(line))
    sources = {int(link.split("-")[0]) for link in links.split()}
    for place, tag in enumerate(parts):
      if tag in ("NN", "NR", "NT", "VA", "JJ", "CD", "LC", "VV"):
        total += 1
        linked += place in sources
  assert linked / total > 0.98


def test_lengths_stay_within_their_bounds(corpus):
  for name in SPLITS:
    lengths = sizes(getattr(corpus, name).source)
    assert lengths.min() >= 4 and lengths.max() <= 40
  lengths = sizes(corpus.train.source)
  assert 11 < lengths.mean() < 15
  assert (lengths > 24).mean() > 0.02 and (lengths < 8).mean() > 0.15


def test_the_bounds_of_lengths_are_obeyed():
  made = synthetic.generate(
    SyntheticConfig(train=60, tune=5, test=5, min_length=8, max_length=9)
  )
  assert set(sizes(made.train.source)) == {8, 9}


def test_the_vocabulary_is_wide_and_has_a_tail(corpus):
  source = collections.Counter(" ".join(corpus.train.source).split())
  target = collections.Counter(" ".join(corpus.train.references[0]).split())
  assert len(source) > 500 and len(target) > 600
  assert sum(n == 1 for n in source.values()) > 100
  unknown = [w for w in " ".join(corpus.test.source).split() if w not in source]
  assert 0.002 < len(unknown) / sizes(corpus.test.source).sum() < 0.03


def test_text_is_plain_tokens(corpus):
  for name in SPLITS:
    split = getattr(corpus, name)
    for line in split.source:
      assert line == " ".join(line.split()) and not set("()[]{}") & set(line)
      assert line[-1] in "。？！" and not line.isascii()
    for lines in split.references:
      for line in lines:
        assert line == " ".join(line.split()) == line.lower()
        assert line.isascii() and line.split()[-1] in (".", "?", "!")


@pytest.mark.parametrize(
  "tag, least",
  [
    ("relative clause", 12),
    ("measure word", 25),
    ("把", 4),
    ("被", 4),
    ("preposed PP", 12),
    ("的 possessive", 12),
    ("的 chain", 1),
    ("coordination", 8),
    ("topic", 2),
    ("yes-no question", 4),
    ("wh-question", 5),
    ("negation", 8),
    ("modal", 6),
    ("existence", 2),
    ("comparison", 2),
    ("serial verb", 3),
    ("pivot", 1.5),
    ("clausal object", 1.5),
    ("double object", 1.5),
    ("subordinate clause", 10),
    ("dropped subject", 4),
    ("自己", 2),
    ("得 manner", 0.8),
    ("是…的 cleft", 0.4),
    ("关于 modifier", 0.5),
    ("time", 30),
    ("tense: past", 30),
    ("tense: future", 8),
    ("tense: perfect", 4),
    ("tense: progressive", 2),
    ("tense: experience", 1.5),
    ("tense: habit", 3),
    ("tense: state", 12),
  ],
)
def test_every_phenomenon_occurs(corpus, tag, least):
  rows = statistics.phenomena(corpus)
  share = {row["phenomenon"]: row["train"] for row in rows}
  assert share[tag] >= least


def test_tags_tell_the_truth(corpus):
  """Where a word belongs to one construction only, tag and word agree."""
  for source, found in zip(corpus.train.source, corpus.train.tags, strict=True):
    words = source.split()
    assert ("yes-no question" in found) == ("吗" in words)
    assert ("comparison" in found) == ("比" in words)
    assert ("被" in found) == ("被" in words)
    assert ("自己" in found) == ("自己" in words)
    assert ("关于 modifier" in found) == ("关于" in words)
    assert ("得 manner" in found) == ("得" in words)


def test_words_have_several_translations(corpus):
  counts = translations(corpus.train)

  def common(word):
    total = sum(counts[word].values())
    return {w for w, n in counts[word].items() if n >= 0.02 * total}

  assert {"play", "made", "hit"} <= set(counts["打"])
  assert {"drive", "run", "turn"} <= set(counts["开"])
  assert {"read", "watch", "visit"} <= set(counts["看"])
  assert {"will", "can"} <= common("会")
  assert {"question", "problem"} <= common("问题")
  assert {"return", "still", "yet"} <= set(counts["还"])
  assert {"want", "miss"} <= common("想")
  assert {"and", "with"} <= common("和")
  assert {"his", "her", "their", "my"} <= common("自己")
  assert {"big", "older"} <= common("大")
  assert {"who", "that", "'s", "of"} <= common("的")


def test_references_differ_where_they_can(corpus):
  for split in (corpus.tune, corpus.test):
    different = [len(set(row)) for row in zip(*split.references, strict=True)]
    assert np.mean(different) > 2.5
    assert np.mean(np.array(different) == 3) > 0.7


def test_one_reference_is_enough():
  made = synthetic.generate(dataclasses.replace(SMALL, references=1))
  assert len(made.test.references) == len(made.test.links) == 1


def changed(noise):
  clean = synthetic.generate(dataclasses.replace(SMALL, noise=0.0))
  noisy = synthetic.generate(dataclasses.replace(SMALL, noise=noise))
  assert noisy.train.source == clean.train.source
  assert noisy.train.trees == clean.train.trees
  assert (noisy.tune, noisy.test) == (clean.tune, clean.test)
  pairs = zip(noisy.train.references[0], clean.train.references[0], strict=True)
  text = np.mean([a != b for a, b in pairs])
  pairs = zip(noisy.train.links[0], clean.train.links[0], strict=True)
  return text, np.mean([a != b for a, b in pairs])


def test_noise_spoils_the_training_pairs_only():
  little, more = changed(0.02), changed(0.2)
  assert 0.05 < little[0] < 0.6 and little[1] >= little[0]
  assert more[0] > 0.7 and more[1] > 0.9
  assert changed(0.0) == (0, 0)


words_and_links = st.integers(1, 9).flatmap(
  lambda size: st.tuples(
    st.lists(st.sampled_from("abc"), min_size=size, max_size=size),
    st.lists(
      st.tuples(st.integers(0, 9), st.integers(0, size - 1)), unique=True
    ).map(sorted),
  )
)


@hypothesis.given(words_and_links, st.floats(0, 1), st.integers(0, 99))
def test_corruption_keeps_the_pair_consistent(pair, rate, seed):
  words, links = synthetic.corrupt(Draw(seed), pair, rate=rate)
  assert words and words[-1] == pair[0][-1] and words[0] == pair[0][0]
  assert links == sorted(set(links))
  assert all(0 <= target < len(words) for _, target in links)
  assert {source for source, _ in links} <= {source for source, _ in pair[1]}
  if rate == 0:
    assert (words, links) == pair


@pytest.mark.parametrize(
  "field, value",
  [
    ("train", -1),
    ("references", 0),
    ("noise", 1.5),
    ("noise", -0.1),
    ("min_length", 30),
    ("max_length", 3),
  ],
)
def test_wrong_numbers_are_named(field, value):
  config = dataclasses.replace(SMALL, **{field: value})
  with pytest.raises(ValueError, match=field):
    synthetic.generate(config)
