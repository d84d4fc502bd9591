"""Lists or forests? Three losses in both spaces on one embedded corpus.

    python launch/sweep.py --study=configs/ablations/spaces.py --workdir=runs/s
    python tools/table.py runs/s

Each loss is minimised over merged 100-best lists, and over all derivations of
the decoder's forests together with the candidates of earlier rounds. In lists
costs are 1 - BLEU+1 of a sentence; forests need costs that are sums over edges,
so theirs are linear BLEU. Every seed has a corpus of its own: the methods
themselves draw nothing at random. "untuned" has the weights they all start
from.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Losses over k-best lists and over forests, from the same weights."
SYSTEM = "primary"
_SHARED = {
  "data.synthetic.train": 600,
  "data.synthetic.monolingual": 0,
  "data.synthetic.tune": 100,
  "data.synthetic.test": 300,
  "lm.bitext": True,
  "search.beam": 10,
  "search.pop": 50,
  "systems": ("primary",),
  "tune.rounds": 4,
}
_LOSSES = ("risk", "softmax", "softramp2")
_SPACES = ("kbest", "forest")
ABLATIONS = {
  "untuned": {**_SHARED, "tune.rounds": 0},
  **{
    f"{name}-{space}": {**_SHARED, "tune.method": name, "tune.space": space}
    for name in _LOSSES
    for space in _SPACES
  },
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["loss", "space"],
  "gain": True,
  "rows": [
    ["untuned", "", "untuned", "primary"],
    *(
      [name, space, f"{name}-{space}", "primary"]
      for name in _LOSSES
      for space in _SPACES
    ),
  ],
}
