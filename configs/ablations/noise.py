"""How much does noise in the training data cost? Glossing, by aligner.

    python launch/sweep.py --study=configs/ablations/noise.py --workdir=runs/n
    python tools/table.py runs/n

Two CPU cores: about two minutes.
"""

BASE = "configs/quickstart.py"
NOTE = "Word-by-word glossing with more and more noise in the training pairs."
BASELINE = "noise-0.02"
ABLATIONS = {
  f"noise-{rate}": {"data.synthetic.noise": rate} for rate in (0.0, 0.02, 0.2)
}
SEEDS = (0, 1, 2)
