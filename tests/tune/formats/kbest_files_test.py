"""Reading and writing k-best lists, pools, merging, duplicates."""

import numpy as np
import pytest

from jaxmt.decode import candidate_lists
from jaxmt.errors import InputError
from jaxmt.features import sparse
from jaxmt.tune import pool
from jaxmt.tune.formats import kbest_files, kbest_write, mert_data
from tests.tune import small_pool

CDEC = b"""0 ||| a b ||| Glue=1 LM=-2.5 Cost=0.3 ||| -4.5
0 ||| a ||| LM=-1e-2 Glue=2 ||| -3
2 ||| c ||| ||| 0
"""
MOSES = b"""0 ||| a b  ||| Glue0= 1 LM0= -2.5 TM0= 0.3 -7 ||| -4.5 ||| 0-0
0 ||| a  ||| LM0= -1e-2 Glue0= 2 TM0= 0 0 ||| -3 ||| 0-0
2 ||| c  ||| PP_x_y= 1 ||| 0
"""
OLD_MOSES = b"0||| a b ||| d: 0 -7.66 lm: -41.3 ||| -14.6\n"
JOSHUA = b"0 ||| a b ||| tm_pt_0=-1.2 lm_0=-20.1 ||| -227.217\n"
TRAVATAR = b"0 ||| a b ||| -12.3 ||| egfp=-4.5 w=3 ||| (S (X a b))\n"
BARE = b"0 ||| a b ||| -1.5 2 ||| -3\n"


def table(candidates):
  dense = sparse.to_dense(candidates.features, len(candidates.names))
  return [
    {n: v for n, v in zip(candidates.names, row, strict=True) if v}
    for row in dense.tolist()
  ]


def test_cdec():
  found = kbest_files.parse_kbest(CDEC)
  assert found.sentence.tolist() == [0, 0, 2]
  assert found.lines == ["a b", "a", "c"]
  assert table(found) == [
    {"Glue": 1.0, "LM": -2.5, "Cost": 0.3},
    {"LM": -0.01, "Glue": 2.0},
    {},
  ]


@pytest.mark.parametrize(
  "data,expected",
  [
    (
      MOSES,
      [
        {"Glue0": 1.0, "LM0": -2.5, "TM0_0": 0.3, "TM0_1": -7.0},
        {"LM0": -0.01, "Glue0": 2.0},
        {"PP_x_y": 1.0},
      ],
    ),
    (OLD_MOSES, [{"d_1": -7.66, "lm": -41.3}]),
    (JOSHUA, [{"tm_pt_0": -1.2, "lm_0": -20.1}]),
    (TRAVATAR, [{"egfp": -4.5, "w": 3.0}]),
    (BARE, [{"feature_0": -1.5, "feature_1": 2.0}]),
  ],
  ids=["moses", "old-moses", "joshua", "travatar", "bare"],
)
def test_other_formats(data, expected):
  found = kbest_files.parse_kbest(data)
  assert table(found) == expected
  assert found.lines[0] == "a b"


def test_details_of_the_text():
  data = "0 ||| \u3000a\u00a0b  c ||| x=1 ||| 0\r\n\n 7 |||  ||| x=2"
  found = kbest_files.parse_kbest(data.encode())
  assert found.sentence.tolist() == [0, 7]
  assert found.lines == ["\u3000a\u00a0b  c", ""]
  assert table(found) == [{"x": 1.0}, {"x": 2.0}]


def test_names_may_hold_equals_signs_and_repeat():
  found = kbest_files.parse_kbest(b"0 ||| a ||| R:x=y=2 R:x=y=3 Z=0 ||| 0\n")
  assert table(found) == [{"R:x=y": 5.0}]


def test_numbers_are_read_exactly():
  rng = np.random.default_rng(0)
  values = np.concatenate(
    [
      rng.normal(size=200) * 10.0 ** rng.integers(-30, 30, 200),
      np.round(rng.normal(size=200), 4),
      [1e-320, 1e308, 123456789012345678.0, 0.1, -0.0, 5e-324],
    ]
  )
  text = " ".join(f"f{n}={v!r}" for n, v in enumerate(values.tolist()))
  found = kbest_files.parse_kbest(f"0 ||| a ||| {text} ||| 0".encode())
  row = dict(zip(found.features.ids, found.features.values, strict=True))
  for number, value in enumerate(values.tolist()):
    assert row.get(number, 0.0) == value


