"""The program that writes the embedded corpus."""

from jaxmt.corpora import synthetic
from tests import util

SIZES = ["--train=30", "--tune=6", "--test=5"]


def run(*args):
  return util.run_program("launch/synthesize.py", *args)


def test_the_files_are_the_corpus(tmp_path):
  folder = tmp_path / "made"
  flags = ["--seed=3", "--references=2", "--monolingual=4"]
  done = run(f"--output={folder}", *SIZES, *flags)
  assert done.returncode == 0, done.stderr
  made = synthetic.generate(
    synthetic.SyntheticConfig(
      seed=3, train=30, tune=6, test=5, references=2, monolingual=4
    )
  )
  expected = {
    "train.zh": made.train.source,
    "train.zh.tree": made.train.trees,
    "train.en": made.train.references[0],
    "train.links": made.train.links[0],
    "mono.zh": made.monolingual.source,
    "mono.en": made.monolingual.references[0],
  }
  for name in ("tune", "test"):
    split = getattr(made, name)
    expected |= {f"{name}.zh": split.source, f"{name}.zh.tree": split.trees}
    for r in range(2):
      expected[f"{name}.en.{r}"] = split.references[r]
      expected[f"{name}.links.{r}"] = split.links[r]
  found = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
  assert found == {
    name: "".join(line + "\n" for line in lines)
    for name, lines in expected.items()
  }


def test_it_says_what_is_in_the_corpus(tmp_path):
  done = run(f"--output={tmp_path}", *SIZES)
  lines = done.stdout.splitlines()
  assert lines[0].split() == ["measure", "train", "tune", "test"]
  assert ["sentences", "30", "6", "5"] in [line.split() for line in lines]
  assert any(line.startswith("relative clause") for line in lines)


def test_noise_reaches_the_training_text_only(tmp_path):
  for noise in ("0", "0.5"):
    done = run(f"--output={tmp_path / noise}", *SIZES, f"--noise={noise}")
    assert done.returncode == 0, done.stderr
  for file in (tmp_path / "0").iterdir():
    other = (tmp_path / "0.5" / file.name).read_bytes()
    same = file.name not in ("train.en", "train.links")
    assert (file.read_bytes() == other) == same, file.name


def test_bad_flags_are_one_line_and_exit_2(tmp_path):
  (tmp_path / "file").write_text("")
  for args in (
    [],
    [f"--output={tmp_path}", "--train=-1"],
    [f"--output={tmp_path}", "--noise=2"],
    [f"--output={tmp_path}", "--min_length=39"],
    [f"--output={tmp_path}", "--sed=1"],
    [f"--output={tmp_path / 'file' / 'x'}", *SIZES],
  ):
    done = run(*args)
    assert done.returncode == 2, args
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
  assert sorted(file.name for file in tmp_path.iterdir()) == ["file"]
