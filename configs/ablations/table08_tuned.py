"""Table VIII of loss-augmented training: all four parameters chosen together.

    python launch/sweep.py --study=configs/ablations/table08_tuned.py \
      --workdir=runs/table08
    python tools/table.py runs/table08

Forest counts, no interpolation.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU for the paper's best settings of α1, α2, C and k_m."
SYSTEM = "primary"
_SETTINGS = (
  (0.0, 5.0, 0, 0),
  (0.01, 5.0, 15, 15),
  (0.1, 5.0, 10, 10),
  (1.0, 1.0, 10, 10),
)
ABLATIONS = {
  f"a1-{one:g}": {
    "theta.alpha1": one,
    "theta.alpha2": two,
    "theta.cost": float(cost),
    "theta.margin": margin,
    "interpolation": 0.0,
  }
  for one, two, cost, margin in _SETTINGS
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["α1", "α2", "C", "k_m"],
  "gain": True,
  "rows": [
    [
      f"{one:g}",
      f"{two:g}",
      str(cost),
      str(margin),
      f"a1-{one:g}",
      "augmented-forest",
    ]
    for one, two, cost, margin in _SETTINGS
  ],
}
