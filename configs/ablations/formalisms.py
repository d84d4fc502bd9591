"""Phrases from left to right, bracketing, Hiero or joint with trees?

    python launch/sweep.py --study=configs/ablations/formalisms.py \
      --workdir=runs/formalisms
    python tools/table.py runs/formalisms [--baseline=hiero]
    export JAXMT_DATA=DIR
    python launch/sweep.py --study=configs/ablations/formalisms.py \
      --config=configs/formalisms.py:multi30k --entries=phrase,btg,hiero \
      --workdir=runs/multi30k

One system each, with rules from the same word links, the same language model
and the same tuner. `joint` needs source trees, as the embedded corpus and the
variant `tatoeba` have them. Searches have the sizes they usually have: stacks
of 100 with 200 candidates, cells of 30 with 200.
"""

BASE = "configs/formalisms.py"
NOTE = "One system of each formalism; all else is the same."
BASELINE = "phrase"
_CHART = {"search.beam": 30, "search.pop": 200}
ABLATIONS = {
  "phrase": {"grammar.kind": "phrase"},
  "btg": {**_CHART, "grammar.kind": "btg"},
  "hiero": {**_CHART, "grammar.kind": "hiero"},
  "joint": {**_CHART, "grammar.kind": "joint"},
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "rows",
  "headings": ["formalism"],
  "gain": True,
  "rows": [
    ["phrases from left to right", "phrase", "primary"],
    ["bracketing, MaxEnt reordering", "btg", "primary"],
    ["Hiero", "hiero", "primary"],
    ["Hiero and tree-to-string", "joint", "primary"],
  ],
}
