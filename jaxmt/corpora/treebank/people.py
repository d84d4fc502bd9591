"""Pronouns, names, relatives, and what belongs to them."""

from collections.abc import Sequence

from jaxmt.corpora.treebank import names, nouns
from jaxmt.corpora.treebank.structure import (
  Draw,
  Leaf,
  Nominal,
  Scope,
  Token,
  Tree,
  Wording,
  node,
  words,
)


def pronoun(scope: Scope, *, antecedent: Nominal | None = None) -> Nominal:
  """他, 我们, ...; not one that would need a reflexive."""
  word = scope.draw.zipf(tuple(names.PRONOUNS)[:8])
  subject, obj, possessor, _, agreement = names.PRONOUNS[word]
  if antecedent is not None:
    for group in (("i", "we"), ("you",), ("he",), ("she",), ("they",)):
      if subject in group and antecedent.pronoun in group:
        return name(scope)
  leaf = Leaf("PN", word)
  forms = {"subject": subject, "object": obj, "possessive": possessor}
  return Nominal(
    tree=node("NP", leaf),
    english=lambda draw, case: [(forms[case], (leaf,))],
    agreement=agreement,
    pronoun=subject,
    pronominal=True,
    several="all" if word in ("我们", "他们", "她们", "你们") else "",
  )


def dropped(antecedent: Nominal) -> Nominal:
  """A subject that Chinese leaves out and English must name."""
  subject, obj, whose, _ = names.BACK_REFERENCES[antecedent.pronoun]
  forms = {"subject": subject, "object": obj, "possessive": whose}
  return Nominal(
    tree=None,
    english=lambda draw, case: [(forms[case], ())],
    agreement=antecedent.agreement,
    pronoun=antecedent.pronoun,
    human=antecedent.human,
    pronominal=True,
  )


def repeated(antecedent: Nominal) -> Nominal:
  """A pronoun that refers back, in both languages."""
  subject, obj, whose, word = names.BACK_REFERENCES[antecedent.pronoun]
  forms = {"subject": subject, "object": obj, "possessive": whose}
  leaf = Leaf("PN", word)
  return Nominal(
    tree=node("NP", leaf),
    english=lambda draw, case: [(forms[case], (leaf,))],
    agreement=antecedent.agreement,
    pronoun=antecedent.pronoun,
    human=antecedent.human,
    pronominal=True,
  )


def _fixed(
  tree: Tree, wordings: Wording, *, refer: str, human: bool = True
) -> Nominal:
  """A nominal whose English does not depend on its context."""

  def english(draw: Draw, case: str) -> list[Token]:
    tokens = wordings(draw)
    return [*tokens, *words("'s")] if case == "possessive" else tokens

  return Nominal(
    tree=tree, english=english, agreement="3s", pronoun=refer, human=human
  )


def name(scope: Scope) -> Nominal:
  """A person's name, Chinese or foreign, or a surname with a title."""
  draw = scope.draw
  kind = draw.choose(chinese=6, foreign=2, titled=3)
  if kind == "foreign":
    word, english, refer = draw.zipf(names.FOREIGN_NAMES)
    leaf = Leaf("NR", word)
    return _fixed(node("NP", leaf), lambda d: [(english, (leaf,))], refer=refer)
  surname, roman = draw.zipf(names.SURNAMES)
  if kind == "titled":
    title, english, refer = draw.zipf(names.TITLES)
    titles = english.split("/")
    own, role = Leaf("NR", surname), Leaf("NN", title)
    return _fixed(
      node("NP", own, role),
      lambda d: [(d.wording(titles), (role,)), (roman, (own,))],
      refer=refer,
    )
  given, english, refer = draw.zipf(names.GIVEN_NAMES)
  if draw.chance(0.45):
    first, first_english, _ = draw.zipf(names.GIVEN_NAMES)
    given, english = first + given, first_english + english
  leaf = Leaf("NR", surname + given)
  full = words(f"{roman} {english}", leaf)
  return _fixed(node("NP", leaf), lambda d: list(full), refer=refer)


def geography(scope: Scope, rows: Sequence) -> Nominal:
  """A city or a country."""
  word, english, _ = scope.draw.zipf(rows)
  leaf = Leaf("NR", word)
  return _fixed(
    node("NP", leaf),
    lambda d: words(d.wording(english), leaf),
    refer="it",
    human=False,
  )


def possessive(owner: Nominal, particle: Leaf) -> Wording:
  """`the teacher 's`: what translates 的 is the last word."""

  def determiner(draw: Draw) -> list[Token]:
    *start, (word, leaves) = owner.english(draw, "possessive")
    return [*start, (word, (*leaves, particle))]

  return determiner


def kin(
  scope: Scope, *, antecedent: Nominal | None = None, gender: str = ""
) -> Nominal:
  """我 妈妈, 王明 的 儿子: a relative of someone named.

  `gender` is the pronoun the relative must have.
  """
  draw = scope.draw
  tag = {"he": "m", "she": "f"}.get(gender, "kin")
  noun = draw.zipf([n for n in nouns.BY_TAG[tag] if n.kind == "kin"])
  close = False
  if antecedent is not None and draw.chance(0.45):
    scope.tags.append("自己")
    owner = myself(antecedent)
  elif draw.chance(0.7):
    owner = pronoun(scope)
    close = draw.chance(0.7)
  else:
    owner = name(scope)
  if "spouse" in noun.tags:
    if owner.pronoun in ("he", "she"):
      spouse = "f" if owner.pronoun == "he" else "m"
      noun = next(n for n in nouns.BY_TAG["spouse"] if spouse in n.tags)
    elif owner.pronoun in ("we", "they"):
      noun = nouns.BY_TAG["kin"][0]
  leaf = Leaf("NN", noun.word)
  if close:
    modifier = owner.tree
    determiner: Wording = lambda d: owner.english(d, "possessive")
  else:
    scope.tags.append("的 possessive")
    particle = Leaf("DEG", "的")
    modifier = node("DNP", owner.tree, particle)
    determiner = possessive(owner, particle)

  def english(draw: Draw, case: str) -> list[Token]:
    tokens = [*determiner(draw), *words(draw.wording(noun.english), leaf)]
    return [*tokens, *words("'s")] if case == "possessive" else tokens

  return Nominal(
    tree=node("NP", modifier, node("NP", leaf)),
    english=english,
    agreement="3s",
    pronoun="she" if "f" in noun.tags else "he",
  )


def myself(antecedent: Nominal) -> Nominal:
  """自己 as an owner: his own, my, ...: only its antecedent says whose."""
  leaf = Leaf("PN", "自己")
  whose = names.BACK_REFERENCES[antecedent.pronoun][2]

  def english(draw: Draw, case: str) -> list[Token]:
    del case
    return words(whose + (" own" if draw.chance(0.6) else ""), leaf)

  return Nominal(
    tree=node("NP", leaf),
    english=english,
    agreement="3s",
    pronoun=antecedent.pronoun,
    pronominal=True,
  )
