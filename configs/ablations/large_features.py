"""Many sparse features: who overfits? After Gimpel (2012), section 3.5.3.

    python launch/sweep.py --study=configs/ablations/large_features.py \
      --workdir=runs/large
    python tools/table.py runs/large

Every method tunes the dense features alone ("small") and with an indicator of
each rule, word pairs linked by rules and target bigrams ("large", more than
7,000 features). Compare what each gains on tune with what is left on test. The
first two take part in the search; bigrams re-rank its k-best lists.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Dense features alone, and with thousands of sparse ones."
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
_LARGE = {"tune.templates": ("rule", "pairs", "bigrams")}
_METHODS = ("ramp3", "softramp2", "risk", "pro", "kbmira")
ABLATIONS = {
  "untuned": {**_SHARED, "tune.rounds": 0},
  **{
    f"{name}-{size}": {**_SHARED, **more, "tune.method": name}
    for name in _METHODS
    for size, more in (("small", {}), ("large", _LARGE))
  },
}
SEEDS = (0, 1, 2)
