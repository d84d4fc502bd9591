import math

import numpy as np
import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import formats, validation
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import Kind, rule_text
from jaxmt.text import files


def read(tmp_path, dialect, *lines, **kwargs):
  path = str(tmp_path / "grammar")
  files.write_lines(path, list(lines))
  table = formats.read(path, dialect, **kwargs)
  validation.validate(table)
  return table


def texts(table):
  return [rule_text(table, rule) for rule in range(len(table))]


def values(table, rule):
  row = table.features[rule].tolist()
  return dict(zip(table.feature_names, row, strict=True))


GLUE = ["S -> X0 | X0", "S -> S0 X1 | S0 X1", "X -> <unk> | <unk>"]


def test_cdec(tmp_path):
  table = read(
    tmp_path,
    "cdec",
    "# a comment",
    "[X] ||| eat [X,1] ||| [1] essen ||| Cost=0.25 Count=2 ||| 0-1",
    "",
    "[NP] ||| [X] b [Y] ||| [2] c [1] ||| 0.5 1.5",
    "[X] ||| a ||| ||| Cost=1;PhraseModel_1=3",
    "[X] ||| a ||| b",
  )
  assert texts(table) == [
    "X -> eat X0 | X0 essen",
    "NP -> X0 b Y1 | Y1 c X0",
    "X -> a | ",
    "X -> a | b",
    *GLUE,
  ]
  expected = {"Cost": 0.25, "Count": 2.0}
  assert {k: v for k, v in values(table, 0).items() if v} == expected
  expected = {"PhraseModel_0": 0.5, "PhraseModel_1": 1.5}
  assert {k: v for k, v in values(table, 1).items() if v} == expected
  expected = {"Cost": 1, "PhraseModel_1": 3}
  assert {k: v for k, v in values(table, 2).items() if v} == expected
  assert table.links[0].tolist() == [[0, 1]]
  # What the decoder adds: Glue for joining, PassThrough for copying.
  assert {k: v for k, v in values(table, 4).items() if v} == {}
  assert {k: v for k, v in values(table, 5).items() if v} == {"Glue": 1}
  assert {k: v for k, v in values(table, 6).items() if v} == {"PassThrough": 1}


def test_cdec_numbers_bare_values_among_all(tmp_path):
  table = read(tmp_path, "cdec", "[X] ||| a ||| b ||| Cost=1 2")
  assert values(table, 0)["PhraseModel_1"] == 2


def test_cdec_trees(tmp_path):
  line = "(VP (VBD was) (VP-C [VBN] (PP (IN by) [NP]))) ||| bei [2] [1]"
  table = read(tmp_path, "cdec", f"{line} ||| R3=1 ||| 0-0")
  assert texts(table)[0] == "VP -> was VBN0 by NP1 | bei NP1 VBN0"
  assert table.kind[0] == Kind.TREE_TO_STRING
  assert formats.to_lines(table, "cdec") == [f"{line} ||| R3=1 ||| 0-0"]


def test_per_sentence_grammars(tmp_path):
  paths = []
  for number, lines in enumerate(
    [["[X] ||| a ||| b ||| p=1"], [], ["[X] ||| c ||| d ||| q=2"] * 2]
  ):
    paths.append(str(tmp_path / f"grammar.{number}.gz"))
    files.write_lines(paths[-1], lines)
  table, starts = formats.read_each(paths, "cdec")
  assert starts.tolist() == [0, 1, 1, 3]
  assert texts(table) == ["X -> a | b", "X -> c | d", "X -> c | d", *GLUE]
  assert table.feature_names == ("p", "q", "Glue", "PassThrough")
  assert values(table, 1)["q"] == 2


def test_joshua_turns_the_sign_of_values_without_name(tmp_path):
  line = "[X] ||| me llaman ||| call me ||| 1.5 0 Lex=2 ||| 0-1 1-0"
  table = read(tmp_path, "joshua", line)
  assert texts(table) == ["X -> me llaman | call me", *GLUE]
  assert values(table, 0)["tm_pt_0"] == -1.5
  assert values(table, 0)["Lex"] == 2
  assert formats.to_lines(table, "joshua") == [line]


def test_joshua_leaves_the_sign_of_named_values(tmp_path):
  table = read(
    tmp_path,
    "joshua",
    "[X] ||| a ||| b ||| 1.5",
    "[X] ||| a ||| c ||| tm_pt_0=2",
  )
  assert table_lib.feature(table, "tm_pt_0")[:2].tolist() == [-1.5, 2]


