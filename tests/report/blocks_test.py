"""Blocks of data: nothing ends them, everything comes back."""

import json

import pytest

from jaxmt.report import blocks, page

NASTY = {"a": "</script><script>1</script>", "b": ["<!--", "&", "\u2028", "书"]}


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_a_block_gives_back_what_it_holds(kind):
  if kind == "plain":
    block = blocks.plain("x", NASTY)
  else:
    block = blocks.packed("x", json.dumps(NASTY))
  assert block.count("<") == 2  # its own two tags
  assert block.count("</script>") == 1
  assert blocks.unpack(block) == NASTY


def test_packed_blocks_are_the_same_every_time_and_small():
  text = json.dumps([{"word": "house"}] * 1000)
  one, two = blocks.packed("x", text), blocks.packed("x", text)
  assert one == two
  assert len(one) < len(text) / 20


def test_numbers_that_json_lacks_are_refused():
  with pytest.raises(ValueError):
    blocks.to_json(float("nan"))


def test_joined_texts_are_json():
  assert json.loads(blocks.joined(["1", "[2]"])) == [1, [2]]
  assert json.loads(blocks.joined({"a": "1"})) == {"a": 1}


def test_a_page_names_the_hash_of_all_it_runs_and_loads_nothing():
  made = page.page("<b>", [page.paragraph("<i>")], "&")
  assert "<title>&lt;b&gt;</title>" in made and "<p>&lt;i&gt;</p>" in made
  assert "default-src 'none'" in made and "unsafe" not in made
  assert "src=" not in made.replace("img-src", "").replace("default-src", "")
  assert made.count("<script>") == 1


def test_a_script_with_the_end_of_a_script_is_refused():
  with pytest.raises(ValueError, match="end of a script"):
    page.page("x", [], start="'</script>'")


def test_all_files_of_the_page_are_in_the_package():
  for name in (*page.REPORT, "page.css"):
    assert page.static(name)
