"""Alignment matrices are well-formed SVG with the right marks."""

import xml.etree.ElementTree as ElementTree

from jaxmt.report import matrices


def drawn(**options):
  text = matrices.alignment_matrix(
    ["a<b", "汤"], ["x", "y", "&"], [(0, 0), (1, 2)], **options
  )
  return ElementTree.fromstring(text)


def tags(root, name):
  return root.findall("{http://www.w3.org/2000/svg}" + name)


def test_cells_dots_and_words():
  root = drawn(title="first")
  assert not tags(root, "rect") and len(tags(root, "circle")) == 2
  (grid,) = tags(root, "path")  # lines around two rows and three columns
  assert [grid.get("d").count(way) for way in "hv"] == [3, 4]
  assert [item.text for item in tags(root, "text")] == [
    "first", "a<b", "汤", "x", "y", "&",
  ]  # fmt: skip
  assert {item.get("fill") for item in tags(root, "circle")} == {"#222222"}


def test_gold_colours_cells_and_wrong_dots():
  root = drawn(sure=[(0, 0)], possible=[(1, 1)])
  fills = [item.get("fill") for item in tags(root, "rect")]
  assert fills == ["#4477aa", "#aaccee"]
  dots = [item.get("fill") for item in tags(root, "circle")]
  assert dots[0] != dots[1]
