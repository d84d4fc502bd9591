"""An ARPA model as a dictionary, and back-off scoring word by word."""


def parse(text):
  """Returns `{ngram tuple: (log10 p, log10 back-off)}` of an ARPA file."""
  grams = {}
  order = 0
  for line in text.splitlines():
    fields = line.split()
    if line.startswith("\\"):
      order = int(fields[0][1]) if line.endswith("-grams:") else 0
    elif order and fields:
      backoff = float(fields[order + 1]) if len(fields) > order + 1 else 0.0
      grams[tuple(fields[1 : order + 1])] = (float(fields[0]), backoff)
  return grams


def log10_probability(grams, context, word):
  """Returns log10 p(word | context), for a tuple of words as context."""
  if (word,) not in grams:
    word = "<unk>"
  if (*context, word) in grams:
    return grams[(*context, word)][0]
  if not context:
    return -100.0  # the model has no <unk>
  backoff = grams.get(context, (0.0, 0.0))[1]
  return backoff + log10_probability(grams, context[1:], word)


def sentence(grams, words, *, order, start=("<s>",), end="</s>"):
  """Returns log10 p of each word and of the end; unknown ones are replaced."""
  history = [*start]
  scores = []
  for word in [*words, *([end] if end else [])]:
    context = tuple(history[max(0, len(history) - order + 1) :])
    scores.append(log10_probability(grams, context, word))
    history.append(word if (word,) in grams else "<unk>")
  return scores


def unknown(grams, words):
  """Returns the number of unknown words."""
  return sum((word,) not in grams or word == "<unk>" for word in words)
