"""Sparse features at scale: a million of them, made, named, scored, tuned.

A random table of 400,000 rules and 200 sentences of 25 words (random, since
only sizes matter here): all templates on 100,000 applications make more than a
million features. Then 20,000 candidates over a million features go through a
pool and one pass of PRO and of Rampion.
"""

import time
from typing import Any

import bench
import numpy as np

from jaxmt.decode import candidate_lists
from jaxmt.features import feature_keys, rule_templates
from jaxmt.grammar import table as tables
from jaxmt.text.ragged import Ragged
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from jaxmt.tune import methods, pool

_RULES = 400_000
_WORDS = 30_000
_SENTENCES, _LENGTH = 200, 25
_APPLICATIONS = 100_000
_CANDIDATES = 20_000


def _table(rng: np.random.Generator) -> tables.RuleTable:
  words = [f"word{number:05d}" for number in range(_WORDS)]
  known = Vocabulary(words=(*SPECIALS, *words))
  offsets = 3 * np.arange(_RULES + 1)
  # Common words are more common, as in any text.
  draw = lambda: (
    4 + (_WORDS * rng.uniform(size=3 * _RULES) ** 3).astype(np.int32)
  )
  source, target = draw(), draw()
  source[1::3], target[2::3] = -1, -1
  pairs = np.tile(np.array([[0, 0], [2, 1]], np.int16), (_RULES, 1))
  return tables.make_table(
    source_words=known,
    target_words=known,
    source=Ragged(flat=source, offsets=offsets),
    target=Ragged(flat=target, offsets=offsets),
    links=Ragged(flat=pairs, offsets=2 * np.arange(_RULES + 1)),
    counts=rng.integers(1, 100, _RULES),
  )


def _row(what: str, seconds: float, count: int, note: str = "") -> dict:
  return {
    "step": what,
    "count": count,
    "cpu s": seconds,
    "µs each": 1e6 * seconds / max(count, 1),
    "peak MB": round(bench.peak_memory_mb()),
    "note": note,
  }


def _applications(rng: np.random.Generator) -> rule_templates.Applications:
  begin = rng.integers(0, _LENGTH - 5, _APPLICATIONS)
  return rule_templates.Applications(
    rule=rng.integers(0, _RULES, _APPLICATIONS),
    begin=begin,
    end=begin + rng.integers(1, 6, _APPLICATIONS),
    sentence=rng.integers(0, _SENTENCES, _APPLICATIONS),
  )


def _timed(function) -> tuple[float, Any]:
  """Processor time of the second call, and its result."""
  function()  # compile
  clock = time.process_time()
  result = function()
  return time.process_time() - clock, result


def _tuning(rng, rows, names) -> list[dict]:
  """Candidates of 15 applications each, a hundred for each sentence."""
  members = Ragged(
    flat=rng.integers(0, len(rows), 15 * _CANDIDATES),
    offsets=15 * np.arange(_CANDIDATES + 1),
  )
  seconds, summed = _timed(lambda: rule_templates.sum_rows(rows, members))
  out = [_row("sum over derivations", seconds, _CANDIDATES)]
  found = candidate_lists.from_rows(
    sentence=np.repeat(np.arange(_SENTENCES), _CANDIDATES // _SENTENCES),
    lines=[f"a b {n % 97} c d" for n in range(_CANDIDATES)],
    features=summed,
    names=names,
  )
  seconds, made = _timed(lambda: pool.make_pool(found))
  out.append(_row("pool", seconds, _CANDIDATES))
  made = pool.with_statistics(
    made, [[f"a b {n % 97} c d"] for n in range(_SENTENCES)]
  )
  start = np.zeros(len(made.names))
  for name, changes in (
    ("pro", {"steps": "10", "min_difference": "0.01"}),
    ("rampion", {"rounds": "2"}),
    ("kbmira", {"passes": "2"}),
    ("softramp2", {"steps": "10"}),
  ):
    method = methods.configure(methods.find(name), changes)
    seconds, _ = _timed(
      lambda m=method: m.optimise(made, start, m.config, 0)[0]
    )
    text = ", ".join(f"{key} {value}" for key, value in changes.items())
    out.append(_row(f"tune: {name}", seconds, _CANDIDATES, text))
  return out


def run() -> list[dict]:
  """Returns the rows of the table; compilation is not counted."""
  rng = np.random.default_rng(0)
  table = _table(rng)
  config = rule_templates.TemplateConfig(names=rule_templates.TEMPLATES)
  tokens = Ragged(
    flat=rng.integers(0, 5000, _SENTENCES * _LENGTH),
    offsets=_LENGTH * np.arange(_SENTENCES + 1),
  )
  seconds, templates = _timed(
    lambda: rule_templates.make_templates(table, config)
  )
  out = [_row("keys of the rules' own features", seconds, _RULES)]
  words = [f"source{number}" for number in range(5000)]
  text = rule_templates.make_text(templates, tokens, words)
  applied = _applications(rng)
  seconds, (rows, names) = _timed(
    lambda: rule_templates.extract(templates, text, applied)
  )
  note = f"{len(names):,} features, {sum(map(len, names)) >> 20} MB of names"
  out.append(_row("features with names", seconds, _APPLICATIONS, note))
  weights = dict(zip(names, rng.normal(size=len(names)).tolist(), strict=True))
  seconds, keyed = _timed(lambda: feature_keys.make_table(weights))
  out.append(_row("table of weights", seconds, len(weights)))
  seconds, _ = _timed(lambda: rule_templates.rule_scores(templates, keyed))
  out.append(_row("scores of rules", seconds, _RULES))
  seconds, _ = _timed(
    lambda: rule_templates.application_scores(templates, text, applied, keyed)
  )
  out.append(_row("scores of Word-Edges", seconds, _APPLICATIONS))
  return out + _tuning(rng, rows, names)
