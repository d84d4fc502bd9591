"""What cleaning of a noisy bitext gives, in phrase-based translation.

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/cleaning.py --workdir=D
    python tools/table.py D

Cui et al. (2013), table 2: filtering and weighting by a random walk over
sentence and phrase pairs, beside leaving-one-out (Wuebker et al. 2010) and
significance pruning (Johnson et al. 2007). `clean` has the same pairs without
noise. A seed is that of the noise, too, so that each has other noisy pairs.
"""

BASE = "configs/cleaning.py"
NOTE = "30 % of the pairs have noise of four kinds."
BASELINE = "as-it-is"
SYSTEM = "primary"
ABLATIONS = {
  "as-it-is": {"systems": ("primary", "retuned")},
  "clean": {"data.files.noise": ()},
  "keep-0.9": {"grammar.keep": 0.9},
  "keep-0.7": {"grammar.keep": 0.7},
  "weighted": {"grammar.weighted": True},
  "significance": {"grammar.phrases.significance": "a+e"},
  "twice": {"grammar.min_count": 2},
  "leaving-one-out": {"systems": ("primary", "forced")},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["cleaning"],
  "gain": True,
  "rows": [
    ["none", "as-it-is", "primary"],
    ["none, weights tuned again", "as-it-is", "retuned"],
    ["leaving-one-out, by lengths", "leaving-one-out", "forced"],
    ["without phrase pairs seen once", "twice", "primary"],
    ["significance pruning, a + e", "significance", "primary"],
    ["without the worst 10 % of the pairs", "keep-0.9", "primary"],
    ["without the worst 30 %", "keep-0.7", "primary"],
    ["two more probabilities, of weighted pairs", "weighted", "primary"],
    ["the same pairs without noise", "clean", "primary"],
  ],
}
