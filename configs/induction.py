"""Learning to parse from tags alone: starts of EM over languages.

    python launch/induce.py --config=configs/induction.py --workdir=D \
      --config.data=FOLDER

FOLDER holds LANGUAGE.train.gz and LANGUAGE.test.gz of each language. The base
case is table B.2 of Gimpel (2012): training and both tests without punctuation
and with gold tags, training sentences of at most 10 words.
"""

import ml_collections

_LANGUAGES = (
  *("eu", "bg", "zh", "cs", "da", "nl", "en", "de", "el", "hu"),
  *("it", "ja", "pt", "sl", "es", "sv", "tr"),
)
# Table B.2: accuracies of test sentences of at most 10 words and of all, in the
# order of the languages.
_PUBLISHED = {
  "uniform": (
    "24/21 32/26 44/40 32/30 24/19 21/21 21/18 31/24 37/32 23/18"
    " 31/24 35/30 49/36 20/20 29/24 26/22 33/30"
  ),
  "harmonic": (
    "32/26 48/40 38/33 31/29 34/23 39/33 44/33 47/37 50/41 23/20"
    " 32/24 39/31 44/28 33/27 19/11 46/33 39/36"
  ),
  "ccv1": (
    "22/21 34/27 46/45 33/31 19/14 24/24 45/31 46/31 51/45 32/28"
    " 34/25 42/27 50/38 30/25 41/33 45/33 37/29"
  ),
  "ccv2": (
    "26/25 34/26 46/44 50/40 29/18 50/43 54/43 49/33 50/45 60/46"
    " 55/48 49/31 50/38 22/21 57/50 46/32 31/22"
  ),
}


def get_config() -> ml_collections.ConfigDict:
  """Returns the settings."""
  config = ml_collections.ConfigDict()
  config.data = ""
  config.languages = _LANGUAGES
  config.starts = ("uniform", "harmonic", "ccv1", "ccv2", "random")
  config.models = ("dmv",)  # and "ccv1", "ccv2": on their own, as parsers
  config.seeds = 10  # of random starts
  config.max_length = 10
  config.iterations = 200
  config.concave_iterations = 100
  config.verbs = ("VERB", "AUX", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD")
  config.published = ml_collections.ConfigDict(
    {
      start: dict(zip(_LANGUAGES, text.split(), strict=True))
      for start, text in _PUBLISHED.items()
    }
  )
  return config
