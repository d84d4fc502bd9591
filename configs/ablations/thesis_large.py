"""Tables 3.4 to 3.7 of Gimpel (2012): 7,200 features of phrase lattices.

    python launch/sweep.py --study=configs/ablations/thesis_large.py \
      --workdir=runs/large
    python tools/table.py runs/large
    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/thesis_large.py \
      --config=configs/formalisms.py:multi30k --workdir=runs/large-multi30k

Each round: phrase lattices with the weights so far, pruned by max-marginals (a
hundredth of the best path's probability, 2,000 edges), cube pruning over them
with 1,000 word pairs, 200, 1,000 and 1,000 n-grams and 4,000 triggers, 200
paths a node, k-best lists, and an update of all weights. "small" has none of
these features and a single pass. The thesis has a language pair in each of the
four tables; `--config` chooses the corpus here. What a learner gains on tune is
to be compared with what is left on test: in the thesis PRO gains most on tune
and loses about one point on test.
"""

BASE = "configs/formalisms.py"
NOTE = "Dense features alone (small), and with 7,200 sparse ones (large)."
SYSTEM = "primary"
BASELINE = "ramp3-small"
_SHARED = {
  "grammar.kind": "phrase",
  "tune.nbest": 200,
  "tune.rounds": 20,
}
_LARGE = {"tune.templates": ("frequent",)}
_METHODS = {
  "ramp3": "thesis-ramp3",
  "soft2": "thesis-softramp2",
  "risk": "thesis-risk",
  "pro": "pro-interpolated",
}
ABLATIONS = {
  f"{name}-{size}": {**_SHARED, **more, "tune.method": method}
  for name, method in _METHODS.items()
  for size, more in (("small", {}), ("large", _LARGE))
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "grid",
  "corner": "learner",
  "columns": ["small", "large"],
  "rows": [
    [name, [f"{name}-small", "primary"], [f"{name}-large", "primary"]]
    for name in _METHODS
  ],
}
