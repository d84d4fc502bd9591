r"""Estimates an n-gram language model, or scores text with one.

    python launch/lm.py --text=T --order=N --output=LM.arpa [--prune=0,0,1]
    python launch/lm.py --arpa=LM.arpa --score=T [--per_word]

Estimation is modified Kneser-Ney as in KenLM's lmplz. Scores are log10, one
line per sentence, then the total and the perplexities; `</s>` counts as a word,
and unknown words (OOVs) are those that the model does not list. Files may be
gzipped; `-` is standard input or output.
"""

from jaxmt.runtime import program  # isort: skip (first: it answers Ctrl-C)

import itertools
from collections.abc import Sequence

import numpy as np
from absl import flags

from jaxmt.errors import InputError
from jaxmt.lm import arpa_read, arpa_write, kneser_ney, tables, word_ids
from jaxmt.lm.ngram_model import END, UNKNOWN
from jaxmt.text import files, vocabulary
from jaxmt.text.ragged import Ragged

_TEXT = flags.DEFINE_string("text", None, "text to estimate from")
_ORDER = flags.DEFINE_integer(
  "order", None, "longest n-grams, 1 to 6", lower_bound=0
)
_OUTPUT = flags.DEFINE_string("output", "-", "ARPA file, or file of scores")
_PRUNE = flags.DEFINE_list(
  "prune",
  [],
  "drop n-grams seen at most this often, by order; the last number holds for"
  " the orders after it",
)
_FALLBACK = flags.DEFINE_bool(
  "discount_fallback",
  False,
  "use discounts 0.5, 1, 1.5 where the text is too small to estimate them",
)
_SKIP = flags.DEFINE_bool(
  "skip_symbols", False, "leave out <s>, </s> and <unk> where the text has them"
)
_ARPA = flags.DEFINE_string("arpa", None, "model to score with")
_SCORE = flags.DEFINE_string("score", None, "text to score")
_PER_WORD = flags.DEFINE_bool(
  "per_word", False, "print every word: id (0: unknown), n-gram length, log10 p"
)


def main(argv: list[str]) -> None:
  """Does one of the two."""
  del argv
  program.check_paths(outputs=("output",), inputs=("text", "arpa", "score"))
  if _TEXT.value and not _SCORE.value:
    _estimate(_TEXT.value)
  elif _SCORE.value and not _TEXT.value:
    _score(_SCORE.value)
  else:
    raise InputError("give either --text to estimate or --score to score")


def _estimate(path: str) -> None:
  """Text to ARPA file."""
  if _ORDER.value is None:
    raise InputError("--order is required")
  try:
    prune = tuple(int(count) for count in _PRUNE.value)
  except ValueError as error:
    raise InputError(f"--prune: {error}") from error
  config = kneser_ney.EstimateConfig(
    order=_ORDER.value,
    prune=prune,
    fallback=kneser_ney.FALLBACK if _FALLBACK.value else None,
  )
  kneser_ney.check(config)
  sentences, words = word_ids.encode_corpus(
    files.read_lines(path), path=path, skip_symbols=_SKIP.value
  )
  try:
    model = kneser_ney.estimate(sentences, words, config)
  except InputError as error:
    raise InputError(error.cause, path=path) from error
  arpa_write.write_arpa(_OUTPUT.value, model)


def _score(path: str) -> None:
  """ARPA file and text to scores."""
  if not _ARPA.value:
    raise InputError("--arpa is required")
  model = arpa_read.read_arpa(_ARPA.value)
  table = tables.build_tables(model)
  ids, tokens = vocabulary.intern(files.read_lines(path))
  known = tables.word_map(table, tokens)
  scores = tables.score_text(
    table, Ragged(flat=known[ids.flat], offsets=ids.offsets)
  )
  totals, unknown = scores.totals, scores.unknown
  lines = [
    f"Total: {total:.7g} OOV: {count}"
    for total, count in zip(totals.tolist(), unknown.tolist(), strict=True)
  ]
  if _PER_WORD.value:
    words = _words(scores, ids, tokens, model.words)
    lines = [f"{row}\t{line}" for row, line in zip(words, lines, strict=True)]
  with_unknown, without = tables.perplexities(scores)
  lines += [
    f"Total:\t{float(np.sum(totals)):.10g}",
    f"Perplexity including OOVs:\t{with_unknown:.10g}",
    f"Perplexity excluding OOVs:\t{without:.10g}",
    f"OOVs:\t{int(unknown.sum())}",
    f"Tokens:\t{len(scores.words.flat)}",
  ]
  files.write_lines(_OUTPUT.value, lines)


def _words(
  scores: tables.TextScores,
  ids: Ragged,
  tokens: list[str],
  unigrams: Sequence[str],
) -> list[str]:
  """One string per sentence: `word=id length log10 p`, tabs between.

  The id is the word's place among the model's unigrams without `<unk>`, which
  is 0.
  """
  others = (word for word in unigrams if word != UNKNOWN)
  places = {word: place for place, word in enumerate(others, start=1)}
  names = [f"{word}={places.get(word, 0)}" for word in [*tokens, END]]
  which = np.full(len(scores.words.flat), len(tokens))
  inside = np.ones(len(which), bool)
  inside[scores.words.offsets[1:] - 1] = False
  which[inside] = ids.flat
  items = [
    f"{names[word]} {length} {log10:.7g}"
    for word, length, log10 in zip(
      which.tolist(),
      scores.length.tolist(),
      scores.log10.flat.tolist(),
      strict=True,
    )
  ]
  starts = scores.words.offsets.tolist()
  return ["\t".join(items[a:b]) for a, b in itertools.pairwise(starts)]


if __name__ == "__main__":
  program.run(main)
