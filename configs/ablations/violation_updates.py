"""Figure 5 of max-violation learning: which update?

    python launch/sweep.py --study=configs/ablations/violation_updates.py \
      --workdir=runs/updates
    python tools/table.py runs/updates

All updates from the same weights, with simple Word-Edges, on the embedded
corpus; `report.html` of each run draws the curves by epoch. For a real corpus
put its variant into BASE: configs/violation.py:tatoeba.
"""

BASE = "configs/violation.py"
NOTE = "Update rules from the same weights."
SYSTEM = "primary"
WITHIN = True
_UPDATES = ("max-violation", "local", "skip", "early", "standard")
ABLATIONS = {"updates": {"systems": ("primary", *_UPDATES)}}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["update"],
  "gain": True,
  "rows": [
    ["n-best MERT", "updates", "primary"],
    *([name, "updates", name] for name in _UPDATES),
  ],
}
