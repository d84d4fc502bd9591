"""Bi-spans of gold trees against the only derivation of their links."""

import numpy as np
import pytest

from jaxmt import hypergraph
from jaxmt.align.itg import bispans, gold_spans, parse, rules, terminals
from jaxmt.text.ragged import Ragged
from tests.reference import itg as reference


@pytest.mark.parametrize(
  "links",
  [
    [(0, 0), (1, 1), (2, 2)],
    [(0, 2), (1, 1), (3, 0)],
    [(1, 0), (2, 3), (3, 2)],
    [],
  ],
)
def test_spans_of_the_derivation(links):
  assert reference.separable(reference.ranked(links))
  gold = Ragged(
    flat=np.array(links, np.int32).reshape(-1, 2),
    offsets=np.array([0, len(links)]),
  )
  found = gold_spans.samples(gold, np.full((1, 4, 4), 0.5))
  # The derivation whose links are the gold ones, from all derivations.
  chart = bispans.every([4], [4])
  parsed = parse.parse(chart)
  counts = terminals.statistics(parsed, rules.empty(), gold, gold)
  scores = (counts @ [-1.0, 0, 2.0, 0])[terminals.edge_rows(parsed)]
  best = hypergraph.viterbi(parsed.forest, scores)
  edges, _ = hypergraph.best_derivations(
    parsed.forest, best, best.back[parsed.forest.roots]
  )
  head = parsed.forest.heads[edges.flat]
  kind = parsed.forest.nodes["category"][head]
  real = np.isin(kind, (parse.A, parse.B, parse.C))
  spans = chart.spans[parsed.forest.nodes["bispan"][head[real]]]
  assert {tuple(row) for row in found[:, 1:].tolist()} == {
    tuple(row) for row in spans.tolist()
  }


def test_shared_words_keep_the_likelier_link():
  posterior = np.array([[0.2, 0.9], [0.1, 0.0]])
  links = np.array([[0, 0], [0, 1]])
  assert gold_spans.one_to_one(links, posterior).tolist() == [[0, 1]]
  more = np.array([[0, 0], [0, 1], [1, 1]])
  # Two links are worth more than the likeliest one.
  assert gold_spans.one_to_one(more, posterior).tolist() == [[0, 0], [1, 1]]


def test_what_no_itg_derives_stays_in_pieces():
  links = [(0, 1), (1, 3), (2, 0), (3, 2)]
  gold = Ragged(flat=np.array(links), offsets=np.array([0, 4]))
  found = gold_spans.samples(gold, np.full((1, 4, 4), 0.5))
  assert len(found) == 4
