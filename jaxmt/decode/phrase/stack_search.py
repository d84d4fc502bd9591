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
   state) become one; the K best stay. The span counts even where its begin
   changes no later score: a node of the lattice has one span.

Coverage is the first gap and a bit mask of the words after it. As in Moses, a
phrase may begin at most `limit` words from the end of the one before, and
unless it begins at the first gap, it must end at most `limit` words after that.

B: sentences. N: words. S: spans. T: options. L: longest phrase. K: beam. M:
candidates.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmt.decode.chart.chart_layout import NONE, POSSIBLE
from jaxmt.decode.phrase.phrase_chart import PhraseChart
from jaxmt.features.language_model import FULL, LanguageModelFeature
from jaxmt.lm.automaton import NgramAutomaton

Array = jax.Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhraseBeams:
  """Hypotheses and candidates of B sentences.

  Candidates stand best first. A hypothesis is the first candidate that has it
  as head.

  Attributes:
    score: model scores of the hypotheses, best total first, `NONE` for none,
      float32 `[B, N + 1, K]`.
    head: hypothesis each candidate became or was merged into, -1 if pruned,
      int32 `[B, N + 1, M]`.
    back: stack and rank of the hypothesis it extends, int32 `[B, N + 1, M, 2]`.
    option: its span times T plus its option, int32 `[B, N + 1, M]`.
    values: its score, and what the language model adds to the option's own
      value, float32 `[B, N + 1, M, 2]`.
    final: the same at the end of the sentence, for the hypotheses that cover
      it, float32 `[B, K, 2]`.
  """

  score: Array
  head: Array
  back: Array
  option: Array
  values: Array
  final: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalRules:
  """What the search knows of the rules of some sentences; row 0 is none.

  Attributes:
    runs: language model states of their targets, int32 `[R, W + 3]`.
    forward: scores of the forward orientations, float32 `[R, 3]`.
    classes: rules with equal forward logs share a number, int32 `[R]`.
    goal: language model state of `</s>`, int32 `[W + 3]`.
    goal_score: its own score.
  """

  runs: Array
  forward: Array
  classes: Array
  goal: Array
  goal_score: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class StackWeights:
  """Weights of ln p and of the distortion; the threshold of stacks."""

  lm: Array
  distortion: Array
  threshold: Array


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
  """Sizes of the search; static.

  Attributes:
    beam: K.
    pop: M.
    limit: the distortion limit.
    hierarchical: orientations are towards blocks.
  """

  beam: int
  pop: int
  limit: int
  hierarchical: bool = False


def search(
  chart: PhraseChart,
  rules: LocalRules,
  lm: NgramAutomaton,
  weights: StackWeights,
  *,
  config: StackConfig,
  feature: LanguageModelFeature,
) -> PhraseBeams:
  """Searches B sentences.

  Args:
    chart: their options; rules are rows of `rules`.
    rules: the rules.
    lm: the language model.
    weights: see `StackWeights`.
    config: sizes.
    feature: reads and joins language model states.
  """
  run = lambda one: _Sentence(one, rules, lm, weights, config, feature).run()
  return jax.vmap(run)(chart)


class _Sentence:
  """The search of one sentence; its methods are traced once."""

  def __init__(self, chart, rules, lm, weights, config, feature):
    self.chart, self.rules, self.lm = chart, rules, lm
    self.weights, self.config, self.feature = weights, config, feature
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

    def fill(stacks, stack):
      new, candidates = self._stack(stacks, stack)
      place = stack + self.longest
      stacks = {k: stacks[k].at[place].set(new[k]) for k in stacks}
      return stacks, candidates

    stacks, (head, back, option, values) = lax.scan(
      fill, stacks, jnp.arange(1, self.size + 1)
    )
    before = lambda array: jnp.concatenate(
      [jnp.full_like(array[:1], -1 if array is head else 0), array]
    )
    return PhraseBeams(
      score=stacks["score"][self.longest :],
      head=before(head),
      back=before(back),
      option=before(option),
      values=before(values),
      final=self._finish(stacks),
    )

  def _finish(self, stacks) -> jax.Array:
    """Scores and gains of the complete hypotheses with `</s>`, `[K, 2]`."""
    place = self.chart.length + self.longest
    score, state = stacks["score"][place], stacks["state"][place]
    shape = (*state.shape, self.feature.columns)
    goal = jnp.broadcast_to(self.rules.goal, shape)
    gain, _ = self._join(state, goal)
    final = score + self.rules.goal_score + self.weights.lm * gain
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
    wide = {name: array[..., None] for name, array in own.items()}
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
    key = jnp.where(there, base + ahead + top, NONE)
    return {"span": span, "kind": kind, "base": base, "ahead": ahead}, key

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
    grid = (fields["base"] + fields["ahead"])[:, None] + values
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
    total = jnp.where(there, new["score"] + fields["ahead"], NONE)
    # Best first.
    order = jnp.argsort(-total, stable=True)
    pick = lambda array: array[order]
    new, total, there = jax.tree.map(pick, (new, total, there))
    there &= total >= total[0] - self.weights.threshold
    keep, head = self._merge(new, there)
    kept = {
      name: jnp.full(config.beam, NONE if name == "score" else 0, array.dtype)
      .at[keep]
      .set(array, mode="drop")
      for name, array in new.items()
    }
    back = jnp.stack([stack - self.longest + level, rank], axis=-1)
    found = (
      head,
      pick(back).astype(jnp.int32),
      pick(fields["span"] * width + option).astype(jnp.int32),
      jnp.stack([new["score"], pick(gain)], axis=-1),
    )
    room = config.pop - count
    if room:
      fill = lambda a, value=0.0: jnp.pad(
        a, [(0, room)] + [(0, 0)] * (a.ndim - 1), constant_values=value
      )
      head, back, option, values = found
      found = (
        fill(head, -1),
        fill(back),
        fill(option),
        fill(values, float(NONE)),
      )
    return kept, found

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

  def _merge(self, new, there):
    """Where each candidate is kept (K: nowhere), and its head."""
    beam = self.config.beam
    names = ("gap", "mask", "begin", "end", "state")
    keys = [new[name] for name in names]
    keys.append(self.rules.classes[new["rule"]])
    same = there[:, None] & there
    for key in keys:
      same &= key[:, None] == key
    first = jnp.argmax(same, axis=1)
    leads = there & (first == jnp.arange(len(first)))
    rank = jnp.cumsum(leads) - 1
    keep = jnp.where(leads & (rank < beam), rank, beam)
    head = jnp.where(there & (keep[first] < beam), keep[first], -1)
    return keep, head.astype(jnp.int32)
