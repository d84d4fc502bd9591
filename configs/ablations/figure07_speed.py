"""Figure 7 of loss-augmented training: training speed against beam width.

    python launch/sweep.py --study=configs/ablations/figure07_speed.py \
      --workdir=runs/figure07
    python tools/plot.py runs/figure07

Forest counts, all cores; the second iteration, as the first one compiles. The
baseline's training is extraction and counting, whatever the beam.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Sentences of the training text decoded in a second."
SYSTEM = "primary"
_BEAMS = (30, 50, 100, 150, 200)
ABLATIONS = {
  f"beam-{beam}": {
    "theta.train_beam": beam,
    "theta.train_pop": beam * 5 // 2,
    "theta.iterations": 2,
  }
  for beam in _BEAMS
}
SEEDS = (0,)
LAYOUT = {
  "kind": "curves",
  "x": "beam width",
  "panels": [
    {
      "title": "sentences/s",
      "y": "sentences_per_second",
      "series": {
        "loss-augmented": [
          [beam, f"beam-{beam}", "augmented-forest"] for beam in _BEAMS
        ],
        "relative frequency": [
          [beam, f"beam-{beam}", "primary"] for beam in _BEAMS
        ],
      },
    }
  ],
}
