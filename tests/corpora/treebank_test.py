"""The grammar behind the embedded corpus: forms, agreement, word order."""

import collections
import re

import pytest

from jaxmt.corpora.treebank import (
  english,
  lexicon,
  morphology,
  nouns,
  patterns,
  sentences,
  verbs,
)
from jaxmt.corpora.treebank.english import Setting
from jaxmt.corpora.treebank.structure import Draw, Leaf, Tree, Verbal, words

SAMPLE = 1500


@pytest.fixture(scope="module")
def sample():
  """Sentences with three wordings each: (source words, [tokens, ...])."""
  made = []
  for seed in range(SAMPLE):
    sentence = sentences.sentence(Draw(seed))
    wordings = [sentence.english(Draw(seed * 3 + r)) for r in range(3)]
    made.append((sentence, wordings))
  return made


def texts(sample):
  return [
    " ".join(word for word, _ in tokens)
    for _, wordings in sample
    for tokens in wordings
  ]


@pytest.mark.parametrize(
  "lemma, s, past, participle, ing",
  [
    ("go", "goes", "went", "gone", "going"),
    ("study", "studies", "studied", "studied", "studying"),
    ("play", "plays", "played", "played", "playing"),
    ("plan", "plans", "planned", "planned", "planning"),
    ("catch", "catches", "caught", "caught", "catching"),
    ("write", "writes", "wrote", "written", "writing"),
    ("see", "sees", "saw", "seen", "seeing"),
    ("permit", "permits", "permitted", "permitted", "permitting"),
    ("begin", "begins", "began", "begun", "beginning"),
    ("have", "has", "had", "had", "having"),
    ("be", "is", "was", "been", "being"),
    ("fix", "fixes", "fixed", "fixed", "fixing"),
    ("shut", "shuts", "shut", "shut", "shutting"),
  ],
)
def test_verb_forms(lemma, s, past, participle, ing):
  assert morphology.finite(lemma, "present", "3s") == s
  assert morphology.past(lemma) == past
  assert morphology.participle(lemma) == participle
  assert morphology.ing(lemma) == ing


@pytest.mark.parametrize(
  "one, many",
  [
    ("book", "books"),
    ("police officer", "police officers"),
    ("child", "children"),
    ("dictionary", "dictionaries"),
    ("boy", "boys"),
    ("box", "boxes"),
    ("knife", "knives"),
    ("thesis", "theses"),
    ("old man", "old men"),
    ("photo", "photos"),
  ],
)
def test_plurals(one, many):
  assert morphology.plural(one) == many


def test_articles_follow_the_sound():
  following = ["apple", "book", "hour", "university", "one", "old", "european"]
  found = [morphology.article(word) for word in following]
  assert found == ["an", "a", "an", "a", "a", "an", "a"]


def said(setting, *, tense, agreement="3s", lemma="read", invert=None):
  """The verb group around `S`, contractions undone."""
  verbal = Verbal(lemma, (), words("books"))
  before, after = english.verb_group(
    Draw(1),
    verbal,
    setting=setting,
    agreement=agreement,
    tense=tense,
    marker=(),
    invert=invert,
  )
  tokens = [word for word, _ in (*before, ("S", ()), *after)]
  text = " ".join(tokens).replace("cannot", "can not")
  return text.replace("wo n't", "will n't").replace("n't", "not")


def negative():
  return Setting(negation=Leaf("AD", "不"))


@pytest.mark.parametrize(
  "tense, plain, negated, asked",
  [
    ("present", "S reads", "S does not read", "does S read"),
    ("past", "S read", "S did not read", "did S read"),
    ("future", "S will read", "S will not read", "will S read"),
    ("perfect", "S has read", "S has not read", "has S read"),
    ("progressive", "S is reading", "S is not reading", "is S reading"),
    ("can", "S can read", "S can not read", "can S read"),
    ("experience", "S has read", "S has never read", "has S read"),
    ("past perfect", "S had read", "S had never read", "had S read"),
    (
      "going",
      "S is going to read",
      "S is not going to read",
      "is S going to read",
    ),
  ],
)
def test_verb_groups(tense, plain, negated, asked):
  assert said(Setting(), tense=tense) == plain + " books"
  assert said(negative(), tense=tense) == negated + " books"
  assert said(Setting(), tense=tense, invert=()) == asked + " books"


