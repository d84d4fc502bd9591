"""Tables 3.2 and 3.3 of Gimpel (2012): the learners side by side.

    python launch/sweep.py --study=configs/ablations/thesis_losses.py \
      --workdir=runs/losses
    python tools/table.py runs/losses

The thesis has five language pairs, with phrases (3.2) and with Hiero (3.3);
here it is Hiero on the embedded corpus. Rows that the thesis has not: the
perceptron towards the reference where lists reach it, and ramp 2 with a weight
of the cost for each sentence (Eq 3.10).
"""

BASE = "configs/quickstart.py:study"
NOTE = "The learners of the thesis, from the same weights."
SYSTEM = "primary"
BASELINE = "mert"
_SHARED = {
  "data.seed": 0,
  "grammar.kind": "hiero",
  "systems": ("primary",),
  "tune.nbest": 500,
  "tune.rounds": 20,
}
_METHODS = {
  "mert": "mert",
  "ramp1": "thesis-ramp1",
  "ramp2": "thesis-ramp2",
  "ramp3": "thesis-ramp3",
  "soft1": "thesis-softramp1",
  "soft2": "thesis-softramp2",
  "soft3": "thesis-softramp3",
  "risk": "thesis-risk",
  "pro": "pro-interpolated",
  "ramp2-gamma": "ramp2-gamma",
}
ABLATIONS = {
  **{
    name: {**_SHARED, "tune.method": method}
    for name, method in _METHODS.items()
  },
  "perceptron-ref": {
    **_SHARED,
    "tune.method": "perceptron",
    "tune.options": ("surrogate=ref",),
  },
}
SEEDS = (0, 1, 2)
