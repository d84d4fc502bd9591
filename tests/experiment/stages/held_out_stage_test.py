"""Learning from pairs that the rules are not of."""

import dataclasses
import json

import pytest

from jaxmt.errors import InputError
from jaxmt.experiment.stages import held_out
from jaxmt.experiment.stages.align import Links
from jaxmt.experiment.stages.corpus import Corpus
from jaxmt.experiment.stages.held_out import HoldOutConfig
from tests import util

TEXT = Corpus(
  train_source=[f"s{n}" for n in range(8)],
  train_target=[f"t{n}" for n in range(8)],
  train_trees=[f"(X s{n})" for n in range(8)],
  tune_source=["s1"],
  tune_references=[["t1"]],
  lm_text=["more"],
)
SMALL = (
  "--config=configs/violation.py:small",
  "--config.data.synthetic.train=600",
  "--config.data.synthetic.max_length=10",
  "--config.align.model=given",
  "--config.tune.method=kbmira",
  "--config.tune.rounds=1",
  "--config.learn.epochs=1",
)


@pytest.mark.parametrize("every", [2, 3, 8, 9])
def test_pairs_are_held_out_or_not(every):
  one, two = (
    held_out.pairs(HoldOutConfig(every=every, held=held), corpus=TEXT)
    for held in (True, False)
  )
  assert one.train_source == TEXT.train_source[every - 1 :: every]
  assert len(two.train_source) == 8 - 8 // every
  for part in (one, two):
    numbers = [line[1:] for line in part.train_source]
    assert part.train_target == [f"t{n}" for n in numbers]
    assert part.train_trees == [f"(X s{n})" for n in numbers]
    assert part.train_links is None
    assert part.tune_source == TEXT.tune_source
    assert part.lm_text == TEXT.lm_text
    links = held_out.links(
      HoldOutConfig(every=every, held=part is one),
      links=Links(links=[f"0-{n}" for n in range(8)]),
    )
    assert links.links == [f"0-{n}" for n in numbers]
  assert not set(one.train_source) & set(two.train_source)


@pytest.mark.parametrize("every", [2, 3])
def test_tuning_sentences_are_judged_or_tuned_on(every):
  text = dataclasses.replace(
    TEXT,
    tune_source=[f"s{n}" for n in range(7)],
    tune_references=[[f"t{n}", f"u{n}"] for n in range(7)],
    tune_trees=[f"(X s{n})" for n in range(7)],
  )
  judged, tuned = (
    held_out.tuning_sentences(
      HoldOutConfig(every=every, held=held), corpus=text
    )
    for held in (True, False)
  )
  assert judged.tune_source == text.tune_source[every - 1 :: every]
  assert sorted(judged.tune_source + tuned.tune_source) == text.tune_source
  for part in (judged, tuned):
    numbers = [line[1:] for line in part.tune_source]
    assert part.tune_references == [[f"t{n}", f"u{n}"] for n in numbers]
    assert part.tune_trees == [f"(X s{n})" for n in numbers]
    assert part.train_source == text.train_source
  with pytest.raises(InputError, match="8 is more than the 7 tuning sentences"):
    held_out.tuning_sentences(HoldOutConfig(every=8, held=True), corpus=text)


def test_rules_of_other_pairs_are_learned_with(tmp_path):
  done = util.run_program(
    "launch/train.py", *SMALL, "--config.held_out=3", f"--workdir={tmp_path}"
  )
  assert done.returncode == 0, done.stderr
  read = lambda name: [
    json.loads(line)
    for line in (tmp_path / name).read_text().splitlines()
    if line
  ]
  stages = {row["stage"]: row for row in read("metrics.jsonl")}
  assert stages["other-grammar"]["rules"] < stages["grammar"]["rules"]
  assert stages["other-lm"]["ngrams"] < stages["lm"]["ngrams"]
  assert stages["tune-max-violation"]["nonzero"] > 0
  # 200 of the 600 pairs are learned from, the reachable ones of them.
  assert " of 200 references reached" in done.stderr

  # With their own rules, of which there are more, more can be reached.
  percent = stages["tune-max-violation"]["reached_percent"]
  flags = ("--config.held_out=3", "--config.own_rules", f"--workdir={tmp_path}")
  done = util.run_program("launch/train.py", *SMALL, *flags)
  assert done.returncode == 0, done.stderr
  assert " of 200 references reached" in done.stderr
  assert "[other-grammar]" not in done.stderr
  stages = {row["stage"]: row for row in read("metrics.jsonl")}
  assert stages["tune-max-violation"]["reached_percent"] > percent


@pytest.mark.parametrize(
  ("flags", "text"),
  [
    (("--config.held_out=1",), "config key 'held_out' must be 0 or at least 2"),
    (("--config.judged=1",), "config key 'judged' must be 0 or at least 2"),
    (("--config.judged=-2",), "config key 'judged' must be 0 or at least 2"),
    (("--config.own_rules",), "config key 'own_rules' needs 'held_out'"),
    (
      ("--config.held_out=2", "--config.learn.leave_one_out=singletons"),
      "'learn.leave_one_out'",
    ),
  ],
)
def test_bad_settings_are_one_line(tmp_path, flags, text):
  done = util.run_program(
    "launch/train.py", *SMALL, *flags, f"--workdir={tmp_path}"
  )
  assert done.returncode == 2
  assert len(done.stderr.splitlines()) == 1 and text in done.stderr
