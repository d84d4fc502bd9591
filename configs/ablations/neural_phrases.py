"""Similarity of phrases and a network of derivations, Chinese-English.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/neural_phrases.py \
      --workdir=D
    python tools/table.py D

Bilingually-constrained recursive auto-encoders (Zhang et al. 2014) and a
recursive recurrent network (Liu et al. 2014) in a bracketing grammar of
Tatoeba, both trained on the baseline's forced derivations of 2,000 pairs. The
entry `given` begins with given word vectors, `random` with random ones.
"""

BASE = "configs/neural.py:tatoeba"
NOTE = "Trained models, tuned with the others from the baseline's weights."
SYSTEM = "primary"
ABLATIONS = {
  "random": {"neural.source_vectors": "", "neural.target_vectors": ""},
  "given": {"systems": ("primary", "similarity")},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["features"],
  "gain": True,
  "rows": [
    ["the usual ones", "random", "primary"],
    ["the same, tuned again", "random", "retuned"],
    ["similarity (BRAE), random words", "random", "similarity"],
    ["similarity (BRAE), given word vectors", "given", "similarity"],
    ["network of derivations (R2NN)", "random", "recursive"],
  ],
}
