"""Every loss for one sentence, spelled out over Python lists."""

import math


def lse(values):
  return math.log(sum(math.exp(v) for v in values))


def cheapest(costs, tolerance=1e-6):
  return [k for k, c in enumerate(costs) if c <= min(costs) + tolerance]


def arg_max(values, places=None):
  places = range(len(values)) if places is None else places
  return max(places, key=lambda k: (values[k], -k))


def probabilities(scores, scale=1.0):
  total = lse([scale * s for s in scores])
  return [math.exp(scale * s - total) for s in scores]


def plus(scores, costs, sign=1.0):
  return [s + sign * c for s, c in zip(scores, costs, strict=True)]


def ramp(scores, costs, form, upper=max, lower=max):
  high = plus(scores, costs) if form in (1, 3) else scores
  low = plus(scores, costs, -1.0) if form in (2, 3) else scores
  return upper(high) - lower(low)


def softmax(scores, costs):
  return lse(scores) - lse([scores[k] for k in cheapest(costs)])


def softmax_margin(scores, costs):
  high = lse(plus(scores, costs))
  return high - lse([scores[k] for k in cheapest(costs)])


def risk(scores, costs, scale=1.0):
  p = probabilities(scores, scale)
  return sum(a * b for a, b in zip(p, costs, strict=True))


def entropy(scores, scale=1.0):
  return -sum(p * math.log(p) for p in probabilities(scores, scale))


def annealed_risk(scores, costs, temperature, scale):
  return risk(scores, costs, scale) - temperature * entropy(scores, scale)


def cost_of_best(scores, costs):
  return costs[arg_max(scores)]


def zero_one(scores, costs):
  return float(arg_max(scores) not in cheapest(costs))


def pairs(costs):
  good = cheapest(costs)
  return [(g, b) for g in good for b in range(len(costs)) if b not in good]


def margin(scores, costs):
  return sum(
    max(0.0, costs[b] - costs[g] - (scores[g] - scores[b]))
    for g, b in pairs(costs)
  )


def _good_bad(scores, costs):
  good = arg_max(scores, cheapest(costs))
  others = [k for k in range(len(costs)) if k not in cheapest(costs)]
  return (good, arg_max(scores, others)) if others else None


def hinge(scores, costs, with_margin=1.0):
  pair = _good_bad(scores, costs)
  if pair is None:
    return 0.0
  good, bad = pair
  extra = with_margin * (costs[bad] - costs[good])
  return max(0.0, extra - (scores[good] - scores[bad]))


def perceptron(scores, costs):
  return hinge(scores, costs, with_margin=0.0)


def structured_hinge(scores, costs):
  return max(plus(scores, costs)) - max(scores[k] for k in cheapest(costs))


def slack_rescaled_hinge(scores, costs):
  good = max(cheapest(costs), key=lambda k: scores[k])
  return max(
    (c - costs[good]) * (1 + s - scores[good])
    for s, c in zip(scores, costs, strict=True)
  )


def structured_perceptron(scores, costs):
  return max(scores) - max(scores[k] for k in cheapest(costs))


def loss_augmented_hinge(scores, costs):
  hope = arg_max(plus(scores, costs, -1.0))
  fear = arg_max(plus(scores, costs))
  return max(0.0, costs[fear] - costs[hope] - (scores[hope] - scores[fear]))


def relative_margin(scores, costs, bound, strength):
  hope = arg_max(plus(scores, costs, -1.0))
  spread = scores[hope] - scores[arg_max(costs)]
  wide = max(0.0, spread - bound)
  return loss_augmented_hinge(scores, costs) + strength * wide


def ranking(scores, costs, kind):
  loss = {
    "perceptron": lambda x: max(0.0, -x),
    "hinge": lambda x: max(0.0, 1.0 - x),
    "logistic": lambda x: math.log1p(math.exp(-x)),
  }[kind]
  return sum(
    loss(scores[a] - scores[b])
    for a in range(len(costs))
    for b in range(len(costs))
    if costs[a] < costs[b]
  )


def cross_entropy_ranking(scores, costs, sharpness):
  target = probabilities([-c for c in costs], sharpness)
  log_p = [math.log(p) for p in probabilities(scores)]
  return -sum(q * p for q, p in zip(target, log_p, strict=True))


def mean_squared_error(scores, costs):
  return sum(
    (costs[b] - costs[g] - (scores[g] - scores[b])) ** 2
    for g, b in pairs(costs)
  )


def pareto(costs):
  """Of one sentence; `costs[metric][candidate]`."""
  count = len(costs[0])

  def dominates(a, b):
    return all(c[a] <= c[b] for c in costs) and any(c[a] < c[b] for c in costs)

  return [not any(dominates(a, b) for a in range(count)) for b in range(count)]