@pytest.mark.parametrize(
  "agreement, present, past",
  [("1s", "am", "was"), ("3s", "is", "was"), ("pl", "are", "were")],
)
def test_be_needs_no_do(agreement, present, past):
  for tense, form in (("present", present), ("past", past)):
    options = dict(tense=tense, agreement=agreement, lemma="be")
    assert said(Setting(), **options) == f"S {form} books"
    assert said(negative(), **options) == f"S {form} not books"
    assert said(Setting(), invert=(), **options) == f"{form} S books"


def test_adverbs_stand_beside_the_verb():
  setting = Setting(middle=[lambda d: words("often")])
  assert said(setting, tense="present") == "S often reads books"
  assert said(setting, tense="future") == "S will often read books"
  assert said(setting, tense="present", lemma="be") == "S is often books"
  assert said(setting, tense="past", invert=()) == "did S often read books"


def test_commands_are_negated_with_do():
  assert said(negative(), tense="base") == "S do not read books"
  assert said(Setting(), tense="base") == "S read books"


def test_an_unknown_tense_is_refused():
  with pytest.raises(ValueError, match="pluperfect"):
    said(Setting(), tense="pluperfect")


def test_particles_may_follow_the_object():
  verb = Leaf("VV", "看"), Leaf("VV", "完")
  made = english.template(("finish2", "reading1", "o"), verb, words("it"))
  assert made.lemma == "finish" and made.leaves == (verb[1],)
  assert made.rest == [("reading", (verb[0],)), ("it", ())]
  made = english.template(("turn", "o", "off"), verb, words("it"))
  assert [word for word, _ in made.rest] == ["it", "off"]


def test_every_tag_has_nouns():
  known = {*nouns.BY_TAG, "h", "o", "*", "country"}
  for frame in verbs.FRAMES[0]:
    assert known >= {*frame.subjects, frame.object, *frame.places}, frame
  for row in patterns.INTRANSITIVE:
    assert known >= {*row[1], *row[4]}, row
  for row in (*patterns.GIVING, *patterns.MOVING):
    assert row[2] in known, row
  assert known >= set(lexicon.ADJECTIVES)


def test_every_noun_that_is_counted_in_units_has_them():
  for noun in nouns.NOUNS:
    if noun.count in ("m", "p") and "pair" not in noun.tags:
      assert all(m in lexicon.UNITS for m in noun.measures), noun.word


def test_links_point_into_the_tree(sample):
  for sentence, wordings in sample:
    assert [leaf.index for leaf in sentence.leaves] == list(
      range(len(sentence.leaves))
    )
    inside = set(map(id, sentence.leaves))
    for tokens in wordings:
      for _, leaves in tokens:
        assert all(id(leaf) in inside for leaf in leaves)


def test_no_leaf_stands_twice_in_a_tree_and_no_node_is_empty(sample):
  def check(tree):
    assert isinstance(tree, Leaf) or tree.children
    if isinstance(tree, Tree):
      for child in tree.children:
        check(child)

  for sentence, _ in sample:
    assert len(set(map(id, sentence.leaves))) == len(sentence.leaves)
    check(sentence.tree)


