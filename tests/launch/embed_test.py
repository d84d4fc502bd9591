"""The program that learns word vectors."""

import numpy as np
import pytest

from jaxmt.features import sentence_models
from jaxmt.grammar import native
from jaxmt.models import vector_files
from tests import util


def run(*args):
  return util.run_program("launch/embed.py", *args)


def test_vectors_of_a_text(tmp_path):
  (tmp_path / "t").write_text("the cat sleeps\nthe dog sleeps\n" * 5)
  flags = [f"--text={tmp_path / 't'}", "--size=4", "--epochs=2", "--batch=8"]
  flags.append(f"--workdir={tmp_path / 'work'}")
  done = run(*flags, f"--output={tmp_path / 'v'}")
  assert done.returncode == 0, done.stderr
  found = vector_files.read(str(tmp_path / "v"))
  assert found.vectors.shape == (8, 4) and "cat" in found.words
  again = run(*flags, "--epochs=2", f"--output={tmp_path / 'w'}")
  assert again.returncode == 0, again.stderr
  assert (tmp_path / "v").read_bytes() == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--size=0",), "option 'size' must be at least 1"),
    (("--rate=-1",), "--rate=-1"),
    (("--min_count=0",), "--min_count must be at least 1"),
    (("--text=missing",), "missing"),
  ],
)
def test_bad_flags_are_one_line(tmp_path, flags, message):
  (tmp_path / "t").write_text("a b\n")
  done = run(f"--text={tmp_path / 't'}", f"--output={tmp_path / 'v'}", *flags)
  assert done.returncode == 2 and message in done.stderr
  assert not (tmp_path / "v").exists()


@pytest.fixture(scope="module")
def system(tmp_path_factory):
  """A grammar in which a word's translation depends on the sentence."""
  where = tmp_path_factory.mktemp("scorer")
  rules = [
    "[X] ||| bank ||| bank ||| f=0 ||| 0-0",
    "[X] ||| bank ||| bench ||| f=-0.2 ||| 0-0",
    "[X] ||| geld ||| money ||| f=0 ||| 0-0",
    "[X] ||| park ||| park ||| f=0 ||| 0-0",
  ]
  words = ["bank", "bench", "money", "park"]
  arpa = ["\\data\\", "ngram 1=7", "", "\\1-grams:", "-2\t<unk>", "-99\t<s>"]
  arpa += ["-1\t</s>", *(f"-1\t{word}" for word in words), "", "\\end\\"]
  lines = {
    "g": rules,
    "lm": arpa,
    "w": ["f 1", "LanguageModel 0.5", "PassThrough -5"],
    "s": ["park bank park park", "geld bank geld geld", "bank park park park"],
    "r": ["park bench park park", "money bank money money"],
  }
  lines["r"].append("bench park park park")
  for name, rows in lines.items():
    (where / name).write_text("".join(f"{row}\n" for row in rows))
  flags = [f"--{name}={where / file}" for name, file in (
    ("grammar", "g"), ("lm", "lm"), ("weights", "w"), ("input", "s")
  )]  # fmt: skip
  return where, [*flags, "--dialect=cdec"]


def test_a_scorer_trained_and_used(system, tmp_path):
  where, flags = system
  learn = [*flags, "--model=scorer", f"--references={where / 'r'}"]
  learn += ["--epochs=60", "--rate=0.05", "--rounds=1", "--size=4"]
  learn += ["--min_count=1", "--beam=8", "--pop=20"]
  done = run(*learn, f"--output={tmp_path / 'scorer'}")
  assert done.returncode == 0, done.stderr
  (tmp_path / "w").write_text((where / "w").read_text() + "RuleScore 1\n")
  done = util.run_program(
    "launch/translate.py",
    *flags,
    f"--weights={tmp_path / 'w'}",
    f"--models={tmp_path / 'scorer'}",
    f"--output={tmp_path / 'h'}",
  )
  assert done.returncode == 0, done.stderr
  assert "no such features" not in done.stderr
  assert (tmp_path / "h").read_text() == (where / "r").read_text()


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--loss=none",), "option 'loss'"),
    (("--references=",), "--references"),
    (("--dev_input=x",), "need each other"),
    (("--models=nowhere",), "nowhere"),
  ],
)
def test_bad_flags_of_a_scorer_are_one_line(system, tmp_path, flags, message):
  where, given = system
  done = run(
    "--model=scorer",
    *given,
    f"--references={where / 'r'}",
    f"--output={tmp_path / 'o'}",
    *flags,
  )
  assert done.returncode == 2 and message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert not (tmp_path / "o").exists()


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
  """A bitext of two documents and its grammar with provenance."""
  where = tmp_path_factory.mktemp("topics")
  pairs = [
    ("bank geld", "bank money", "a"),
    ("geld zins bank", "money interest bank", "a"),
    ("baum bank", "tree bench", "b"),
    ("see baum", "lake tree", "b"),
  ]
  sides = list(zip(*pairs, strict=True))
  for name, rows in zip(("s", "t", "d"), sides, strict=True):
    (where / name).write_text("".join(f"{row}\n" for row in rows))
  links = ["0-0 1-1", "0-0 1-1 2-2", "0-0 1-1", "0-0 1-1"]
  (where / "l").write_text("".join(f"{row}\n" for row in links))
  flags = [f"--{n}={where / f}" for n, f in (("source", "s"), ("target", "t"))]
  done = util.run_program(
    "launch/extract.py",
    *flags,
    f"--links={where / 'l'}",
    "--kind=hiero",
    "--provenance",
    f"--output={where / 'g'}",
  )
  assert done.returncode == 0, done.stderr
  flags += [f"--documents={where / 'd'}", f"--grammar={where / 'g'}"]
  return where, ["--model=topics", "--common=0.5", "--retrieve=1", *flags]


