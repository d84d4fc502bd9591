"""The tuners on a real k-best list; skipped where there is none."""

import numpy as np
import pytest

from jaxmt.text import files, references
from jaxmt.tune import methods, pool
from jaxmt.tune.formats import kbest_files
from tests import util


@pytest.fixture(scope="module")
def made():
  folder = util.corpus("kbest-multi30k-de-en")
  lines = references.read_references([str(folder / "dev.ref.en")])
  found = kbest_files.parse_kbest(
    files.read_bytes(str(folder / "dev.kbest.cdec.gz"))
  )
  return pool.with_statistics(pool.make_pool(found, sentences=1014), lines)


def test_pool(made):
  assert (len(made), made.dense.shape) == (95610, (95610, 12))
  first = made.offsets[:-1]  # the decoder's own best
  metric = pool.find_metric("bleu")
  score = metric.corpus_score(made.statistics["bleu"][first].sum(0))
  assert score == pytest.approx(0.4088, abs=5e-5)


# Moses from the same start: mert 0.4239 to 0.4248, kbmira 0.42006.
@pytest.mark.parametrize(
  "name,least", [("mert", 0.4245), ("kbmira", 0.4201), ("mira", 0.4201)]
)
def test_pool_score(made, name, least):
  method = methods.find(name)
  start = np.full(12, 0.1)
  tuned, _ = method.optimise(made, start, method.config, 1)
  assert pool.pool_score(made, tuned, "bleu") >= least
