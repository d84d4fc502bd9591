"""Text that readers get wrong: control characters, odd spaces, scripts."""

import random

from hypothesis import strategies as st

# What Python, but not this package, takes for line breaks or white space.
_ODD = "\x00\x1c\x1d\x1e\x1f\x7f\x85\xa0\u2028\u2029\u3000\ufeff\u200b"
_SCRIPTS = "的中文я界ßé日本語한אب\U0001f600\U00020000ab<>/s()-@"

characters = st.one_of(
  st.sampled_from(" \t\r\v\f"),
  st.sampled_from(_ODD),
  st.sampled_from(_SCRIPTS),
  st.characters(exclude_categories=["Cs"], exclude_characters="\n"),
)


def crowded_lines(seed):
  """Lines full of all the above: what is found case by case comes seldom."""
  rng = random.Random(seed)
  alphabet = " " * 9 + "\t\r\v\f" * 3 + _ODD + _SCRIPTS
  return [
    "".join(rng.choices(alphabet, k=rng.randrange(40)))
    + rng.choice(["", " <s>", " </s> <unk>", "\t<pad>\r"])
    for _ in range(rng.randrange(8))
  ]


lines = st.one_of(
  st.lists(st.text(characters, max_size=20), max_size=8),
  st.integers(0, 2**32 - 1).map(crowded_lines),
)
words = st.text(
  st.one_of(
    st.sampled_from(_ODD + _SCRIPTS.replace("(", "").replace(")", "")),
    st.characters(
      exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f()"
    ),
  ),
  min_size=1,
  max_size=5,
)
