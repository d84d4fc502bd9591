"""Table VII of loss-augmented training: the margin k_m of the beam loss.

    python launch/sweep.py --study=configs/ablations/table07_margin.py \
      --workdir=runs/table07
    python tools/table.py runs/table07

Forest counts, no interpolation.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by k_m when α1 = 0.1, α2 = 0, C = 15."
SYSTEM = "primary"
_VALUES = (0, 5, 10, 15, 20, 30)
ABLATIONS = {
  f"margin-{value}": {
    "theta.margin": value,
    "theta.cost": 15.0,
    "theta.alpha2": 0.0,
    "interpolation": 0.0,
  }
  for value in _VALUES
}
SEEDS = (0,)
LAYOUT = {
  "kind": "rows",
  "headings": ["k_m"],
  "gain": True,
  "rows": [
    ["primary baseline", "margin-0", "primary"],
    *([str(v), f"margin-{v}", "augmented-forest"] for v in _VALUES),
  ],
}