def test_topics_of_a_bitext(documents, tmp_path):
  where, flags = documents
  learn = [*flags, "--size=4", "--epochs=3", "--batch=4"]
  learn += [f"--workdir={tmp_path / 'work'}"]
  done = run(*learn, f"--output={tmp_path / 'topics'}")
  assert done.returncode == 0, done.stderr
  (model,) = sentence_models.read(str(tmp_path / "topics"))
  assert len(model.index) == 2 and model.source.shape[1] == 4
  table = native.read(str(where / "g"))
  model.check(table)
  again = run(*learn, f"--output={tmp_path / 'again'}")
  assert again.returncode == 0, again.stderr
  one, other = (
    sentence_models.read(str(tmp_path / name))[0].to_values()
    for name in ("topics", "again")
  )
  assert all(np.array_equal(one[name], other[name]) for name in one)
  done = run(*flags, "--lda", "--size=2", f"--output={tmp_path / 'lda'}")
  assert done.returncode == 0, done.stderr
  (mixed,) = sentence_models.read(str(tmp_path / "lda"))
  assert mixed.mixtures.shape == (2, 2)
  mixed.check(table)


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--documents=",), "give --documents"),
    (("--source_documents=x",), "give --documents"),
    (("--retrieve=0",), "option 'documents'"),
    (("--grammar=nowhere",), "nowhere"),
  ],
)
def test_bad_flags_of_topics_are_one_line(documents, tmp_path, flags, message):
  done = run(*documents[1], f"--output={tmp_path / 'o'}", *flags)
  assert done.returncode == 2 and message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert not (tmp_path / "o").exists()


@pytest.fixture(scope="module")
def phrase_table(tmp_path_factory):
  """A bitext with its phrase table."""
  where = tmp_path_factory.mktemp("brae")
  pairs = [("das haus", "the house"), ("ein haus", "a house")] * 2
  pairs += [("das buch", "the book"), ("ein buch liegt", "a book lies")] * 2
  pairs += [("das haus", "that house")]
  for name, rows in zip(("s", "t"), zip(*pairs, strict=True), strict=True):
    (where / name).write_text("".join(f"{row}\n" for row in rows))
  links = [
    " ".join(f"{n}-{n}" for n in range(len(s.split()))) for s, _ in pairs
  ]
  (where / "l").write_text("".join(f"{row}\n" for row in links))
  flags = [f"--{n}={where / f}" for n, f in (("source", "s"), ("target", "t"))]
  extract = [*flags, f"--links={where / 'l'}", "--kind=phrase"]
  done = util.run_program(
    "launch/extract.py", *extract, f"--output={where / 'g'}"
  )
  assert done.returncode == 0, done.stderr
  learn = ["--model=brae", "--kind=phrase", f"--grammar={where / 'g'}", *flags]
  return where, learn, extract


