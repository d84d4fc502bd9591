"""Whole experiments: results, SIGKILL and resume, studies, bad configs."""

import json

import pytest

from tests import util

FLOOR = (
  "--config=configs/quickstart.py",
  "--config.data.synthetic.train=120",
  "--config.data.synthetic.tune=20",
  "--config.data.synthetic.test=20",
  "--config.align.model=given",
  "--config.systems=()",
)
# Small in every respect, and all batches of one shape: little to compile.
TINY = (
  *FLOOR[:-1],
  "--config.systems=('primary','augmented-forest')",
  "--config.data.synthetic.max_length=12",
  "--config.grammar.hiero.max_words=3",
  "--config.grammar.trees.max_size=2",
  "--config.search.beam=8",
  "--config.search.pop=30",
  "--config.search.span=6",
  "--config.tune.rounds=1",
  "--config.tune.nbest=20",
  "--config.theta.iterations=1",
  "--config.theta.train_beam=20",
  "--config.theta.train_pop=40",
  "--config.theta.k=8",
  "--config.theta.margin=3",
)


def train(workdir, *flags):
  # Tuples given twice add up: a flag replaces the one in TINY.
  names = {flag.partition("=")[0] for flag in flags}
  kept = [flag for flag in TINY if flag.partition("=")[0] not in names]
  return util.run_program(
    "launch/train.py", *kept, f"--workdir={workdir}", *flags
  )


def outputs(workdir):
  results = json.loads((workdir / "results.json").read_text())
  del results["measures"]  # seconds
  return results, (workdir / "statistics.npz").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """An undisturbed run."""
  workdir = tmp_path_factory.mktemp("whole")
  done = train(workdir)
  assert done.returncode == 0, done.stderr
  return workdir, done


def test_results_table_and_report(whole):
  workdir, done = whole
  names = {"primary", "augmented-forest", "gloss"}
  assert all(name in done.stdout for name in ("bleu", *names))
  results = json.loads((workdir / "results.json").read_text())
  assert set(results["systems"]) == set(results["tune"]) == names
  bleu = {name: own["bleu"] for name, own in results["systems"].items()}
  assert bleu["primary"] > bleu["gloss"] > 0
  assert bleu["augmented-forest"] > bleu["gloss"]
  assert results["baseline"] == "primary"
  assert len(results["test_references"]) == 64
  assert set(results["significance"]) == names - {"primary"}
  assert "nrefs:3" in results["signatures"]["bleu"]
  measures = results["measures"]["augmented-forest"]
  assert measures["seconds"] > 0 and measures["sentences_per_second"] > 0
  assert results["measures"]["primary"]["rules"] > 0
  stages = [
    json.loads(line)["stage"]
    for line in (workdir / "metrics.jsonl").read_text().splitlines()
  ]
  assert stages[0] == "corpus" and "theta-augmented-forest" in stages
  html = (workdir / "report.html").read_text()
  assert 'id="data-report"' in html and 'id="data-sentences-0"' in html
  run = json.loads((workdir / "run.json").read_text())
  assert run["status"] == "finished"
  assert run["config"]["data"]["synthetic"]["train"] == 120


# tests/faults/training_test.py kills every stage, in forks of one process.
def test_sigkill_in_a_stage_then_resume(whole, tmp_path):
  stage = "tune-primary"
  entry = "round2" if stage == "tune-primary" else stage
  died = util.run_program(
    "tests/reference/killable_train.py", entry, *TINY, f"--workdir={tmp_path}"
  )
  assert died.returncode == -9
  assert f"[{stage}] running" in died.stderr
  assert f"[{stage}] done" not in died.stderr
  assert not (tmp_path / "results.json").exists()
  resumed = train(tmp_path)
  assert resumed.returncode == 0, resumed.stderr
  assert outputs(tmp_path) == outputs(whole[0])
  if stage != "corpus":
    assert "[corpus] reused" in resumed.stderr


def test_changed_config_redoes_only_what_depends_on_it(whole):
  workdir, _ = whole
  before = outputs(workdir)
  again = train(workdir, "--config.systems=('primary','retuned')")
  assert again.returncode == 0, again.stderr
  assert "[tune-primary] reused" in again.stderr
  assert "[evaluate-test] running" in again.stderr
  assert "theta" not in again.stderr
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  noted = {record["stage"]: record for record in map(json.loads, lines)}
  first, more = noted["tune-primary"], noted["tune-retuned"]
  # Tuning starts from the weights before.
  assert more["start_score"] == first["best_score"]
  assert more["best_score"] >= first["best_score"]
  back = train(workdir)
  assert "running" not in back.stderr
  assert outputs(workdir) == before