@pytest.mark.parametrize(
  "data,line,cause",
  [
    (b"0 ||| a ||| x=1 ||| 0\nnothing\n", 2, "expected"),
    (b"\n\nx ||| a ||| x=1 ||| 0\n", 3, "expected"),
    (b"0 ||| a ||| x=1 ||| 0\n\n0 ||| a ||| x=1.2.3 ||| 0\n", 3, "1.2.3"),
    (b"0 ||| a ||| x=1_0 ||| 0\n", 1, "1_0"),
    (b"0 ||| a ||| y=1 hello ||| 0\n", 1, "hello"),
    (b"0 ||| a\xff ||| x=1 ||| 0\n", 1, "UTF-8"),
    (b"0 ||| a ||| x=1\n0 ||| a ||| x\xff=1 ||| 0\n", 2, "UTF-8"),
    (b"-1 ||| a ||| x=1 ||| 0\n", 1, "expected"),
  ],
)
def test_bad_lines_are_named(data, line, cause):
  with pytest.raises(InputError, match=cause) as caught:
    kbest_files.parse_kbest(data, path="list")
  assert (caught.value.path, caught.value.line) == ("list", line)


def test_empty_file():
  found = kbest_files.parse_kbest(b"")
  assert len(found) == 0
  assert pool.make_pool(found, sentences=3).offsets.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", kbest_files.FORMATS)
def test_written_lists_read_back(kind):
  made = small_pool.make(0, sparse_features=5)
  candidates = made
  lines = kbest_write.format_kbest(candidates, np.zeros(len(made)), format=kind)
  again = kbest_files.parse_kbest("\n".join(lines).encode())
  assert again.lines == candidates.lines
  np.testing.assert_array_equal(again.sentence, candidates.sentence)
  assert table(again) == table(candidates)


def test_nan_and_infinite_features_drop_the_candidate():
  data = b"0 ||| a ||| x=nan ||| 0\n0 ||| b ||| x=1 ||| 0\n"
  data += b"1 ||| c ||| x=-inf y=2 ||| 0\n1 ||| d ||| x=Infinity ||| 0\n"
  made = pool.make_pool(kbest_files.parse_kbest(data))
  assert made.lines == ["b"]
  assert made.offsets.tolist() == [0, 1, 1]
  assert made.dropped == 3


def test_duplicates_are_equal_text_and_features():
  data = b"""1 ||| a ||| x=1 y=2 ||| 0
0 ||| a ||| x=1 y=2 ||| 0
0 ||| a ||| y=2 x=1 z=0 ||| 5
0 ||| a ||| x=1 y=3 ||| 0
0 ||| b ||| x=1 y=2 ||| 0
"""
  made = pool.make_pool(kbest_files.parse_kbest(data))
  assert made.lines == ["a", "a", "b", "a"]
  assert made.offsets.tolist() == [0, 3, 4]
  assert made.names == ("x", "y", "z")
  assert made.dense.tolist() == [[1, 2, 0], [1, 3, 0], [1, 2, 0], [1, 2, 0]]


def test_dense_and_sparse_give_the_same_scores():
  made = small_pool.make(0, sparse_features=30)
  assert made.dense.shape[1] == 4 and len(made.sparse.ids)
  rng = np.random.default_rng(0)
  weights = rng.normal(size=len(made.names))
  candidates = made
  full = sparse.to_dense(candidates.features, len(made.names))
  np.testing.assert_allclose(pool.scores(made, weights), full @ weights)
  slopes = rng.normal(size=len(made))
  np.testing.assert_allclose(pool.backward(made, slopes), full.T @ slopes)
  all_dense = pool.make_pool(candidates, dense_names=made.names)
  np.testing.assert_array_equal(all_dense.dense, full)


def test_many_features_are_split_by_frequency():
  lines = [
    f"{s} ||| w{k} ||| lm={k}.5 rule{s}_{k}=1 ||| 0"
    for s in range(20)
    for k in range(5)
  ]
  made = pool.make_pool(kbest_files.parse_kbest("\n".join(lines).encode()))
  assert made.names[0] == "lm" and made.dense.shape == (100, 1)
  assert len(made.names) == 101


