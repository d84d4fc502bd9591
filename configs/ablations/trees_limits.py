"""Table 5.10 of Gimpel (2012): vine limits in training, BLEU and seconds.

    python launch/sweep.py --study=configs/ablations/trees_limits.py \
      --workdir=runs/limits
    python tools/table.py runs/limits

Most source and target words between linked phrases, in training and test alike
(the thesis also mixes them). Seconds of a sentence at each limit are measured
by `python tools/bench.py lattice`; a run's report has those of its stages.
"""

BASE = "configs/trees.py"
NOTE = "Vine limits (source, target)."
SYSTEM = "primary"
WITHIN = True
_LIMITS = ((3, 3), (5, 5), (5, 10), (10, 10), (10, 15), (15, 20), (20, 20))
ABLATIONS = {
  f"{source}-{target}": {
    "trees.source_limit": source,
    "trees.target_limit": target,
  }
  for source, target in _LIMITS
}
SEEDS = (0,)
LAYOUT = {
  "kind": "rows",
  "headings": ["limits"],
  "gain": True,
  "measures": {"changed %": "test_changed", "seconds": "decode_seconds"},
  "rows": [
    ["phrase-based", "10-15", "primary"],
    *([name, name, "phrase-dependency"] for name in ABLATIONS),
  ],
}
