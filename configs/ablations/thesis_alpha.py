"""Tables 3.1 and 3.8 of Gimpel (2012): the weight of the cost in each loss.

    python launch/sweep.py --study=configs/ablations/thesis_alpha.py \
      --workdir=runs/alpha
    python tools/table.py runs/alpha

The learners as printed (`thesis-...`), with Hiero on the embedded corpus in
place of phrases on Urdu-English. Lists of all rounds are merged; table 3.1 also
has lists of single rounds, which the loop does not offer.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU (tune/test) by loss and α."
SYSTEM = "primary"
_LOSSES = (
  "ramp1",
  "ramp2",
  "ramp3",
  "softramp1",
  "softramp2",
  "softramp3",
  "risk",
)
_SCALES = (0.1, 0.5, 1.0, 10.0, 20.0, 50.0, 100.0)
_SHARED = {
  "data.seed": 0,
  "grammar.kind": "hiero",
  "systems": ("primary",),
  "tune.nbest": 500,
  "tune.rounds": 20,
}
ABLATIONS = {
  f"{name}-{scale:g}": {
    **_SHARED,
    "tune.method": f"thesis-{name}",
    "tune.options": (f"cost_scale={scale:g}",),
  }
  for name in _LOSSES
  for scale in _SCALES
}
SEEDS = (0,)
LAYOUT = {
  "kind": "grid",
  "corner": "loss / α",
  "columns": [f"{scale:g}" for scale in _SCALES],
  "rows": [
    [name, *([f"{name}-{scale:g}", "primary"] for scale in _SCALES)]
    for name in _LOSSES
  ],
}
