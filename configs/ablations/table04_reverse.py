"""Table IV of loss-augmented training: both losses, the other way round.

    python launch/sweep.py --study=configs/ablations/table04_reverse.py \
      --workdir=runs/table04
    python tools/table.py runs/table04

The corpus turned round; the embedded one, English to Chinese. It has no trees
of the other side, so this is Hiero alone. Cells are tune/test.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU (tune/test) by α1 and α2, the other direction."
SYSTEM = "primary"
_REVERSE = {"data.reverse": True, "grammar.kind": "hiero"}
_BEAM = (0.0, 0.01, 0.1, 1.0)
_GOODNESS = (0.0, 0.1, 1.0, 5.0, 10.0)
ABLATIONS = {
  f"a1-{one:g}-a2-{two:g}": {
    "theta.alpha1": one,
    "theta.alpha2": two,
    "interpolation": 0.0,
    **_REVERSE,
  }
  for two in _GOODNESS
  for one in _BEAM
}
SEEDS = (0,)
LAYOUT = {
  "kind": "grid",
  "corner": "α2 / α1",
  "columns": [f"{one:g}" for one in _BEAM],
  "rows": [
    [
      f"{two:g}",
      *([f"a1-{one:g}-a2-{two:g}", "augmented-forest"] for one in _BEAM),
    ]
    for two in _GOODNESS
  ],
}
