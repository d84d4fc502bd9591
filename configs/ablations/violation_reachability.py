"""Table 1 and figure 4 of max-violation learning: what can be reached?

    python launch/sweep.py --study=configs/ablations/violation_reachability.py \
      --workdir=runs/reachability
    python tools/plot.py runs/reachability

Percent of sentences and of source words whose reference Hiero derives: with and
without rules seen once, with tight and loose phrases. By length:
`launch/force.py --report`, which also takes other grammars.
"""

BASE = "configs/violation.py"
NOTE = "References that forced decoding reaches."
SYSTEM = "primary"
_KINDS = {
  "tight": {"grammar.hiero.tight": True},
  "loose": {"grammar.hiero.tight": False},
}
ABLATIONS = {
  f"{kind}-{count}": {
    **changes,
    "grammar.min_count": count,
    "tune.rounds": 0,
    "learn.epochs": 1,
    "learn.length_search": "none",
  }
  for kind, changes in _KINDS.items()
  for count in (1, 2, 3)
}
SEEDS = (0,)
LAYOUT = {
  "kind": "curves",
  "x": "fewest occurrences of a rule",
  "panels": [
    {
      "title": title,
      "y": quantity,
      "series": {
        kind: [
          [count, f"{kind}-{count}", "max-violation"] for count in (1, 2, 3)
        ]
        for kind in _KINDS
      },
    }
    for title, quantity in (
      ("sentences reached, %", "reached_percent"),
      ("source words reached, %", "words_reached_percent"),
    )
  ],
}
