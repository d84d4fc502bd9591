"""Table IX of loss-augmented training: BLEU against TER.

    python launch/sweep.py --study=configs/ablations/table09_ter.py \
      --workdir=runs/table09
    python tools/table.py runs/table09

Forest counts, no interpolation.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Six metrics for systems trained and tuned with BLEU and with TER."
SYSTEM = "primary"
WITHIN = True
_METRICS = ("bleu", "ter", "nist", "wer", "per", "gtm")
_COMMON = {
  "interpolation": 0.0,
  "evaluate.metrics": _METRICS,
}
ABLATIONS = {
  metric: {"theta.goodness": metric, "tune.metric": metric, **_COMMON}
  for metric in ("bleu", "ter")
}
SEEDS = (0, 1, 2)
LAYOUT = {
  "kind": "metrics",
  "pairs": [
    [
      ["primary baseline", metric, "primary"],
      [f"{metric} training and tuning", metric, "augmented-forest"],
    ]
    for metric in ("bleu", "ter")
  ],
}
