"""English verb groups and clauses for the synthetic corpus.

Tense names: present, past, future, perfect, experience (a perfect whose
negation is `never`), progressive, the same `shifted` after a verb of saying in
the past, a modal word (can, should, ...), `base` (infinitive, imperative) and
`ing`.
"""

import dataclasses
from collections.abc import Callable, Sequence

from jaxmt.corpora.treebank import morphology
from jaxmt.corpora.treebank.structure import (
  Adverbial,
  Draw,
  Leaf,
  Nominal,
  Token,
  Tree,
  Verbal,
  words,
)

MODALS = frozenset("can could should must may might will would".split())

# A tense inside a report that was made in the past.
SHIFT = {
  "present": "past",
  "future": "would",
  "going": "would",
  "perfect": "past perfect",
  "experience": "past perfect",
  "progressive": "past progressive",
  "can": "could",
  "may": "might",
}

_CONTRACTED = {"will": "wo", "can": "ca"}
_NO_CONTRACTION = ("am", "may", "might", "must")


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Setting:
  """Tense, aspect, modality and polarity of a clause, in both languages.

  Attributes:
    tense: English tense, see the module.
    habitual: a bare object is meant in general.
    aspect: 了 or 过, for the core to put behind its verb.
    marker: what English auxiliaries translate.
    negation: 不 or 没; `never` is its English in an experience.
    final: a particle that ends the Chinese clause.
    before: Chinese adverbs (trees) and modal verbs (leaves) before the core.
    middle: English adverbs beside the verb.
    modal: wordings of a modal: a tense, and words such as `be able to` (or
      none) around the verb.
    adverbials: times.
  """

  tense: str = "present"
  habitual: bool = False
  aspect: Leaf | None = None
  marker: tuple[Leaf, ...] = ()
  negation: Leaf | None = None
  final: Leaf | None = None
  before: list[Tree | Leaf] = dataclasses.field(default_factory=list)
  middle: list[Callable[[Draw], list[Token]]] = dataclasses.field(
    default_factory=list
  )
  modal: tuple[tuple[str, str], ...] = ()
  adverbials: list[Adverbial] = dataclasses.field(default_factory=list)


def template(
  wording: Sequence[str], leaves: tuple[Leaf, ...], filler: Sequence[Token]
) -> Verbal:
  """Fills `o` in a wording such as `turn on o`.

  A digit at the end of a word picks one of the leaves.
  """
  tokens: list[Token] = []
  for word in wording:
    if word == "o":
      tokens.extend(filler)
    elif word[-1].isdigit():
      tokens.append((word[:-1], (leaves[int(word[-1]) - 1],)))
    else:
      tokens.append((word, leaves))
  return Verbal(tokens[0][0], tokens[0][1], tokens[1:])


def infinitive(verbal: Verbal, form: str) -> list[Token]:
  """The verb phrase without tense: `to`, `ing` or bare."""
  lemma = morphology.ing(verbal.lemma) if form == "ing" else verbal.lemma
  head = words("to") if form == "to" else []
  return [*head, (lemma, verbal.leaves), *verbal.rest, *verbal.tail]


def passive(verbal: Verbal) -> list[Token]:
  """The participle with its particles, to stand after `be`."""
  return [(morphology.participle(verbal.lemma), verbal.leaves), *verbal.rest]


def _chain(lemma: str, tense: str, agreement: str) -> list[str]:
  """The words of a verb group; the last is the verb itself."""
  finite = morphology.finite
  if tense in ("present", "past"):
    return [finite(lemma, tense, agreement)]
  if tense == "base":
    return [lemma]
  if tense == "future":
    return ["will", lemma]
  if tense == "going":
    return [finite("be", "present", agreement), "going", "to", lemma]
  if tense in ("perfect", "experience"):
    return [finite("have", "present", agreement), morphology.participle(lemma)]
  if tense == "past perfect":
    return ["had", morphology.participle(lemma)]
  if tense == "progressive":
    return [finite("be", "present", agreement), morphology.ing(lemma)]
  if tense == "past progressive":
    return [finite("be", "past", agreement), morphology.ing(lemma)]
  if tense in MODALS:
    return [tense, lemma]
  raise ValueError(f"no tense {tense!r}")


def _negate(draw: Draw, auxiliary: Token, leaf: Leaf) -> list[Token]:
  word, leaves = auxiliary
  if word == "can" and draw.chance(0.5):
    return [("cannot", (*leaves, leaf))]
  if word not in _NO_CONTRACTION and draw.chance(0.25):
    return [(_CONTRACTED.get(word, word), leaves), ("n't", (leaf,))]
  return [auxiliary, ("not", (leaf,))]