def test_joshua_glue_file(tmp_path):
  grammar, glue = str(tmp_path / "grammar"), str(tmp_path / "glue")
  files.write_lines(
    grammar,
    [
      "[NP] ||| la [NN,1] ||| the [NN,1] ||| 0.5 ||| 0-0",
      "[S] ||| [NP,1] [VP,2] ||| [NP,1] [VP,2] ||| 1 |||",
      "[S] ||| [S,1] [X,2] y ||| [S,1] [X,2] z ||| 1 |||",
    ],
  )
  files.write_lines(glue, formats.glue_lines("joshua"))
  table = formats.read_all([grammar, glue], "joshua")
  alone = formats.read(grammar, "joshua")
  assert sorted(texts(table)) == sorted(texts(alone))
  assert [kind for kind in table.kind if kind == Kind.GLUE] == [0, 0]
  for one in (table, alone):
    for rule in np.flatnonzero(one.kind == Kind.GLUE).tolist():
      assert values(one, rule)["tm_glue_0"] == 1
      assert values(one, rule).get("tm_pt_0", 0) == 0
  assert formats.to_lines(table, "joshua") == files.read_lines(grammar)


def test_moses_hiero(tmp_path):
  line = (
    "do not [X][X] [X] ||| n' [X][X] pas [X] ||| 0.5 1 0.25"
    " ||| 0-0 1-2 2-1 ||| 8 4 2"
  )
  table = read(tmp_path, "moses", line)
  assert texts(table) == ["X -> do not X0 | n' X0 pas", *GLUE]
  assert values(table, 0)["TranslationModel0_0"] == pytest.approx(math.log(0.5))
  assert values(table, 0)["TranslationModel0_1"] == 0
  assert table.counts[0] == 2
  assert table.links[0].tolist() == [[0, 0], [1, 2]]  # of words only
  # The counts of the sides are those of this table.
  written = line.replace("8 4 2", "2 2 2")
  assert formats.to_lines(table, "moses") == [written]


def test_moses_reorders_by_links(tmp_path):
  table = read(
    tmp_path,
    "moses",
    "[X][A] w [X][B] [X] ||| [X][B] v [X][A] [C] ||| 1 ||| 0-2 2-0 1-1",
    "[NP][X] w [VP] ||| v [NP][X] [X] ||| 0 ||| 0-1 1-0 ||| ||| f 2 g -1",
  )
  assert texts(table)[:2] == ["C -> A0 w B1 | B1 v A0", "VP -> NP0 w | v NP0"]
  assert table.kind[:2].tolist() == [Kind.HIERO, Kind.TREE_TO_STRING]
  assert values(table, 1)["TranslationModel0_0"] == -100  # no ln 0
  assert values(table, 1)["TranslationModel0_f"] == 2
  assert values(table, 1)["TranslationModel0_g"] == -1
  assert formats.to_lines(table, "moses")[0].startswith("[X][A] w [X][B] [X]")
  assert formats.to_lines(table, "moses")[1].startswith(
    "[NP][X] w [VP] ||| v [NP][X] [X] ||| "
  )


def test_moses_phrases(tmp_path):
  line = "casa ||| house ||| 0.7 0.75 ||| 0-0 |||"
  table = read(tmp_path, "moses-phrases", line)
  assert texts(table) == ["X -> casa | house", *GLUE]
  assert formats.to_lines(table, "moses-phrases") == [line]
  assert formats.to_lines(table, "moses") == [
    "casa [X] ||| house [X] ||| 0.7 0.75 ||| 0-0 |||"
  ]
  hiero = read(tmp_path, "moses", "a [X][X] [X] ||| [X][X] b [X] ||| 1 ||| 1-0")
  with pytest.raises(ValueError, match="phrase table"):
    formats.to_lines(hiero, "moses-phrases")


def test_moses_glue_file(tmp_path):
  grammar, glue = str(tmp_path / "grammar"), str(tmp_path / "glue")
  files.write_lines(grammar, ["a [X] ||| b [X] ||| 0.5 0.25 ||| 0-0 |||"])
  files.write_lines(glue, formats.glue_lines("moses"))
  table = formats.read_all([grammar, glue], "moses")
  alone = formats.read(grammar, "moses")
  assert sorted(texts(table)) == sorted(texts(alone))
  for one in (table, alone):
    for rule in np.flatnonzero(one.kind == Kind.GLUE).tolist():
      found = {k: v for k, v in values(one, rule).items() if v}
      assert found == {"TranslationModel1": pytest.approx(math.log(2.718))}
  assert formats.to_lines(table, "moses") == files.read_lines(grammar)


