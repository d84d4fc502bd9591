"""What do links of several aligners, made before, give a translation system?

    python tools/align_table.py ... --links=links \
      --systems=hmm,diagonal,hp,hp*1,neural \
      --bitext_links=hmm,diagonal,hp,hp*1,neural
    python launch/sweep.py --study=configs/ablations/alignment_links.py \
      --workdir=runs/al --config=configs/real.py \
      --config.data.files.train_source=train.fr ...
    python tools/table.py runs/al

The same systems as in `alignment.py`, of which each learns its simpler aligners
and features again; here all share them, and the links that are scored against
gold are of the same models as those of the bitext. Run it where the folder
`links` is; entries are its files NAME.bitext.links. Links of a neural system
with settings (neural:window=1:...) have these in their file's name; call it
neural.bitext.links.
"""

BASE = "configs/real.py"
NOTE = "Given links against BLEU."
BASELINE = "hmm"
_FILES = {
  "hmm": "hmm",
  "diagonal": "diagonal",
  "hp": "hp",
  "emd": "hp-1",
  "neural": "neural",
}
_NAMES = {
  "hmm": "HMM",
  "diagonal": "diagonal model",
  "hp": "HP-ITG, DPDI",
  "emd": "HP-ITG, DPDI, one EMD round",
  "neural": "neural HMM",
}
ABLATIONS = {
  entry: {
    "systems": ("primary",),
    "align.model": "given",
    "data.files.train_links": f"links/{name}.bitext.links",
  }
  for entry, name in _FILES.items()
}
LAYOUT = {
  "kind": "rows",
  "headings": ["aligner"],
  "gain": True,
  "measures": {"rules": "rules"},
  "rows": [[name, entry, "primary"] for entry, name in _NAMES.items()],
}
SEEDS = (0,)