def verb_group(
  draw: Draw,
  verbal: Verbal,
  *,
  setting: Setting,
  agreement: str,
  tense: str,
  marker: tuple[Leaf, ...],
  extra: Sequence[Token] = (),
  invert: Sequence[Leaf] | None = None,
) -> tuple[list[Token], list[Token]]:
  """Returns what precedes the subject and what follows it.

  Args:
    draw: choices of wording.
    verbal: the verb phrase.
    setting: negation and middle adverbs.
    agreement: the subject's.
    tense: see the module.
    marker: what auxiliaries translate.
    extra: more adverbs beside the verb.
    invert: None for a statement; otherwise the leaves an auxiliary before the
      subject translates.
  """
  chain = _chain(verbal.lemma, tense, agreement)
  never = tense in ("experience", "past perfect") and setting.negation
  negation = None if never else setting.negation
  simple = len(chain) == 1 and verbal.lemma != "be"
  support = simple and (negation is not None or invert is not None)
  if support:
    form = tense if tense in ("present", "past") else "present"
    # The imperative has the bare form, as the plural of the present has.
    who = "pl" if tense == "base" else agreement
    chain = [morphology.finite("do", form, who), verbal.lemma]
  tokens: list[Token] = [(word, marker) for word in chain[:-1]]
  if support and negation is not None:
    tokens = [(chain[0], (negation,))]
  own = verbal.leaves
  if len(chain) == 1 or tense in ("past", "present"):
    own = (*own, *marker)
  tokens.append((chain[-1], own))
  middle = [token for make in setting.middle for token in make(draw)]
  middle += extra
  if never and setting.negation is not None:
    middle.append(("never", (setting.negation,)))
  first, later = tokens[0], tokens[1:]
  if negation is not None:
    opening = _negate(draw, first, negation)
  else:
    opening = [first]
  if invert is not None:
    opening[0] = (opening[0][0], (*opening[0][1], *invert))
    # did n't he go, but: did he not go
    moved = [] if opening[-1][0] == "n't" else opening[1:]
    opening = opening[: len(opening) - len(moved)]
    return opening, [*moved, *middle, *later, *verbal.rest]
  if later or verbal.lemma == "be":
    return [], [*opening, *middle, *later, *verbal.rest]
  return [], [*middle, *opening, *verbal.rest]


def _place(
  draw: Draw,
  adverbials: Sequence[Adverbial],
  *,
  front: str,
  heavy: bool,
  always: bool,
) -> tuple[list[Token], list[Token], list[Token]]:
  """Words the adverbials; returns those in front, in the middle, at the end.

  `always` a comma after what is in front; the end is worst when `heavy`.
  """
  fronted: list[Token] = []
  middle: list[Token] = []
  ended: list[tuple[int, list[Token]]] = []
  for adverbial in adverbials:
    tokens = adverbial.english(draw)
    options = adverbial.places
    if fronted or front == "no" or (front == "heavy" and not heavy):
      options = [place for place in options if place != "front"] or ["end"]
    place = draw.wording(options)
    if heavy:
      place = min(options, key=("front", "middle", "end").index)
    if place == "front":
      comma = words(",") if always or draw.chance(0.6) else []
      fronted = [*tokens, *comma]
    elif place == "middle":
      middle += tokens
    else:
      ended.append((adverbial.rank, tokens))
  ended.sort(key=lambda pair: pair[0])
  return fronted, middle, [token for _, part in ended for token in part]


def _lead(verbal: Verbal, lead: str, marker: tuple[Leaf, ...]) -> Verbal:
  """Puts `be able to` and the like around a verb."""
  first, *others = words(lead, *marker)
  head = (verbal.lemma, verbal.leaves)
  return Verbal(first[0], first[1], [*others, head, *verbal.rest], verbal.tail)


def clause(
  draw: Draw,
  *,
  subject: Nominal | None,
  verbal: Verbal,
  setting: Setting,
  adverbials: Sequence[Adverbial] = (),
  agreement: str = "3s",
  front: str = "free",
  shifted: bool = False,
  invert: Sequence[Leaf] | None = None,
  asked: Sequence[Token] = (),
) -> list[Token]:
  """Words a clause.

  Args:
    draw: choices of wording.
    subject: None when it is understood (relative clauses, imperatives).
    verbal: the verb phrase.
    setting: tense and polarity.
    adverbials: besides those of the setting.
    agreement: the subject's, where there is no subject.
    front: whether adverbials may come first: `free`, `heavy` (only when the
      verb phrase is long) or `no`.
    shifted: after a report in the past.
    invert: see `verb_group`.
    asked: the question word or phrase, which comes first.
  """
  tense, marker = setting.tense, setting.marker
  if setting.modal:
    tense, lead = draw.wording(setting.modal)
    if lead:
      verbal, marker = _lead(verbal, lead, marker), ()
  tense = SHIFT.get(tense, tense) if shifted else tense
  if tense == "future" and not setting.negation and draw.chance(0.2):
    tense = "going"
  if subject is not None:
    agreement = subject.agreement
  heavy = bool(verbal.tail) or len(verbal.rest) > 7
  fronted, middle, ended = _place(
    draw,
    [*adverbials, *setting.adverbials],
    front="no" if asked else front,
    heavy=heavy,
    always=heavy or invert is not None,
  )
  before, after = verb_group(
    draw,
    verbal,
    setting=setting,
    agreement=agreement,
    tense=tense,
    marker=marker,
    extra=middle,
    invert=invert,
  )
  who = [] if subject is None else subject.english(draw, "subject")
  return [*fronted, *asked, *before, *who, *after, *ended, *verbal.tail]
