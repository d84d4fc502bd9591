"""Table X of loss-augmented training: BLEU against TER, the other way round.

    python launch/sweep.py --study=configs/ablations/table10_reverse.py \
      --workdir=runs/table10
    python tools/table.py runs/table10

The corpus turned round; the embedded one, English to Chinese. Hiero alone.
"""

BASE = "configs/quickstart.py:study"
NOTE = "Six metrics for systems trained and tuned with BLEU and with TER."
SYSTEM = "primary"
_REVERSE = {"data.reverse": True, "grammar.kind": "hiero"}
WITHIN = True
_METRICS = ("bleu", "ter", "nist", "wer", "per", "gtm")
_COMMON = {
  "interpolation": 0.0,
  **_REVERSE,
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