@pytest.mark.parametrize(
  "pattern",
  [
    r"\b(the|a|an) (the|a|an|my|his|her|our|their|this|that|these|some)\b",
    r" a [aeio]",
    r" an [bcdfghjklmnpqrstvwyz]",
    r", [,.?!]",
    r"^(,|[.]|and|'s) ",
    r"(will|can|must|should|may|might|would) (not )?(is|are|has|does|goes) ",
    r" (does|did|do) (not |n't )?(is|are|was|reads|goes|went) ",
    r"(^| )(they|we|you) (is|was|has|does) ",
    r"^(he|she|it) (are|were|have|do) ",
    r"(^| )i (is|are|has|does|were) ",
    r" (with|by|than|for) (he|she|i|they|we) ",
    r"^(him|her|them|me|us) (is|was|has|will|did) ",
    r"(two|three|many|several|these) (new |big |old )?(book|dog|student) ",
    r"(not|n't|never) (not|n't|never) ",
    r"\b(very|quite) (very|quite) ",
    r" (ed|ing|es) ",
    r"#",
  ],
)
def test_english_mistakes_do_not_occur(sample, pattern):
  wrong = [text for text in texts(sample) if re.search(pattern, text)]
  assert not wrong, wrong[:3]


def test_the_subject_far_away_decides_the_verb(sample):
  """`be` agrees across a relative clause or an of-phrase."""
  found = collections.Counter()
  for text in texts(sample):
    for word in ("am", "is", "are"):
      found[word] += f" {word} " in f" {text} "
    assert not re.search(r"^these [^,]* is (very|quite) ", text), text
  assert min(found["is"], found["are"]) > 100 and found["am"] > 5


def test_chinese_word_order(sample):
  """Question particles come last, 把 before its verb, 的 before its noun."""
  for sentence, _ in sample:
    source = [leaf.word for leaf in sentence.leaves]
    tags = [leaf.tag for leaf in sentence.leaves]
    if "吗" in source:
      assert source[-2:] == ["吗", "？"]
    if "BA" in tags:
      assert "VV" in tags[tags.index("BA") :]
    for place, tag in enumerate(tags):
      if tag == "DEC":
        assert {"NN", "NR"} & set(tags[place:])
      if tag == "M":
        assert tags[place - 1] in ("CD", "DT")


def test_relative_clauses_move_behind_the_noun():
  """The words of a Chinese relative clause follow its noun in English."""
  checked = 0
  for seed in range(400):
    sentence = sentences.sentence(Draw(seed))
    for clause, noun in _relatives(sentence.tree):
      inside = set(map(id, _leaves(clause)))
      for r in range(2):
        tokens = sentence.english(Draw(seed * 2 + r))
        places = [
          place
          for place, (_, leaves) in enumerate(tokens)
          if any(id(leaf) in inside for leaf in leaves)
        ]
        head = [
          place
          for place, (_, leaves) in enumerate(tokens)
          if any(leaf is noun for leaf in leaves)
        ]
        if places and head:
          assert min(places) > max(head), [word for word, _ in tokens]
          checked += 1
  assert checked > 50


def _leaves(tree):
  if isinstance(tree, Leaf):
    return [tree]
  return [leaf for child in tree.children for leaf in _leaves(child)]


def _relatives(tree):
  """Yields (CP with a verb, head noun leaf) for each relative clause."""
  if isinstance(tree, Leaf):
    return
  labels = [getattr(child, "label", "") for child in tree.children]
  if tree.label == "NP" and "CP" in labels:
    clause = tree.children[labels.index("CP")]
    noun = _leaves(tree)[-1]
    verbs_inside = any(leaf.tag == "VV" for leaf in _leaves(clause))
    if verbs_inside and noun.word != "时候":
      yield clause, noun
  for child in tree.children:
    yield from _relatives(child)


def test_draws_follow_their_weights():
  draw = Draw(0)
  found = collections.Counter(draw.choose(a=1, b=3, c=0) for _ in range(4000))
  assert found["c"] == 0 and 0.2 < found["a"] / 4000 < 0.3
  ranks = collections.Counter(draw.zipf(range(40)) for _ in range(20000))
  assert ranks[0] > ranks[2] > ranks[8] > ranks[30]
  options = collections.Counter(draw.wording("abc") for _ in range(4000))
  assert 0.5 < options["a"] / 4000 < 0.6 and options["b"] > 700
  assert {draw.below(3) for _ in range(100)} == {0, 1, 2}
