"""Phrase tables in the programs: translating, tuning, experiments."""

import json

import pytest

import jaxmt
from tests import util
from tests.reference import tiny_run

PHRASES = """\
das haus ||| the house ||| 0.8 0.8 0.8 0.8 ||| 0-0 1-1 ||| 1 1 1
das ||| the ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1
haus ||| house ||| 0.6 0.6 0.6 0.6 ||| 0-0 ||| 1 1 1
er ||| he ||| 0.9 0.9 0.9 0.9 ||| 0-0 ||| 1 1 1
sieht ||| sees ||| 0.7 0.7 0.7 0.7 ||| 0-0 ||| 1 1 1
"""
ORIENTATIONS = """\
das haus ||| the house ||| 0.2 0.2 0.6 0.6 0.2 0.2
sieht ||| sees ||| 0.2 0.6 0.2 0.2 0.6 0.2
"""
ARPA = """\
\\data\\
ngram 1=7
ngram 2=3

\\1-grams:
-2.0\t<unk>
-99\t<s>\t-0.3
-1.0\t</s>
-1.1\tthe\t-0.2
-1.2\thouse\t-0.1
-1.4\tsees\t-0.1
-1.3\the\t-0.2

\\2-grams:
-0.3\tthe house
-0.4\t<s> he
-0.5\the sees

\\end\\
"""
INI = """\
[distortion-limit]
4
[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 table-limit=7
[weight]
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
UnknownWordPenalty0= 1
"""


@pytest.fixture
def flags(tmp_path):
  texts = {
    "grammar": PHRASES,
    "reordering": ORIENTATIONS,
    "lm": ARPA,
    "weights": INI,
    "input": "er sieht das haus\ndas haus sieht er\n\nq er\n",
  }
  for name, text in texts.items():
    (tmp_path / name).write_text(text)
  names = [f"--{name}={tmp_path / name}" for name in texts]
  return [*names, "--kind=phrase", "--dialect=moses"]


def run(*args):
  return util.run_program("launch/translate.py", *args)


def test_phrases_translate(tmp_path, flags):
  done = run(
    *flags,
    f"--output={tmp_path / 'o'}",
    f"--scores={tmp_path / 's'}",
    f"--nbest={tmp_path / 'n'}",
    f"--forest={tmp_path / 'lattices'}",
    "--forest_format=openfst",
  )
  assert done.returncode == 0, done.stderr
  assert "no such features" not in done.stderr
  lines = (tmp_path / "o").read_text().split("\n")
  assert lines[0] == "he sees the house" and lines[2] == ""
  assert lines[3].split() in (["q", "he"], ["he", "q"])
  assert (tmp_path / "lattices" / "0.fst.gz").is_file()
  first = (tmp_path / "s").read_text().splitlines()[0]
  assert "LexicalReordering0_3" in first and "PhrasePenalty0=" in first
  assert len((tmp_path / "n").read_text().splitlines()) > 4
  exact = run(*flags, f"--output={tmp_path / 'e'}", "--exact")
  assert exact.returncode == 0, exact.stderr
  assert (tmp_path / "e").read_text() == (tmp_path / "o").read_text()


def test_references_are_forced(tmp_path, flags):
  (tmp_path / "r").write_text(
    "he sees the house\nhe sees the house\n\nhe swims\n"
  )
  done = util.run_program(
    "launch/force.py",
    *flags,
    f"--reference={tmp_path / 'r'}",
    f"--output={tmp_path / 'd'}",
    "--report",
  )
  assert done.returncode == 0, done.stderr
  assert "2 of 4 references reached" in done.stderr
  lines = (tmp_path / "d").read_text().splitlines()
  # The last phrase stands outermost.
  assert lines[0].index("house") < lines[0].index("er")
  assert lines[2:] == ["() empty: source", "() word not producible: 'swims'"]
  more = ("--distortion=0", f"--output={tmp_path / 'n'}", "--nbest=9")
  done = util.run_program(
    "launch/force.py", *flags, f"--reference={tmp_path / 'r'}", *more
  )
  assert done.returncode == 0, done.stderr
  lines = (tmp_path / "n").read_text().splitlines()
  assert len([line for line in lines if line.startswith("0 |||")]) == 2
  # "the house" comes last on the target side: a jump back.
  one = next(line for line in lines if line.startswith("1 |||"))
  assert one.startswith("1 ||| () ||| reachable parts only")


