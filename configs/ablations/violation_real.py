"""Figures 5 and 6 and table 2 of max-violation learning, in one study.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/violation_real.py \
      --workdir=runs/violation_real
    python tools/table.py runs/violation_real

Tatoeba, 1,500 pairs; for another corpus put its variant into BASE. Everything
that learns starts from the weights of n-best MERT. Rows: tuners of dense
weights, update rules, feature sets, remedies.
"""

BASE = "configs/violation.py:tatoeba-small"
NOTE = "Violation-fixing learning on a part of a real corpus."
SYSTEM = "primary"
WITHIN = False
_UPDATES = ("max-violation", "local", "skip", "early", "standard")
_ONE = {"systems": ("primary", "max-violation")}
_ALL = {**_ONE, "grammar.min_count": 1}
ABLATIONS = {
  "mert": {"systems": ("primary", *_UPDATES)},
  "dense": {**_ONE, "learn.templates": ()},
  "slow": {**_ONE, "learn.rate": 0.1},
  "pro": {"tune.method": "pro", "systems": ("primary",)},
  "forest-mert": {"tune.method": "forest-mert", "systems": ("primary",)},
  "still": {**_ONE, "learn.rate": 0.1, "learn.dense_rate": 0.0},
  "left-out": {**_ALL, "learn.leave_one_out": "singletons"},
  "full": {**_ONE, "learn.templates": ("edges:full",)},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["method"],
  "gain": True,
  "rows": [
    ["n-best MERT", "mert", "primary"],
    ["forest MERT", "forest-mert", "primary"],
    ["PRO", "pro", "primary"],
    *([name, "mert", name] for name in _UPDATES),
    ["max-violation, dense features only", "dense", "max-violation"],
    ["max-violation, full Word-Edges", "full", "max-violation"],
    ["max-violation, a tenth of the sparse rate", "slow", "max-violation"],
    ["the same, dense weights fixed", "still", "max-violation"],
    ["max-violation, all rules but own ones", "left-out", "max-violation"],
  ],
}
