from jaxmt.decode.dependency import oracle
from tests.decode.dependency.phrase_trees_test import decoded, small  # noqa: F401
from tests.reference import lattice_trees as reference


def value(text, references):
  words = tuple(text.split())
  known = oracle._ngrams(())
  for line in references:
    known |= oracle._ngrams(tuple(line.split()))
  found = oracle._ngrams(words)
  matches = [
    sum(
      min(count, known[gram]) for gram, count in found.items() if len(gram) == n
    )
    for n in range(1, 5)
  ]
  sizes = [len(line.split()) for line in references]
  return oracle._bleu(len(words), matches, sizes)


def test_wide_beams_find_the_best_string(decoded):  # noqa: F811
  for one in small(decoded, edges=25):
    texts = {
      " ".join(one.text[edge] for edge in path if one.text[edge])
      for path in reference.paths(one.lattice)
    }
    some = sorted(texts)
    references = [some[0], some[-1] + " more"]
    found = oracle.oracle(one, references, beam=10_000)
    assert found in texts
    assert value(found, references) == max(value(t, references) for t in texts)
    narrow = oracle.oracle(one, references, beam=2)
    assert narrow in texts
