"""Figures 5 and 6 and table 2 of max-violation learning, in one study.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/violation_real.py \
      --workdir=runs/violation_real
    python tools/table.py runs/violation_real
    python tools/plot.py runs/violation_real

Tatoeba; --config=configs/violation.py:multi30k-part is another corpus.
Everything that learns starts from the weights of n-best MERT, and p-values are
against these. A seed stands for MERT's and PRO's restarts and the order of
sentences. Rows: tuners of dense weights, update rules, feature sets, remedies.
"""

BASE = "configs/violation.py:tatoeba-part"
NOTE = "Violation-fixing learning on a real corpus."
SYSTEM = "primary"
WITHIN = False
_UPDATES = ("max-violation", "local", "skip", "early", "standard")
_ONE = {"systems": ("primary", "max-violation")}
_SLOW = {**_ONE, "learn.rate": 0.1, "learn.dense_rate": 0.001}
_FIXED = {**_ONE, "learn.rate": 0.1, "learn.dense_rate": 0.0}
_OTHERS = {"own_rules": False}
ABLATIONS = {
  "mert": {"systems": ("primary", *_UPDATES)},
  "dense": {**_ONE, "learn.templates": ()},
  "full": {**_ONE, "learn.templates": ("edges:full",)},
  "pro": {"tune.method": "pro", "systems": ("primary",)},
  "forest-mert": {"tune.method": "forest-mert", "systems": ("primary",)},
  "others": {**_ONE, **_OTHERS},
  "slow": _SLOW,
  "fixed": _FIXED,
  "together": {
    **_FIXED,
    **_OTHERS,
    "learn.shares": (0.0, 0.25, 0.5, 1.0),
  },
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["method"],
  "gain": True,
  "measures": {
    "output / reference words": "test_length_ratio",
    "BLEU without penalty": "test_precision",
    "sparse weights": "nonzero",
    "valid %": "valid_percent",
  },
  "rows": [
    ["n-best MERT", "mert", "primary"],
    ["forest MERT", "forest-mert", "primary"],
    ["PRO", "pro", "primary"],
    *([name, "mert", name] for name in _UPDATES),
    ["max-violation, dense features only", "dense", "max-violation"],
    ["max-violation, full Word-Edges", "full", "max-violation"],
    ["max-violation, rules of other pairs", "others", "max-violation"],
    ["max-violation, a tenth of the rates", "slow", "max-violation"],
    ["the same, dense weights fixed", "fixed", "max-violation"],
    ["the same, rules of other pairs, shares", "together", "max-violation"],
  ],
  "learning": [
    {
      "title": "updates (figure 5)",
      "series": {name: ["mert", name] for name in _UPDATES},
      "levels": {"n-best MERT": ["mert", "primary"]},
    },
    {
      "title": "features (figure 6)",
      "series": {
        "dense only": ["dense", "max-violation"],
        "simple Word-Edges": ["mert", "max-violation"],
        "full Word-Edges": ["full", "max-violation"],
      },
      "levels": {
        "n-best MERT": ["mert", "primary"],
        "PRO": ["pro", "primary"],
      },
    },
  ],
}