def test_seed_and_direction_change_the_corpus(tmp_path):
  found = []
  for number, flags in enumerate(
    ([], ["--config.seed=1"], ["--config.data.reverse=true"])
  ):
    workdir = tmp_path / str(number)
    done = util.run_program(
      "launch/train.py", *FLOOR, *flags, f"--workdir={workdir}"
    )
    assert done.returncode == 0, done.stderr
    found.append(outputs(workdir)[0]["systems"])
  assert list(found[0]) == ["gloss"]
  assert found[0] != found[1] and found[0] != found[2]


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--config.lm.ordr=2"], "did you mean 'order'?"),
    (["--config.data.kind=none"], "neither 'synthetic' nor 'files'"),
    (["--config=configs/none.py"], "configs/none.py"),
    (["--config=configs/real.py"], "'data.files.train_source' is empty"),
    (["--config=configs/quickstart.py:big"], "not one of small"),
    (["--config.grammar.kind=hero"], "none of hiero, t2s, joint"),
    (["--config.tune.method=mret"], "no method 'mret'"),
    (["--config.tune.options=('a=1',)"], "no option 'a'"),
    (["--config.systems=('forced',)"], "'primary' comes first"),
    (["--config.systems=('primary','magic')"], "'magic' is none of"),
    (["--config.theta.k=-1"], "k must be at least 1"),
    (["--config.interpolation=2.0"], "not between 0 and 1"),
    (["--config.theta.counts=viterbi"], "config.theta.counts"),
  ],
)
def test_bad_configs_exit_2_with_one_line(tmp_path, flags, message):
  base = () if flags[0].startswith("--config=") else TINY[:1]
  done = util.run_program(
    "launch/train.py", *base, f"--workdir={tmp_path}", *flags
  )
  assert done.returncode == 2
  assert message in done.stderr
  assert done.stderr.count("\n") == 1
  assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("x = (", "c.py:1: "),
    ("import nowhere", "c.py:1: ModuleNotFoundError"),
    ("def get_config():\n  return 1 / 0", "c.py:2: ZeroDivisionError"),
    ("def get_config():\n  return {}['a']", "c.py:2: KeyError"),
    ("def get_config():\n  return 3", "returns no ConfigDict"),
  ],
)
def test_errors_of_a_config_file_are_one_line(tmp_path, text, message):
  (tmp_path / "c.py").write_text(text + "\n")
  done = util.run_program(
    "launch/train.py", f"--config={tmp_path / 'c.py'}", f"--workdir={tmp_path}"
  )
  assert done.returncode == 2
  assert message in done.stderr
  assert done.stderr.count("\n") == 1


def own_corpus(tmp_path):
  """Five pairs in files, and the flags that name them."""
  lines = {
    "s": ["a b", "b a", "a", "b", "a b a"],
    "t": ["x y", "y x", "x", "y", "x y x"],
  }
  for name, content in lines.items():
    (tmp_path / name).write_text("".join(f"{line}\n" for line in content))
  (tmp_path / "l").write_text("0-0 1-1\n0-0 1-1\n0-0\n0-0\n0-0 1-1 2-2\n")
  names = {
    "train_source": "s",
    "train_target": "t",
    "train_links": "l",
    "tune_source": "s",
    "test_source": "s",
  }
  flags = [
    f"--config.data.files.{key}={tmp_path / name}"
    for key, name in names.items()
  ]
  references = f"('{tmp_path / 't'}',)"
  return [
    "--config=configs/real.py",
    "--config.align.model=given",
    "--config.systems=()",
    f"--workdir={tmp_path / 'w'}",
    f"--config.data.files.tune_references={references}",
    f"--config.data.files.test_references={references}",
    *flags,
  ]


def test_files_instead_of_the_embedded_corpus(tmp_path):
  call = own_corpus(tmp_path)
  done = util.run_program("launch/train.py", *call)
  assert done.returncode == 0, done.stderr
  results = json.loads((tmp_path / "w" / "results.json").read_text())
  assert results["systems"]["gloss"]["ter"] == 0
  (tmp_path / "t").write_text("x\n")
  done = util.run_program("launch/train.py", *call)
  assert done.returncode == 2
  assert f"{tmp_path / 't'}:" in done.stderr


def test_sweep_and_table(tmp_path):
  study = tmp_path / "study.py"
  study.write_text(
    "BASE = 'configs/quickstart.py:small'\n"
    "_TINY = {'data.synthetic.train': 100, 'data.synthetic.tune': 10,\n"
    "         'data.synthetic.test': 30, 'align.model': 'given',\n"
    "         'systems': ()}\n"
    "ABLATIONS = {'clean': {**_TINY, 'data.synthetic.noise': 0.0},\n"
    "             'noisy': {**_TINY, 'data.synthetic.noise': 0.9}}\n"
    "SEEDS = (0, 1)\n"
  )
  flags = (f"--study={study}", f"--workdir={tmp_path / 'w'}")
  dry = util.run_program("launch/sweep.py", *flags, "--dry_run")
  assert dry.stdout.count("to run") == 4
  assert not (tmp_path / "w").exists()
  first = util.run_program("launch/sweep.py", *flags, "--shard=0/2")
  assert first.returncode == 0, first.stderr
  second = util.run_program("launch/sweep.py", *flags)
  assert second.stderr.count("already done") == 2
  table = util.run_program("tools/table.py", str(tmp_path / "w"))
  assert table.returncode == 0, table.stderr
  assert "clean" in table.stdout and "±" in table.stdout
  noisy = next(line for line in table.stdout.splitlines() if "noisy" in line)
  assert "-" in noisy and "*" not in noisy  # so much noise is a loss
  assert (tmp_path / "w" / "table.html").is_file()
  nothing = util.run_program("tools/table.py", str(tmp_path))
  assert nothing.returncode == 2


def test_a_finished_run_is_done_again_when_a_file_has_changed(tmp_path):
  (tmp_path / "study.py").write_text(
    "BASE = 'configs/real.py'\n"
    "ABLATIONS = {'a': {}, 'b': {'lm.order': 2}}\nSEEDS = (0,)\n"
  )
  flags = [f"--study={tmp_path / 'study.py'}", *own_corpus(tmp_path)]
  flags.append(f"--store={tmp_path / 'store'}")
  done = util.run_program("launch/sweep.py", *flags, "--entries=a")
  assert done.returncode == 0, done.stderr
  assert list((tmp_path / "store").glob("corpus-*"))
  dry = util.run_program("launch/sweep.py", *flags, "--dry_run")
  assert dry.stdout == "a/s0\tdone\nb/s0\tto run\n"
  (tmp_path / "t").write_text("x y\ny x\nx\ny\nx x x\n")
  dry = util.run_program("launch/sweep.py", *flags, "--dry_run")
  assert dry.stdout == "a/s0\tto run\nb/s0\tto run\n"
