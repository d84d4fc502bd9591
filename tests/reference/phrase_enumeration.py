"""Every phrase-based derivation of a tiny model, by plain recursion."""

import dataclasses

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.phrase import phrase_model
from jaxmt.grammar import reordering
from jaxmt.grammar import table as tables
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from tests.reference import chart_cases, chart_enumeration

SOURCE = chart_cases.SOURCE
TARGET = chart_cases.TARGET
WEIGHTS = {
  "score": 1.0,
  "PassThrough": -1.5,
  "LanguageModel": 0.7,
  "LanguageModel_OOV": -0.4,
  "WordPenalty": -0.2,
  "Distortion": 0.31,
  **dict(zip(reordering.NAMES, (0.3, 0.2, 0.25, 0.15, 0.35, 0.1), strict=True)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseCase:
  """Phrases: (source words, target words, score, six logs)."""

  phrases: list
  grams: dict
  order: int
  sentences: list


def random_case(seed, *, count=14, order=3, longest=4):
  """Phrases of up to three source words, and sentences with a word unknown."""
  rng = np.random.default_rng(seed)
  phrases = {}
  for number in range(count):
    size = 1 if number < 4 else int(rng.integers(1, 4))
    source = tuple(SOURCE[k] for k in rng.integers(0, 3, size))
    target = tuple(
      TARGET[k] for k in rng.integers(0, 4, int(rng.integers(1, 4)))
    )
    logs = np.log(rng.dirichlet(np.ones(3), 2)).reshape(-1)
    logs = np.maximum(logs, -4.0).astype(np.float32)
    phrases[source, target] = (float(-rng.uniform(0, 3)), logs)
  sentences = [
    [
      (*SOURCE, "q")[k]
      for k in rng.integers(0, 4, rng.integers(1, longest + 1))
    ]
    for _ in range(4)
  ]
  return PhraseCase(
    phrases=[(s, t, *rest) for (s, t), rest in phrases.items()],
    grams=chart_cases.random_lm(rng, order),
    order=order,
    sentences=sentences,
  )


def to_model(case, *, distortion, weights=None, lexical=True, **options):
  """The model of a case, and its sentences."""
  words = Vocabulary(words=(*SPECIALS, *SOURCE))
  others = Vocabulary(words=(*SPECIALS, *TARGET))
  pick = lambda vocabulary, place: ragged.from_rows(
    [[vocabulary.index[w] for w in one[place]] for one in case.phrases]
  )
  first = [[0, 0]] * len(case.phrases)
  table = tables.make_table(
    source_words=words,
    target_words=others,
    source=pick(words, 0),
    target=pick(others, 1),
    links=Ragged(
      flat=np.array(first, np.int16), offsets=np.arange(len(first) + 1)
    ),
    features=np.array([[one[2]] for one in case.phrases]),
    feature_names=("score",),
  )
  if lexical:
    logs = np.stack([one[3] for one in case.phrases])
    table = tables.with_features(table, reordering.NAMES, logs)
  model = phrase_model.make_model(
    table,
    chart_cases.to_tables(case.grams, case.order),
    weights=WEIGHTS if weights is None else weights,
    distortion=distortion,
    **options,
  )
  lines = [" ".join(words) for words in case.sentences]
  return model, models.make_source(model, lines)


def options_of(case, words):
  """All (begin, end, target, score, logs, copied) of a sentence."""
  found = []
  for begin in range(len(words)):
    alone = False
    for source, target, score, logs in case.phrases:
      end = begin + len(source)
      if tuple(words[begin:end]) == source:
        found.append((begin, end, target, score, logs, False))
        alone |= len(source) == 1
    if not alone:
      found.append((begin, begin + 1, (words[begin],), 0, np.zeros(6), True))
  return found


def _marked(option, covered, gap, walls, zones):
  """Whether walls and zones allow an option next."""
  if any(gap < wall < option[1] for wall in walls):
    return False
  for first, last in zones:
    inside = set(range(first, last))
    own = set(range(option[0], option[1]))
    if own & inside and not (own <= inside or inside <= own):
      return False
    if inside & covered and inside - covered and not own <= inside:
      return False
  return True


def derivations(case, words, *, limit, walls=(), zones=()):
  """All orders of phrases that a distortion limit allows, -1 for none."""
  every = options_of(case, words)
  limit = len(words) if limit < 0 else limit

  def extend(chain, covered):
    if len(covered) == len(words):
      yield chain
      return
    gap = min(set(range(len(words))) - covered)
    end = chain[-1][1] if chain else 0
    for option in every:
      own = set(range(option[0], option[1]))
      if own & covered or abs(end - option[0]) > limit:
        continue
      if option[0] > gap and option[1] - gap > limit:
        continue
      if not _marked(option, covered, gap, walls, zones):
        continue
      yield from extend([*chain, option], covered | own)

  yield from extend([], set())


def _block(chain):
  """The covered run around the last phrase of a chain."""
  if not chain:
    return -1, 0
  covered = {place for one in chain for place in range(one[0], one[1])}
  begin, end = chain[-1][:2]
  while begin - 1 in covered:
    begin -= 1
  while end in covered:
    end += 1
  return begin, end


def features(case, chain, *, lexical=True, hierarchical=False):
  """Feature values of a derivation by name, and its words."""
  said = [word for option in chain for word in option[2]]
  known = {gram[0] for gram in case.grams if len(gram) == 1} - {"<s>", "</s>"}
  out = {
    "score": sum(option[3] for option in chain),
    "PassThrough": sum(option[5] for option in chain),
    "LanguageModel": chart_enumeration.lm_score(case.grams, case.order, said),
    "LanguageModel_OOV": sum(word not in known for word in said),
    "WordPenalty": -len(said),
    "Distortion": 0.0,
    **dict.fromkeys(reordering.NAMES, 0.0),
  }
  end = 0
  for place, option in enumerate(chain):
    out["Distortion"] -= abs(end - option[0])
    end = option[1]
    if not lexical:
      continue
    before = (-1, 0) if not place else chain[place - 1][:2]
    if hierarchical:
      before = _block(chain[:place])
    kind = 0 if option[0] == before[1] else 1 if option[1] == before[0] else 2
    out[reordering.NAMES[kind]] += option[4][kind]
    if place:
      out[reordering.NAMES[3 + kind]] += chain[place - 1][4][3 + kind]
  return out, said


def scored(case, words, *, limit, weights=None, walls=(), zones=(), **kinds):
  """(score, words, chain) of all derivations, best first."""
  weights = WEIGHTS if weights is None else weights
  out = []
  for chain in derivations(case, words, limit=limit, walls=walls, zones=zones):
    values, said = features(case, chain, **kinds)
    score = sum(weights.get(name, 0.0) * values[name] for name in values)
    out.append((score, said, chain))
  return sorted(out, key=lambda one: -one[0])
