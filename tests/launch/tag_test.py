import json

from jaxmt.text import treebank
from tests import util

BANK = (
  "the\tDET\ndog\tNOUN\nbarks\tVERB\n\na\tDET\ncat\tNOUN\nsits\tVERB\n\n" * 5
)


def run(*args, **kwargs):
  return util.run_program("launch/tag.py", *args, **kwargs)


def test_learns_tags_and_scores(tmp_path):
  bank, model, out = (tmp_path / name for name in ("bank", "model", "out"))
  bank.write_text(BANK)
  done = run("--model=plain", f"--train={bank}", f"--output={model}")
  assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
  done = run(f"--load={model}", f"--input={bank}", "--evaluate", "--json")
  assert json.loads(done.stdout)["accuracy"] == 100
  done = run(
    f"--load={model}", "--text=-", f"--output={out}", stdin="a dog sits\n"
  )
  assert done.returncode == 0, done.stderr
  tagged = treebank.read_treebank(str(out))
  assert [tagged.tag_names[tag] for tag in tagged.tags] == [
    *("DET", "NOUN", "VERB")
  ]
  done = run("--tags=3", f"--train={bank}", f"--output={model}")
  assert done.returncode == 2 and "--tags needs --model=features" in done.stderr


def test_a_concave_start_is_learnt_further(tmp_path):
  bank, start, model = (tmp_path / name for name in ("bank", "start", "model"))
  bank.write_text(BANK)
  done = run(
    *("--model=concave", "--iterations=3", f"--dictionary={bank}"),
    *(f"--train={bank}", f"--output={start}"),
  )
  assert done.returncode == 0 and "iteration 3: -" in done.stderr
  done = run(
    *("--model=features", "--iterations=2", f"--start={start}"),
    *(f"--train={bank}", f"--output={model}"),
  )
  assert done.returncode == 0, done.stderr
  done = run(f"--load={model}", f"--input={bank}", "--evaluate", "--json")
  assert json.loads(done.stdout)["accuracy"] == 100
  done = run("--model=concave", f"--train={bank}", f"--output={model}")
  assert done.returncode == 2 and "concave needs --dictionary" in done.stderr
  done = run(f"--start={start}", f"--train={bank}", f"--output={model}")
  assert done.returncode == 2 and "--start needs --model" in done.stderr
