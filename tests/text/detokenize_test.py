"""Detokenisation by language."""

import hypothesis
import pytest
from hypothesis import strategies

from jaxmt.text import detokenize


@pytest.mark.parametrize(
  ("language", "tokens", "text"),
  [
    ("en", "hello , world !", "hello, world!"),
    ("en", "it 's what they do n't say", "it's what they don't say"),
    ("en", 'she said : " no " .', 'she said: "no".'),
    ("en", "the dogs ' bones", "the dogs' bones"),
    ("en", '\' yes \' and " no " , " so "', '\'yes\' and "no", "so"'),
    ("en", "“ one ” ( two ) [ 3 ]", "“one” (two) [3]"),
    ("en", "it costs $ 3.50 , or 10 %", "it costs $3.50, or 10%"),
    ("en", "well @-@ known and @/@ or", "well-known and/or"),
    ("en", "a &lt; b &amp;amp; c &#124; d", "a < b &amp; c | d"),
    ("en", "'s", "'s"),
    ("de", "er sagte : „ nein “ .", "er sagte: „nein“."),
    ("de", "wie geht 's ?", "wie geht 's?"),
    ("fr", "qu' est-ce que c' est ?", "qu'est-ce que c'est ?"),
    ("fr", "il dit : « non » .", "il dit : « non »."),
    ("it", "dell' acqua e l' aria", "dell'acqua e l'aria"),
    ("es", "¿ qué ? ¡ no !", "¿qué? ¡no!"),
    ("zh", "我 用 Python 3 写 程序 。", "我用Python 3写程序。"),
    ("ja", "私 は 日本 に 行く 。", "私は日本に行く。"),
    ("en", "", ""),
  ],
)
def test_text(language, tokens, text):
  assert detokenize.detokenize([tokens], language=language) == [text]


@hypothesis.given(
  language=strategies.sampled_from(detokenize.LANGUAGES),
  line=strategies.text("ab'\",.?!()«»„“”@-$我は 19\x00\x85", max_size=20),
)
def test_nothing_but_spaces_changes(language, line):
  (got,) = detokenize.detokenize([line], language=language)
  assert got.replace(" ", "") == line.replace("@-@", "-").replace(" ", "")


def test_unknown_language():
  with pytest.raises(ValueError, match="xx"):
    detokenize.detokenize(["a"], language="xx")
