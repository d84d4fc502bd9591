"""Which tuning method is best? All on one embedded corpus, several seeds.

    python launch/sweep.py --study=configs/ablations/tuners.py --workdir=runs/t
    python tools/table.py runs/t

The corpus is the same for all seeds: deviations are those of the methods. Every
method starts from the same weights, the row "untuned". Most learn from the
merged lists of all sentences. All rows "forest-..." learn from the decoder's
forests. "mira-online" and "risk-online" learn from batches of 25, decoding
each with the weights of the last; "search-aware" from partial translations;
"candidates-..." from lists with samples of forests, their oracles, or
derivations of the references; "mixed-..." on four shards; "features-..." with
sparse features. `launch/rerank.py` and `launch/tune_search.py` are no methods
of this loop.
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
  "risk-online": {
    **_with("risk", "optimizer=adagrad", "rate=0.02"),
    "tune.batch_size": 25,
  },
  "kbmira-corpus-oracle": _with("kbmira", "costs=corpus-oracle"),
  **{
    f"search-aware-{name}": {**_with(name), "tune.stages": 3}
    for name in ("mert", "kbmira")
  },
  **{
    f"candidates-{name}": {
      **_with("kbmira"),
      "tune.candidates": ("kbest", name) if name != "sampled" else (name,),
    }
    for name in ("sampled", "oracle", "forced")
  },
  **{
    f"mixed-{name}": {
      **_with("perceptron", "passes=2"),
      "tune.mixing": ("shards=4", "rounds=5", *settings),
    }
    for name, settings in (
      ("uniform", ()),
      ("updates", ("weighting=updates",)),
      ("mean", ("mean=true",)),
      ("asynchronous", ("delay=3",)),
    )
  },
  **{
    f"features-{name}": {**_with("risk"), "tune.templates": (name,)}
    for name in ("bins", "all-pairs", "rule-bigrams")
  },
}
SEEDS = (0, 1, 2)
