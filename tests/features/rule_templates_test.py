"""Features of rule applications: names, keys, scores, sums."""

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.features import feature_keys, rule_templates, sparse
from jaxmt.features import weights as weight_files
from jaxmt.grammar import table as tables
from jaxmt.text.ragged import Ragged, from_rows
from jaxmt.text.vocabulary import SPECIALS, Vocabulary
from jaxmt.tune.formats import kbest_files, kbest_write
from tests.reference import rule_features as slow

SOURCE = ("ne", "pas", "chat=", "猫咪", "_", "il:")
TARGET = ("did", "not", "cat", "é|", "#1")
LABELS = ("X", "S", "NP")
SENTENCES = (("il:", "ne", "猫咪", "pas"), ("zzz", "chat="), (), ("_",))
ALL = rule_templates.TemplateConfig(
  names=rule_templates.TEMPLATES,
  edges=(*rule_templates.EDGES, "flFLbanche"),
  min_count=2.0,
)


def make_table():
  """Rules with links, an empty target, a swap, then glue and pass-through."""
  source = [[4, -1, 5], [7], [-3, 6, -1], [5], [8, 9]]
  target = [[4, 5, -1], [6, 7], [-2, 6, -1], [], [8]]
  links = [[(0, 0), (2, 1)], [(0, 0), (0, 1)], [(1, 1)], [], [(1, 0)]]
  vocabularies = (
    Vocabulary(words=(*SPECIALS, *SOURCE)),
    Vocabulary(words=(*SPECIALS, *TARGET)),
  )
  flat = [pair for row in links for pair in row]
  own = tables.make_table(
    source_words=vocabularies[0],
    target_words=vocabularies[1],
    labels=LABELS,
    lhs=np.array([0, 0, 2, 0, 0]),
    source=from_rows(source),
    target=from_rows(target),
    links=Ragged(
      flat=np.array(flat, np.int16),
      offsets=np.cumsum([0] + [len(row) for row in links]),
    ),
    counts=np.array([1.0, 9.0, 2.0, 3.0, 4.5]),
  )
  return tables.concatenate([own, tables.glue_rules(*vocabularies)])


TABLE = make_table()


def make_text(templates):
  words = tuple(dict.fromkeys(w for row in SENTENCES for w in row))
  tokens = from_rows([[words.index(w) for w in row] for row in SENTENCES])
  return rule_templates.make_text(templates, tokens, words), words


# (rule, begin, end, sentence); beyond the table: the goal, copied words.
APPLICATIONS = [
  (0, 1, 4, 0),
  (1, 2, 3, 0),
  (2, 0, 2, 1),
  (3, 3, 4, 0),
  (4, 0, 2, 1),
  (5, 0, 4, 0),
  (6, 0, 2, 1),
  (8, 0, 4, 0),
  (9 + 4, 0, 1, 1),
  (9 + 0, 0, 1, 0),
  (1, 0, 1, 3),
]


def applications(rows=APPLICATIONS):
  columns = np.array(rows).reshape(-1, 4).T
  names = ("rule", "begin", "end", "sentence")
  return rule_templates.Applications(**dict(zip(names, columns, strict=True)))


def as_dicts(rows, names):
  dense = sparse.to_dense(rows, len(names))
  return [
    {n: v for n, v in zip(names, row, strict=True) if v}
    for row in dense.tolist()
  ]


@pytest.mark.parametrize(
  "names", [rule_templates.TEMPLATES, *[(t,) for t in rule_templates.TEMPLATES]]
)
def test_names_are_those_of_the_slow_way(names):
  config = rule_templates.TemplateConfig(
    names=names, edges=ALL.edges, min_count=2.0
  )
  templates = rule_templates.make_templates(TABLE, config)
  text, _ = make_text(templates)
  rows, found = rule_templates.extract(templates, text, applications())
  assert len(set(found)) == len(found)
  expected = [
    dict(slow.names(TABLE, config, SENTENCES[sentence], (rule, begin, end)))
    for rule, begin, end, sentence in APPLICATIONS
  ]
  assert as_dicts(rows, found) == expected
  assert sum(map(len, expected)) > 3


def test_examples_by_hand():
  templates = rule_templates.make_templates(TABLE, ALL)
  text, _ = make_text(templates)
  rows, names = rule_templates.extract(
    templates, text, applications([(2, 0, 2, 1)])
  )
  (found,) = as_dicts(rows, names)
  assert "Rule:NP>[NP]_chat=_[X]/[1]_cat_[0]" in found
  assert "Count:1" in found
  assert "Shape:0T1/1T0" in found
  assert "Lex:chat=_cat" in found
  assert "Edge:bF:<s>_[1]" in found
  assert "Edge:c:8" in found


