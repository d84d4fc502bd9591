"""English inflection for the words of the synthetic corpus."""

import functools

_IRREGULAR_VERBS = """
be was been; have had had; do did done; go went gone; come came come
see saw seen; read read read; write wrote written; buy bought bought
sell sold sold; eat ate eaten; drink drank drunk; make made made
take took taken; give gave given; tell told told; teach taught taught
speak spoke spoken; say said said; think thought thought; know knew known
find found found; lose lost lost; bring brought brought; get got got
leave left left; meet met met; hear heard heard; bite bit bitten
understand understood understood; drive drove driven; ride rode ridden
sing sang sung; draw drew drawn
keep kept kept; feed fed fed; grow grew grown; forget forgot forgotten
steal stole stolen; catch caught caught; cut cut cut; put put put
hit hit hit; beat beat beaten; hold held held; shut shut shut
break broke broken; build built built; run ran run; spend spent spent
send sent sent; lend lent lent; pay paid paid; wear wore worn
throw threw thrown; begin began begun; feel felt felt; let let let
sleep slept slept; swim swam swum; fly flew flown; rise rose risen
fall fell fallen; become became become; win won won; hang hung hung
lead led led; show showed shown; choose chose chosen; hide hid hidden
sit sat sat; stand stood stood; shoot shot shot
""".replace("\n", ";")

_DOUBLING = frozenset(
  "plan stop chat shop drop rob admit permit beg jog".split()
)

_PLURALS = dict(
  child="children",
  man="men",
  woman="women",
  person="people",
  businessman="businessmen",
  chairman="chairmen",
  fisherman="fishermen",
  policeman="policemen",
  wife="wives",
  knife="knives",
  fish="fish",
  sheep="sheep",
  thief="thieves",
  photo="photos",
  piano="pianos",
  foot="feet",
  series="series",
  thesis="theses",
)

_AN = ("hour", "honest")
_A = ("university", "useful", "european", "one", "unit", "usual", "used")


def _verb_table() -> dict[str, tuple[str, str]]:
  table: dict[str, tuple[str, str]] = {}
  for row in _IRREGULAR_VERBS.split(";"):
    if row.strip():
      lemma, past, participle = row.split()
      table[lemma] = (past, participle)
  return table


_VERBS = _verb_table()
_BE = {
  "present": {"1s": "am", "3s": "is", "pl": "are"},
  "past": {"1s": "was", "3s": "was", "pl": "were"},
}


def _ends_in_y(word: str) -> bool:
  return word[-1] == "y" and word[-2] not in "aeiou"


@functools.cache
def add_s(word: str) -> str:
  """The third person of a verb, the plural of a noun."""
  if _ends_in_y(word):
    return word[:-1] + "ies"
  if word.endswith(("s", "x", "z", "ch", "sh")):
    return word + "es"
  if word in ("go", "do", "echo", "potato", "tomato"):
    return word + "es"
  return word + "s"


@functools.cache
def past(lemma: str) -> str:
  """The past tense; of `be` the singular."""
  return _VERBS[lemma][0] if lemma in _VERBS else _add_ed(lemma)


@functools.cache
def participle(lemma: str) -> str:
  """The past participle."""
  return _VERBS[lemma][1] if lemma in _VERBS else _add_ed(lemma)


def _add_ed(lemma: str) -> str:
  if _ends_in_y(lemma):
    return lemma[:-1] + "ied"
  if lemma in _DOUBLING:
    return lemma + lemma[-1] + "ed"
  return lemma + ("d" if lemma[-1] == "e" else "ed")


@functools.cache
def ing(lemma: str) -> str:
  """The present participle."""
  doubled = ("run", "swim", "get", "put", "sit", "cut", "let", "win", "hit")
  if lemma in _DOUBLING or lemma in doubled or lemma in ("begin", "forget"):
    return lemma + lemma[-1] + "ing"
  if lemma == "shut":
    return "shutting"
  if lemma[-1] == "e" and lemma != "be" and not lemma.endswith("ee"):
    return lemma[:-1] + "ing"
  return lemma + "ing"


def finite(lemma: str, tense: str, agreement: str) -> str:
  """The present or past form that agrees with a subject."""
  if lemma == "be":
    return _BE[tense][agreement]
  if tense == "past":
    return past(lemma)
  if agreement != "3s":
    return lemma
  return "has" if lemma == "have" else add_s(lemma)


@functools.cache
def plural(noun: str) -> str:
  """The plural of a noun, which may be several words (the last inflects)."""
  head = noun.rsplit(" ", 1)
  last = head[-1]
  head[-1] = _PLURALS.get(last) or add_s(last)
  return " ".join(head)


@functools.cache
def article(following: str) -> str:
  """`a` or `an` before a word."""
  if following.startswith(_AN):
    return "an"
  if following.startswith(_A) or following[0] not in "aeiou":
    return "a"
  return "an"
