r"""Learns word vectors from text, and neural features of rules.

    python launch/embed.py --text=T --output=V [--model=skip-gram|ranking] \
        [--size=50] [--window=5] [--epochs=5] [--min_count=1] [--workdir=D]
    python launch/embed.py --model=scorer --grammar=G --lm=LM --weights=W \
        --input=S --references=R1,R2 --output=FOLDER [--loss=softmax|risk|...] \
        [--dev_input=S2 --dev_references=R3] [--rounds=3] [--workdir=D]
    python launch/embed.py --model=topics --grammar=G --source=S --target=T \
        --documents=IDS --output=FOLDER [--size=100] [--retrieve=10] \
        [--source_documents=D1 --target_documents=D2] [--lda] [--workdir=D]
    python launch/embed.py --model=brae --grammar=G --source=S --target=T \
        --output=FOLDER [--kind=scfg|phrase|btg] [--weights=W] [--unit] \
        [--source_vectors=V1 --target_vectors=V2] [--rounds=25] [--workdir=D]
    python launch/embed.py --model=r2nn --kind=btg --grammar=G --lm=LM \
        --weights=W --input=S --references=R --output=FOLDER \
        [--embedding=both|sparse|recurrent] [--local_rounds=1 --rounds=2] \
        [--dev_input=S2 --dev_references=R2] \
        [--source_vectors=V1,V2 --target_vectors=V3,V4] [--workdir=D]

Word vectors: one line a word, the word and its numbers, after a line with the
number of words and of numbers (the text format of word2vec). Words seen less
often than --min_count share the vector of <unk>. With --workdir a run that was
killed resumes after its last finished epoch.

Scorer: a network that scores rules in sentences is trained through the forests
of the decoder, by a loss on all their derivations; the weights W stay. The
network of the round of best BLEU (on --dev_input, if given) is written as a
folder. `translate.py` and `tune.py` take it with --models=FOLDER and a weight
RuleScore, 1 as it was trained; experiments with --config.grammar.models.

Topics: topic vectors of the bitext's sentences by the documents they retrieve,
and of the rules of G, which `extract.py --provenance` has made of that bitext.
Documents are lines of the bitext with the same line in IDS, or the lines of D1
and D2. The folder is used in the same way, with the weights TopicSource,
TopicTarget, TopicSourceEntropy and TopicTargetEntropy. --lda takes the topics
of latent Dirichlet allocation instead; it needs the same documents on both
sides.

BRAE: bilingually-constrained recursive auto-encoders. Forced decoding of the
bitext with G (see `force.py`) gives the phrase pairs to learn from. The folder
is used in the same way, with the weights SimilaritySource and SimilarityTarget;
`extract.py --similarity` drops rules whose sides are not similar.

R2NN: a recursive recurrent network over the derivations of a bracketing
grammar. The text is forced with the weights W, which stay, and decoded in
rounds; the network of the round of best BLEU is written. It is used with
`--kind=btg --models=FOLDER` and a weight RecursiveScore, 1 as it was trained.
With word vectors phrase pairs begin as sums of those of their words.

Given word vectors are files of the same text format, or NAME.npz with the words
in NAME.words.gz (see `jaxmt.models.vector_files`).
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import dataclasses
import hashlib
import pathlib
import time
from typing import Any

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.experiment.flags import model_flags
from jaxmt.runtime import checkpoint, parallel, progress
from jaxmt.text import files, references, vocabulary

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string("text", None, "one sentence a line, tokenised")
flags.DEFINE_string("output", None, "where the vectors go; '-' for stdout")
flags.DEFINE_string("workdir", None, "folder of finished epochs")
flags.DEFINE_enum(
  "model",
  "skip-gram",
  ["skip-gram", "ranking", "scorer", "topics", "brae", "r2nn"],
  "what is learned",
)
flags.DEFINE_string("source", None, "topics, brae: source side of the bitext")
flags.DEFINE_string("target", None, "topics, brae: target side of the bitext")
flags.DEFINE_string(
  "documents", None, "topics: which document each line of the bitext is of"
)
flags.DEFINE_string("source_documents", None, "topics: one document a line")
flags.DEFINE_string("target_documents", None, "topics: one document a line")
flags.DEFINE_bool(
  "lda", False, "topics: by latent Dirichlet allocation, --rounds (50)"
)
flags.DEFINE_integer(
  "retrieve", 10, "topics: documents of a sentence", lower_bound=0
)
flags.DEFINE_integer(
  "max_words", 20000, "topics: most content words", lower_bound=0
)
flags.DEFINE_float(
  "common",
  0.3,
  "topics: share of documents that no content word exceeds",
  lower_bound=0.0,
  upper_bound=1.0,
)
flags.DEFINE_float(
  "mask",
  0.3,
  "topics: share of words that are hidden",
  lower_bound=0.0,
  upper_bound=1.0,
)
flags.DEFINE_integer(
  "tune_epochs", 3, "topics: of ranking both languages", lower_bound=0
)
flags.DEFINE_integer(
  "local_rounds",
  1,
  "r2nn: rounds on single spans before --rounds others",
  lower_bound=0,
)
flags.DEFINE_enum(
  "embedding",
  "both",
  ["both", "sparse", "recurrent"],
  "r2nn: parts of the vectors of phrase pairs, without word vectors",
)
flags.DEFINE_integer(
  "pairs", 200_000, "r2nn: phrase pairs with own vectors", lower_bound=0
)
flags.DEFINE_bool("unit", False, "brae: scale vectors to length 1")
flags.DEFINE_float(
  "alpha", 0.15, "brae: weight of rebuilding phrases", lower_bound=0.0
)
flags.DEFINE_integer(
  "longest", 7, "brae: most words of a phrase to learn from", lower_bound=0
)
flags.DEFINE_list(
  "source_vectors", [], "brae, r2nn: word vectors to begin with"
)
flags.DEFINE_list(
  "target_vectors", [], "brae, r2nn: word vectors to begin with"
)
flags.DEFINE_string("weights", None, "scorer, brae: weights of the model")
flags.DEFINE_string("input", None, "scorer: source text to train on")
flags.DEFINE_list("references", [], "scorer: translations of --input")
flags.DEFINE_string("dev_input", None, "scorer: source text to judge by")
flags.DEFINE_list("dev_references", [], "scorer: translations of --dev_input")
flags.DEFINE_string("loss", "softmax", "scorer: a loss on forests")
flags.DEFINE_integer(
  "rounds",
  3,
  "scorer: decodings, each before --epochs; brae: most rounds (25)",
  lower_bound=0,
)
flags.DEFINE_integer("beam", 30, "scorer: hypotheses per cell", lower_bound=1)
flags.DEFINE_integer("pop", 200, "scorer: candidates per cell", lower_bound=1)
flags.DEFINE_float(
  "l2", 1e-4, "scorer: pull of the parameters to 0", lower_bound=0.0
)
flags.DEFINE_integer("size", 50, "numbers of a word", lower_bound=0)
flags.DEFINE_integer("window", 5, "context words on either side", lower_bound=0)
flags.DEFINE_integer(
  "negatives", 5, "random words for each context word", lower_bound=0
)
flags.DEFINE_integer(
  "hidden", 40, "units of the ranking network", lower_bound=0
)
flags.DEFINE_integer("min_count", 1, "rarer words are <unk>", lower_bound=0)
flags.DEFINE_integer("epochs", 5, "passes over the text", lower_bound=0)
flags.DEFINE_integer("batch", 1024, "words of a step", lower_bound=0)
flags.DEFINE_float(
  "rate", 0.01, "of the optimizer; it falls to 0", lower_bound=0.0
)
flags.DEFINE_integer(
  "seed", 0, "of everything random", lower_bound=0, upper_bound=2**32 - 1
)
flags.DEFINE_integer(
  "devices", 1, "devices that share each step; 0 for all", lower_bound=0
)


def _epochs_folder(lines, options) -> pathlib.Path:
  """The folder of the epochs of this text with these options."""
  told = repr((options, FLAGS.min_count, FLAGS.devices))
  content = "\n".join([told, *lines]).encode()
  name = hashlib.sha256(content).hexdigest()[:16]
  return pathlib.Path(FLAGS.workdir) / f"epochs-{name}"


def main(argv: list[str]) -> None:
  """Reads flags, learns, writes."""
  del argv
  if FLAGS.min_count < 1:
    raise InputError("--min_count must be at least 1")
  if FLAGS.model == "scorer":
    _scorer()
  elif FLAGS.model == "topics":
    _topics()
  elif FLAGS.model == "brae":
    _similarity()
  elif FLAGS.model == "r2nn":
    _recursive()
  else:
    _word_vectors()


def _word_vectors() -> None:
  """Learns word vectors."""
  program.check_paths(
    outputs=("output",), inputs=("text",), folders=("workdir",)
  )
  program.required(text=FLAGS.text, output=FLAGS.output)
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.models import vector_files, word_vectors  # imports JAX
  from jaxmt.models.fitting import FitOptions

  start = time.perf_counter()
  options = word_vectors.WordVectorOptions(
    model=FLAGS.model,
    size=FLAGS.size,
    window=FLAGS.window,
    negatives=FLAGS.negatives,
    hidden=FLAGS.hidden,
    fit=FitOptions(
      epochs=FLAGS.epochs,
      batch=FLAGS.batch,
      rate=FLAGS.rate,
      seed=FLAGS.seed,
    ),
  )
  word_vectors.check_options(options)
  lines = files.read_lines(FLAGS.text)
  words = vocabulary.build([lines], min_count=FLAGS.min_count)
  text = vocabulary.encode(words, lines)
  mesh = None if FLAGS.devices == 1 else parallel.make_mesh(FLAGS.devices)
  store = None
  if FLAGS.workdir:
    store = checkpoint.Partial(_epochs_folder(lines, options))
  learned = []
  with progress.steps(label="epochs", total=options.fit.epochs) as advance:
    for learned in word_vectors.train_vectors(
      text, words.words, options, mesh=mesh, store=store
    ):
      advance(1, f"loss {learned[1]:.4f}")
  vectors = learned[0]
  vector_files.write(FLAGS.output, vectors)
  progress.say(
    f"{len(vectors):,} words of {len(text.flat):,}"
    f" in {time.perf_counter() - start:.1f} s"
  )


def _vector_files() -> tuple[list[str], list[str]]:
  """Files of source and of target word vectors."""
  return list(FLAGS.source_vectors or ()), list(FLAGS.target_vectors or ())


def _given(name: str, default: Any) -> Any:
  """The value of a flag that was given, or this default."""
  return FLAGS[name].value if FLAGS[name].present else default


def _check_decoding_flags() -> None:
  """Raises for flags of models that are trained by decoding."""
  program.check_paths(
    outputs=("output",),
    inputs=(
      *("grammar", "lm", "weights", "input", "references"),
      *("dev_input", "dev_references", "source_vectors", "target_vectors"),
      *("models", "reordering", "trees"),
    ),
    folders=("workdir",),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    lm=model_flags.LM.value,
    weights=FLAGS.weights,
    input=FLAGS.input,
    references=FLAGS.references,
    output=FLAGS.output,
  )
  if bool(FLAGS.dev_input) != bool(FLAGS.dev_references):
    raise InputError("--dev_input and --dev_references need each other")


def _load_model():
  """The model that the flags name, with the sizes of the search."""
  loaded = model_flags.load_translator(
    FLAGS.weights, span=model_flags.SPAN.value
  )
  return dataclasses.replace(loaded, beam=FLAGS.beam, pop=FLAGS.pop)


def _texts() -> list:
  """The text to train on, and the one to judge by if it is given."""
  texts = [_text(FLAGS.input, FLAGS.references)]
  if FLAGS.dev_input:
    texts.append(_text(FLAGS.dev_input, FLAGS.dev_references))
  return texts


def _rounds_store(loaded, texts, options):
  """The store of finished rounds, if there is a --workdir."""
  if not FLAGS.workdir:
    return None
  told = [line for one in texts for line in one.lines]
  told.append(repr([one.references for one in texts]))
  told.append(repr(sorted(loaded.weights.items())))
  told.append(checkpoint.file_digest(model_flags.LM.value))
  table = loaded.model.table
  for column in (table.features, table.source.flat, table.target.flat):
    told.append(hashlib.sha256(np.asarray(column).tobytes()).hexdigest())
  return checkpoint.Partial(_epochs_folder(told, options))


def _scorer() -> None:
  """Trains a network that scores rules in sentences."""
  _check_decoding_flags()
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.decode import translator
  from jaxmt.features import sentence_models
  from jaxmt.train import scorer_training

  start = time.perf_counter()
  defaults = scorer_training.ScorerOptions()
  options = scorer_training.ScorerOptions(
    loss=FLAGS.loss,
    size=_given("size", defaults.size),
    hidden=_given("hidden", defaults.hidden),
    min_count=_given("min_count", defaults.min_count),
    rounds=FLAGS.rounds,
    passes=_given("epochs", defaults.passes),
    batch=_given("batch", defaults.batch),
    rate=_given("rate", defaults.rate),
    l2=FLAGS.l2,
    seed=FLAGS.seed,
  )
  scorer_training.check_options(options)
  loaded = _load_model()
  texts = _texts()
  store = _rounds_store(loaded, texts, options)

  def say(record) -> None:
    progress.say(f"  round {record['round']}: BLEU {100 * record['bleu']:.2f}")

  done = scorer_training.train(
    loaded.model,
    texts[0],
    options,
    config=translator.decode_config(loaded, forest=True),
    development=texts[1] if len(texts) > 1 else None,
    store=store,
    on_round=say,
  )
  sentence_models.write(FLAGS.output, [done.scorer])
  best = max(done.history, key=lambda record: record["bleu"])
  progress.say(
    f"round {best['round']} is best: BLEU {100 * best['bleu']:.2f}, without"
    f" the network {100 * done.history[0]['bleu']:.2f};"
    f" {time.perf_counter() - start:.1f} s"
  )


def _recursive() -> None:
  """Trains a network that scores derivations."""
  _check_decoding_flags()
  if model_flags.KIND.value != "btg":
    raise InputError("--model=r2nn needs --kind=btg")
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.decode import translator
  from jaxmt.features import sentence_models
  from jaxmt.models import vector_files
  from jaxmt.train import recursive_start, recursive_training

  start = time.perf_counter()
  own = recursive_start.RecursiveOptions()
  options = recursive_start.RecursiveOptions(
    embedding=FLAGS.embedding,
    size=_given("size", own.size),
    pairs=FLAGS.pairs,
    local=FLAGS.local_rounds,
    global_=_given("rounds", own.global_),
    passes=_given("epochs", own.passes),
    batch=_given("batch", own.batch),
    rate=_given("rate", own.rate),
    l2=FLAGS.l2,
    seed=FLAGS.seed,
  )
  recursive_start.check_options(options)
  vectors = [
    tuple(vector_files.read(path) for path in paths)
    for paths in _vector_files()
  ]
  loaded, texts = _load_model(), _texts()

  def say(record) -> None:
    note = f"  round {record['round']}: BLEU {100 * record['bleu']:.2f}"
    if "lists" in record:
      note += f"; {record['lists']:,} {record['kind']} lists"
      note += f", {record['early']:,} early, loss {record['loss']:.4f}"
    progress.say(note)

  done = recursive_training.train(
    loaded.model,
    texts[0],
    options,
    config=translator.decode_config(loaded, forest=True),
    development=texts[1] if len(texts) > 1 else None,
    vectors=(vectors[0], vectors[1]),
    store=_rounds_store(
      loaded,
      texts,
      (options, [one.vectors.sum() for v in vectors for one in v]),
    ),
    on_round=say,
  )
  sentence_models.write(FLAGS.output, [done.network])
  best = max(done.history, key=lambda record: record["bleu"])
  progress.say(
    f"{done.reached:,} of {len(texts[0].lines):,} references reached; round"
    f" {best['round']} is best: BLEU {100 * best['bleu']:.2f}, without the"
    f" network {100 * done.history[0]['bleu']:.2f};"
    f" {time.perf_counter() - start:.1f} s"
  )


def _topics() -> None:
  """Learns topic vectors of sentences and rules."""
  program.check_paths(
    outputs=("output",),
    inputs=(
      "grammar",
      "source",
      "target",
      "documents",
      "source_documents",
      "target_documents",
    ),
    folders=("workdir",),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    source=FLAGS.source,
    target=FLAGS.target,
    output=FLAGS.output,
  )
  paths = (FLAGS.source_documents, FLAGS.target_documents)
  if bool(FLAGS.documents) == any(paths) or any(paths) != all(paths):
    raise InputError(
      "give --documents, or --source_documents and --target_documents"
    )
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.features import topic_features
  from jaxmt.grammar import native
  from jaxmt.models import topic_vectors
  from jaxmt.models.fitting import FitOptions
  from jaxmt.text import bitext

  start = time.perf_counter()
  defaults = topic_vectors.TopicOptions()
  options = topic_vectors.TopicOptions(
    size=_given("size", defaults.size),
    documents=FLAGS.retrieve,
    words=FLAGS.max_words,
    common=FLAGS.common,
    mask=FLAGS.mask,
    fit=FitOptions(
      epochs=FLAGS.epochs,
      batch=_given("batch", defaults.fit.batch),
      rate=_given("rate", defaults.fit.rate),
      seed=FLAGS.seed,
    ),
    tune_epochs=FLAGS.tune_epochs,
  )
  topic_vectors.check_options(options)
  table = native.read(model_flags.GRAMMAR.value)
  provenance = native.read_provenance(model_flags.GRAMMAR.value)
  source, target = bitext.read_parallel([FLAGS.source, FLAGS.target])
  if FLAGS.documents:
    names = files.read_lines(FLAGS.documents)
    bitext.check_line_count(
      len(names),
      path=FLAGS.documents,
      expected=len(source),
      expected_path=FLAGS.source,
    )
    documents = [topic_vectors.join(names, side) for side in (source, target)]
  else:
    documents = [files.read_lines(path) for path in paths]
  indices = tuple(
    topic_vectors.index_documents(one, options) for one in documents
  )
  if FLAGS.lda:
    model = _mixtures(
      (indices[0], indices[1]),
      (documents[0], documents[1]),
      (source, target),
      (table, provenance),
    )
    _write_topics(model, indices, start)
    return
  store = None
  if FLAGS.workdir:
    told = [*source, *target, *documents[0], *documents[1]]
    store = checkpoint.Partial(_epochs_folder(told, options))
  mesh = None if FLAGS.devices == 1 else parallel.make_mesh(FLAGS.devices)
  encoders = None
  total = 2 * options.fit.epochs + options.tune_epochs
  with progress.steps(label="epochs", total=total) as advance:
    for part, _, level, encoders in topic_vectors.train_encoders(
      (indices[0], indices[1]),
      (source, target),
      options,
      mesh=mesh,
      store=store,
    ):
      if encoders is None:
        advance(1, f"{part} loss {level:.4f}")
  assert encoders is not None  # the last value
  model = topic_features.make_model(
    indices[0], encoders, indices[1], table, provenance
  )
  _write_topics(model, indices, start)


def _mixtures(indices, documents, lines, rules):
  """Topics of rules by latent Dirichlet allocation."""
  from jaxmt.features import topic_features
  from jaxmt.models import topic_mixtures, topic_vectors

  own = topic_mixtures.MixtureOptions()
  options = topic_mixtures.MixtureOptions(
    size=_given("size", own.size),
    rounds=_given("rounds", own.rounds),
    seed=FLAGS.seed,
  )
  topic_mixtures.check_options(options)
  counts = topic_mixtures.joint_counts(indices, documents)
  near = [
    topic_vectors.retrieve(index, side, FLAGS.retrieve)
    for index, side in zip(indices, lines, strict=True)
  ]
  found = topic_mixtures.fit(counts, options)
  return topic_features.make_mixture_model(
    indices[0], found.shares, (near[0], near[1]), *rules
  )


def _write_topics(model, indices, start: float) -> None:
  """Writes topics and says what they are of."""
  from jaxmt.features import sentence_models

  sentence_models.write(FLAGS.output, [model])
  progress.say(
    f"topics of {len(model.keys):,} rules by {len(indices[0]):,} and"
    f" {len(indices[1]):,} documents in {time.perf_counter() - start:.1f} s"
  )


def _similarity() -> None:
  """Learns how similar in meaning the sides of rules are."""
  vector_paths = ("source_vectors", "target_vectors")
  program.check_paths(
    outputs=("output",),
    inputs=(
      *("grammar", "source", "target", "weights", *vector_paths),
      *("lm", "models", "reordering", "trees"),
    ),
    folders=("workdir",),
  )
  program.required(
    grammar=model_flags.GRAMMAR.value,
    source=FLAGS.source,
    target=FLAGS.target,
    output=FLAGS.output,
  )
  if FLAGS.longest < 1:
    raise InputError("--longest must be at least 1")
  parallel.initialize(devices=FLAGS.devices)
  from jaxmt.features import sentence_models
  from jaxmt.models import phrase_pair_training, vector_files
  from jaxmt.text import bitext, kernels
  from jaxmt.train import similarity_training

  start = time.perf_counter()
  own = phrase_pair_training.PhrasePairOptions()
  fit = {
    name: _given(name, getattr(own.tune, name)) for name in ("batch", "rate")
  } | {"seed": FLAGS.seed}
  options = phrase_pair_training.PhrasePairOptions(
    size=_given("size", own.size),
    alpha=FLAGS.alpha,
    unit=FLAGS.unit,
    rebuild=dataclasses.replace(
      own.rebuild, epochs=_given("epochs", own.rebuild.epochs), **fit
    ),
    tune=dataclasses.replace(
      own.tune, epochs=_given("rounds", own.tune.epochs), **fit
    ),
  )
  phrase_pair_training.check_options(options)
  source, target = bitext.read_parallel([FLAGS.source, FLAGS.target])
  given = []
  for name, paths in zip(vector_paths, _vector_files(), strict=True):
    if len(paths) > 1:
      raise InputError(f"--{name} takes one file here")
    given.append(vector_files.read(paths[0]) if paths else None)
  model = model_flags.load_forced_model(FLAGS.weights or "")
  with progress.steps(label="force", total=len(source)) as advance:
    use = similarity_training.used_rules(
      model,
      source,
      target,
      threads=model_flags.THREADS.value or kernels.available_threads(),
      on_done=advance,
    )
  pairs = similarity_training.phrase_pairs(
    model, use.counts, longest=FLAGS.longest
  )
  progress.say(
    f"{len(pairs[0]):,} phrase pairs in derivations of {use.reached:,} of"
    f" {len(source):,} sentence pairs"
  )
  store = None
  if FLAGS.workdir:
    told = [*pairs[0], *pairs[1], repr([x and x.vectors.sum() for x in given])]
    store = checkpoint.Partial(_epochs_folder(told, options))
  mesh = None if FLAGS.devices == 1 else parallel.make_mesh(FLAGS.devices)
  done = []
  total = 2 * options.rebuild.epochs + options.tune.epochs
  with progress.steps(label="epochs", total=total) as advance:
    for done in similarity_training.train(
      pairs,
      options,
      min_count=FLAGS.min_count,
      vectors=(given[0], given[1]),
      mesh=mesh,
      store=store,
    ):
      advance(1, f"{done[0].part} error {done[0].error:.4f}")
  step, learned = done
  sentence_models.write(FLAGS.output, [learned])
  ranked = ""
  if step.ranked is not None:
    ranked = f"; {100 * step.ranked:.1f} % of held-out phrases are nearer to"
    ranked += " their translation than to another"
  progress.say(
    f"{step.number} rounds, joint error {step.error:.4f}{ranked};"
    f" {time.perf_counter() - start:.1f} s"
  )


def _text(path: str, reference_paths: list[str]):
  """Source sentences with their references."""
  from jaxmt.train import scorer_training

  lines = files.read_lines(path)
  reference_lines = references.read_references(
    reference_paths, expected=len(lines), expected_path=path
  )
  return scorer_training.TrainingText(lines=lines, references=reference_lines)


if __name__ == "__main__":
  program.run(main)
