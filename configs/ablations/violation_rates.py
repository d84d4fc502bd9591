"""Rates, lengths and margins of violation-fixing learning on Multi30k.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/violation_rates.py \
      --workdir=runs/violation_rates
    python tools/table.py runs/violation_rates

Weights are tuned on one half of the development set. Epochs and lengths are
judged on the other, so that the start is judged as fairly as what is learned.
580 pairs are learned from, with the rules of all pairs.
"""

BASE = "configs/violation.py:multi30k-part"
NOTE = "How fast to learn, to which length, from which sentences."
SYSTEM = "primary"
WITHIN = False
_DATA = {"held_out": 50, "judged": 2, "data.files.tune_sentences": 0}
_ONE = {**_DATA, "systems": ("primary", "max-violation")}
_EVEN = {**_ONE, "learn.length_ratio": 1.0}
_SLOW = {**_EVEN, "learn.rate": 0.1, "learn.dense_rate": 0.001}
_SLOWER = {**_EVEN, "learn.rate": 0.01, "learn.dense_rate": 0.0001}
# Steps that leave dense weights of .06 about where they are.
_GENTLE = {
  **_EVEN,
  "learn.rate": 0.1,
  "learn.dense_rate": 0.0001,
  "learn.epochs": 1,
}
# Nothing but the word weight of the start changes.
_START = {**_EVEN, "learn.shares": (0.0,), "learn.epochs": 1}
_TUNED = {**_DATA, "systems": ("primary",)}
ABLATIONS = {
  "start": {**_START, "held_out": 1000},
  "short": _ONE,
  "even": _EVEN,
  "slow": _SLOW,
  "slower": _SLOWER,
  "margin": {**_SLOW, "learn.margin": 1.0},
  "wrong": {**_SLOW, "learn.only_wrong": True},
  "gentle": _GENTLE,
  "dense": {**_GENTLE, "learn.templates": ()},
  "full": {**_GENTLE, "learn.templates": ("edges:full",)},
  "local": {**_GENTLE, "systems": ("primary", "local")},
  "pro": {**_TUNED, "tune.method": "pro"},
  "forest-mert": {**_TUNED, "tune.method": "forest-mert"},
}
SEEDS = (0, 1, 2)
_LEARNED = "max-violation"
LAYOUT = {
  "kind": "rows",
  "headings": ["method"],
  "gain": True,
  "measures": {
    "output / reference words": "test_length_ratio",
    "BLEU without penalty": "test_precision",
    "sparse weights": "nonzero",
  },
  "rows": [
    ["n-best MERT", "start", "primary"],
    ["forest MERT", "forest-mert", "primary"],
    ["PRO", "pro", "primary"],
    ["n-best MERT, word weight for length 1", "start", _LEARNED],
    ["max-violation, length .97", "short", _LEARNED],
    ["max-violation, length 1", "even", _LEARNED],
    ["the same, a tenth of the rates", "slow", _LEARNED],
    ["the same, with a margin", "margin", _LEARNED],
    ["the same, wrong sentences only", "wrong", _LEARNED],
    ["a hundredth of the rates", "slower", _LEARNED],
    ["a hundredth for dense features, a tenth for others", "gentle", _LEARNED],
    ["the same, dense features only", "dense", _LEARNED],
    ["the same, full Word-Edges", "full", _LEARNED],
    ["the same, local updates", "local", "local"],
  ],
}