@pytest.mark.parametrize("kind", ["phrase", "btg"])
def test_weights_are_learned_from_a_bitext(tmp_path, flags, kind):
  (tmp_path / "t").write_text("the house he sees\nhe sees the house\n\nq he\n")
  given = {flag[2:].split("=")[0]: flag for flag in flags}
  del given["input"], given["reordering"]
  done = util.run_program(
    "launch/learn.py",
    *given.values(),
    f"--kind={kind}",
    f"--source={tmp_path / 'input'}",
    f"--target={tmp_path / 't'}",
    f"--dev_source={tmp_path / 'input'}",
    f"--dev_references={tmp_path / 't'}",
    "--templates=edges:simple",
    "--epochs=6",
    "--minibatch=1",
    "--rate=1",
    "--dense_rate=0.1",
    "--beam=10",
    "--pop=20",
    "--json",
    f"--workdir={tmp_path / 'w'}",
    f"--output={tmp_path / 'learned'}",
  )
  assert done.returncode == 0, done.stderr
  found = json.loads(done.stdout)
  assert found["reachability"]["reached"] == 3
  assert found["nonzero"] > 0
  history = found["history"]
  assert history[0]["updates"] and history[-1]["bleu"] >= history[0]["bleu"]


def test_flags_and_files_are_checked(tmp_path, flags):
  out = f"--output={tmp_path / 'o'}"
  for more, cause in [
    (["--distortion=99"], "distortion limit 99"),
    (["--search_errors=x"], "no --kind=phrase"),
    (["--kind=scfg"], "reordering model needs kind 'phrase'"),
    (["--kind=scfg", "--reordering=", "--forest_format=slf"], "--kind=phrase"),
  ]:
    done = run(*flags, out, *more)
    assert done.returncode == 2 and cause in done.stderr, done.stderr
    assert not (tmp_path / "o").exists()


def test_the_library_loads_phrases(tmp_path, flags):
  files = {flag[2:].split("=")[0]: flag.split("=")[1] for flag in flags}
  model = jaxmt.load_files(
    files["grammar"],
    files["lm"],
    files["weights"],
    dialect="moses",
    kind="phrase",
    reordering=files["reordering"],
  )
  assert model.model.order.limit == 4 and model.model.limits.targets == 7
  out = jaxmt.decode(model, ["er sieht das haus"], beam=10)
  assert out.text == ["he sees the house"]
  lists = jaxmt.kbest(out, k=5, references=[["he sees the house"]])
  assert lists.mask.sum() > 1
  again = jaxmt.decode(jaxmt.with_weights(model, model.weights), ["er"])
  assert again.text == ["he"]


@pytest.mark.parametrize(
  ("method", "space"),
  [("mert", "kbest"), ("mira", "kbest"), ("mert", "forest")],
)
def test_weights_are_tuned(tmp_path, flags, method, space):
  (tmp_path / "r").write_text("the house he sees\nhe sees the house\n\nhe q\n")
  done = util.run_program(
    "launch/tune.py",
    *flags,
    f"--references={tmp_path / 'r'}",
    f"--method={method}",
    f"--space={space}",
    "--rounds=2",
    f"--workdir={tmp_path / 'w'}",
    f"--output={tmp_path / 'o'}",
  )
  assert done.returncode == 0, done.stderr
  assert "Distortion0" in (tmp_path / "o").read_text()


