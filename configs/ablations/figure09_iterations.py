"""Figure 9 of loss-augmented training: BLEU and model score by iteration.

    python launch/sweep.py --study=configs/ablations/figure09_iterations.py \
      --workdir=runs/figure09
    python tools/plot.py runs/figure09

Iteration 0 is the baseline; b = 0.5. The model score at n is that of the best
derivations iteration n selects, under the probabilities it starts from.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU, and model score of the best derivations, by iteration I."
SYSTEM = "primary"
_LAST = 5
_NAMES = {
  "Viterbi": "augmented-viterbi",
  "n-best": "augmented-nbest",
  "forest": "augmented-forest",
}
ABLATIONS = {
  f"i-{number}": {
    "theta.iterations": number,
    "systems": ("primary", *_NAMES.values()),
  }
  for number in range(1, _LAST + 1)
}
SEEDS = (0,)
LAYOUT = {
  "kind": "curves",
  "x": "iterations",
  "panels": [
    {
      "title": title,
      "y": quantity,
      "series": {
        label: [
          *([[0, "i-1", "primary"]] if quantity in ("tune", "test") else []),
          *([n, f"i-{n}", name] for n in range(1, _LAST + 1)),
        ]
        for label, name in _NAMES.items()
      },
    }
    for title, quantity in (
      ("BLEU on tune", "tune"),
      ("BLEU on test", "test"),
      ("model score, mean of the best derivations", "model_score"),
    )
  ],
}