def test_travatar(tmp_path):
  lines = [
    '"eat" "two" x0:X @ X ||| "futatsu" x0:X "wo" @ X'
    " ||| Pegf=0.02 ppen=2.718 ||| 3 3 3 ||| 0-2 1-0",
    'vp ( vbd ( "ate" ) x0:np ) ||| x0:np "ass" @ vp'
    " ||| Pegf=-1 ppen=0 ||| 1 1 1 ||| 0-1",
  ]
  table = read(tmp_path, "travatar", *lines)
  assert texts(table) == [
    "X -> eat two X0 | futatsu X0 wo",
    "vp -> ate np0 | np0 ass",
    *GLUE,
  ]
  assert table.kind[:2].tolist() == [Kind.HIERO, Kind.TREE_TO_STRING]
  assert values(table, 0)["Pegf"] == np.float32(0.02)
  assert table.counts[:2].tolist() == [3, 1]
  assert {k: v for k, v in values(table, 3).items() if v} == {"glue": 1}
  assert {k: v for k, v in values(table, 4).items() if v} == {"unk": 1}
  assert formats.to_lines(table, "travatar") == lines


def test_travatar_sites_in_any_order_and_target_labels(tmp_path):
  table = read(
    tmp_path,
    "travatar",
    's ( x1:np vp ( x0:vb ) ) ||| x0:other "w" x1:np @ s ||| p=1',
    "x1:A x0:B @ C ||| x0:B x1:A @ C |||",
  )
  assert texts(table)[:2] == ["s -> np0 vb1 | vb1 w np0", "C -> A0 B1 | B1 A0"]


def test_travatar_glue_file(tmp_path):
  table = read(tmp_path, "travatar", *formats.glue_lines("travatar"))
  assert sorted(texts(table)) == sorted(GLUE)
  assert formats.to_lines(table, "travatar") == []


def test_own_table_in_every_dialect(tmp_path):
  """Natural logs come back as natural logs, glue is the dialect's."""
  one = read(tmp_path, "cdec", "[X] ||| a [X,1] ||| [X,1] b ||| p=-0.5 q=-2")
  for dialect in ("cdec", "moses", "joshua", "travatar"):
    path = str(tmp_path / dialect)
    formats.write(one, path, dialect)
    back = formats.read(path, dialect)
    assert texts(back) == texts(one)
    assert back.features[0, :2].tolist() == [-0.5, -2]
    assert "Glue" not in back.feature_names or dialect == "cdec"


def test_custom_glue_is_kept(tmp_path):
  line = "[S] ||| [S,1] [X,2] ||| [S,1] [X,2] ||| Mine=2 |||"
  table = read(tmp_path, "cdec", line)
  assert sorted(texts(table)) == sorted(GLUE)
  assert formats.to_lines(table, "cdec") == [line]


def test_empty_file(tmp_path):
  for dialect in formats.DIALECTS:
    table = read(tmp_path, dialect)
    assert texts(table) == GLUE
    assert formats.to_lines(table, dialect) == []
    assert len(read(tmp_path, dialect, glue=False)) == 0


