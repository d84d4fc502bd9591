"""Which tuning method is best? All on one embedded corpus, several seeds.

    python launch/sweep.py --study=configs/ablations/tuners.py --workdir=runs/t
    python tools/table.py runs/t

The corpus is the same for all seeds: deviations are those of the methods. Every
method starts from the same weights, the row "untuned". Most learn from the
merged lists of all sentences. All rows "forest-..." learn from the decoder's
forests. "mira-online" learns from batches of 25, decoding each
with the weights of the last. `tuners_survey` has further methods and options.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Tuning methods with the decoder in the loop, from the same weights."
SYSTEM = "primary"
_SHARED = {
  "data.seed": 0,
  "data.synthetic.train": 1000,
  "data.synthetic.monolingual": 0,
  "data.synthetic.tune": 250,
  "data.synthetic.test": 500,
  "lm.bitext": True,
  "search.beam": 10,
  "search.pop": 50,
  "systems": ("primary",),
  "tune.rounds": 10,
}
_METHODS = (
  "mert",
  "forest-mert",
  "pro",
  "kbmira",
  "mira",
  "perceptron",
  "arow",
  "ramp1",
  "ramp2",
  "ramp3",
  "softramp1",
  "softramp2",
  "softramp3",
  "softmax",
  "softmax-margin",
  "risk",
  "annealed-risk",
  "linear-bleu",
  "xbleu",
  "hinge",
  "structured-hinge",
  "relative-margin",
  "cross-entropy-ranking",
  "mse",
  "zero-one",
  "nelder-mead",
  "particle-swarm",
  "lp-mert",
  "gradient-mert",
  "minibatch-mira",
  "batched-perceptron",
)
_FOREST_METHODS = ("risk", "softmax", "softramp2", "xbleu", "kbmira", "ramp2")


def _with(method: str, *options: str) -> dict:
  return {**_SHARED, "tune.method": method, "tune.options": options}


ABLATIONS = {
  "untuned": {**_SHARED, "tune.rounds": 0},
  **{name: {**_SHARED, "tune.method": name} for name in _METHODS},
  **{
    f"forest-{name}": {
      **_SHARED,
      "tune.method": name,
      "tune.space": "forest",
    }
    for name in _FOREST_METHODS
  },
  "mert-walk": _with("mert", "starts=walk", "spread=0.3"),
  "mert-margin": _with("mert", "margin=0.01"),
  "mert-l2": _with("mert", "regularizer=l2", "strength=0.02"),
  "mert-l0": _with("mert", "regularizer=l0", "strength=0.02"),
  "perceptron-decayed": _with("perceptron", "decay=0.99"),
  "arow-decayed": _with("arow", "decay=0.99"),
  "kbmira-meteor": {
    **_SHARED,
    "tune.method": "kbmira",
    "tune.metric": "meteor",
  },
  "mira-online": {**_SHARED, "tune.method": "mira", "tune.batch_size": 25},
}
SEEDS = (0, 1, 2)
