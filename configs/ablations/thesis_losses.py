"""Tables 3.2 and 3.3 of Gimpel (2012): the learners side by side.

    python launch/sweep.py --study=configs/ablations/thesis_losses.py \
      --workdir=runs/losses
    python tools/table.py runs/losses

Table 3.2 has phrases, table 3.3 Hiero; the thesis has five language pairs, here
it is the embedded corpus. `--config=configs/formalisms.py:multi30k` is a real
one (and its like for others). Rows that the thesis has not: the perceptron
towards the reference where lists reach it, and ramp 2 with a weight of the cost
for each sentence (Eq 3.10).
"""

BASE = "configs/quickstart.py:study"
NOTE = "The learners of the thesis, from the same weights."
SYSTEM = "primary"
BASELINE = "phrase-mert"
_SHARED = {
  "data.seed": 0,
  "systems": ("primary",),
  "tune.nbest": 500,
  "tune.rounds": 20,
}
_KINDS = {
  "phrase": {"search.beam": 100, "search.pop": 200},
  "hiero": {"search.beam": 30, "search.pop": 200},
}
_METHODS = {
  "ramp1": {"tune.method": "thesis-ramp1"},
  "ramp2": {"tune.method": "thesis-ramp2"},
  "ramp3": {"tune.method": "thesis-ramp3"},
  "soft1": {"tune.method": "thesis-softramp1"},
  "soft2": {"tune.method": "thesis-softramp2"},
  "soft3": {"tune.method": "thesis-softramp3"},
  "risk": {"tune.method": "thesis-risk"},
  "mert": {"tune.method": "mert"},
  "pro": {"tune.method": "pro-interpolated"},
  "ramp2-gamma": {"tune.method": "ramp2-gamma"},
  "perceptron-ref": {
    "tune.method": "perceptron",
    "tune.options": ("surrogate=ref",),
  },
}
ABLATIONS = {
  f"{kind}-{name}": {**_SHARED, **sizes, **changes, "grammar.kind": kind}
  for kind, sizes in _KINDS.items()
  for name, changes in _METHODS.items()
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "grid",
  "corner": "learner",
  "columns": ["phrases (3.2)", "Hiero (3.3)"],
  "rows": [
    [name, *([f"{kind}-{name}", "primary"] for kind in _KINDS)]
    for name in _METHODS
  ],
}