BAD = {
  "cdec": [
    ("[X] ||| a", "fields"),
    ("X ||| a ||| b ||| p=1", "left-hand"),
    ("[X] [Y] ||| a ||| b ||| p=1", "left-hand"),
    ("[X] ||| ||| b ||| p=1", "empty source"),
    ("[X] ||| a [X,1] ||| b ||| p=1", "correspond"),
    ("[X] ||| a ||| [1] b ||| p=1", "correspond"),
    ("[X] ||| [X,1] [X,1] ||| [1] [1] ||| p=1", "correspond"),
    ("[X] ||| [X,1] a [X,2] ||| [X,1] [X,1] ||| p=1", "correspond"),
    ("[X] ||| a [X,1] ||| [Y,1] b ||| p=1", "unknown label"),
    ("[X] ||| a ||| b ||| p=x", "feature"),
    ("[X] ||| a ||| b ||| p=", "feature"),
    ("[X] ||| a ||| b ||| =1", "feature"),
    ("[X] ||| a ||| b ||| p=1_0", "feature"),
    ("[X] ||| a ||| b ||| p=nan", "feature"),
    ("[X] ||| a ||| b ||| p=1 ||| 0-1", "link"),
    ("[X] ||| a ||| b ||| p=1 ||| 0", "link"),
    ("[X] ||| a ||| b ||| p=1 ||| 0-0-0", "link"),
    ("[X] ||| a ||| b ||| p=1 ||| -1-0", "link"),
    ("(A (B b) ||| c ||| p=1", "fragment"),
    ("(A (B b))) ||| c ||| p=1", "fragment"),
    ("(A () b) ||| c ||| p=1", "fragment"),
    ("(A (B)) ||| c ||| p=1", "fragment"),
    ("(A b) (A b) ||| c ||| p=1", "fragment"),
    ("[A] ||| b ||| c ||| p=1 ||| ||| (A d)", "fragment"),
    ("[A] ||| b ||| c ||| p=1 ||| ||| (B b)", "fragment"),
    ("[A] ||| b ||| c ||| p=1 ||| ||| (A b) ||| x", "fields"),
  ],
  "joshua": [
    ("[X] ||| a ||| b", "fields"),
    ("a ||| a ||| b ||| 1", "left-hand"),
    ("[X] ||| a [X,1] ||| [Y,1] ||| 1", "unknown label"),
    ("[X] ||| a ||| b ||| one", "feature"),
  ],
  "moses": [
    ("a ||| b", "fields"),
    ("a [X] ||| b ||| 1", "left-hand"),
    ("[X] ||| b [X] ||| 1", "empty source"),
    ("[X][X] a [X] ||| b [X][X] [X] ||| 1 ||| 1-0", "correspond"),
    ("a ||| b ||| 0.5 x", "feature"),
    ("a ||| b ||| -0.5", "feature"),
    ("a ||| b ||| 1 ||| 0-0 ||| x", "count"),
    ("a ||| b ||| 1 ||| 0-0 ||| 1 ||| f", "feature"),
  ],
  "travatar": [
    ('"a" @ X ||| "b" @ X', "fields"),
    ('"a" @ X ||| "b" ||| p=1', "left-hand"),
    ('"a" @ ||| "b" @ X ||| p=1', "left-hand"),
    ('"a" @ X Y ||| "b" @ X ||| p=1', "left-hand"),
    ('"a" x0:X @ X ||| "b" @ X ||| p=1', "correspond"),
    ('a @ X ||| "b" @ X ||| p=1', "correspond"),
    ('"a" @ X ||| b @ X ||| p=1', "correspond"),
    ('"a" @ X ||| "b" @ X ||| 1', "feature"),
    ('a ( "b" ||| "b" @ X ||| p=1', "fragment"),
    ('a ( b ( ) ) ||| "b" @ X ||| p=1', "fragment"),
    ('a ( "b" ) ) ||| "b" @ X ||| p=1', "fragment"),
    ('( a "b" ) ||| "b" @ X ||| p=1', "fragment"),
    ('a ( b ) ||| "b" @ X ||| p=1', "fragment"),
  ],
}
GOOD = {
  "cdec": "[X] ||| a ||| b ||| p=1",
  "joshua": "[X] ||| a ||| b ||| p=1",
  "moses": "a ||| b ||| 1",
  "travatar": '"a" @ X ||| "b" @ X ||| p=1',
}


@pytest.mark.parametrize(
  ("dialect", "line", "cause"),
  [(name, *case) for name, cases in BAD.items() for case in cases],
)
def test_bad_lines(tmp_path, dialect, line, cause):
  lines = [GOOD[dialect], "", line, GOOD[dialect], line]
  with pytest.raises(InputError, match=cause) as caught:
    read(tmp_path, dialect, *lines)
  assert caught.value.line == 3
  assert caught.value.path == str(tmp_path / "grammar")
  skipped = []
  table = read(tmp_path, dialect, *lines, on_bad=skipped.append)
  assert [error.line for error in skipped] == [3, 5]
  assert texts(table)[:-3] == ["X -> a | b"] * 2
  whole = read(tmp_path, dialect, GOOD[dialect], GOOD[dialect])
  assert texts(table) == texts(whole)


def test_lines_are_counted_over_blocks(tmp_path, monkeypatch):
  monkeypatch.setattr(formats, "_BLOCK", 64)
  lines = [f"[X] ||| a{n} ||| b ||| p={n}" for n in range(20)]
  table = read(tmp_path, "cdec", *lines)
  assert texts(table)[:20] == [f"X -> a{n} | b" for n in range(20)]
  assert table_lib.feature(table, "p")[:20].tolist() == list(range(20))
  with pytest.raises(InputError, match="fields") as caught:
    read(tmp_path, "cdec", *lines, "[X] ||| c", *lines)
  assert caught.value.line == 21


def test_bad_bytes_and_no_last_newline(tmp_path):
  path = tmp_path / "grammar"
  path.write_bytes(b"[X] ||| a ||| b ||| p=1\n[X] ||| \xff ||| b ||| p=1")
  with pytest.raises(InputError, match="UTF-8") as caught:
    formats.read(str(path), "cdec")
  assert caught.value.line == 2
  path.write_bytes(b"[X] ||| a ||| b ||| p=1\n[X] ||| c ||| d ||| p=1")
  assert texts(formats.read(str(path), "cdec"))[:2] == [
    "X -> a | b",
    "X -> c | d",
  ]


def test_unknown_dialect():
  with pytest.raises(ValueError, match="none of cdec"):
    formats.read("nowhere", "pharaoh")
