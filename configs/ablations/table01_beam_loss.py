"""Table I of loss-augmented training: the weight of the beam loss alone.

    python launch/sweep.py --study=configs/ablations/table01_beam_loss.py \
      --workdir=runs/table01
    python tools/table.py runs/table01

Forest counts, no interpolation. With `--config=configs/real.py` and file paths
it runs on a corpus of your own.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by varying α1 when α2 = 0."
SYSTEM = "primary"
_VALUES = (0.0, 0.01, 0.1, 1.0)
ABLATIONS = {
  f"a1-{value:g}": {
    "theta.alpha1": value,
    "theta.alpha2": 0.0,
    "interpolation": 0.0,
  }
  for value in _VALUES
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["α1"],
  "gain": True,
  "rows": [
    ["primary baseline", "a1-0", "primary"],
    *([f"{v:g}", f"a1-{v:g}", "augmented-forest"] for v in _VALUES),
  ],
}
