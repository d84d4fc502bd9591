"""Table II of loss-augmented training: the weight of the goodness loss alone.

    python launch/sweep.py --study=configs/ablations/table02_goodness_loss.py \
      --workdir=runs/table02
    python tools/table.py runs/table02

Forest counts, no interpolation.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by varying α2 when α1 = 0."
SYSTEM = "primary"
_VALUES = (0.0, 0.1, 1.0, 5.0, 10.0)
ABLATIONS = {
  f"a2-{value:g}": {
    "theta.alpha1": 0.0,
    "theta.alpha2": value,
    "interpolation": 0.0,
  }
  for value in _VALUES
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["α2"],
  "gain": True,
  "rows": [
    ["primary baseline", "a2-0", "primary"],
    *([f"{v:g}", f"a2-{v:g}", "augmented-forest"] for v in _VALUES),
  ],
}