def test_statistics_and_costs():
  made = pool.make_pool(
    kbest_files.parse_kbest(
      b"0 ||| a b c d ||| x=1 ||| 0\n0 ||| ||| x=2 ||| 0\n"
    ),
    sentences=2,
  )
  refs = [["a b c d"], ["e"]]
  made = pool.with_statistics(made, refs, ["bleu", "ter", "chrf"])
  assert made.statistics["bleu"].tolist() == [
    [4, 3, 2, 1, 4, 3, 2, 1, 4],
    [0, 0, 0, 0, 0, 0, 0, 0, 4],
  ]
  assert pool.pool_score(made, np.array([-1.0]), "bleu") == pytest.approx(1.0)
  assert pool.pool_score(made, np.array([1.0]), "bleu") == 0.0
  np.testing.assert_allclose(pool.sentence_costs(made, "bleu"), [0, 1])
  np.testing.assert_allclose(pool.sentence_costs(made, "ter"), [0, 1])
  with pytest.raises(ValueError, match="references"):
    pool.with_statistics(made, refs[:1], ["bleu"])
  with pytest.raises(ValueError, match="metric"):
    pool.with_statistics(made, refs, ["blue"])


def test_moses_tuning_data_round_trip():
  made = small_pool.make(2, sparse_features=6)
  features = mert_data.format_features(made)
  scores = mert_data.format_scores(made)
  assert features[0] == "FEATURES_TXT_BEGIN_0 0 10 4 " + " ".join(
    made.names[:4]
  )
  again = mert_data.parse_pool(features, scores)
  weights = dict(zip(made.names, np.arange(1.0, 11.0), strict=True))
  mine = np.array([weights[name] for name in made.names])
  theirs = np.array([weights[name] for name in again.names])
  assert pool.pool_score(again, theirs, "bleu") == pytest.approx(
    pool.pool_score(made, mine, "bleu")
  )
  # Orders interleave there.
  first = made.statistics["bleu"][0]
  expected = [first[0], first[4], first[1], first[5], first[2], first[6]]
  assert scores[1].split()[:6] == [str(v) for v in expected]


@pytest.mark.parametrize(
  "features,scores,path,line",
  [
    (["x"], [], "F", 1),
    (["FEATURES_TXT_BEGIN_0 0 1 1 a", "1"], [], "F", 2),
    (["FEATURES_TXT_BEGIN_0 0 1 2 a b", "1", "FEATURES_TXT_END_0"], [], "F", 2),
    (
      ["FEATURES_TXT_BEGIN_0 0 1 1 a", "1", "FEATURES_TXT_END_0"],
      ["SCORES_TXT_BEGIN_0 0 1 3 TER", "1 2 3", "SCORES_TXT_END_0"],
      "S",
      1,
    ),
    (
      ["FEATURES_TXT_BEGIN_0 0 1 1 a", "1", "FEATURES_TXT_END_0"],
      ["SCORES_TXT_BEGIN_0 0 1 9 BLEU", "1 2 3", "SCORES_TXT_END_0"],
      "S",
      2,
    ),
    (
      ["FEATURES_TXT_BEGIN_0 0 1 1 a", "1", "FEATURES_TXT_END_0"],
      [],
      "S",
      None,
    ),
  ],
)
def test_bad_moses_data_is_named(features, scores, path, line):
  with pytest.raises(InputError) as caught:
    mert_data.parse_pool(features, scores, feature_path="F", score_path="S")
  assert (caught.value.path, caught.value.line) == (path, line)


def test_some_candidates_of_a_pool():
  made = small_pool.make(0, sparse_features=9)
  weights = np.random.default_rng(0).normal(size=len(made.names))
  chosen = np.array([0, 3, 12, len(made) - 1])
  some = candidate_lists.take(made, chosen)
  expected = pool.scores(made, weights)[chosen]
  np.testing.assert_allclose(pool.scores(some, weights), expected)
  np.testing.assert_array_equal(some.sentence, made.sentence[chosen])
  assert some.lines == [made.lines[row] for row in chosen]


def test_a_sentence_number_that_no_text_has():
  data = b"0 ||| a ||| f=1 ||| 0\n2000000000 ||| a ||| f=1 ||| 0\n"
  with pytest.raises(InputError, match="f:2: sentence 2000000000 is not from"):
    kbest_files.parse_kbest(data, path="f")
