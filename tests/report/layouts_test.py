"""Layouts of published tables and figures."""

import math

import pytest

from jaxmt.errors import InputError
from jaxmt.report import layouts

SCORES = {
  ("base", "tune"): layouts.Summary(values=(30.0, 32.0), gain=0.0),
  ("base", "test"): layouts.Summary(values=(28.0, 30.0), gain=0.0),
  ("loss", "tune"): layouts.Summary(values=(33.0,), gain=2.0),
  ("loss", "test"): layouts.Summary(
    values=(30.5,), gain=1.5, p_value=0.004, better=True
  ),
}


def find(entry, system, part, metric):
  del system
  found = SCORES.get((entry, part))
  if found is None or metric == "bleu":
    return found
  return layouts.Summary(
    values=tuple(v + 40 for v in found.values), gain=found.gain
  )


def test_summary_shows_mean_deviation_and_mark():
  assert SCORES["base", "tune"].text() == f"31.00 ± {math.sqrt(2):.2f}"
  assert SCORES["loss", "test"].text() == "30.50*"
  assert layouts.Summary(values=(1.0,), p_value=0.01).text() == "1.00"
  assert layouts.Summary(values=(1.0,), p_value=0.001).text() == "1.00-"


@pytest.mark.parametrize(
  ("p_value", "better", "want"),
  [
    (0.001, True, "**"),
    (0.03, True, "*"),
    (0.05, True, ""),
    (0.001, False, "--"),
    (0.03, False, "-"),
    (None, True, ""),
  ],
)
def test_a_star_is_for_better_and_a_minus_for_worse(p_value, better, want):
  assert layouts.mark(p_value, better, levels=(0.05, 0.01)) == want


def test_rows_show_labels_scores_and_gain():
  layout = {
    "kind": "rows",
    "headings": ["b", "system"],
    "gain": True,
    "rows": [
      ["0", "primary", "base", "s"],
      ["0.5", "loss-augmented", "loss", "s"],
      ["0.9", "not run", "later", "s"],
    ],
  }
  lines = layouts.rows(layout, find, ["bleu"])
  assert lines[0]["gain on test"] == "+0.00"
  assert lines[1] == {
    "b": "0.5",
    "system": "loss-augmented",
    "tune": "33.00",
    "test": "30.50*",
    "gain on test": "+1.50",
    "p": "0.0040",
    "p (Holm)": "0.0040",
  }
  assert lines[0]["p"] == "" == lines[2]["p"]
  assert lines[2]["test"] == "" == lines[2]["gain on test"]
  assert layouts.places(layout) == [
    ("base", "s"),
    ("loss", "s"),
    ("later", "s"),
  ]


def test_grid_has_tune_and_test_in_a_cell():
  layout = {
    "kind": "grid",
    "corner": "a2 \\ a1",
    "columns": ["0", "0.1", "1"],
    "rows": [["5", ["base", "s"], ["loss", "s"], ["later", "s"]]],
  }
  [line] = layouts.rows(layout, find, ["bleu"])
  assert line == {
    "a2 \\ a1": "5",
    "0": "31.00/29.00",
    "0.1": "33.00/30.50*",
    "1": "",
  }


def test_metrics_give_differences():
  layout = {
    "kind": "metrics",
    "pairs": [[["primary", "base", "s"], ["trained", "loss", "s"]]],
  }
  lines = layouts.rows(layout, find, ["bleu", "ter"])
  assert [line["entry"] for line in lines] == [
    "primary",
    "trained",
    "difference",
  ]
  assert lines[2]["test bleu"] == "+1.50" and lines[2]["tune ter"] == "+2.00"


def test_curves_leave_out_what_has_not_run():
  panel = {
    "title": "t",
    "y": "test",
    "series": {"a": [[30, "base", "s"], [60, "later", "s"]], "b": []},
  }
  values = {"base": 1.5}
  points = layouts.curves(panel, lambda entry, system, y: values.get(entry))
  assert points == {"a": ([30], [1.5])}


def test_learning_is_in_percent_with_level_lines():
  panel = {
    "title": "t",
    "series": {"a": ["base", "s"], "b": ["later", "s"]},
    "levels": {"tuned": ["loss", "s"], "none": ["later", "s"]},
  }
  curves = {("base", "s"): [[1, 0.25], [3, 0.5]]}
  values = {("loss", "tune"): 33.0, ("base", "tune"): 31.0}
  points = layouts.learning_curves(
    panel,
    lambda entry, system: curves.get((entry, system), []),
    lambda entry, system, quantity: values.get((entry, quantity)),
  )
  assert points == {"a": ([1, 3], [25.0, 50.0]), "tuned": ([1, 3], [33.0] * 2)}


@pytest.mark.parametrize(
  "layout",
  [
    {"kind": "pie"},
    {
      "kind": "rows",
      "headings": [],
      "rows": [["base", "s"]],
      "learning": [{"title": "t", "series": {"a": ["other", "s"]}}],
    },
    {
      "kind": "rows",
      "headings": [],
      "rows": [["base", "s"]],
      "learning": [{"title": "t"}],
    },
    {"kind": "rows", "rows": [["x", "other", "s"]]},
    {"kind": "rows", "headings": ["a", "b"], "rows": [["x", "base", "s"]]},
    {"kind": "grid", "columns": ["a"], "rows": [["x"]]},
  ],
)
def test_bad_layouts_are_input_errors(layout):
  with pytest.raises(InputError, match="LAYOUT"):
    layouts.check(layout, ["base"], "study.py")


def test_p_values_are_corrected_for_their_number():
  # Holm's steps by hand: .01 * 4, .02 * 3, max(.06, .025 * 2), .5 * 1.
  assert layouts.holm([0.02, 0.5, 0.01, 0.025]) == [0.06, 0.5, 0.04, 0.06]
  assert layouts.holm([0.6, 0.7]) == [1.0, 1.0]
  assert layouts.holm([]) == []


def test_fallback_shares_stand_beside_scores():
  layout = {
    "kind": "rows",
    "headings": ["system"],
    "rows": [["primary", "base", "s"], ["forced", "forced", "s"]],
  }

  def look(entry, system, part, metric):
    del system, part, metric
    share = 0.744 if entry == "forced" else None
    return layouts.Summary(values=(30.0,), fallback=share)

  first, second = layouts.rows(layout, look, ["bleu"])
  assert "fall-back" not in first and second["fall-back"] == "74.4 %"


def test_numbers_that_runs_report_stand_in_columns():
  layout = {
    "kind": "rows",
    "headings": ["aligner"],
    "measures": {"rules extracted": "rules"},
    "rows": [["HMM", "base", "s"], ["ITG", "itg", "s"]],
  }

  def look(entry, system, part, metric):
    del system, part, metric
    known = {"rules": 1234567.0} if entry == "itg" else {}
    return layouts.Summary(values=(30.0,), measures=known)

  first, second = layouts.rows(layout, look, ["bleu"])
  assert first["rules extracted"] == ""
  assert second["rules extracted"] == "1,234,567"
