"""Random and awkward sentence pairs for the metric tests."""

import random

# Repeated words, case, punctuation, digits, several scripts and white spaces.
WORDS = (
  "the The a cat cats sat on mat , . ! ( ) 3.14 1,000 don't re-do x-1 “so” "
  "的 猫 坐 在 ß É naïve 日本 и"
).split()

AWKWARD = [
  ("", ""),
  ("", "a b"),
  ("a b", ""),
  (" ", "a"),
  (".", "."),
  ("... ! ?", ". ! ?"),
  ("! ! ! !", "? ? ? ?"),
  ("the the the the the", "the cat the mat"),
  ("a a a a a a", "a"),
  ("a", "a a a a a a"),
  ("A B C D", "a b c d"),
  ("(hello), \"you\" -- me's", "(hello) , \" you \" -- me 's"),
  ("1,000.5 or 2.", "1,000.5 or 2 ."),
  ("&quot;x&quot; &amp; y &lt;z&gt;", "\"x\" & y <z>"),
  ("<skipped> x", "x"),
  ("a\u00a0b c\u3000d", "a b c d"),
  ("a\u2028b\x1cc\x85d", "a b c d"),
  ("tab\tand  two  spaces ", " tab and two spaces"),
  ("他把书放在桌子上。", "他 把 书 放 在 桌子 上 。"),
  ("ﬁne ΣΑΣ İstanbul", "fine σας istanbul"),
  ("e\u0301 é", "é e\u0301"),
  ("😀 😀😀", "😀😀 😀"),
  ("b c d e f a", "a b c d e f"),
  ("d e f a b c", "a b c d e f"),
]  # fmt: skip


def sentence(rng: random.Random, longest: int, words=WORDS) -> str:
  """A sentence of 0 to `longest` words."""
  return " ".join(rng.choice(words) for _ in range(rng.randint(0, longest)))


def mutated(rng: random.Random, line: str, edits: int, words=WORDS) -> str:
  """The line after some substitutions, deletions, insertions and shifts."""
  tokens = line.split()
  for _ in range(rng.randint(0, edits)):
    place = rng.randint(0, len(tokens))
    kind = rng.randrange(4)
    if kind == 0:
      tokens.insert(place, rng.choice(words))
    elif kind == 1:
      del tokens[place : place + 1]
    elif kind == 2:
      tokens[place : place + 1] = [rng.choice(words)]
    else:
      block = tokens[place : place + rng.randint(1, 5)]
      del tokens[place : place + len(block)]
      target = rng.randint(0, len(tokens))
      tokens[target:target] = block
  return " ".join(tokens)


def pairs(
  seed: int,
  count: int,
  *,
  longest: int = 18,
  edits: int = 6,
  references: int = 1,
  words=WORDS,
) -> tuple[list[str], list[list[str]]]:
  """Returns hypotheses and, per hypothesis, 1 to `references` references."""
  rng = random.Random(seed)
  hypotheses, all_references = [], []
  for _ in range(count):
    several = [sentence(rng, longest, words)]
    for _ in range(rng.randint(1, references) - 1):
      several.append(mutated(rng, several[0], edits, words))
    hypothesis = mutated(rng, rng.choice(several), edits, words)
    if rng.random() < 0.1:
      hypothesis = sentence(rng, longest, words)
    hypotheses.append(hypothesis)
    all_references.append(several)
  return hypotheses, all_references


def streams(references: list[list[str]]) -> list[list[str | None]]:
  """References by position, as sacreBLEU wants them; None where missing."""
  most = max(len(row) for row in references)
  return [
    [row[place] if place < len(row) else None for row in references]
    for place in range(most)
  ]
