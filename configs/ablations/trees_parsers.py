"""Trees over phrases: which parsers?

    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/trees_parsers.py \
      --workdir=runs/parsers
    python tools/table.py runs/parsers

Source parses supervised, unsupervised, random or none, with supervised target
parses; and unsupervised or no target parses with supervised source parses, as
in section 5.4 of Gimpel (2012). German-English.
"""

BASE = "configs/trees.py:multi30k"
NOTE = "Source and target parsers; gains on the phrase-based system."
SYSTEM = "primary"
WITHIN = True
_PARSERS = {
  "supervised-supervised": ("supervised", "supervised"),
  "unsupervised-supervised": ("unsupervised", "supervised"),
  "random-supervised": ("random", "supervised"),
  "none-supervised": ("none", "supervised"),
  "supervised-unsupervised": ("supervised", "unsupervised"),
  "unsupervised-unsupervised": ("unsupervised", "unsupervised"),
  "supervised-none": ("supervised", "none"),
}
ABLATIONS = {
  name: {"trees.parse.source": source, "trees.parse.target": target}
  for name, (source, target) in _PARSERS.items()
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["source and target parser"],
  "gain": True,
  "measures": {"changed %": "test_changed"},
  "rows": [
    ["phrase-based", "supervised-supervised", "primary"],
    *([name, name, "phrase-dependency"] for name in _PARSERS),
  ],
}
