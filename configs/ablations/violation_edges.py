"""Figure 6 of max-violation learning: what do Word-Edges give?

    python launch/sweep.py --study=configs/ablations/violation_edges.py \
      --workdir=runs/edges
    python tools/table.py runs/edges

Dense features alone, simple and full Word-Edges, and with rule indicators.
"""

BASE = "configs/violation.py"
NOTE = "Max-violation learning with and without sparse features."
SYSTEM = "primary"
WITHIN = True
_SETS = {
  "dense": (),
  "simple": ("edges:simple",),
  "full": ("edges:full",),
  "everything": ("edges:full", "rule", "shape", "pairs"),
}
ABLATIONS = {name: {"learn.templates": names} for name, names in _SETS.items()}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["features"],
  "gain": True,
  "rows": [
    ["n-best MERT, dense", "dense", "primary"],
    *([name, name, "max-violation"] for name in _SETS),
  ],
}
