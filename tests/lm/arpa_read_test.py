import gzip

import pytest

from jaxmt.errors import InputError
from jaxmt.lm import arpa_read
from jaxmt.text import files
from tests.lm import language_models

GOOD = """\
\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-1\t<s>\t-0.5
-0.5\t</s>
-0.7\ta\t-0.25
-2\t<unk>

\\2-grams:
-0.25\t<s> a\t-0.125
-0.5\ta a

\\3-grams:
-0.125\t<s> a a

\\end\\
"""


def written(tmp_path, content, name="x.arpa"):
  path = tmp_path / name
  path.write_bytes(content.encode() if isinstance(content, str) else content)
  return str(path)


def test_gzip_and_blocks_of_any_size(tmp_path, monkeypatch):
  content = (language_models.TESTDATA / "market.3.arpa").read_bytes()
  packed = written(tmp_path, gzip.compress(content), "x.arpa.gz")
  whole = language_models.arpa_text(arpa_read.read_arpa(packed))
  assert whole.encode() == content
  stream = files.stream_blocks
  for size in (1, 37, 4096):
    monkeypatch.setattr(
      arpa_read.files,
      "stream_blocks",
      lambda path, size=size: stream(path, size=size),
    )
    again = language_models.arpa_text(arpa_read.read_arpa(packed))
    assert again == whole


@pytest.mark.parametrize(
  "change",
  [
    lambda text: text,
    lambda text: text.replace("\t", " "),
    lambda text: text.replace("\t", "  ").replace("\n", "\r\n"),
    lambda text: "\n\n# comment\n" + text,
    lambda text: text.replace("=", "= "),
    lambda text: text.rstrip("\n"),
    lambda text: text + "\n\n",
    lambda text: text.replace("-0.25\t<s>", "-2.5e-1\t<s>"),
    lambda text: text.replace("</s>\n", "</s>\t0\n"),
    lambda text: text.replace("a a\n\n\\end", "a a\t0\n\n\\end"),
  ],
)
def test_ways_to_write_the_same_model(tmp_path, change):
  plain = arpa_read.read_arpa(written(tmp_path, GOOD))
  other = arpa_read.read_arpa(written(tmp_path, change(GOOD), "y.arpa"))
  assert language_models.arpa_text(plain) == language_models.arpa_text(other)


def test_minus_infinity_is_log_zero(tmp_path):
  text = GOOD.replace("-1\t<s>\t-0.5", "-inf\t<s>\t-INF")
  read = arpa_read.read_arpa(written(tmp_path, text))
  assert read.levels[0].probability[0] == -99
  assert read.levels[0].backoff[0] == -99


def test_srilm_style_file():
  read = language_models.read("srilm.arpa")
  assert read.counts == (8, 7, 4, 2)
  assert read.words[-1] == "Käse"
  # "sees a" and "the dog" are not there, "cat sees a" and "sees the dog" are.
  assert read.levels[2].suffix.tolist() == [2, 4, -1, -1]
  assert read.levels[3].suffix.tolist() == [1, 2]
  assert read.levels[2].context.tolist() == [0, 2, 4, 5]


