import numpy as np
import pytest

from jaxmt.grammar import dependency_events as events
from jaxmt.grammar import table as tables
from jaxmt.grammar.extract import parsed_pairs
from jaxmt.text import treebank, vocabulary
from jaxmt.text.ragged import from_rows

TARGET = ["the house", "", "a house", "yes"]
SOURCE = ["das haus", "leer", "ein haus", ""]
LINKS = ["0-0 1-1", "", "0-0 1-1", ""]


def trees(tmp_path, lines=TARGET):
  heads = {1: (0,), 2: (2, 0)}
  text = "\n".join(
    "".join(
      f"{word}\tX\t{head}\n"
      for word, head in zip(line.split(), heads[len(line.split())], strict=True)
    )
    for line in lines
    if line
  )
  (tmp_path / "bank").write_text(text)
  return treebank.read_treebank(str(tmp_path / "bank"))


def test_pairs_with_words_on_both_sides(tmp_path):
  found = parsed_pairs.from_lines(
    SOURCE, TARGET, LINKS, trees(tmp_path), {"house": "01", "the": "1"}
  )
  assert len(found) == 2
  key = lambda word: events.word_keys([word])[0]
  assert found.source[1].tolist() == [key("ein"), key("haus")]
  assert found.clusters[0].tolist() == [key("1"), key("01")]
  assert found.clusters[1][0] == key(parsed_pairs.UNKNOWN_CLUSTER)
  assert found.heads.flat.tolist() == [1, -1, 1, -1]
  assert found.links.flat.tolist() == [[0, 0], [1, 1]] * 2


def test_what_does_not_fit_is_refused(tmp_path):
  bank = trees(tmp_path)
  with pytest.raises(ValueError, match="4 source lines, 3 target lines"):
    parsed_pairs.from_lines(SOURCE, TARGET[:3], LINKS, bank, {})
  with pytest.raises(ValueError, match="3 trees for 4 lines with words"):
    parsed_pairs.line_heads([*TARGET, "more"], bank)
  with pytest.raises(ValueError, match="tree 2 is not of line 3"):
    parsed_pairs.line_heads(["the house", "", "a mouse", "yes"], bank)


def test_phrases_of_a_table():
  words = vocabulary.build([["a b"]])
  ids = {word: words.index[word] for word in "ab"}
  table = tables.make_table(
    source_words=words,
    target_words=words,
    labels=tables.LABELS,
    source=from_rows([[ids["a"]], [ids["a"], -1]]),
    target=from_rows([[ids["b"], ids["a"]], [-1, ids["b"]]]),
  )
  known = parsed_pairs.known_phrases(table, {"a": "0", "b": "1"})
  phrase = lambda text: events.phrase_key(
    events.word_keys(text.split()), 0, len(text.split())
  )
  assert known.source.tolist() == [phrase("a")]
  assert known.target.tolist() == [phrase("b a")]
  assert known.clusters.tolist() == [phrase("1 0")]
  assert known.target.dtype == np.uint64
