"""Figure 8 of loss-augmented training: BLEU against beam width.

    python launch/sweep.py --study=configs/ablations/figure08_beam.py \
      --workdir=runs/figure08
    python tools/plot.py runs/figure08

The width is that of decoding, for both systems, and the k of the beam loss;
training searches with 70 hypotheses more, as 100 are to 30.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by beam width."
SYSTEM = "primary"
_BEAMS = (30, 50, 100, 150, 200)
_NAMES = {"baseline": "primary", "loss-augmented": "augmented-forest"}
ABLATIONS = {
  f"beam-{beam}": {
    "search.beam": beam,
    "search.pop": max(200, beam * 5 // 2),
    "theta.k": beam,
    "theta.train_beam": beam + 70,
    "theta.train_pop": (beam + 70) * 5 // 2,
  }
  for beam in _BEAMS
}
SEEDS = (0,)
LAYOUT = {
  "kind": "curves",
  "x": "beam width",
  "panels": [
    {
      "title": f"BLEU on {part}",
      "y": part,
      "series": {
        label: [[beam, f"beam-{beam}", name] for beam in _BEAMS]
        for label, name in _NAMES.items()
      },
    }
    for part in ("tune", "test")
  ],
}
