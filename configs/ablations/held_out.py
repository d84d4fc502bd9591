"""What if the models have seen the sentences that θ is trained on?

    python launch/sweep.py --study=configs/ablations/held_out.py \
      --workdir=runs/held_out
    python tools/table.py runs/held_out

A language model of the training text knows its references, and every sentence
has rules of its own: the search then finds the references with or without a
loss. Here the language model is of the training text or of other text as large,
and a sentence's own counts are kept or left out. Loss-augmented training
(forest, b = 0.5) stands beside the baseline with the same language model.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Loss-augmented training with and without text the models have seen."
SYSTEM = "primary"
WITHIN = True
_LM = {
  "seen-lm": {"lm.bitext": True, "data.synthetic.monolingual": 0},
  "other-lm": {"lm.bitext": False, "data.synthetic.monolingual": 1000},
}
_OWN = {"kept": "none", "left-out": "counts"}
ABLATIONS = {
  f"{lm}-{own}": {
    **changes,
    "theta.leave_one_out": kind,
    "theta.iterations": 2,
    "tune.method": "kbmira",
    "tune.rounds": 8,
  }
  for lm, changes in _LM.items()
  for own, kind in _OWN.items()
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["language model", "own counts", "system"],
  "gain": True,
  "rows": [
    [
      "training text" if lm == "seen-lm" else "other text",
      own.replace("-", " "),
      label,
      f"{lm}-{own}",
      system,
    ]
    for lm in _LM
    for own in _OWN
    for system, label in (
      ("primary", "primary"),
      ("augmented-forest", "loss-augmented"),
    )
  ],
}
