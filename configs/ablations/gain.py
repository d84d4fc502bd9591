"""Does loss-augmented training gain on a small corpus, and what does it take?

    python launch/sweep.py --study=configs/ablations/gain.py --workdir=runs/gain
    python tools/table.py runs/gain

2,000 pairs of the embedded corpus; forest counts, b = 0.5. "loss-augmented" is
how the experiments here are run: add-alpha smoothing with 0.02, the sentence's
own counts left out. Then one thing at a time is as in the paper or missing:
smoothing with 0.5, own counts kept, weights tuned from where the baseline's
were and not from the baseline's, no loss (counts of what the search finds, near
the reference or not). "tuned again" has no new probabilities: it tells what
tuning once more gives. "forest training" counts the derivations that reach the
reference.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Loss-augmented training of 2,000 pairs, and what it takes."
SYSTEM = "primary"
WITHIN = True
_SHARED = {
  "data.synthetic.train": 2000,
  "data.synthetic.tune": 400,
  "data.synthetic.test": 1500,
  "tune.rounds": 8,
}
ABLATIONS = {
  "as-here": {
    **_SHARED,
    "systems": ("primary", "retuned", "forest", "augmented-forest"),
  },
  "alpha-0.5": {**_SHARED, "theta.alpha": 0.5},
  "own-kept": {**_SHARED, "theta.leave_one_out": "none"},
  "cold-start": {**_SHARED, "warm_start": False},
  "no-loss": {
    **_SHARED,
    "theta.alpha1": 0.0,
    "theta.alpha2": 0.0,
    "theta.constraint": 1e6,
  },
}
SEEDS = (2, 3, 4)
LAYOUT = {
  "kind": "rows",
  "headings": ["system"],
  "gain": True,
  "rows": [
    ["primary baseline", "as-here", "primary"],
    ["tuned again", "as-here", "retuned"],
    ["forest training", "as-here", "forest"],
    ["loss-augmented", "as-here", "augmented-forest"],
    ["alpha = 0.5", "alpha-0.5", "augmented-forest"],
    ["own counts kept", "own-kept", "augmented-forest"],
    ["weights from the start", "cold-start", "augmented-forest"],
    ["no loss, no constraint", "no-loss", "augmented-forest"],
  ],
}
