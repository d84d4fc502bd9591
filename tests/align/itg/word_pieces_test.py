"""Stems, characters and dictionaries as evidence of word pairs."""

import numpy as np
import pytest

from jaxmt.align import em, named_aligners
from jaxmt.align.itg import evidence, link_features, word_pieces
from jaxmt.errors import InputError
from jaxmt.text import ragged

SOURCE_WORDS = ["NULL", "世界", "世人", "界", "Haus"]
TARGET_WORDS = ["NULL", "worldly", "worlds", "border", "of", "House"]
SOURCE = [[1, 4], [2], [3, 1], [4, 3], [2, 3]]
TARGET = [[1, 5], [2, 4], [3, 4, 2], [5, 3], [1, 3]]


def test_stems_and_pieces():
  assert word_pieces.stem("Translations") == "trans"
  assert word_pieces.stem("世界語") == "世界"
  assert word_pieces.pieces("世界") == ["世", "界"]
  assert word_pieces.pieces("Worlds") == ["world"]
  assert word_pieces.is_syllabic("한국") and not word_pieces.is_syllabic("où")
  found = word_pieces.number_stems(TARGET_WORDS, 6)
  assert found.tolist() == [0, 1, 1, 2, 3, 4]
  assert word_pieces.number_stems([], 3).tolist() == [0, 1, 2]


def test_piece_scores_equal_loops():
  source, target = ragged.from_rows(SOURCE), ragged.from_rows(TARGET)
  words = (SOURCE_WORDS, TARGET_WORDS)
  config = named_aligners.default_config("model1", iterations=3)
  table = em.align(source, target, config).table
  found = word_pieces.piece_scores(source, target, words, table, iterations=3)

  # Model 1 of the pieces as words of their own.
  index = [{}, {}]
  texts = []
  for side, rows in enumerate((SOURCE, TARGET)):
    texts.append(
      ragged.from_rows(
        [
          [
            index[side].setdefault(piece, len(index[side]) + 1)
            for word in row
            for piece in word_pieces.pieces(words[side][word])
          ]
          for row in rows
        ]
      )
    )
  learnt = em.align(*texts, config)
  for column, side in enumerate(em.DIRECTIONS):
    probability = np.exp(np.asarray(learnt.parameters[side].pairs))
    pairs = zip(learnt.table.source, learnt.table.target, strict=True)
    t = {
      (int(a), int(b)): probability[place] for place, (a, b) in enumerate(pairs)
    }
    for row, (f, e) in enumerate(zip(table.source, table.target, strict=True)):
      a = [index[0][piece] for piece in word_pieces.pieces(SOURCE_WORDS[f])]
      b = [index[1][piece] for piece in word_pieces.pieces(TARGET_WORDS[e])]
      if side == "forward":
        mass = [np.mean([t.get((x, y), 0) for x in a]) for y in b]
      else:
        mass = [np.mean([t.get((x, y), 0) for y in b]) for x in a]
      expected = np.mean(np.log(np.maximum(mass, 1e-6)))
      assert found[row, column] == pytest.approx(expected, rel=1e-4)


def test_dictionary_matches_stems_and_parts():
  source, target = ragged.from_rows(SOURCE), ragged.from_rows(TARGET)
  config = named_aligners.default_config("model1", iterations=1)
  table = em.align(source, target, config).table
  entries = [("世界", "world/globe"), ("界", "border of"), ("haus", "house")]
  stop = np.array([False] * 4 + [True, False])  # "of"
  words = (SOURCE_WORDS, TARGET_WORDS)
  stems = word_pieces.number_stems(TARGET_WORDS, 6)
  found = word_pieces.dictionary_scores(entries, words, stems, stop, table)
  pairs = [
    (SOURCE_WORDS[f], TARGET_WORDS[e])
    for f, e in zip(table.source, table.target, strict=True)
  ]
  whole = {pair for pair, row in zip(pairs, found, strict=True) if row[0]}
  part = {pair for pair, row in zip(pairs, found, strict=True) if row[1]}
  assert whole == {
    ("世界", "worldly"),
    ("世界", "worlds"),
    ("界", "border"),
    ("Haus", "House"),
  }
  assert part == {("世界", "border")}
  none = word_pieces.dictionary_scores([], words, stems, stop, table)
  assert not none.any()


def test_features_of_equal_stems_are_equal():
  source, target = ragged.from_rows(SOURCE), ragged.from_rows(TARGET)
  learnt = evidence.learn(
    source,
    target,
    source_words=SOURCE_WORDS,
    target_words=TARGET_WORDS,
    dictionary=[("世界", "world")],
    iterations=3,
  )
  ((lines, matrices),) = link_features.batches(
    learnt, source, target, np.arange(5)
  )
  assert lines.tolist() == [0, 1, 2, 3, 4]
  link = np.asarray(matrices.link)
  column = link_features.LINK_FEATURES.index
  # 世界 with "worldly" in line 0 and with "worlds" in line 2.
  for name in ("stems forward", "stems backward", "in dictionary"):
    assert link[0, 0, 0, column(name)] == link[2, 1, 2, column(name)] != 0
  forward = link[..., column("model1 forward")]
  assert forward[0, 0, 0] != forward[2, 1, 2]
  # Each target word of line 0 comes from one of two source words or NULL.
  mass = np.exp(link[0, :2, :2, column("stems forward posterior")]).sum(0)
  assert np.all(mass <= 1.0 + 1e-3)


def test_bad_dictionary_is_told(tmp_path):
  path = tmp_path / "d.tsv"
  path.write_text("世界\tworld/globe\nno tab\n")
  with pytest.raises(InputError, match=r"d\.tsv.*2.*tab"):
    word_pieces.read_dictionary(str(path))
  path.write_text("世界\tworld/globe\n")
  assert word_pieces.read_dictionary(str(path)) == [("世界", "world/globe")]
