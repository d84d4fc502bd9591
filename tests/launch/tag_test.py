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
