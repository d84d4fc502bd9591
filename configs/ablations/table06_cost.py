"""Table VI of loss-augmented training: the clipping level C of the beam loss.

    python launch/sweep.py --study=configs/ablations/table06_cost.py \
      --workdir=runs/table06
    python tools/table.py runs/table06

Forest counts, no interpolation.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by C when α1 = 0.1, α2 = 0, k_m = 10."
SYSTEM = "primary"
_VALUES = (0, 1, 5, 10, 15, 20, 50, 100)
ABLATIONS = {
  f"cost-{value}": {
    "theta.cost": float(value),
    "theta.alpha2": 0.0,
    "interpolation": 0.0,
  }
  for value in _VALUES
}
SEEDS = (0,)
LAYOUT = {
  "kind": "rows",
  "headings": ["C"],
  "gain": True,
  "rows": [
    ["primary baseline", "cost-0", "primary"],
    *([str(v), f"cost-{v}", "augmented-forest"] for v in _VALUES),
  ],
}
