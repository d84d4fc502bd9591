"""Weights as Moses reads them."""

import pytest

from jaxmt.decode import loading
from jaxmt.errors import InputError
from jaxmt.features import moses_ini
from jaxmt.features import weights as weight_files
from jaxmt.features.moses_ini import MosesFiles
from tests import util

FILES = MosesFiles(
  table="P.gz", lm="lm.arpa", order=4, reordering="R.gz", distortion=5
)
WEIGHTS = {
  "LexicalReordering0_0": 0.1,
  "LexicalReordering0_1": 0.05,
  "Distortion0": 0.25,
  "LM0": 0.5,
  "WordPenalty0": -1.0,
  "PhrasePenalty0": 0.2,
  "TranslationModel0_0": 0.3,
  "TranslationModel0_1": -1e-7,
  "UnknownWordPenalty0": 1.0,
}


def test_what_is_written_is_read_again():
  lines = moses_ini.make(WEIGHTS, FILES)
  assert weight_files.parse_weights(lines) == WEIGHTS
  limits = weight_files.moses_limits(lines)
  assert limits == {"beam": 100, "pop": 100, "distortion": 5}
  declared = lines[lines.index("[feature]") + 1 : lines.index("[weight]") - 1]
  names = {
    word.partition("=")[2] if "name=" in word else word + "0"
    for line in declared
    for word in line.split()
    if word.startswith("name=") or "=" not in word
  }
  kinds = {"LexicalReordering0", "KENLM0", "PhraseDictionaryMemory0"}
  assert names | kinds == {key.split("_")[0] for key in WEIGHTS} | kinds
  hiero = moses_ini.make(
    {"TranslationModel0_0": 1.0, "TranslationModel1": 0.5, "LM0": 1.0},
    MosesFiles(table="G.gz", lm="lm.arpa", order=4, span=20),
  )
  assert weight_files.moses_limits(hiero)["span"] == 20
  assert "1 T 1" in hiero and any("glue-grammar" in line for line in hiero)


def test_unknown_words_of_the_language_model_are_its_second_weight():
  lines = moses_ini.make({"LM0": 0.5, "LM0_OOV": -2.0}, FILES)
  assert "LM0= 0.5 -2.0" in lines
  assert any("oov-feature=1" in line for line in lines)
  plain = moses_ini.make({"LM0": 0.5, "LM0_OOV": 0.0, "Match": 0.0}, FILES)
  assert plain[-1] == "LM0= 0.5"
  again = moses_ini.replace_weights(plain, {"LM0": 0.25, "Match": 0.0})
  assert again[-1] == "LM0= 0.25"


def test_what_moses_does_not_have_is_refused():
  with pytest.raises(InputError, match="no feature for the weight Glue"):
    moses_ini.make({"Glue": 1.0}, FILES)
  with pytest.raises(InputError, match="every place"):
    moses_ini.make({"TranslationModel0_1": 1.0}, FILES)
  with pytest.raises(InputError, match="no section"):
    moses_ini.replace_weights(["[feature]", "Distortion"], WEIGHTS)


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_of_moses_own_file_all_but_the_weights_stays(kind):
  path = util.corpus("moses-multi30k-de-en") / kind / "moses.ini"
  lines = path.read_text().splitlines()
  weights = loading.read_weights(str(path))
  names = weight_files.parse_weights(lines)
  changed = {name: value + 0.125 for name, value in names.items()}
  out = moses_ini.replace_weights(lines, changed)
  assert weight_files.parse_weights(out) == changed
  place, other = lines.index("[weight]"), out.index("[weight]")
  assert out[:other] == lines[:place]
  assert weight_files.moses_limits(out) == weight_files.moses_limits(lines)
  assert set(names) <= set(weights)
  # Written anew it declares the same features.
  made = moses_ini.make(names, FILES)
  declared = lambda rows: sorted(
    word
    for row in rows[rows.index("[feature]") : rows.index("[weight]")]
    for word in row.split()
    if word.startswith(("name=", "num-features=")) or word in moses_ini._PLAIN
  )
  assert declared(made) == declared(lines)
