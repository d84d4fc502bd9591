import pytest

from jaxmt.errors import InputError
from jaxmt.grammar import formats, validation
from jaxmt.grammar import table as table_lib
from jaxmt.grammar.table import rule_text
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
