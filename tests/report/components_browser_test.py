"""Components as notebooks show them, in a real browser."""

import pytest

from jaxmt.decode.derivation_text import Node
from jaxmt.report import html, views
from tests.report import browser

HURT = "<script>window.hurt=1</script>"


def derivation():
  child = Node(
    label="X", begin=1, end=2, source="haus", target="house",
    sides=(("haus",), ("house",)),
  )  # fmt: skip
  return html.derivation(
    [
      Node(
        label="S",
        begin=0,
        end=3,
        source=f"das X0 {HURT}",
        target="the X0",
        children=(child,),
        sides=(("das", 0, HURT), ("the", 0)),
      )
    ]
  )


def chain():
  """Two phrases; the root is the one that is said last."""
  first = Node(
    label="X", begin=1, end=2, source="haus", target="house",
    sides=(("haus",), ("house",)),
  )  # fmt: skip
  last = Node(
    label="X", begin=0, end=1, source=HURT, target=HURT,
    children=(first,), sides=((HURT,), (HURT,)),
  )  # fmt: skip
  return html.derivation([last])


ALL = {
  "derivation": derivation(),
  "chain": chain(),
  "alignment": views.AlignmentView(
    source=["das", HURT],
    target=["the", "house"],
    layers=[("one", [(0, 0)]), ("two", [(0, 0), (1, 1)])],
  )._repr_html_(),
  "lattice": views.LatticeView(
    states=["0", "1", "2"],
    edges=[(0, 1, "the", -1.0), (1, 2, HURT, -2.0), (0, 2, "a house", -4.0)],
    best=[0, 1],
  )._repr_html_(),
  "dependency": views.DependencyView(
    words=["the", HURT, "stands"],
    tags=["D", "N", "V"],
    trees=[
      ("parser", [1, 2, -1], ["det", "subj", ""]),
      ("gold", [2, 2, -1], []),
    ],
  )._repr_html_(),
  "parse": views.ParseView(
    words=["the", HURT], nodes=[("NP", 0, 2, -1), ("D", 0, 1, 0)]
  )._repr_html_(),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
  with browser.opened(tmp_path_factory.mktemp("profile")) as found:
    path = tmp_path_factory.mktemp("page") / "notebook.html"
    cells = "".join(f'<div id="{n}">{x}</div>' for n, x in ALL.items())
    path.write_text(f'<!doctype html><meta charset="utf-8">{cells}')
    found.get(path.as_uri())
    browser.wait(
      found,
      f"return document.querySelectorAll('[data-drawn]').length === {len(ALL)}",
    )
    yield found


def text(driver, selector):
  return driver.execute_script(
    "return [...document.querySelectorAll(arguments[0])]"
    ".map((e) => e.textContent)",
    selector,
  )


def test_all_are_drawn_and_nothing_else_runs(driver):
  assert len(text(driver, "[data-drawn]")) == len(ALL)
  assert driver.execute_script("return window.hurt") is None
  assert browser.console(driver) == []
  for name in ALL:
    assert HURT in text(driver, f"#{name} .jaxmt")[0]


def test_a_derivation_marks_what_is_pointed_at(driver):
  assert text(driver, "#derivation .words:first-child .w") == [
    "das",
    "haus",
    HURT,
  ]
  browser.hover(driver, "#derivation .node .node .rule")
  browser.wait_texts(driver, "#derivation .w.hot", "haus", "house")


def test_graphs_mark_the_best_path_and_wrong_arcs(driver):
  assert len(text(driver, "#lattice path.best")) == 2
  assert len(text(driver, "#dependency path.wrong")) == 1
  assert len(text(driver, "#alignment td span")) == 3


def test_a_chain_of_phrases_is_read_from_its_first_phrase(driver):
  assert text(driver, "#chain .words:last-child .w") == ["house", HURT]
  assert text(driver, "#chain .words:first-child .w") == [HURT, "haus"]
