"""What else the survey has: options of tuning beside the methods themselves.

    python launch/sweep.py --study=configs/ablations/tuners_survey.py \
      --workdir=runs/s
    python tools/table.py runs/s

As `tuners`, with a smaller corpus and fewer rounds. Each entry changes one
thing about a method that stands above it. "search-aware" learns from partial
translations, too; "candidates-..." from lists with samples of forests, their
oracles, or derivations of the references; "mixed-..." on four shards;
"features-..." has sparse features; "risk-online" learns from batches of 25,
decoding each with the weights of the last. `launch/rerank.py` and
`launch/tune_search.py` are no methods of this loop.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Options of tuning with the decoder in the loop, from the same weights."
SYSTEM = "primary"
_SHARED = {
  "data.seed": 0,
  "data.synthetic.train": 600,
  "data.synthetic.monolingual": 0,
  "data.synthetic.tune": 100,
  "data.synthetic.test": 300,
  "lm.bitext": True,
  "search.beam": 10,
  "search.pop": 50,
  "systems": ("primary",),
  "tune.rounds": 4,
  "inspect.changed": 1,
  "inspect.sample": 1,
}


def _with(method: str, *options: str) -> dict:
  return {**_SHARED, "tune.method": method, "tune.options": options}


ABLATIONS = {
  "untuned": {**_SHARED, "tune.rounds": 0},
  **{
    name: _with(name)
    for name in (
      *("mert", "gradient-mert", "lp-mert", "particle-swarm"),
      *("kbmira", "minibatch-mira", "perceptron", "batched-perceptron"),
      *("arow", "risk"),
    )
  },
  "mert-walk": _with("mert", "starts=walk", "spread=0.3"),
  "mert-margin": _with("mert", "margin=0.01"),
  "mert-l2": _with("mert", "regularizer=l2", "strength=0.02"),
  "perceptron-decayed": _with("perceptron", "decay=0.99"),
  "arow-decayed": _with("arow", "decay=0.99"),
  "kbmira-meteor": {**_with("kbmira"), "tune.metric": "meteor"},
  "risk-online": {
    **_with("risk", "optimizer=adagrad", "rate=0.02"),
    "tune.batch_size": 25,
  },
  "perceptron-corpus-oracle": _with(
    "perceptron", "costs=corpus-oracle", "surrogate=oracle"
  ),
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
