"""Tables 2 and 3 of max-violation learning: against tuning on a small set.

    python launch/sweep.py --study=configs/ablations/violation_table.py \
      --workdir=runs/violation_table
    python tools/table.py runs/violation_table

N-best MERT, forest MERT and PRO, each with several seeds, and what local and
max-violation updates learn from the weights of n-best MERT. Remedies follow:
own rules left out, rules seen once kept, slower steps.
"""

BASE = "configs/violation.py"
NOTE = "Tuners of dense weights, and learning of sparse ones on the bitext."
SYSTEM = "primary"
WITHIN = True
_TUNERS = {"mert": "mert", "forest-mert": "forest-mert", "pro": "pro"}
_OWN = {"grammar.min_count": 1, "systems": ("primary", "max-violation")}
ABLATIONS = {
  "mert": {"systems": ("primary", "local", "max-violation")},
  "forest-mert": {"tune.method": "forest-mert", "systems": ("primary",)},
  "pro": {"tune.method": "pro", "systems": ("primary",)},
  "all-rules": _OWN,
  "left-out": {**_OWN, "learn.leave_one_out": "singletons"},
  "slow": {"learn.rate": 0.2, "learn.dense_rate": 0.002},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["method"],
  "gain": True,
  "rows": [
    *([name, name, "primary"] for name in _TUNERS),
    ["local update", "mert", "local"],
    ["max-violation", "mert", "max-violation"],
    ["max-violation, all rules", "all-rules", "max-violation"],
    ["the same, own rules left out", "left-out", "max-violation"],
    ["max-violation, slow steps", "slow", "max-violation"],
  ],
}
