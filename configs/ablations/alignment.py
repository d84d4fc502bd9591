"""What does a better word alignment give a Hiero system?

    python launch/sweep.py --study=configs/ablations/alignment.py \
      --workdir=runs/al --config=configs/real.py \
      --config.data.files.train_source=train.fr ... \
      --config.align.gold=gold/dev
    python tools/table.py runs/al

The hand-aligned pairs are gold/dev.fr, gold/dev.en and gold/dev.align; entries
without ITG do without them. One system, Hiero with relative frequencies. The
rows of Liu, Li & Zhou (Coling 2010, ACL 2010) and Yang et al. (ACL 2013):
simpler aligners, ITG with word pairs and with rules by each pruner,
semi-supervised rounds (EMD), the neural aligner, as in the paper and with the
settings that are better on small bitexts.
"""

BASE = "configs/real.py"
NOTE = "Alignment quality against BLEU."
BASELINE = "hmm"
_SYSTEMS = {"systems": ("primary",)}
_ITG = {**_SYSTEMS, "align.model": "itg"}
ABLATIONS = {
  "hmm": {**_SYSTEMS, "align.model": "hmm"},
  "diagonal": {**_SYSTEMS, "align.model": "diagonal"},
  "w": {**_ITG, "align.kind": "w"},
  "hp": {**_ITG, "align.kind": "hp"},
  "hp-tic-tac-toe": {
    **_ITG,
    "align.kind": "hp",
    "align.pruner": "tic-tac-toe",
  },
  "hp-dp": {**_ITG, "align.kind": "hp", "align.pruner": "dp"},
  "hp-mert": {**_ITG, "align.kind": "hp", "align.training": "mert"},
  "emd": {**_ITG, "align.kind": "hp", "align.emd_rounds": 3},
  "neural": {**_SYSTEMS, "align.model": "neural"},
  "neural-softmax": {
    **_SYSTEMS,
    "align.model": "neural",
    "align.objective": "softmax",
    "align.start": 1.0,
    "align.window": 1,
    "align.epochs": 10,
  },
}
_NAMES = {
  "hmm": "HMM",
  "diagonal": "diagonal model",
  "w": "W-ITG, DPDI",
  "hp": "HP-ITG, DPDI",
  "hp-tic-tac-toe": "HP-ITG, tic-tac-toe",
  "hp-dp": "HP-ITG, DP pruning",
  "hp-mert": "HP-ITG, DPDI, weights by MERT",
  "emd": "HP-ITG, DPDI, EMD rounds",
  "neural": "neural HMM",
  "neural-softmax": "neural HMM, softmax, windows of one word",
}
LAYOUT = {
  "kind": "rows",
  "headings": ["aligner"],
  "gain": True,
  "measures": {"rules": "rules"},
  "rows": [[name, entry, "primary"] for entry, name in _NAMES.items()],
}
SEEDS = (0,)
