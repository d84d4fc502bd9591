"""The report's data, and that no text of a corpus can leave its place."""

import re

import pytest

from jaxmt.experiment import report_page
from jaxmt.report import blocks
from tests.reference import tiny_report, tiny_training


@pytest.fixture(scope="module")
def page():
  return tiny_report.page()


def block(page, name):
  (found,) = re.findall(
    rf'<script type="application/(?:json|gzip)" id="data-{name}">.*?</script>',
    page,
    re.DOTALL,
  )
  return blocks.unpack(found)


def test_nothing_of_the_corpus_is_markup(page):
  assert "window.hurt" not in re.sub(
    r'<script type="application/(json|gzip)".*?</script>', "", page, flags=re.S
  )
  assert "<img" not in page and "onerror=window.hurt=2>" not in page
  assert page.count("<script>") == 1  # the page's own code


def test_all_sentences_are_there(page):
  index = block(page, "index")
  assert tuple(index["source"]) == tiny_report.SOURCES
  assert [refs[0] for refs in index["references"]] == list(
    tiny_report.REFERENCES
  )
  assert index["unknown"][2] == 1 and index["length"][7] == 400
  assert index["length"][6] == 0
  for name in ("primary", "augmented-forest"):
    assert len(index["outputs"][name]) == len(tiny_report.SOURCES)
    for metric in ("bleu", "ter", "chrf"):
      assert len(index["scores"][metric][name]) == len(tiny_report.SOURCES)


def test_the_overview_compares_all_pairs(page):
  data = block(page, "report")
  assert data["outputs"] == ["primary", "augmented-forest"]
  matrix = data["pairwise"]["bleu"]
  assert matrix[0][1][0] == matrix[1][0][0]
  assert matrix[0][1][1] == -matrix[1][0][1]
  assert matrix[0][0] == [1.0, 0.0]
  settings = {row["setting"] for row in data["changes"]}
  assert "search.beam" in settings and "seed" not in settings
  stages = {row["stage"]: row for row in data["stages"]}
  assert stages["inspect"]["peak memory, MB"] == 123.0
  assert data["tuning"]["primary"][2]["weights"]["LanguageModel"] == 0.4


def test_long_sentences_have_derivations_but_no_chart(page):
  data = block(page, "report")
  assert 7 not in data["charts"] and 0 in data["charts"]
  view = block(page, "sentences-0")[7]["d"][0]
  assert max(node[2] for node in view["n"]) == 400
  roots = [node for node in view["n"] if node[3] == -1]
  assert len(roots) == 2  # two pieces


def test_rules_that_differ_come_with_training_pairs(page):
  quotes, rules = block(page, "training"), block(page, "rules")
  pairs = [list(pair[:2]) for pair in tiny_training.PAIRS]
  used = {row for rows in quotes["rules"].values() for row in rows}
  assert {int(row) for row in quotes["texts"]} == used
  for row, text in quotes["texts"].items():
    assert text == pairs[int(row)]
  for number, rows in quotes["rules"].items():
    sides = rules[int(number)]["s"], rules[int(number)]["t"]
    for row in rows:
      for line, side in zip(pairs[row], sides, strict=True):
        assert {x for x in side if isinstance(x, str)} <= set(line.split())


def test_charts_that_have_no_room_are_left_out(monkeypatch):
  monkeypatch.setattr(report_page, "_PAGE_BYTES", 0)
  monkeypatch.setattr(report_page, "_CHART_BYTES", 3000)
  made = report_page.make_page("D", tiny_report.outcome(), [])
  few = block(made, "report")["charts"]
  assert 0 < len(few) < 5
  kept = re.findall(r'id="data-chart-(\d+)"', made)
  assert sorted(map(int, kept)) == few
