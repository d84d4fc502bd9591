"""Names and units of features, by the toolkit whose weights are used."""

import dataclasses
import math
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class Units:
  """Names and units of the features that are not columns of the table.

  Attributes:
    lm: name of the language model feature.
    lm_scale: its value is this times ln p.
    unknown: name of the count of words the language model does not know.
    words: name of the word penalty.
    per_word: its value for one target word.
    match: name of the count of children whose label is their site's.
    mismatch: name of the count of the others.
    glue: name of the feature of glue rules that join two parts.
    pass_through: name of the feature of copied words.
  """

  lm: str = "LanguageModel"
  lm_scale: float = 1.0
  unknown: str = "LanguageModel_OOV"
  words: str = "WordPenalty"
  per_word: float = -1.0
  match: str = "Match"
  mismatch: str = "Mismatch"
  glue: str = "Glue"
  pass_through: str = "PassThrough"

  @property
  def search_names(self) -> tuple[str, ...]:
    """The features that are not columns of the table."""
    return (self.lm, self.unknown, self.words, self.match, self.mismatch)


DIALECTS: Mapping[str, Units] = {
  "jaxmt": Units(),
  "cdec": Units(lm_scale=1 / math.log(10), per_word=-0.434294),
  "moses": Units(lm="LM0", words="WordPenalty0", unknown="LM0_OOV"),
  "joshua": Units(
    lm="lm_0",
    lm_scale=1 / math.log(10),
    per_word=-0.434294,
    unknown="lm_0_oov",
  ),
  "travatar": Units(lm="lm", words="word", per_word=1.0, unknown="lmunk"),
}