BAD = [
  ("", 1, "no \\data\\"),
  ("hello\n", 1, "no \\data\\"),
  (GOOD.replace("ngram 2", "ngram 3"), 3, "ngram 2="),
  (GOOD.replace("ngram 1=4", "ngram 1=x"), 2, "ngram 1="),
  ("\\data\\\n\\1-grams:\n", 2, "no 'ngram' lines"),
  (GOOD.replace("\\end\\\n", ""), 18, "ends where \\end\\"),
  (GOOD.replace("\\end\\", "\\END\\"), 19, "expected \\end\\"),
  (GOOD + "more\n", 20, "text after"),
  (GOOD.replace("ngram 1=4", "ngram 1=5"), 11, "ends after 4 1-grams"),
  (GOOD.replace("ngram 1=4", "ngram 1=3"), 10, "more 1-grams"),
  (GOOD.replace("ngram 3=1", "ngram 3=2"), 18, "ends after 1 3-grams"),
  (GOOD.replace("ngram 3=1", "ngram 3=0"), 17, "more 3-grams"),
  (GOOD.replace("ngram 2=2", "ngram 2=999999999999"), 15, "ends after 2 2-gr"),
  (GOOD.replace("ngram 1=4", "ngram 1=" + "4" * 5000), 2, "=COUNT"),
  (GOOD.replace("ngram 1=4", "ngram " + "1" * 5000 + "=4"), 2, "=COUNT"),
  (GOOD.split("\\3-grams")[0], 15, "the file ends where \\3-grams:"),
  (GOOD.split("-0.5\ta a")[0], 13, "the file ends after 1 of 2"),
  (GOOD.replace("\\2-grams", "\\3-grams", 1), 12, "expected \\2-grams:"),
  (GOOD.replace("-0.7\ta", "nan\ta"), 9, "NaN"),
  (GOOD.replace("-0.7\ta", "-NaN\ta"), 9, "NaN"),
  (GOOD.replace("-0.7\ta", "0.7\ta"), 9, "positive"),
  (GOOD.replace("-0.7\ta", "-0.7.1\ta"), 9, "not a number"),
  (GOOD.replace("-0.7\ta", "-\ta"), 9, "not a number"),
  (GOOD.replace("-0.7\ta", "-1e\ta"), 9, "not a number"),
  (GOOD.replace("-0.25\t<s> a", "x <s> a"), 13, "not a number"),
  (GOOD.replace("a\t-0.25", "a\tx"), 9, "bad back-off"),
  (GOOD.replace("a\t-0.25", "a\tnan"), 9, "bad back-off"),
  (GOOD.replace("a\t-0.25", "a\tinf"), 9, "bad back-off"),
  (GOOD.replace("a\t-0.25", "a\t-0.25 1"), 9, "more fields"),
  (GOOD.replace("a a\n\n\\e", "a a\t-1\n\n\\e"), 17, "highest order"),
  (GOOD.replace("-2\t<unk>", "-2\ta"), 10, "duplicate word"),
  (GOOD.replace("-2\t<unk>", "-2"), 10, "too few words"),
  (GOOD.replace("-0.5\ta a", "-0.5\ta"), 14, "too few words"),
  (GOOD.replace("-0.5\ta a", "-0.5\ta b"), 14, "not among the unigrams"),
  (GOOD.replace("-0.5\ta a", "-0.5\t<s> a"), 14, "duplicate n-gram"),
  (GOOD.replace("<s> a a", "a </s> a"), 17, "context"),
  (GOOD.replace("<s>", "<t>"), 7, "no <s>"),
  (GOOD.replace("</s>", "</t>"), 7, "no </s>"),
]


@pytest.mark.parametrize("content, line, cause", BAD)
def test_bad_files_are_named_with_their_line(tmp_path, content, line, cause):
  path = written(tmp_path, content)
  with pytest.raises(InputError) as caught:
    arpa_read.read_arpa(path)
  assert (caught.value.line, caught.value.path) == (line, path)
  assert cause in caught.value.cause
  assert "\n" not in str(caught.value)


def test_bad_utf8_is_named_with_its_line(tmp_path):
  content = GOOD.encode().replace(b"\ta\t", b"\t\xff\t", 1)
  content = content.replace(b" a", b" \xff").replace(b"\ta", b"\t\xff")
  with pytest.raises(InputError, match="UTF-8") as caught:
    arpa_read.read_arpa(written(tmp_path, content))
  assert caught.value.line == 9


def test_order_seven_is_too_much(tmp_path):
  header = "".join(f"ngram {k}=1\n" for k in range(1, 8))
  content = "\\data\\\n" + header + "\n\\1-grams:\n"
  with pytest.raises(InputError, match="order 7"):
    arpa_read.read_arpa(written(tmp_path, content))


def test_missing_file_and_broken_gzip(tmp_path):
  with pytest.raises(InputError, match="no such file"):
    arpa_read.read_arpa(str(tmp_path / "none.arpa"))
  broken = gzip.compress(GOOD.encode())[:-9]
  with pytest.raises(InputError):
    arpa_read.read_arpa(written(tmp_path, broken))
