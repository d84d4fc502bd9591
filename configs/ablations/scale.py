"""What the scale of the weights does to loss-augmented training.

    python launch/sweep.py --study=configs/ablations/scale.py --workdir=runs/s
    python tools/table.py runs/s

Tuning does not determine the scale of weights, but α1, α2 and posteriors are
relative to it. "one" multiplies them so that the language model's ln p weighs 1
before training; "tuned" leaves them as they are; "three" makes them larger.
"""

BASE = "configs/quickstart.py:study"
NOTE = "The scale of weights before loss-augmented training."
SYSTEM = "augmented-forest"
_SYSTEMS = ("primary", "augmented-forest")
ABLATIONS = {
  "one": {"systems": _SYSTEMS, "theta.scale": 1.0},
  "tuned": {"systems": _SYSTEMS, "theta.scale": 0.0},
  "three": {"systems": _SYSTEMS, "theta.scale": 3.0},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["weights"],
  "gain": True,
  "rows": [
    ["relative frequencies", "one", "primary"],
    ["language model weighs 1", "one", "augmented-forest"],
    ["as tuned", "tuned", "augmented-forest"],
    ["language model weighs 3", "three", "augmented-forest"],
  ],
}
