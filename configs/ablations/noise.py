"""How much does noise in the training data cost? Glossing, without a grammar.

    python launch/sweep.py --study=configs/ablations/noise.py --workdir=runs/n
    python tools/table.py runs/n

Takes seconds for each run: with `systems` empty only the floor is made.
"""

BASE = "configs/quickstart.py"
NOTE = "Word-by-word glossing with more and more noise in the training pairs."
BASELINE = "noise-0.02"
ABLATIONS = {
  f"noise-{rate}": {"data.synthetic.noise": rate, "systems": ()}
  for rate in (0.0, 0.02, 0.2)
}
SEEDS = (0, 1, 2)
