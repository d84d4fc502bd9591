"""Views as the components take them."""

import json

import pytest

from jaxmt.report import views


def test_numbers_are_short():
  assert json.dumps(views.number(2.00001)) == "2"
  assert views.number(-0.00001) == 0
  assert views.number(1.23456) == 1.2346


def test_views_are_json():
  rule = views.RuleView(
    left="X",
    source=["das", 0],
    target=[0, "the"],
    sites=["NP"],
    count=2,
    systems=[[(0, -0.5)], []],
  )
  node = views.NodeView(rule=0, begin=0, end=2, parent=-1, added=[(1, 0.25)])
  tree = views.DerivationView(
    nodes=[node], goal=[(1, 1.0)], scores=[-1.0, 2.5], links=[(0, 1)]
  )
  assert rule.values() == {
    "l": "X", "s": ["das", 0], "t": [0, "the"], "k": "hiero",
    "v": [[[0, -0.5]], []], "a": ["NP"], "c": 2,
  }  # fmt: skip
  assert tree.values() == {
    "n": [[0, 0, 2, -1, [[1, 0.25]]]], "g": [[1, 1]], "z": [-1, 2.5],
    "w": [[0, 1]],
  }  # fmt: skip
  cell = views.CellView(
    begin=0, end=2, glue=False, fill=1, scored=3, beam=[("a", -1.0)]
  )
  chart = views.ChartView(beam=8, cells=[cell])
  assert chart.values() == {"k": 8, "c": [[0, 2, 0, 1, 3, [["a", -1]], []]]}
  best = views.KBestView(candidates=[("a", -1.0, [(0, 2.0)])], costs=[0.5])
  assert best.values() == [["a", -1, [[0, 2]], 0.5]]
  without = views.KBestView(candidates=[("a", -1.0, [])])
  assert without.values() == [["a", -1, []]]
  part = views.PartView(
    begin=0, end=1, glue=True, rank=3, competing=0, gap=None, kept=False
  )
  assert part.values() == [0, 1, 1, 3, 0, None, 0]


def test_lattices_lead_forward():
  made = views.LatticeView(
    states=["0", "1", "2"], edges=[(0, 2, "the house", -1.5)], best=[0]
  )
  assert made.values()["edges"] == [[0, 2, "the house", -1.5]]
  shown = made._repr_html_()
  assert 'data-component="lattice"' in shown and "<pre>" in shown
  with pytest.raises(ValueError, match="forward"):
    views.LatticeView(states=["0", "1"], edges=[(1, 1, "x", 0.0)])


def test_dependency_heads_are_positions():
  made = views.DependencyView(words=["a", "b"], trees=[("m", [1, -1], [])])
  assert made.values()["trees"] == [["m", [1, -1], []]]
  with pytest.raises(ValueError, match="2 words"):
    views.DependencyView(words=["a", "b"], trees=[("m", [1], [])])
  with pytest.raises(ValueError, match="no position"):
    views.DependencyView(words=["a"], trees=[("m", [1], [])])