def test_keys_are_those_of_the_names():
  templates = rule_templates.make_templates(TABLE, ALL)
  text, _ = make_text(templates)
  keys = rule_templates.application_keys(templates, text, applications())
  rows, names = rule_templates.extract(templates, text, applications())
  of_names = feature_keys.keys_of(names)
  for row in range(len(keys)):
    low, high = rows.offsets[row : row + 2]
    assert set(keys[row]) == set(of_names[rows.ids[low:high]])


def test_scores_are_the_products_with_the_weights():
  templates = rule_templates.make_templates(TABLE, ALL)
  text, words = make_text(templates)
  rows, names = rule_templates.extract(templates, text, applications())
  rng = np.random.default_rng(0)
  vector = rng.normal(size=len(names)) * (rng.uniform(size=len(names)) < 0.7)
  vector[names.index("Lex:zzz_zzz")] = 0.5
  weights = dict(zip(names, vector.tolist(), strict=True)) | {"LM": 3.0}
  table = feature_keys.make_table(weights)
  of_rules = rule_templates.rule_scores(templates, table)
  of_copies = rule_templates.copy_scores(templates, words, table)
  static = np.concatenate([of_rules, [0.0], of_copies])
  edges = rule_templates.application_scores(
    templates, text, applications(), table
  )
  np.testing.assert_allclose(
    static[applications().rule] + edges, sparse.dot(rows, vector), atol=1e-12
  )
  assert np.abs(edges).max() > 0 and np.abs(of_copies).max() > 0


def test_without_some_templates_their_scores_are_zero():
  config = rule_templates.TemplateConfig(names=("shape",))
  templates = rule_templates.make_templates(TABLE, config)
  text, words = make_text(templates)
  table = feature_keys.make_table({"Lex:zzz_zzz": 1.0, "Edge:fF:zzz_zzz": 1.0})
  assert not rule_templates.copy_scores(templates, words, table).any()
  assert not rule_templates.application_scores(
    templates, text, applications(), table
  ).any()
  assert not rule_templates.rule_scores(templates, table).any()


def test_derivations_sum_their_applications():
  templates = rule_templates.make_templates(TABLE, ALL)
  text, _ = make_text(templates)
  rows, names = rule_templates.extract(templates, text, applications())
  members = from_rows([[0, 1, 1], [], [4, 8, 2, 0]], np.int64)
  found = rule_templates.sum_rows(rows, members)
  dense = sparse.to_dense(rows, len(names))
  expected = [dense[members[d]].sum(0) for d in range(3)]
  np.testing.assert_array_equal(
    sparse.to_dense(found, len(names)), np.stack(expected)
  )


def test_nothing_to_extract():
  templates = rule_templates.make_templates(TABLE, ALL)
  text = rule_templates.make_text(templates, from_rows([]), ())
  rows, names = rule_templates.extract(templates, text, applications([]))
  assert len(rows) == 0 and names == ()
  rows, names = rule_templates.extract(
    templates, make_text(templates)[0], applications([(8, 0, 4, 0)])
  )
  assert len(rows) == 1 and names == ()


def test_names_survive_files():
  """Words may hold `=`, `:`, `#` and `|`."""
  templates = rule_templates.make_templates(TABLE, ALL)
  text, _ = make_text(templates)
  rows, names = rule_templates.extract(templates, text, applications())
  weights = {name: 0.5 + n for n, name in enumerate(names)}
  lines = weight_files.format_weights(weights)
  assert weight_files.parse_weights(lines) == weights
  made = candidate_lists.from_rows(
    sentence=np.zeros(len(rows), np.int64),
    lines=["x"] * len(rows),
    features=rows,
    names=names,
  )
  written = kbest_write.format_kbest(made, np.zeros(len(rows)))
  again = kbest_files.parse_kbest("\n".join(written).encode())
  assert as_dicts(again.features, again.names) == as_dicts(rows, names)


@pytest.mark.parametrize(
  "config,match",
  [
    (rule_templates.TemplateConfig(names=("rules",)), "template 'rules'"),
    (rule_templates.TemplateConfig(edges=("fx",)), "letters"),
    (rule_templates.TemplateConfig(edges=("",)), "letters"),
  ],
)
def test_wrong_templates_are_named(config, match):
  with pytest.raises(InputError, match=match):
    rule_templates.make_templates(TABLE, config)
