"""Left-to-right search over stacks as one array program.

Stack n holds the K best hypotheses that cover n source words (Koehn, Och &
Marcu 2003). Hypotheses of stack n are pulled from stacks n - 1 to n - L:

1. *items*: each hypothesis of stack n - l with each span of l words it may take
   next, with the best option of the span;
2. the M best candidates (item, option) by what is known before the language
   model: score, distortion, orientations, the option's own score, and the
   future cost of what is left. This is cube pruning (Huang & Chiang 2007) with
   the queue unrolled: the M best items have the M best candidates;
3. the language model scores them; candidates that no later choice can tell
   apart (coverage, last phrase's span and forward orientations, language model
   state, states of added features) become one; the K best stay. The span
   counts even where its begin changes no later score: a node of the lattice has
   one span.

Coverage is the first gap and a bit mask of the words after it. As in Moses, a
phrase may begin at most `limit` words from the end of the one before, and
unless it begins at the first gap, it must end at most `limit` words after that.

An augmented search keeps the best by augmented score of those that become one,
and prunes by it or by the model score (`Augmentation.prune`), the future cost
added to either. Losses by rank are of the ranks in a stack.

B: sentences. N: words. S: spans. T: options. L: longest phrase. K: beam. M:
candidates.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxmt.decode.chart.accumulators import Augmentation
from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.decode.phrase.phrase_chart import PhraseChart
from jaxmt.decode.phrase.stack_beams import (
  AugmentedScores,
  LocalRules,
  PhraseBeams,
  StackConfig,
  StackWeights,
)
from jaxmt.decode.phrase.stack_features import (
  AddedFeatures,
  AddedRules,
  PhraseReferences,
)
from jaxmt.features.language_model import FULL, LanguageModelFeature
from jaxmt.features.stateful import StatefulFeature
from jaxmt.lm.automaton import NgramAutomaton

# What stands for a candidate that there is not.
_EMPTY = {
  "head": -1,
  "back": 0,
  "option": 0,
  "values": float(NONE),
  "augmented": float(NONE),
}


def search(
  chart: PhraseChart,
  rules: LocalRules,
  lm: NgramAutomaton,
  weights: StackWeights,
  added: AddedRules | None = None,
  references: PhraseReferences | None = None,
  *,
  config: StackConfig,
  feature: LanguageModelFeature,
  extra: tuple[StatefulFeature, ...] = (),
  augmentation: Augmentation | None = None,
) -> PhraseBeams:
  """Searches B sentences.

  Args:
    chart: their options; rules are rows of `rules`.
    rules: the rules.
    lm: the language model.
    weights: see `StackWeights`.
    added: what added features know of the rules; with `extra` or an
      augmentation.
    references: what an augmentation knows of the sentences.
    config: sizes.
    feature: reads and joins language model states.
    extra: the added features.
    augmentation: extra scores from accumulators; its parameters are those of
      `added`.
  """
  fixed = (rules, lm, weights, config, feature)

  def run(one, reference):
    features = None
    if added is not None:
      features = AddedFeatures(
        features=extra,
        weights=weights.added,
        rules=added,
        augmentation=augmentation,
        reference=reference,
        words=one.length,
      )
    return _Sentence(one, *fixed, features).run()

  return jax.vmap(run)(chart, references)


class _Sentence:
  """The search of one sentence; its methods are traced once."""

  def __init__(self, chart, rules, lm, weights, config, feature, added):
    self.chart, self.rules, self.lm = chart, rules, lm
    self.weights, self.config, self.feature = weights, config, feature
    self.added = added
    self.size = chart.future.shape[0] - 1
    self.longest = chart.rule.shape[0] // self.size
    self.width = chart.rule.shape[1]

  def run(self) -> PhraseBeams:
    """Fills all stacks and ends the sentence."""
    beam, rows = self.config.beam, self.size + 1 + self.longest
    # Stack n stands at row n + L: the L stacks before a stack are a slice.
    zero = jnp.zeros((rows, beam), jnp.int32)
    stacks = {
      "score": jnp.full((rows, beam), NONE, jnp.float32),
      "ahead": jnp.zeros((rows, beam), jnp.float32),
      "mask": jnp.zeros((rows, beam), jnp.uint32),
      **dict.fromkeys(("gap", "end", "rule", "state"), zero),
      "begin": zero - 1,
    }
    first = (self.longest, 0)
    stacks["score"] = stacks["score"].at[first].set(0.0)
    whole = self.chart.future[0, self.chart.length]
    stacks["ahead"] = stacks["ahead"].at[first].set(whole)
    stacks["state"] = stacks["state"].at[first].set(self.lm.begin)
    if self.added is not None:
      stacks |= self.added.start(rows, beam, first)

    def fill(stacks, stack):
      new, candidates = self._stack(stacks, stack)
      place = stack + self.longest
      stacks = {k: stacks[k].at[place].set(new[k]) for k in stacks}
      return stacks, candidates

    stacks, found = lax.scan(fill, stacks, jnp.arange(1, self.size + 1))
    before = lambda name: jnp.concatenate(
      [jnp.full_like(found[name][:1], _EMPTY[name]), found[name]]
    )
    final = self._finish(stacks)
    score, augmented = stacks["score"][self.longest :], None
    if "extra" in stacks:
      extra = stacks["extra"]
      place = self.chart.length + self.longest
      augmented = AugmentedScores(
        hypotheses=score + extra[self.longest :],
        candidates=before("augmented"),
        final=jnp.maximum(final[:, 0] + extra[place], NONE),
      )
    return PhraseBeams(
      score=score,
      head=before("head"),
      back=before("back"),
      option=before("option"),
      values=before("values"),
      final=final,
      augmented=augmented,
    )

  def _finish(self, stacks) -> jax.Array:
    """Scores and gains of the complete hypotheses with `</s>`, `[K, 2]`."""
    place = self.chart.length + self.longest
    score, state = stacks["score"][place], stacks["state"][place]
    shape = (*state.shape, self.feature.columns)
    goal = jnp.broadcast_to(self.rules.goal, shape)
    gain, _ = self._join(state, goal)
    final = score + self.rules.goal_score + self.weights.lm * gain
    if self.added is not None:
      final += self.added.finish(stacks, place)
    there = (score > POSSIBLE) & (self.chart.length > 0)
    return jnp.where(there[:, None], jnp.stack([final, gain], axis=-1), NONE)

  def _join(self, state, run):
    """What runs of words add in contexts: `(gain, next state)`."""
    left = jnp.zeros((*state.shape, self.feature.columns), jnp.int32)
    left = left.at[..., self.feature.width].set(state)
    # Nothing can come before the start of the sentence: a full state.
    left = left.at[..., self.feature.width + 2].set(FULL)
    joined, (gain,) = self.feature.join(
      self.lm, self.feature.unpack(left), self.feature.unpack(run)
    )
    return gain, joined.state

  def _items(self, own):
    """All extensions of L stacks by a span: fields `[L, K, O]`."""
    chart, limit = self.chart, self.config.limit
    length = chart.length
    size = self.longest - jnp.arange(self.longest)[:, None, None]
    offset = jnp.arange(limit + 1)
    wide = {
      name: array[..., None] for name, array in own.items() if array.ndim == 2
    }
    first = wide["gap"] + offset
    # Bit k of the mask is the word k + 1 after the gap.
    bits = (wide["mask"] >> jnp.maximum(offset - 1, 0).astype(jnp.uint32)) & 1
    covered = (bits == 1) & (offset > 0)
    far = limit + 1
    after = lax.cummin(jnp.where(covered, offset, far), axis=2, reverse=True)
    before = lax.cummax(jnp.where(covered, offset, -1), axis=2)
    run_begin = wide["gap"] + before + 1
    run_end = jnp.where(after < far, wide["gap"] + after, length)
    last = first + size
    jump = jnp.abs(wide["end"] - first)
    span = jnp.clip(first * self.longest + size - 1, 0, chart.rule.shape[0] - 1)
    low, high = wide["begin"], wide["end"]
    if self.config.hierarchical:
      low, high = self._blocks(own, covered)
    kind = jnp.where(first == high, 0, jnp.where(last == low, 1, 2))
    top = chart.ranked[span, kind, 0]
    there = (wide["score"] > POSSIBLE) & ~covered & (first < length)
    there &= (jump <= limit) & (last <= run_end) & (top > POSSIBLE)
    there &= (offset == 0) | (offset + size <= limit)
    least, most = self._bounds(own)
    there &= (first >= least[..., None]) & (last <= most[..., None])
    cut = lambda place: jnp.minimum(place, self.size)
    future = lambda one, two: chart.future[cut(one), cut(two)]
    ahead = wide["ahead"] - future(run_begin, run_end)
    ahead += future(run_begin, first)
    ahead += future(last, run_end)
    base = wide["score"] - self.weights.distortion * jump.astype(jnp.float32)
    base += self.rules.forward[wide["rule"], kind]
    known = base + ahead
    if self.added is not None and self.added.by_both:
      known += wide["extra"]
    key = jnp.where(there, known + top, NONE)
    fields = {"span": span, "kind": kind, "base": base, "ahead": ahead}
    return fields | {"known": known}, key

  def _bounds(self, own):
    """Where the next phrase may begin and end, by walls and zones."""
    gap, mask = own["gap"][..., None], own["mask"][..., None]
    first, last = self.chart.zones[:, 0], self.chart.zones[:, 1]
    # Covered words of a zone: those before the gap, and bits of the mask.
    bits = lambda count: (
      (jnp.uint32(1) << jnp.clip(count, 0, 31).astype(jnp.uint32)) - 1
    )
    after = mask & bits(last - gap - 1) & ~bits(first - gap - 1)
    done = jnp.clip(jnp.minimum(gap, last) - first, 0)
    done += lax.population_count(after).astype(jnp.int32)
    begun = (done > 0) & (done < last - first)
    reach = self.chart.reach[jnp.minimum(own["gap"], self.size)]
    least = jnp.max(jnp.where(begun, first, 0), axis=-1)
    most = jnp.min(jnp.where(begun, last, self.size + 1), axis=-1)
    return least, jnp.minimum(most, reach)

  def _blocks(self, own, covered):
    """The covered runs around the last phrases, `[L, K, 1]` each."""
    gap, begin, end = own["gap"], own["begin"], own["end"]
    offset = jnp.arange(covered.shape[-1])
    # The nearest uncovered places on both sides of the last phrase.
    place = (end - 1 - gap)[..., None]
    free = ~covered
    left = jnp.max(jnp.where(free & (offset < place), offset, -1), axis=-1)
    right = jnp.min(
      jnp.where(free & (offset > place), offset, covered.shape[-1]), axis=-1
    )
    prefix = end <= gap
    low = jnp.where(prefix, 0, gap + left + 1)
    high = jnp.where(prefix, gap, gap + right)
    start = end == 0
    low, high = jnp.where(start, begin, low), jnp.where(start, 0, high)
    return low[..., None], high[..., None]

  def _stack(self, stacks, stack):
    """The hypotheses of a stack, and its candidates."""
    config, width = self.config, self.width
    own = {
      name: lax.dynamic_slice_in_dim(array, stack, self.longest)
      for name, array in stacks.items()
    }
    fields, key = self._items(own)
    shape = key.shape
    # The M best items, then the M best of their options.
    _, item = lax.top_k(key.reshape(-1), min(config.pop, key.size))
    item_key = key.reshape(-1)[item]
    fields = {name: array.reshape(-1)[item] for name, array in fields.items()}
    values = self.chart.ranked[fields["span"], fields["kind"]]
    grid = fields["known"][:, None] + values
    possible = (item_key > POSSIBLE)[:, None] & (values > POSSIBLE)
    grid = jnp.where(possible, grid, NONE).reshape(-1)
    count = min(config.pop, grid.size)
    _, chosen = lax.top_k(grid, count)
    there = grid[chosen] > POSSIBLE
    row, place = chosen // width, chosen % width
    fields = {name: array[row] for name, array in fields.items()}
    value = values[row, place]
    option = self.chart.order[fields["span"], fields["kind"], place]
    level, rank, _ = jnp.unravel_index(item[row], shape)
    old = {name: array[level, rank] for name, array in own.items()}
    new = self._extend(old, fields, option)
    gain, new["state"] = self._join(old["state"], self.rules.runs[new["rule"]])
    new["score"] = fields["base"] + value + self.weights.lm * gain
    if self.added is not None:
      row = (fields["span"], option)
      gains, states = self.added.extend(old, new["rule"], row, stack)
      new["score"] += gains
      new |= states
    total = jnp.where(there, new["score"] + fields["ahead"], NONE)
    # Best first.
    order = jnp.argsort(-(total + new.get("extra", 0.0)), stable=True)
    pick = lambda array: array[order]
    new, total, there = jax.tree.map(pick, (new, total, there))
    there &= self._near(total, new)
    keep, head = self._merge(new, there, total)
    kept = {name: self._kept(name, new[name], keep) for name in new}
    back = jnp.stack([stack - self.longest + level, rank], axis=-1)
    found = {
      "head": head,
      "back": pick(back).astype(jnp.int32),
      "option": pick(fields["span"] * width + option).astype(jnp.int32),
      "values": jnp.stack([new["score"], pick(gain)], axis=-1),
    }
    if self.added is not None and "extra" in new:
      totals = self._kept("score", total, keep)
      kept, new = self.added.lose(kept, new, totals, head, stack)
      found["augmented"] = jnp.where(there, new["score"] + new["extra"], NONE)
    room = config.pop - count
    return kept, {
      name: jnp.pad(
        array,
        [(0, room)] + [(0, 0)] * (array.ndim - 1),
        constant_values=_EMPTY[name],
      )
      for name, array in found.items()
    }

  def _near(self, total, new):
    """Which candidates, best first, are not too far from the best."""
    if self.added is not None and self.added.by_both:
      total = total + new["extra"]
    return total >= jnp.max(total) - self.weights.threshold

  def _kept(self, name, array, keep):
    """The candidates' values at the places of the hypotheses they become."""
    empty = NONE if name == "score" else 0
    room = (self.config.beam, *array.shape[1:])
    out = jnp.full(room, empty, array.dtype)
    return out.at[keep].set(array, mode="drop")

  def _extend(self, old, fields, option):
    """The hypotheses that M candidates make, but for state and score."""
    begin = fields["span"] // self.longest
    size = fields["span"] % self.longest + 1
    shift = (begin - old["gap"]).astype(jnp.uint32)
    bits = (jnp.uint32(1) << size.astype(jnp.uint32)) - 1
    later = old["mask"] | (bits << (jnp.maximum(shift, 1) - 1))
    # A phrase at the first gap moves it past all that is covered there.
    joined = (old["mask"] << 1) | bits
    ones = lax.population_count(joined & ~(joined + 1)).astype(jnp.uint32)
    moved = jnp.where(ones < 31, joined >> jnp.minimum(ones + 1, 31), 0)
    at_gap = shift == 0
    return {
      "ahead": fields["ahead"],
      "gap": old["gap"] + jnp.where(at_gap, ones, 0).astype(jnp.int32),
      "mask": jnp.where(at_gap, moved, later),
      "begin": begin,
      "end": begin + size,
      "rule": self.chart.rule[fields["span"], option],
    }

  def _merge(self, new, there, total):
    """Where each candidate is kept (K: nowhere), and its head."""
    beam = self.config.beam
    names = ("gap", "mask", "begin", "end", "state")
    keys = [new[name] for name in names]
    keys.append(self.rules.classes[new["rule"]])
    if self.added is not None:
      keys += self.added.keys(new)
    same = there[:, None] & there
    for key in keys:
      same &= key[:, None] == key
    first = jnp.argmax(same, axis=1)
    leads = there & (first == jnp.arange(len(first)))
    rank = jnp.cumsum(leads) - 1
    if self.added is not None and "extra" in new and not self.added.by_both:
      # Hypotheses stand by model score, whatever the order of candidates.
      order = jnp.argsort(jnp.where(leads, -total, -NONE), stable=True)
      rank = jnp.zeros_like(rank).at[order].set(jnp.arange(len(order)))
    keep = jnp.where(leads & (rank < beam), rank, beam)
    head = jnp.where(there & (keep[first] < beam), keep[first], -1)
    return keep, head.astype(jnp.int32)
