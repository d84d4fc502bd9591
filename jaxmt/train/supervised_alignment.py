"""Aligning a bitext with the help of hand-aligned sentence pairs.

    gold = read_gold("corpus/dev")          # dev.fr, dev.en, dev.align
    result = align_itg(source_lines, target_lines, gold, config)

The hand-aligned pairs join the bitext, so that the simpler aligners know their
words; weights are learnt on them (`itg_training`); then the bitext is linked.
With `rounds`, EMD (Liu, Li & Zhou, Coling 2010): link probabilities,
fertilities and rules are recounted on the links of the whole bitext and
weights learnt again, until the score of held-out pairs no longer rises. (The
paper stops by the score of its test pairs.) Linking the bitext and collecting
its rules are map-reduce steps over shards, on threads or on Ray.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh

from jaxmt.align import em, symmetrize
from jaxmt.align.itg import evidence as evidence_lib
from jaxmt.align.itg import itg_model
from jaxmt.align.itg.evidence import Evidence
from jaxmt.align.itg.itg_model import ItgModel
from jaxmt.align.neural import neural_hmm as neural
from jaxmt.align.neural.neural_hmm import NeuralConfig
from jaxmt.errors import InputError
from jaxmt.metrics import link_accuracy as metrics
from jaxmt.models.word_vectors import WordVectors
from jaxmt.runtime import runner as runner_lib
from jaxmt.runtime.runner import Runner
from jaxmt.text import bitext, files, ragged, vocabulary
from jaxmt.text import links as links_lib
from jaxmt.text.ragged import Ragged
from jaxmt.train import itg_training
from jaxmt.train.itg_training import Gold, ItgConfig

_TARGET, _LINKS = "en", "align"
_MOST_WORDS = 1000  # of a hand-aligned sentence
_HERE = Runner(kind="serial", workers=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoldText:
  """Hand-aligned sentence pairs.

  Attributes:
    source: source lines, N.
    target: target lines, N.
    sure: links (source, target), N rows.
    possible: links that count as right, sure ones included, N rows.
  """

  source: list[str]
  target: list[str]
  sure: Ragged
  possible: Ragged


def gold_paths(prefix: str) -> tuple[str, str, str]:
  """Returns the files of source, target and links of hand-aligned pairs.

  The target is PREFIX.en, the links are PREFIX.align, and the source is the
  only other file PREFIX.xx or PREFIX.xxx. All may be gzipped.

  Raises:
    InputError: if a file is missing, or there are several for the source.
  """
  folder, _, name = prefix.rpartition("/")
  paths: dict[str, str] = {}
  for entry in sorted(files.list_folder(folder or ".")):
    suffix = entry.removeprefix(f"{name}.").removesuffix(".gz")
    if entry.startswith(f"{name}.") and "." not in suffix:
      paths[suffix] = f"{folder}/{entry}" if folder else entry
  for needed in (_TARGET, _LINKS):
    if needed not in paths:
      raise InputError(f"no file '{prefix}.{needed}' of hand-aligned pairs")
  others = [key for key in paths if len(key) in (2, 3) and key != _TARGET]
  if len(others) != 1:
    named = ", ".join(f"'{prefix}.{key}'" for key in others) or "none"
    raise InputError(
      f"one file '{prefix}.SOURCE' of hand-aligned pairs expected: {named}"
    )
  return paths[others[0]], paths[_TARGET], paths[_LINKS]


def read_gold(prefix: str) -> GoldText:
  """Reads hand-aligned sentence pairs; see `gold_paths`."""
  source_path, target_path, link_path = gold_paths(prefix)
  source, target = bitext.read_parallel([source_path, target_path])
  sizes = bitext.word_counts(source), bitext.word_counts(target)
  for path, lengths in zip((source_path, target_path), sizes, strict=True):
    long = np.flatnonzero(lengths > _MOST_WORDS)
    if len(long):
      cause = f"{lengths[long[0]]} words in a hand-aligned sentence"
      raise InputError(
        f"{cause}; at most {_MOST_WORDS}", path=path, line=int(long[0]) + 1
      )
  sure, possible = links_lib.parse_gold(
    files.read_lines(link_path),
    path=link_path,
    source_lengths=sizes[0],
    target_lengths=sizes[1],
  )
  if not len(sure):
    raise InputError("no hand-aligned pairs", path=link_path)
  return GoldText(source=source, target=target, sure=sure, possible=possible)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoded:
  """A bitext followed by hand-aligned pairs, as word ids from 1.

  Attributes:
    source: N + G rows.
    target: N + G rows.
    source_words: word of each id; that of 0 is "NULL".
    target_words: likewise.
    gold: the last G lines.
  """

  source: Ragged
  target: Ragged
  source_words: list[str]
  target_words: list[str]
  gold: Gold


def encode(
  source_lines: list[str], target_lines: list[str], gold: GoldText
) -> Encoded:
  """Joins a bitext and hand-aligned pairs."""
  sides = []
  for lines, more in (
    (source_lines, gold.source),
    (target_lines, gold.target),
  ):
    ids, words = vocabulary.intern([*lines, *more])
    sides.append(
      (dataclasses.replace(ids, flat=ids.flat + 1), ["NULL", *words])
    )
  number = len(source_lines)
  return Encoded(
    source=sides[0][0],
    target=sides[1][0],
    source_words=sides[0][1],
    target_words=sides[1][1],
    gold=Gold(
      lines=np.arange(number, number + len(gold.source)),
      sure=gold.sure,
      possible=gold.possible,
    ),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItgResult:
  """A linked bitext.

  Attributes:
    links: pairs (source, target), one row per line of the bitext.
    model: the aligner.
    history: one record per round of EMD.
  """

  links: Ragged
  model: ItgModel
  history: list[dict[str, Any]]


def align_itg(
  source_lines: list[str],
  target_lines: list[str],
  gold: GoldText,
  config: ItgConfig,
  *,
  dictionary: Sequence[tuple[str, str]] = (),
  iterations: int = 5,
  rounds: int = 0,
  heldout: float = 0.2,
  decoder: str = "viterbi",
  threshold: float | None = None,
  seed: int = 0,
  mesh: Mesh | None = None,
  runner: Runner = _HERE,
  report: Callable[[str], None] = lambda line: None,
  progress: Callable[[em.Progress], None] = lambda news: None,
) -> ItgResult:
  """Links a bitext by an ITG aligner trained on hand-aligned pairs.

  Args:
    source_lines: tokenised text, N lines.
    target_lines: N lines.
    gold: hand-aligned pairs; they need not be in the bitext.
    config: what to train.
    dictionary: source words with translations, an additional feature.
    iterations: passes of the simpler aligners.
    rounds: of EMD after the first training, at most.
    heldout: share of hand-aligned pairs that EMD does not train on.
    decoder: "viterbi" or "posterior".
    threshold: least posterior of a link; None for the one that scores best on
      the pairs that weights are learnt on.
    seed: of random starts.
    mesh: devices of the simpler aligners; None for all.
    runner: where shards of the bitext are linked and rules collected.
    report: takes lines about progress.
    progress: called after every pass of a simpler aligner.
  """
  text = encode(source_lines, target_lines, gold)
  evidence = evidence_lib.learn(
    text.source,
    text.target,
    source_words=text.source_words,
    target_words=text.target_words,
    dictionary=dictionary,
    iterations=iterations,
    mesh=mesh,
    report=progress,
  )
  lines = np.arange(len(source_lines))
  options = {"seed": seed, "runner": runner, "report": report}
  if rounds:
    aligner, links, history = semi_supervised(
      evidence,
      text,
      config,
      rounds=rounds,
      heldout=heldout,
      decoder=decoder,
      threshold=threshold,
      **options,
    )
    return ItgResult(
      links=ragged.select(links, lines), model=aligner, history=history
    )
  aligner = itg_training.train(
    evidence,
    text.source,
    text.target,
    text.gold,
    config,
    **options,
  )
  links = itg_model.align(
    aligner,
    text.source,
    text.target,
    lines=lines,
    decoder=decoder,
    threshold=learnt_threshold(
      aligner, text, text.gold, config, decoder, threshold
    ),
    runner=runner,
  )
  return ItgResult(links=ragged.select(links, lines), model=aligner, history=[])


def semi_supervised(
  evidence: Evidence,
  text: Encoded,
  config: ItgConfig,
  *,
  rounds: int,
  heldout: float = 0.2,
  decoder: str = "viterbi",
  threshold: float | None = None,
  seed: int = 0,
  runner: Runner = _HERE,
  report: Callable[[str], None] = lambda line: None,
) -> tuple[ItgModel, Ragged, list[dict[str, Any]]]:
  """Runs EMD: training, linking of the whole bitext, recounting.

  The last hand-aligned pairs are held out, the best round's model wins.

  Args:
    evidence: learnt on the whole text.
    text: a bitext with hand-aligned pairs.
    config: what to train.
    rounds: after the first training, at most.
    heldout: share of hand-aligned pairs that are not trained on.
    decoder: "viterbi" or "posterior".
    threshold: least posterior of a link; None as in `align_itg`.
    seed: of random starts.
    runner: where shards of the text are linked and rules collected.
    report: takes lines about progress.

  Returns:
    The aligner, its links of all lines, one record per round.
  """
  number_of_pairs = len(text.gold.lines)
  held_out = max(1, round(heldout * number_of_pairs))
  if held_out >= number_of_pairs:
    raise InputError("EMD needs two hand-aligned pairs or more")
  part = text.gold.take(np.arange(number_of_pairs - held_out))
  judge = text.gold.take(np.arange(number_of_pairs - held_out, number_of_pairs))
  link = lambda aligner, lines, least: itg_model.align(
    aligner,
    text.source,
    text.target,
    lines=lines,
    decoder=decoder,
    threshold=least,
    runner=runner,
  )
  history: list[dict[str, Any]] = []
  best, start, links = None, None, None
  with runner_lib.session(runner):
    for number in range(rounds + 1):
      aligner = itg_training.train(
        evidence,
        text.source,
        text.target,
        part,
        config,
        seed=seed,
        start=start,
        runner=runner,
        report=report,
      )
      least = learnt_threshold(aligner, text, part, config, decoder, threshold)
      score = _f1(link(aligner, judge.lines, least), judge)
      history.append({"round": number, "heldout_f1": round(score, 4)})
      report(f"EMD round {number}: F1 of {held_out} held-out pairs {score:.4f}")
      if best is not None and score <= best[0]:
        break
      best, start = (score, aligner), aligner.weights
      links = link(aligner, None, least)
      if number < rounds:
        evidence = evidence_lib.with_links(
          evidence, text.source, text.target, links
        )
  assert best is not None and links is not None
  return best[1], links, history


def learnt_threshold(
  aligner: ItgModel,
  text: Encoded,
  gold: Gold,
  config: ItgConfig,
  decoder: str,
  threshold: float | None = None,
) -> float:
  """Returns the given threshold of posteriors, or the best on gold links."""
  if threshold is not None or decoder != "posterior":
    return 0.5 if threshold is None else threshold
  return itg_training.choose_threshold(
    aligner, text.source, text.target, gold, config.metric
  )


def _f1(links: Ragged, gold: Gold) -> float:
  counts = metrics.statistics(
    ragged.select(links, gold.lines), gold.sure, gold.possible
  )
  return float(metrics.f1(counts.sum(0)))


TEACHERS = ("hmm", "diagonal", "itg")


def align_neural(
  source: Ragged,
  target: Ragged,
  teacher: Ragged,
  config: NeuralConfig,
  *,
  symmetrization: str = "grow-diag-final-and",
  vectors: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
  mesh: Mesh | None = None,
  report: Callable[[str], None] = lambda line: None,
) -> Ragged:
  """Links a bitext by a neural HMM that a simpler aligner has taught.

  Args:
    source: word ids, N rows.
    target: word ids, N rows.
    teacher: pairs (source, target), N rows.
    config: what to train.
    symmetrization: how the two directions are combined.
    vectors: `vectors_of` source and target words to begin with.
    mesh: devices that take a part of each batch; None for one.
    report: takes lines about progress.
  """
  alignment = neural.align(
    source,
    target,
    teacher,
    config,
    vectors=vectors,
    mesh=mesh,
    report=report,
  )
  return symmetrize.symmetrize(
    alignment["forward"], alignment["backward"], method=symmetrization
  )


def vectors_of(words: Sequence[str], given: WordVectors) -> np.ndarray:
  """Returns the given vector of each word, NaN where there is none, `[V, D]`.

  Args:
    words: the word of each id.
    given: word vectors.
  """
  place = {word: row for row, word in enumerate(given.words)}
  out = np.full((len(words), given.vectors.shape[1]), np.nan, np.float32)
  for number, word in enumerate(words):
    if word in place:
      out[number] = given.vectors[place[word]]
  return out
