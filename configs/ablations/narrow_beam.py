"""Does the beam loss matter where the beam is narrow?

    python launch/sweep.py --study=configs/ablations/narrow_beam.py \
      --workdir=runs/narrow
    python tools/table.py runs/narrow

The decoding beam is k; the margin is half of it and training searches with 100
hypotheses, as everywhere. `beam loss` is the mean loss_beam of the derivations
learned from, `changed` the share of counts that the beam loss moves, `beyond k`
the share of their parts that the plain decoder ranks after k. With
`--config=configs/real.py` and file paths it runs on a corpus of your own.
"""

BASE = "configs/quickstart.py:study"
NOTE = "What the beam loss changes, by the width of the beam."
SYSTEM = "primary"
WITHIN = True
_BEAMS = (3, 5, 10, 30)
_WEIGHTS = (0.0, 0.1, 1.0, 10.0)
ABLATIONS = {
  f"k-{beam}-a1-{weight:g}": {
    "search.beam": beam,
    "theta.k": beam,
    "theta.margin": beam // 2,
    "theta.alpha1": weight,
    "theta.diagnose": 1,
    "theta.iterations": 1,
  }
  for beam in _BEAMS
  for weight in _WEIGHTS
}
SEEDS = (0,)
