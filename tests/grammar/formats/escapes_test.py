"""Words that look like syntax."""

import pytest

from jaxmt.grammar.formats import escapes
from tests.grammar.formats.formats_rules import WORDS


def test_words_stay_as_they_are_if_they_can():
  for word in ("a", "&#91;", "[", "]", "|", "||", "(", "\\", "a,b", "[x"):
    assert escapes.escape_word(word) == word


@pytest.mark.parametrize("word", WORDS)
def test_escapes(word):
  hard = escapes.escape(word, '()[],|"@x')
  assert not set(hard) & set('()[],|"@x')
  for written in (hard, escapes.escape_word(word), escapes.escape_label(word)):
    assert escapes.unescape(written) == word