def test_frequent_events_are_tuned_and_used(tmp_path, flags):
  (tmp_path / "r").write_text("the house he sees\nthe house he sees\n\nhe q\n")
  (tmp_path / "t").write_text("the house he sees\n" * 3 + "he sees\n" * 3)
  flags = [*flags, "--threads=1"]
  done = util.run_program(
    "launch/tune.py",
    *flags,
    f"--references={tmp_path / 'r'}",
    "--method=kbmira",
    "--templates=frequent",
    f"--events_text={tmp_path / 't'}",
    "--rounds=3",
    f"--workdir={tmp_path / 'w'}",
    f"--output={tmp_path / 'o'}",
  )
  assert done.returncode == 0, done.stderr
  tuned = (tmp_path / "o").read_text()
  assert "Ngram:the_house_he " in tuned and "Trigger:the_house " in tuned
  use = [flag for flag in flags if "--weights" not in flag]
  use += [f"--weights={tmp_path / 'o'}", "--distortion=4"]
  done = run(*use, f"--output={tmp_path / 'h'}", f"--scores={tmp_path / 's'}")
  assert done.returncode == 0, done.stderr
  assert "no such features" not in done.stderr
  assert (tmp_path / "h").read_text().startswith("the house he sees\n")
  assert "Ngram:the_house=1" in (tmp_path / "s").read_text()
  refused = run(*use, f"--output={tmp_path / 'e'}", "--exact")
  assert refused.returncode == 2 and "no --exact" in refused.stderr
  more = [flag for flag in flags if "--kind" not in flag]
  done = util.run_program(
    "launch/tune.py",
    *more,
    f"--references={tmp_path / 'r'}",
    "--method=kbmira",
    "--templates=frequent",
    f"--workdir={tmp_path / 'x'}",
    f"--output={tmp_path / 'p'}",
  )
  assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_an_experiment_with_frequent_events(tmp_path):
  done = util.run_program(
    "launch/train.py",
    *tiny_run.FLAGS,
    "--config.grammar.kind=phrase",
    "--config.tune.templates=('frequent',)",
    "--config.tune.method=kbmira",
    "--config.tune.events.triggers=50",
    "--config.systems=('primary',)",
    f"--workdir={tmp_path / 'run'}",
  )
  assert done.returncode == 0, done.stderr
  found = tiny_run.file(tmp_path / "run", "tune-primary", "weights.json")
  weights = json.loads(found.read_text())
  assert any(name.startswith("Ngram:") for name in weights)
  refused = util.run_program(
    "launch/train.py",
    *tiny_run.FLAGS,
    "--config.grammar.kind=hiero",
    "--config.tune.templates=('frequent',)",
    "--config.systems=('primary',)",
    f"--workdir={tmp_path / 'other'}",
  )
  assert refused.returncode == 2
  assert "'frequent' needs a phrase table" in refused.stderr


def test_an_experiment_with_phrases(tmp_path):
  done = util.run_program(
    "launch/train.py",
    *tiny_run.FLAGS,
    "--config.grammar.kind=phrase",
    "--config.grammar.phrases.reordering=hierarchical",
    "--config.systems=('primary', 'max-violation', 'augmented-forest')",
    f"--workdir={tmp_path / 'run'}",
  )
  assert done.returncode == 0, done.stderr
  results = json.loads((tmp_path / "run" / "results.json").read_text())
  assert "primary" in json.dumps(results)
  report = (tmp_path / "run" / "report.html").read_text()
  assert '"stacks":true' in report and 'id="data-chart-' in report
  model = jaxmt.load(str(tmp_path / "run"), system="max-violation")
  assert model.model.order.hierarchical
  source = tiny_run.artefact(tmp_path / "run", "corpus", "test_source.txt")
  out = jaxmt.decode(model, source)
  kept = tiny_run.artefact(
    tmp_path / "run", "decode-max-violation", "test_hypothesis.txt"
  )
  assert list(out.text) == kept
  jaxmt.export(
    str(tmp_path / "run"), str(tmp_path / "folder"), system="max-violation"
  )
  other = jaxmt.load(str(tmp_path / "folder"))
  assert list(jaxmt.decode(other, source).text) == kept
  theta = tiny_run.artefact(
    tmp_path / "run", "decode-augmented-forest", "test_hypothesis.txt"
  )
  trained = jaxmt.load(str(tmp_path / "run"), system="augmented-forest")
  assert list(jaxmt.decode(trained, source).text) == theta


def test_walls_are_kept_to(tmp_path, flags):
  (tmp_path / "input").write_text("das haus <wall/> sieht er\n")
  derivations = f"--derivations={tmp_path / 'd'}"
  done = run(*flags, "--markup", f"--output={tmp_path / 'o'}", derivations)
  assert done.returncode == 0, done.stderr
  said = (tmp_path / "o").read_text().split()
  assert set(said[:2]) == {"the", "house"} and set(said[2:]) == {"sees", "he"}
  (tmp_path / "input").write_text("das <zone> haus\n")
  done = run(*flags, "--markup", f"--output={tmp_path / 'p'}")
  assert done.returncode == 2 and "a zone does not end" in done.stderr


def test_marked_translations_are_used(tmp_path, flags):
  tag = '<n translation="dwelling" prob="0.9">das haus</n>'
  (tmp_path / "input").write_text(f"{tag} sieht er\n")
  output = f"--output={tmp_path / 'o'}"
  done = run(*flags, "--markup", output, f"--scores={tmp_path / 's'}")
  assert done.returncode == 0, done.stderr
  assert "dwelling" in (tmp_path / "o").read_text().split()
  assert "PhrasePenalty0=3" in (tmp_path / "s").read_text()
  done = run(*flags, "--markup", "--xml_input=inclusive", output)
  assert done.returncode == 0, done.stderr
  # The language model does not know the word: the table's phrase wins.
  assert "house" in (tmp_path / "o").read_text().split()
