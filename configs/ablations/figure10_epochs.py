"""Figure 10 of loss-augmented training: BLEU by epochs of θ and weights.

    python launch/sweep.py --study=configs/ablations/figure10_epochs.py \
      --workdir=runs/figure10
    python tools/plot.py runs/figure10

Epoch 0 is the baseline; b = 0.5.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU by epochs T: θ trained, weights tuned, again."
SYSTEM = "primary"
_LAST = 4
_NAMES = {
  "Viterbi": "augmented-viterbi",
  "n-best": "augmented-nbest",
  "forest": "augmented-forest",
}
ABLATIONS = {
  f"t-{number}": {"epochs": number, "systems": ("primary", *_NAMES.values())}
  for number in range(1, _LAST + 1)
}
SEEDS = (0,)
LAYOUT = {
  "kind": "curves",
  "x": "epochs",
  "panels": [
    {
      "title": f"BLEU on {part}",
      "y": part,
      "series": {
        label: [
          [0, "t-1", "primary"],
          *([n, f"t-{n}", name] for n in range(1, _LAST + 1)),
        ]
        for label, name in _NAMES.items()
      },
    }
    for part in ("tune", "test")
  ],
}
