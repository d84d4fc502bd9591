"""Topics of rules and sentences, beside the same system without them.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/neural_topics.py \
      --workdir=D
    python tools/table.py D

Cui et al. (2014), on Kyoto Japanese-English with its articles as documents;
`topic-mixtures` is their baseline, topics by latent Dirichlet allocation.
"""

BASE = "configs/neural.py:topics"
NOTE = "Features of topics, tuned with the others from the baseline's weights."
SYSTEM = "primary"
ABLATIONS = {"kyoto": {}}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["features"],
  "gain": True,
  "rows": [
    ["the usual ones", "kyoto", "primary"],
    ["the same, tuned again", "kyoto", "retuned"],
    ["topics by LDA", "kyoto", "topic-mixtures"],
    ["topics by auto-encoders", "kyoto", "topics"],
  ],
}
