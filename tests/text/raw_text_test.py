"""Raw text: as the vocabulary of the model has it."""

import pytest

from jaxmt.errors import InputError
from jaxmt.text import raw_text


def test_words_case_and_escapes_follow_the_vocabulary():
  pytest.importorskip("sacremoses")
  line = ["Er sagt: Dr. Müller's Haus-Boot."]
  lower = raw_text.tokenize(line, language="de", words=("er", "haus"))
  assert lower == ["er sagt : dr. müller ' s haus-boot ."]
  cased = raw_text.tokenize(
    line, language="de", words=("Er", "haus", "@-@", "&apos;")
  )
  assert cased == ["Er sagt : Dr. Müller &apos; s Haus @-@ Boot ."]


@pytest.mark.parametrize(
  ("language", "library", "line", "words"),
  [
    ("zh", "rjieba", "他昨天买了书。", "他 昨天 买 了 书 。"),
    ("ja", "fugashi", "本を買った。", "本 を 買っ た 。"),
  ],
)
def test_languages_without_spaces(language, library, line, words):
  pytest.importorskip(library)
  assert raw_text.tokenize([line, ""], language=language, words=()) == [
    words,
    "",
  ]


def test_a_missing_library_is_one_line(monkeypatch):
  monkeypatch.setattr(raw_text, "_LIBRARIES", {"zh": "no_such_library"})
  with pytest.raises(InputError, match=r"pip install 'jaxmt\[raw\]'"):
    raw_text.tokenize(["a"], language="zh", words=())


def test_an_unknown_language_is_one_line():
  with pytest.raises(InputError, match="target_language=xx is none of: bg"):
    raw_text.check(source_language="de", target_language="xx")


def test_lower_case_models_write_capitals():
  assert raw_text.is_lower(("<unk>", "a", "b1"))
  assert not raw_text.is_lower(("a", "B"))
  assert not raw_text.is_lower(("他", "。"))
  out = raw_text.detokenize(["it 's .", ""], language="en", capitalize=True)
  assert out == ["It's.", ""]
