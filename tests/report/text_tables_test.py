"""Tables, pages and plots."""

from jaxmt.report import page, plots, text_tables

ROWS = [
  {"system": "对", "bleu": 12.3456, "n": 1234},
  {"system": "long name", "bleu": None, "note": "<b>"},
]


def test_text_aligns_wide_characters_and_numbers():
  lines = text_tables.text(ROWS).splitlines()
  assert lines[0].split() == ["system", "bleu", "n", "note"]
  assert lines[2].startswith("对         12.35  1,234")  # 对 is two wide
  assert lines[3].startswith("long name")
  assert text_tables.text([]) == "\n"


def test_markdown_and_html():
  assert (
    text_tables.markdown(ROWS).splitlines()[1] == "| --- | --- | --- | --- |"
  )
  html = text_tables.as_html(ROWS)
  assert "&lt;b&gt;" in html and "<b>" not in html
  assert '<td class="number">12.35</td>' in html


def test_page_is_self_contained_and_escaped():
  html = page.page("a<b", [page.section("s", page.paragraph("x & y"))], "f")
  assert "a&lt;b" in html and "x &amp; y" in html
  assert "http:" not in html.replace("http://www.w3.org/2000/svg", "")
  assert "https:" not in html


def test_plots_are_png_and_repeatable():
  for draw in (
    lambda: plots.bars({"a": 1.0, "b": 2.0}, label="x", errors={"a": 0.5}),
    lambda: plots.lines({"a": ([0, 1], [1, 2])}, x_label="x", y_label="y"),
    lambda: plots.histogram({"a": [1, 2, 2]}, x_label="x"),
  ):
    png = draw()
    assert png is not None and png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png == draw()
