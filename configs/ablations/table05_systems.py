"""Table V of loss-augmented training: all systems, with interpolation.

    python launch/sweep.py --study=configs/ablations/table05_systems.py \
      --workdir=runs/table05
    python tools/table.py runs/table05

Trained probabilities are shared between the values of b: only tuning is done
again. Sentences that a baseline has no derivation for give it no counts; with
"fall-back counts" they give counts of extraction instead, as loss-augmented
training does: then baselines are mixtures with relative frequency, and the
share of these counts stands beside the scores. Hiero alone and tree-to-string
alone stand below, with and without. `+` marks what is better than all seven
baselines with the same b.
"""

BASE = "configs/quickstart.py:study"
NOTE = "BLEU of the baselines and of loss-augmented training."
SYSTEM = "primary"
BASELINE = "b-0.5"  # the same baseline for every b; the entry to run first
_NAMES = {
  "primary": "primary baseline",
  "forced": "forced decoding",
  "searn": "SEARN",
  "best-bleu": "best BLEU in the n-best list",
  "viterbi": "Viterbi training",
  "nbest": "n-best training",
  "forest": "forest training",
  "augmented-viterbi": "loss-augmented (Viterbi)",
  "augmented-nbest": "loss-augmented (n-best)",
  "augmented-forest": "loss-augmented (forest)",
}
_SHARES = (0.0, 0.1, 0.5, 0.9)
_SINGLE = {"hiero": "Hiero", "t2s": "tree-to-string"}
ABLATIONS = {
  **{
    f"b-{share:g}": {"interpolation": share, "systems": tuple(_NAMES)}
    for share in _SHARES
  },
  "b-0.5-scaled": {
    "interpolation": 0.5,
    "systems": tuple(_NAMES),
    "theta.fallback": "scaled",
  },
  **{
    kind: {"grammar.kind": kind, "systems": ("primary", "augmented-forest")}
    for kind in _SINGLE
  },
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["b", "system"],
  "gain": True,
  "against": [name for name in _NAMES if not name.startswith("augmented")],
  "rows": [
    *(
      [f"{share:g}", label, f"b-{share:g}", name]
      for share in _SHARES
      for name, label in _NAMES.items()
    ),
    *(
      ["0.5", f"{label}, fall-back counts", "b-0.5-scaled", name]
      for name, label in _NAMES.items()
      if name != "primary"
    ),
    *(
      ["0.5", f"{label}{more}", kind, name]
      for kind, label in _SINGLE.items()
      for name, more in (
        ("primary", " alone"),
        ("augmented-forest", ", loss-augmented"),
      )
    ),
  ],
}
