"""The embedded corpus: a synthetic Chinese-English treebank from a seed.

    corpus = generate(SyntheticConfig(seed=0))
    corpus.train.source, corpus.train.references[0], corpus.train.trees, ...

A hand-written synchronous grammar (`jaxmt.corpora.treebank`) draws a Chinese
sentence with its tree and words it in English, as often as references are
wanted. Word links come from the construction. Same seed, same bytes, on any
machine: only `random.Random.random`, whose sequence Python promises to keep,
is drawn from.

Each sentence has its own random stream, named by seed, split and number, and
each source sentence belongs to one split by its hash: so the splits share no
sentence, none depends on the size of another, and a smaller split is the
beginning of a larger one.
"""

import dataclasses
import hashlib

from jaxmt.corpora.treebank import sentences
from jaxmt.corpora.treebank.structure import Draw, Leaf, Token, Tree

# Residues of the sentence hash; more for training, which is the largest.
_SPLITS = {"train": (2, 3, 4, 5), "tune": (1,), "test": (0,)}
_RESIDUES = 6
_REFERENCE_TRIES = 4  # wordings drawn before a repetition is accepted
_FILLERS = ("the", "a", "of", "to", "in", "and", "that", ",", "very", "so")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
  """What to generate.

  Attributes:
    seed: of everything.
    train: sentences with one reference each.
    tune: sentences with `references` references each.
    test: as tune.
    noise: rate of corruption of the training pairs, see `corrupt`; tune and
      test stay clean.
    references: wanted per tune and test sentence, all different where the
      grammar has as many wordings.
    min_length: source tokens, at least.
    max_length: source tokens, at most.
    monolingual: further sentences like those of train, of which each language
      is used by itself, as text for language models.
  """

  seed: int = 0
  train: int = 4000
  tune: int = 300
  test: int = 300
  noise: float = 0.02
  references: int = 3
  min_length: int = 4
  max_length: int = 40
  monolingual: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
  """Parallel lines; N sentences, R references.

  Attributes:
    source: N segmented Chinese sentences.
    references: R lists of N tokenised, lower-case English sentences.
    trees: N source trees, PTB one-liners, whose leaves are the tokens.
    links: R lists of N lines of gold links, `source-target` from 0.
    tags: the phenomena of each sentence, sorted, without repetitions.
  """

  source: list[str]
  references: list[list[str]]
  trees: list[str]
  links: list[list[str]]
  tags: list[tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SyntheticCorpus:
  """The three splits, and further text like that of train."""

  train: Split
  tune: Split
  test: Split
  monolingual: Split


def generate(config: SyntheticConfig) -> SyntheticCorpus:
  """Draws a corpus.

  Raises:
    ValueError: if a number of the configuration is out of range.
  """
  check(config)
  more = _split(
    config, "train", size=config.train + config.monolingual, references=1
  )
  return SyntheticCorpus(
    train=_part(more, 0, config.train),
    monolingual=_part(more, config.train, len(more.source)),
    tune=_split(config, "tune", size=config.tune, references=config.references),
    test=_split(config, "test", size=config.test, references=config.references),
  )


def _part(split: Split, start: int, stop: int) -> Split:
  return Split(
    source=split.source[start:stop],
    references=[lines[start:stop] for lines in split.references],
    trees=split.trees[start:stop],
    links=[lines[start:stop] for lines in split.links],
    tags=split.tags[start:stop],
  )


def check(config: SyntheticConfig) -> None:
  """Raises `ValueError`, naming the field, for what cannot be generated."""
  for name in ("train", "tune", "test", "monolingual"):
    if getattr(config, name) < 0:
      raise ValueError(f"{name} is negative: {getattr(config, name)}")
  if config.references < 1:
    raise ValueError(f"references must be 1 or more: {config.references}")
  if not 0 <= config.noise <= 1:
    raise ValueError(f"noise must be in [0, 1]: {config.noise}")
  if config.min_length > 8 or config.max_length < max(8, config.min_length):
    raise ValueError(
      "lengths must allow 8 tokens: "
      f"min_length {config.min_length}, max_length {config.max_length}"
    )


def _number(*parts: object) -> int:
  """A number that depends on all the parts and on nothing else."""
  text = "\n".join([str(part) for part in parts])
  digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
  return int.from_bytes(digest, "big")


def _split(
  config: SyntheticConfig, name: str, *, size: int, references: int
) -> Split:
  out = Split(
    source=[],
    references=[[] for _ in range(references)],
    trees=[],
    links=[[] for _ in range(references)],
    tags=[],
  )
  seen: set[str] = set()
  trial = 0
  while len(out.source) < size:
    stream = _number(config.seed, name, trial)
    trial += 1
    sentence = sentences.sentence(Draw(stream))
    if not config.min_length <= len(sentence.leaves) <= config.max_length:
      continue
    source = " ".join([leaf.word for leaf in sentence.leaves])
    if _number(source) % _RESIDUES not in _SPLITS[name] or source in seen:
      continue
    seen.add(source)
    wordings = _wordings(sentence, stream, references)
    if name == "train" and config.noise:
      draw = Draw(_number(stream, "noise"))
      wordings = [corrupt(draw, wordings[0], rate=config.noise)]
    out.source.append(source)
    out.trees.append(_bracketed(sentence.tree))
    out.tags.append(tuple(sorted(set(sentence.tags))))
    for r, (words, links) in enumerate(wordings):
      out.references[r].append(" ".join(words))
      out.links[r].append(" ".join([f"{s}-{t}" for s, t in links]))
  return out


Wording = tuple[list[str], list[tuple[int, int]]]  # English words, links


def _worded(tokens: list[Token]) -> Wording:
  links = [
    (leaf.index, place)
    for place, (_, leaves) in enumerate(tokens)
    for leaf in leaves
  ]
  return [word for word, _ in tokens], sorted(set(links))


def _wordings(
  sentence: sentences.Sentence, stream: int, count: int
) -> list[Wording]:
  """Several wordings, different where a few draws find different ones."""
  wordings: list[Wording] = []
  for reference in range(count):
    wording: Wording = ([], [])
    for attempt in range(_REFERENCE_TRIES):
      draw = Draw(_number(stream, reference, attempt))
      wording = _worded(sentence.english(draw))
      if all(wording[0] != other for other, _ in wordings):
        break
    wordings.append(wording)
  return wordings


def _bracketed(tree: Tree | Leaf) -> str:
  if isinstance(tree, Leaf):
    return f"({tree.tag} {tree.word})"
  inside = " ".join([_bracketed(child) for child in tree.children])
  return f"({tree.label} {inside})"


def corrupt(draw: Draw, wording: Wording, *, rate: float) -> Wording:
  """Noise as in found translations and automatic links.

  Each English word but the last goes missing with probability `rate` / 2 (its
  links with it), is followed by a stray function word with `rate` / 2; each
  remaining link moves to a neighbouring English word with probability `rate`.
  """
  words, links = wording
  words_left: list[str] = []
  places: dict[int, int] = {}
  for place, word in enumerate(words):
    last = place == len(words) - 1
    if last or not words_left or not draw.chance(rate / 2):
      places[place] = len(words_left)
      words_left.append(word)
    if not last and draw.chance(rate / 2):
      words_left.append(draw.pick(_FILLERS))
  moved: set[tuple[int, int]] = set()
  for source, target in links:
    if target not in places:
      continue
    place = places[target]
    if draw.chance(rate):
      place += 1 if place == 0 or draw.chance(0.5) else -1
      place = min(place, len(words_left) - 1)
    moved.add((source, place))
  return words_left, sorted(moved)
