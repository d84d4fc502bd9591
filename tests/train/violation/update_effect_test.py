"""The tool that tells what updates are at a baseline's weights."""

import json

import pytest

from tests import util

SMALL = (
  "--config=configs/violation.py:small",
  "--config.data.synthetic.train=100",
  "--config.align.model=given",
  "--config.tune.rounds=1",
  "--config.learn.templates=()",
)


def test_differences_have_the_violation_of_their_updates():
  done = util.run_program("tools/update_effect.py", *SMALL, "--json")
  assert done.returncode == 0, done.stderr
  found = json.loads(done.stdout)
  rows = {row["update"]: row for row in found["updates"]}
  assert len(rows) == 5
  for update, row in rows.items():
    updates, sentences = map(int, row["updates"].split(" of "))
    assert 0 < updates <= sentences
    # Without sparse features, weights times differences are the violation.
    score = sum(
      one["weight"] * one[update] for one in found["features"].values()
    )
    assert -score * sentences / updates == pytest.approx(
      float(row["violation"]), abs=0.1
    )
    assert 0 < float(row["agreement"]) <= 1
    if update != "local":
      assert row["to reference %"] == "100.0"
  assert rows["max-violation"]["valid %"] == "100.0"


@pytest.mark.parametrize(
  ("flags", "text"),
  [
    (("--updates=bold",), "--updates: 'bold' is none of max-violation"),
    (("--config.held_out=3",), "'held_out' without 'own_rules'"),
  ],
)
def test_bad_options_are_one_line(flags, text):
  done = util.run_program("tools/update_effect.py", *SMALL, *flags)
  assert done.returncode == 2
  assert len(done.stderr.splitlines()) == 1 and text in done.stderr
