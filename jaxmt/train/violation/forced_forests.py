"""Forced forests of the whole bitext: computed once, stored, re-scored.

They do not depend on weights. What learning reads of them is the part that
belongs to a pack of sentences (`partial_derivations.take`), so they may be maps
of files far larger than memory.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmt.decode import model as models
from jaxmt.decode.forced import forced as forcing
from jaxmt.decode.forced import reachability
from jaxmt.decode.forced.forced import ForceConfig
from jaxmt.decode.forced.reachability import Reachability
from jaxmt.decode.model import Model, Source
from jaxmt.decode.translation_forest import RuleUses, Spans
from jaxmt.grammar import table as tables
from jaxmt.grammar.provenance import Provenance
from jaxmt.hypergraph.forest import Forest
from jaxmt.runtime.checkpoint import Store
from jaxmt.text import ragged
from jaxmt.text.ragged import Ragged, row_offsets
from jaxmt.train import edge_selection
from jaxmt.train.violation import partial_derivations
from jaxmt.train.violation.learn_config import LearnConfig
from jaxmt.train.violation.partial_derivations import Partials

_BLOCK = 1000  # sentences forced and stored together
_NAME = "forced"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForcedText:
  """The forced forests of N sentences.

  Attributes:
    partials: at least one forest for each sentence, sentences rising.
    reached: whether a sentence has a derivation of a reference, bool `[N]`.
    reasons: why not, of the first reference; "" where reached.
  """

  partials: Partials
  reached: np.ndarray
  reasons: tuple[str, ...]

  def report(self, lengths: np.ndarray) -> Reachability:
    """Returns reachability by source length."""
    return reachability.summarize(lengths, self.reached, self.reasons)


def excluded_rules(model: Model, provenance: Provenance) -> Ragged:
  """Returns the rules that each sentence must not use, N rising rows.

  These are the rules that no other sentence gave, but those that translate a
  single word: without them nothing would translate it.
  """
  alone = forcing.own_rules(provenance)
  table = model.table
  word = (tables.arity(table) == 0) & (table.source.lengths == 1)
  keep = ~word[alone.flat]
  return Ragged(flat=alone.flat[keep], offsets=row_offsets(keep)[alone.offsets])


def force_text(
  model: Model,
  source: Source,
  references: Sequence[Sequence[str]],
  config: LearnConfig,
  *,
  store: Store,
  threads: int = 1,
  excluded: Ragged | None = None,
  on_done: Callable[[int], object] = lambda sentences: None,
) -> ForcedText:
  """Forces all sentences, or returns what the store has of them.

  Args:
    model: rules and language model; its weights do not matter.
    source: N sentences.
    references: one or more lines for each.
    config: the longest sentence, the largest forest.
    store: keeps finished blocks, then the whole.
    threads: sentences in work at a time.
    excluded: rules that each sentence must not use.
    on_done: called with numbers of finished forests.
  """
  known = store.get(_NAME)
  if known is not None:
    return _from_values(known)
  model = models.with_templates(model, None)
  rules = forcing.make_rules(model)
  settings = ForceConfig(
    words=config.max_words, edges=config.max_edges, threads=threads
  )
  entries = []
  for start in range(0, len(source), _BLOCK):
    entries.append(f"{_NAME}-{start}")
    if store.get(entries[-1]) is not None:
      continue
    rows = np.arange(start, min(start + _BLOCK, len(source)))
    counts = [len(references[row]) for row in rows.tolist()]
    sentence = np.repeat(rows, counts)
    lines = [line for row in rows.tolist() for line in references[row]]
    part = models.select_source(source, sentence)
    forced = forcing.force(
      model,
      part,
      lines,
      config=settings,
      rules=rules,
      excluded=None if excluded is None else ragged.select(excluded, sentence),
      on_done=on_done,
    )
    partials = partial_derivations.of_forced(
      model,
      forced,
      edge_selection.encode_references(model, source, lines),
      sentence,
    )
    store.put(entries[-1], _to_values(partials, forced.reached, forced.reason))
  parts = [store.get(entry) for entry in entries]
  store.put(_NAME, _joined([part for part in parts if part is not None]))
  for entry in entries:
    store.drop(entry)
  return _from_values(store.get(_NAME) or {})


def _to_values(
  partials: Partials, reached: np.ndarray, reasons: Sequence[str]
) -> dict[str, Any]:
  """A block as named arrays."""
  forest = partials.forest
  return {
    "node_counts": np.diff(forest.node_offsets),
    "edge_counts": np.diff(forest.edge_offsets),
    "tails": _relative(forest),
    "begin": forest.nodes.begin,
    "end": forest.nodes.end,
    "label": forest.nodes.label,
    "rule": forest.edges.rule,
    "lm": forest.edges.lm,
    "matched": forest.edges.matched,
    "mismatched": forest.edges.mismatched,
    "sentence": partials.sentence,
    "category": partials.category,
    "string": partials.string,
    **({} if partials.stack is None else {"stack": partials.stack}),
    "reached": reached,
    "reasons": [reason.replace("\n", " ") for reason in reasons],
  }


def _relative(forest: Forest) -> np.ndarray:
  """Tails by their distance from the head, 0 for none, int32 `[E, A]`."""
  heads = forest.heads[:, None]
  return np.where(forest.tails >= 0, heads - forest.tails, 0).astype(np.int32)


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """All blocks as one, with the offsets that learning reads."""
  join = lambda name: np.concatenate([part[name] for part in parts])
  names = [name for name in parts[0] if name != "reasons"]
  out: dict[str, Any] = {name: join(name) for name in names}
  out["node_offsets"] = row_offsets(out.pop("node_counts"))
  out["edge_offsets"] = row_offsets(out.pop("edge_counts"))
  heads = np.repeat(
    np.arange(len(out["begin"]), dtype=np.int32), np.diff(out["edge_offsets"])
  )
  tails = out["tails"]
  out["tails"] = np.where(tails > 0, heads[:, None] - tails, -1)
  out["reasons"] = [reason for part in parts for reason in part["reasons"]]
  return out


def _from_values(values: Mapping[str, Any]) -> ForcedText:
  rule = values["rule"]
  sentence = values["sentence"]
  size = int(sentence[-1]) + 1 if len(sentence) else 0
  reached = np.zeros(size, bool)
  reached[sentence[np.asarray(values["reached"])]] = True
  first = np.searchsorted(sentence, np.arange(size))
  reasons = [values["reasons"][row] for row in first.tolist()]
  return ForcedText(
    partials=Partials(
      forest=Forest(
        node_offsets=np.asarray(values["node_offsets"]),
        edge_offsets=values["edge_offsets"],
        tails=values["tails"],
        score=np.broadcast_to(np.float32(0), (len(rule),)),
        nodes=Spans(
          begin=values["begin"],
          end=values["end"],
          label=values["label"],
          rank=np.broadcast_to(np.int32(0), (len(values["begin"]),)),
        ),
        edges=RuleUses(
          rule=rule,
          lm=values["lm"],
          matched=values["matched"],
          mismatched=values["mismatched"],
        ),
      ),
      sentence=np.asarray(sentence),
      category=values["category"],
      string=values["string"],
      stack=values.get("stack"),
    ),
    reached=reached,
    reasons=tuple(
      "" if reachable else reason
      for reachable, reason in zip(reached.tolist(), reasons, strict=True)
    ),
  )
