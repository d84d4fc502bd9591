"""Trees over phrases: what do groups of features gain?

    python launch/sweep.py --study=configs/ablations/trees_groups.py \
      --workdir=runs/groups
    python tools/table.py runs/groups

Gimpel (2012), section 5: without features of trees, with those of target trees,
of strings and target trees, of both trees. The first row learns the
phrase-based weights alone, on the same lattices: what it gains is not the
trees'. For a real corpus put its variant into BASE: configs/trees.py:multi30k.
"""

BASE = "configs/trees.py"
NOTE = "Groups of features; gains on the phrase-based system."
SYSTEM = "primary"
WITHIN = True
_TARGET = ("target-tree",)
_STRING = (*_TARGET, "rules", "length", "string-to-tree")
_GROUPS = {
  "none": (),
  "target-tree": _TARGET,
  "string-to-tree": _STRING,
  "tree-to-tree": (*_STRING, "tree-to-tree", "path"),
  "configurations": ("length", "string-to-tree", "tree-to-tree", "path"),
}
ABLATIONS = {name: {"trees.groups": own} for name, own in _GROUPS.items()}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["features of trees"],
  "gain": True,
  "measures": {"changed %": "test_changed"},
  "rows": [
    ["phrase-based", "none", "primary"],
    *([name, name, "phrase-dependency"] for name in _GROUPS),
  ],
}
