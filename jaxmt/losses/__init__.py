"""Losses: pure functions of `scores, costs, mask` returning `(sum, weight)`.

The last axis of every array is the candidates of one sentence (K), all axes
before it are sentences. Scores are natural-log model scores, costs are
sentence-level errors (lower is better), the mask says which candidates exist.
`sum / weight` is the loss of the survey's formula; both parts add up over
shards, so divide once, after the last sum. `forest` has the same losses over
all derivations of packed forests.
"""