def test_similarities_of_a_bitext(phrase_table, tmp_path):
  where, flags, extract = phrase_table
  learn = [*flags, "--size=4", "--epochs=1", "--rounds=2", "--batch=4"]
  learn += [f"--workdir={tmp_path / 'work'}", "--unit"]
  done = run(*learn, f"--output={tmp_path / 'one'}")
  assert done.returncode == 0, done.stderr
  assert "of 9 sentence pairs" in done.stderr and "rounds" in done.stderr
  again = run(*learn, f"--output={tmp_path / 'two'}")
  assert again.returncode == 0, again.stderr
  one, two = (
    sentence_models.read(str(tmp_path / name))[0].to_values()
    for name in ("one", "two")
  )
  assert all(np.array_equal(one[name], two[name]) for name in one)
  # The table without dissimilar rules.
  table = native.read(str(where / "g"))
  prune = [*extract, f"--similarity_model={tmp_path / 'one'}"]
  prune += ["--similarity=1", "--similar_best=1"]
  done = util.run_program(
    "launch/extract.py", *prune, f"--output={tmp_path / 'g'}"
  )
  assert done.returncode == 0, done.stderr
  pruned = native.read(str(tmp_path / "g"))
  sides = {tuple(table.source[rule].tolist()) for rule in range(len(table))}
  left = [tuple(pruned.source[rule].tolist()) for rule in range(len(pruned))]
  assert len(pruned) < len(table) and set(left) == sides
  done = util.run_program(
    "launch/extract.py",
    *extract,
    "--similarity=0.5",
    f"--output={tmp_path / 'n'}",
  )
  assert done.returncode == 2 and "need each other" in done.stderr


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (("--alpha=2",), "option 'alpha'"),
    (("--longest=0",), "--longest"),
    (("--source_vectors=nowhere",), "nowhere"),
    (("--grammar=nowhere",), "nowhere"),
  ],
)
def test_bad_flags_of_brae_are_one_line(phrase_table, tmp_path, flags, message):
  done = run(*phrase_table[1], f"--output={tmp_path / 'o'}", *flags)
  assert done.returncode == 2 and message in done.stderr
  assert len(done.stderr.strip().splitlines()) == 1
  assert not (tmp_path / "o").exists()


@pytest.fixture(scope="module")
def bracketing(tmp_path_factory):
  """A bracketing grammar, a language model and weights."""
  where = tmp_path_factory.mktemp("r2nn")
  pairs = [("das haus brennt", "burns the house"), ("das buch", "the book")]
  pairs += [("ein buch liegt", "lies a book"), ("ein haus", "a house")]
  links = ["0-1 1-2 2-0", "0-0 1-1", "0-1 1-2 2-0", "0-0 1-1"]
  for name, rows in (
    ("s", [source for source, _ in pairs]),
    ("t", [target for _, target in pairs]),
    ("l", links),
    ("w", ["LanguageModel 0.1", "MaxEntReordering 1"]),
  ):
    (where / name).write_text("".join(f"{row}\n" for row in rows))
  flags = [f"--source={where / 's'}", f"--target={where / 't'}"]
  for program, rest in (
    ("extract", [*flags, f"--links={where / 'l'}", "--kind=btg", "g"]),
    ("lm", [f"--text={where / 't'}", "--order=2", "--discount_fallback", "lm"]),
  ):
    done = util.run_program(
      f"launch/{program}.py", *rest[:-1], f"--output={where / rest[-1]}"
    )
    assert done.returncode == 0, done.stderr
  return where, [
    "--kind=btg",
    f"--grammar={where / 'g'}",
    f"--lm={where / 'lm'}",
    f"--input={where / 's'}",
  ]


def test_a_network_of_derivations_trained_and_used(bracketing, tmp_path):
  where, flags = bracketing
  learn = [*flags, "--model=r2nn", f"--weights={where / 'w'}", "--size=4"]
  learn += [f"--references={where / 't'}", "--beam=8", "--pop=40"]
  learn += ["--rounds=1", f"--workdir={tmp_path / 'work'}"]
  done = run(*learn, f"--output={tmp_path / 'one'}")
  assert done.returncode == 0, done.stderr
  assert "4 of 4 references reached" in done.stderr
  again = run(*learn, f"--output={tmp_path / 'two'}")
  assert again.returncode == 0, again.stderr
  one, two = (
    sentence_models.read(str(tmp_path / name))[0].to_values()
    for name in ("one", "two")
  )
  assert all(np.array_equal(one[name], two[name]) for name in one)
  outputs = []
  for name, line in (("plain", ""), ("used", "RecursiveScore 1\n")):
    (tmp_path / "w").write_text((where / "w").read_text() + line)
    done = util.run_program(
      "launch/translate.py",
      *flags,
      f"--weights={tmp_path / 'w'}",
      f"--models={tmp_path / 'one'}",
      f"--output={tmp_path / name}",
    )
    assert done.returncode == 0, done.stderr
    assert "no such features" not in done.stderr
    outputs.append((tmp_path / name).read_text())
  assert all(len(text.splitlines()) == 4 for text in outputs)
  done = run(*learn, "--kind=scfg", f"--output={tmp_path / 'no'}")
  assert done.returncode == 2 and "needs --kind=btg" in done.stderr
